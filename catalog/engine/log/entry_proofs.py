"""Proofs of what a damaged entry held: by its own digest, or by the digest of a state that it leads to.

Whatever is guessed counts only if a digest that was written with the entry, or after it, agrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, combinations

from catalog.engine.log.commit_rules import committed
from catalog.engine.log.data_files import file_fence
from catalog.engine.log.delta_entries import commit_entry, is_plausible, named_state, parse_entry
from catalog.engine.log.digests import state_text
from catalog.engine.log.protocol import AppTxn, Commit, CommitRequest, DataFile, FileKind, LogState, Operation
from catalog.engine.log.state_reader import StateReader
from catalog.errors import CatalogError

_FILES_MAX = 10
"""Files of a lost commit that are tried in all combinations."""
_TRIED_BYTES_MAX = 8 * 1024
"""Bytes of an entry whose bits are tried if no line of it is implausible by itself; a dozen files have fewer."""
_REBUILT = {"rebuilt": "from its files; who committed it, and when, is not known"}


def with_one_bit_flipped(uri: str, version: int, raw: bytes) -> bytes | None:
    """Return the entry that one flipped bit was altered from; its own digest proves it.

    If lines are implausible by themselves, the bit is in them. Else every bit is tried, unless the entry is too long.
    """
    lines, start = raw.splitlines(keepends=True), 0
    suspects = [number for number, line in enumerate(lines) if not is_plausible(line)]
    if suspects:
        lines, before = lines[suspects[0] : suspects[-1] + 1], lines[: suspects[0]]
        start = sum(map(len, before))
    altered = bytearray(b"".join(lines))
    if len(altered) > _TRIED_BYTES_MAX:
        return None
    head, tail = raw[:start], raw[start + len(altered) :]
    for position in range(8 * len(altered)):
        altered[position // 8] ^= 1 << position % 8
        if all(map(is_plausible, altered.splitlines())):
            whole = head + altered + tail
            try:
                if parse_entry(uri, version, whole).state_digest:
                    return whole
            except CatalogError:
                pass
        altered[position // 8] ^= 1 << position % 8
    return None


def rebuilt(reader: StateReader, before: LogState, raw: bytes, orphans: Sequence[DataFile]) -> bytes | None:
    """Return an entry of files that are there, if it leads to the state that the lost one, or a later one, names."""
    version, wanted = before.version + 1, named_state(raw)
    following = _up_to_digest(reader, version + 1)
    for change in _guesses(before, orphans):
        state = before.after(committed(version, change, 0))
        if wanted == state_text(state.digest) or _leads_on(state, following):
            return commit_entry(before, change, reader.commit(before.version).timestamp_ms)
    return None


def _guesses(before: LogState, orphans: Sequence[DataFile]) -> Iterator[CommitRequest]:
    """Yield commits after a state that may have written the files: of transactions and leaders, then maintenance."""
    guess = partial(CommitRequest, txid=f"rebuilt/{before.version + 1}", details=_REBUILT)
    tails = [file for file in orphans if file.kind is FileKind.TAIL][:_FILES_MAX]
    bases = [file for file in orphans if file.kind is FileKind.BASE]
    fences = sorted({fence for file in tails if (fence := file_fence(file.path)) > before.fence})
    leads = [{AppTxn.DEPLOY_GENERATION: own[0], AppTxn.EPOCH: own[1]} for own in fences]
    for adds in _subsets(tails):
        yield guess(Operation.TRANSACTION, adds=adds)
        yield from (guess(Operation.FENCE, adds=adds, app_txns=marks) for marks in leads)
    for name in sorted({file.collection for file in before.files.values()}):
        merged = tuple(file for file in bases if file.collection == name)
        for kind in (None, FileKind.TAIL):
            yield guess(Operation.CONSOLIDATE, adds=merged, removes=tuple(before.files_of(name, kind)))
    removes = tuple(own for name in sorted({file.collection for file in bases}) for own in before.files_of(name))
    marks = {AppTxn.STASH_VERSION: (before.stash_version or 0) + 1, AppTxn.RUNNING_STEP: 0}
    yield guess(Operation.MIGRATE, adds=(*tails, *bases), removes=removes, app_txns=marks)
    for frontier in range(before.frontier + 1, before.version + 2):
        yield guess(Operation.RETAIN, app_txns={AppTxn.FRONTIER: frontier})


def _up_to_digest(reader: StateReader, version: int) -> list[Commit]:
    """Return the commits from a version to the first that names its state; none if there is no such one."""
    found: list[Commit] = []
    try:
        while not found or not found[-1].state_digest:
            found.append(reader.commit(version + len(found)))
    except CatalogError:
        return []  # they prove nothing
    return found


def _leads_on(state: LogState, following: Sequence[Commit]) -> bool:
    """Tell if a state is the one that the next commits were made after."""
    for commit in following:
        if not state.files.keys() >= {*commit.removed_paths}:
            return False
        state = state.after(commit)
    return bool(following) and following[-1].state_digest == state_text(state.digest)


def _subsets(files: Sequence[DataFile]) -> Iterator[tuple[DataFile, ...]]:
    """Yield every choice of files, those with most of them first."""
    return chain.from_iterable(combinations(files, count) for count in range(len(files), -1, -1))
