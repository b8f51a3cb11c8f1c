"""Errors of stores: missing, of another kind, out of reach, or damaged."""

from __future__ import annotations

from catalog.errors.base import CatalogError, DamagedError


class NotAStoreError(CatalogError):
    uri: str
    found: str
    what = "{uri} is not a store that this build can open: {found}"
    why = "a store is a folder or prefix with a store.json, and `catalog init` or the first start makes it"
    next = "check the address; `catalog init` makes a new store in an empty place"


class DamagedIdentityError(NotAStoreError):
    why = "its storage changed store.json, or another program wrote it"
    next = "restore that file from a copy of the store"


class OtherProjectError(NotAStoreError):
    why = "its rows have the types of that project"
    next = "run this in the folder of that project, or name it as `project` in [tool.catalog] or CATALOG_PROJECT"


class NotEmptyError(NotAStoreError):
    what = "no store was generated at {uri}: it holds {found}"
    why = "a store is generated in an empty place, so that it is never mixed with other files"
    next = "name a folder that is empty or does not exist yet"


class BeingRemovedError(CatalogError):
    uri: str
    what = "{uri} is being removed"
    why = "its removal began and did not finish, so some of its files are gone"
    next = "finish the removal: remove the store once more"


class CopyTargetError(CatalogError):
    uri: str
    found: str
    fix: str
    what = "nothing was copied to {uri}: {found}"
    why = "a copy is made in an empty place of its own, so that it is never mixed with other files"


class UnreadableRowError(CatalogError):
    uri: str
    collection: str
    key: str
    found: str
    what = "nothing of {uri} was copied: {place}"
    why = "{found}; rows that cannot be read cannot be anonymised"
    next = "repair what `catalog debug fsck` finds, or copy the store without --anonymise"

    @property
    def place(self) -> str:
        if self.key:
            return f"a row of `{self.collection}` cannot be read: {self.key}"
        return f"`{self.collection}` cannot be read"


class NoStoreError(CatalogError):
    uri: str
    found: str
    what = "there is no stash at {uri}: {found}"
    why = "a stash is a folder with a log in it, made when its store is initialised"
    next = "name the store's own folder, or initialise a store there"


class NotInitializedError(CatalogError):
    uri: str
    what = "{uri} is still empty"
    why = "only a leader initialises a store"
    next = "open it as leader once"


class ForeignTableError(CatalogError):
    uri: str
    found: str
    what = "{uri} is no stash of ours: {found}"
    why = "only this program may write to a stash; otherwise its content cannot be trusted"
    next = "name the store's own folder; if another program wrote to it, restore a copy from before that"


class StoreUnreachableError(CatalogError):
    place: str
    verb: str
    reason: str
    what = "cannot {verb} {place}: {reason}"
    why = "the storage refused or did not answer"
    next = "check its permissions and connection; everything committed is unchanged"


class NoAddressError(StoreUnreachableError):
    why = "a store is in a folder, or in a prefix of an object store: s3, gs, az and their kin"
    next = "name one of those, such as /srv/catalog or s3://bucket/environment; nothing was read or written"


class MissingClientError(StoreUnreachableError):
    why = "folders need no client; object stores need the extra `s3`, on this machine and on the executors"
    next = "pip install 'stash-catalog[s3]'"


class NotAFolderError(StoreUnreachableError):
    why = "a store is a folder, and a file, or a name that no file can have, is in its place"
    next = "name a folder that exists, or one that can be made; nothing was written"


class StoreReadOnlyError(StoreUnreachableError):
    why = "this process may only read there"
    next = "give it permission to write, or open the store read-only"


class StoreFullError(StoreUnreachableError):
    why = "the storage is full"
    next = "free some space and repeat; everything committed is unchanged"


class NotExclusiveError(CatalogError):
    uri: str
    what = "{uri} cannot hold a store: it lets a second writer replace a file that it must refuse"
    why = (
        "a commit takes its number by a write that fails if another one was first: a conditional put "
        "(`If-None-Match`) of an object store, a hard link in a folder; here two commits could take one number, "
        "and one of them would be lost"
    )
    next = (
        "use a storage that keeps this condition, or take away the proxy or the mount option that drops it; "
        "nothing was written to the store"
    )


class LostStashError(DamagedError):
    uri: str
    what = "the stash of {uri} is gone"
    why = "the store had a leader before, so there was a stash; it is not treated as a new store"
    next = "restore a copy of the store, or remove what is left of it: `catalog clean`"


class TornLogError(DamagedError):
    uri: str
    version: int
    found: str
    what = "log entry {version} of {uri} is damaged: {found}"
    why = "the machine stopped before the entry was durable, or its storage lost it"
    next = "`catalog repair` restores it if that can be proven right, and says what is lost otherwise"


class AlteredEntryError(DamagedError):
    uri: str
    version: int
    found: str
    what = "log entry {version} of {uri} was altered after it was written: {found}"
    why = "its storage changed some of its bytes, or another program edited it"
    next = "`catalog repair` restores it if that can be proven right, and says what is lost otherwise"


class StateLeftOutError(DamagedError):
    uri: str
    version: int
    what = "log entry {version} of {uri} does not follow from what this process has read"
    why = "the log was repaired without a damaged commit that this process knew, or an entry was replaced by another"
    next = "open the store again; this process writes nothing more. If that fails too: `catalog repair`"


class NotRepairableError(DamagedError):
    uri: str
    version: int
    obstacle: str
    what = "log entry {version} of {uri} is damaged and cannot be repaired: {obstacle}"
    why = "nothing in the store says what it held"
    next = "restore that entry, or a copy of the store"


class LossNotAcceptedError(DamagedError):
    uri: str
    version: int
    lost: str
    what = "log entry {version} of {uri} is damaged; a repair would lose {lost}"
    why = "its commit was acknowledged, and nothing in the store proves what it held"
    next = "restore that entry, or a copy of the store; if the loss is acceptable, `catalog repair --accept-loss`"


class CorruptCheckpointError(DamagedError):
    uri: str
    version: int
    found: str
    what = "checkpoint {version} of {uri} is damaged: {found}"
    why = "its storage changed it, or the machine stopped before it was durable"
    next = "if the log entries before it exist, checkpoint again; else restore that file, or a copy of the store"


class CheckpointMismatchError(DamagedError):
    uri: str
    older: int
    newer: int
    what = "nothing was expired in {uri}: checkpoints {older} and {newer} disagree"
    why = "one of them is damaged, and the log entries before them are needed to find out which"
    next = "compare both with the log entries, and restore the one that is wrong"


class MissingFileError(DamagedError):
    uri: str
    path: str
    what = "{path} of {uri} is missing, and the log refers to it"
    why = "another program removed it"
    next = "restore that file, or a copy of the store"


class FilesLostError(DamagedError):
    uri: str
    version: int
    path: str
    what = "commit {version} of {uri} is in the log, but its file {path} is gone"
    why = "another program, or a process of an earlier build whose clock is ahead, deleted it during the commit"
    next = "stop that process, then restore a copy of the store from before; do not repeat the transaction here"


class CorruptFileError(DamagedError):
    uri: str
    path: str
    found: str
    what = "{path} of {uri} is damaged: {found}"
    why = "its storage changed it after it was written"
    next = "restore that file, or a copy of the store"


class UndecodableRowError(DamagedError):
    message: str
    row: int
    head: str
    reason: str
    what = "row {row} is no {message}, it begins with {first_bytes}: {reason}"
    why = "its storage changed it, or another program wrote it"
    next = "restore a copy from before that"

    @property
    def first_bytes(self) -> str:
        return self.head or "nothing"
