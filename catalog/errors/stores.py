"""A store is not there, not ours, out of reach or damaged."""

from __future__ import annotations

from catalog.errors.root import CatalogError, DamagedError


class NotAStoreError(CatalogError):
    WHY = "a store is made by a leader, in an empty place"
    NEXT = "name the store's own folder; `catalog init`, or a leader, makes a new store in an empty one"

    def __init__(self, uri: str, found: str) -> None:
        self.uri, self.found = uri, found
        super().__init__(f"{uri} is no store that this can open: {found}", self.WHY, self.NEXT, uri, found)


class DamagedIdentityError(NotAStoreError):
    WHY = "its storage changed store.json, or something other than this program wrote it"
    NEXT = "restore that file from a copy of the store"


class OtherProjectError(NotAStoreError):
    WHY = "its rows have the types of that project"
    NEXT = "run this in the folder of that project, or name it as `project` in [tool.catalog] or CATALOG_PROJECT"


class BeingRemovedError(CatalogError):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} is being removed",
            "its removal began and did not finish, so some of its files are gone",
            "finish the removal: remove the store once more",
            uri,
        )


class CopyTargetError(CatalogError):
    def __init__(self, uri: str, found: str, fix: str) -> None:
        self.uri, self.found, self.fix = uri, found, fix
        super().__init__(
            f"nothing was copied to {uri}: {found}",
            "a copy is made in an empty place of its own, so that it is never mixed with anything else",
            fix,
            uri,
            found,
            fix,
        )


class UnreadableRowError(CatalogError):
    def __init__(self, uri: str, collection: str, key: str, found: str) -> None:
        self.uri, self.collection, self.key, self.found = uri, collection, key, found
        where = f"a row of `{collection}` cannot be read: {key}" if key else f"`{collection}` cannot be read"
        super().__init__(
            f"nothing of {uri} was copied: {where}",
            f"{found}; what cannot be read cannot be anonymised",
            "mend what `catalog debug fsck` finds, or copy it without --anonymise",
            uri,
            collection,
            key,
            found,
        )


class NoStoreError(CatalogError):
    def __init__(self, uri: str, found: str) -> None:
        self.uri, self.found = uri, found
        super().__init__(
            f"there is no stash at {uri}: {found}",
            "a stash is a folder with a log in it, made when its store is initialised",
            "name the store's own folder, or initialise a store there",
            uri,
            found,
        )


class NotInitializedError(CatalogError):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(f"{uri} holds nothing yet", "only a leader initialises a store", "open it as leader once", uri)


class ForeignTableError(CatalogError):
    def __init__(self, uri: str, found: str) -> None:
        self.uri, self.found = uri, found
        super().__init__(
            f"{uri} is no stash of ours: {found}",
            "only this program may write to a stash, or nobody could vouch for what it holds",
            "name the store's own folder; if somebody wrote to it, restore a copy from before that",
            uri,
            found,
        )


class StoreUnreachableError(CatalogError):
    WHY = "the storage refused or did not answer"
    NEXT = "check its permissions and connection; what is committed is untouched"

    def __init__(self, place: str, verb: str, reason: str) -> None:
        self.place, self.verb, self.reason = place, verb, reason
        super().__init__(f"cannot {verb} {place}: {reason}", self.WHY, self.NEXT, place, verb, reason)


class StoreReadOnlyError(StoreUnreachableError):
    WHY = "this process may only read there"
    NEXT = "give it the right to write, or open the store read-only"


class StoreFullError(StoreUnreachableError):
    WHY = "the storage is full"
    NEXT = "free some space and repeat; what is committed is untouched"


class LostStashError(DamagedError):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"the stash of {uri} is gone",
            "the store was led before, so there was one; it is not taken for a new store",
            "restore a copy of the store, or remove what is left of it: `catalog clean`",
            uri,
        )


class TornLogError(DamagedError):
    def __init__(self, uri: str, version: int, found: str) -> None:
        self.uri, self.version, self.found = uri, version, found
        super().__init__(
            f"log entry {version} of {uri} is damaged: {found}",
            "the machine stopped before the entry was durable, or its storage lost it",
            "if it is the newest entry, it was never acknowledged: `catalog repair` sets it aside; else restore a copy",
            uri,
            version,
            found,
        )


class NotRepairableError(DamagedError):
    def __init__(self, uri: str, version: int, obstacle: str) -> None:
        self.uri, self.version, self.obstacle = uri, version, obstacle
        super().__init__(
            f"log entry {version} of {uri} is damaged and cannot be set aside: {obstacle}",
            "only an entry that nobody was told of can be left out",
            "restore that entry, or a copy of the store",
            uri,
            version,
            obstacle,
        )


class CorruptCheckpointError(DamagedError):
    def __init__(self, uri: str, version: int, found: str) -> None:
        self.uri, self.version, self.found = uri, version, found
        super().__init__(
            f"checkpoint {version} of {uri} is damaged: {found}",
            "its storage changed it, or the machine stopped before it was durable",
            "if the log entries before it are there, checkpoint again; else restore that file, or a copy of the store",
            uri,
            version,
            found,
        )


class MissingFileError(DamagedError):
    def __init__(self, uri: str, path: str) -> None:
        self.uri, self.path = uri, path
        super().__init__(
            f"{path} of {uri} is not there, and the log refers to it",
            "something other than this program removed it",
            "restore that file, or a copy of the store",
            uri,
            path,
        )


class CorruptFileError(DamagedError):
    def __init__(self, uri: str, path: str, found: str) -> None:
        self.uri, self.path, self.found = uri, path, found
        super().__init__(
            f"{path} of {uri} is damaged: {found}",
            "its storage changed it after it was written",
            "restore that file, or a copy of the store",
            uri,
            path,
            found,
        )


class UndecodableRowError(DamagedError):
    def __init__(self, message: str, row: int, head: str, reason: str) -> None:
        self.message, self.row, self.head, self.reason = message, row, head, reason
        super().__init__(
            f"row {row} is no {message}, it begins with {head or 'nothing'}: {reason}",
            "its storage changed it, or something other than this program wrote it",
            "restore a copy from before that",
            message,
            row,
            head,
            reason,
        )
