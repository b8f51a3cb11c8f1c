"""A commit did not happen, may not happen, or asks for what is no longer there."""

from __future__ import annotations

from catalog.errors.root import CatalogError, RetryableError


class ConflictError(RetryableError):
    def __init__(self, uri: str, expected: int, found: int) -> None:
        self.uri, self.expected, self.found = uri, expected, found
        super().__init__(
            f"commit refused: {uri} is at {found}, this was made for {expected}",
            "somebody else committed first",
            "read again and repeat the change",
            uri,
            expected,
            found,
        )


class CommitFailedError(RetryableError):
    def __init__(self, uri: str, version: int, reason: str) -> None:
        self.uri, self.version, self.reason = uri, version, reason
        super().__init__(
            f"commit {version} of {uri} did not happen: {reason}",
            "the log was read again, and the commit is not in it",
            "mend the cause and repeat the change",
            uri,
            version,
            reason,
        )


class TransactionConflictError(RetryableError):
    def __init__(self, began: int, now: int) -> None:
        self.began, self.now = began, now
        super().__init__(
            f"transaction refused: it read ts {began}, and what it depends on was changed by ts {now}",
            "another transaction committed first",
            "run the transaction again from the start",
            began,
            now,
        )


class TimedOutError(RetryableError):
    def __init__(self, waited_for: str, waited_s: float) -> None:
        self.waited_for, self.waited_s = waited_for, waited_s
        super().__init__(
            f"gave up after {waited_s} s of waiting for {waited_for}",
            "the time that was given for all of it is over; nothing was changed",
            "allow more time, or end what was waited for",
            waited_for,
            waited_s,
        )


class DiagnosisOutdatedError(RetryableError):
    def __init__(self, uri: str, thing: str) -> None:
        self.uri, self.thing = uri, thing
        super().__init__(
            f"nothing was repaired: {thing} of {uri} is no longer what was found",
            "somebody else wrote or repaired it meanwhile",
            "diagnose the store again",
            uri,
            thing,
        )


class IndeterminateError(CatalogError):
    def __init__(self, uri: str, version: int, txid: str, reason: str) -> None:
        self.uri, self.version, self.txid, self.reason = uri, version, txid, reason
        super().__init__(
            f"it is not known whether commit {version} of {uri} happened: {reason}",
            "the answer was lost and the log cannot be read",
            f"when the storage answers again, look whether entry {version} carries {txid}",
            uri,
            version,
            txid,
            reason,
        )


class FencedError(CatalogError):
    def __init__(self, held: tuple[int, int], current: tuple[int, int]) -> None:
        self.held, self.current = held, current
        super().__init__(
            f"commit refused: this process holds generation {held[0]}, epoch {held[1]}; "
            f"the store is at generation {current[0]}, epoch {current[1]}",
            "another process opened this catalog as leader",
            "stop this process; a retry cannot succeed",
            held,
            current,
        )


class StaleGenerationError(CatalogError):
    def __init__(self, wanted: int, current: int) -> None:
        self.wanted, self.current = wanted, current
        super().__init__(
            f"cannot lead with deploy generation {wanted}: the store is at generation {current}",
            "a newer deployment has taken the store over",
            "stop this process; an older deployment never takes over from a newer one",
            wanted,
            current,
        )


class RetiredError(CatalogError):
    def __init__(self, uri: str, version: int, earliest: int) -> None:
        self.uri, self.version, self.earliest = uri, version, earliest
        super().__init__(
            f"ts {version} of {uri} can no longer be read",
            "its retention has ended",
            f"the earliest ts that can be read is {earliest}",
            uri,
            version,
            earliest,
        )


class NoSuchVersionError(CatalogError):
    def __init__(self, uri: str, version: int, newest: int) -> None:
        self.uri, self.version, self.newest = uri, version, newest
        super().__init__(
            f"ts {version} of {uri} cannot be read",
            "nothing was committed there yet",
            f"the newest ts that can be read is {newest}",
            uri,
            version,
            newest,
        )


class StepRunningError(CatalogError):
    def __init__(self, uri: str, step: int) -> None:
        self.uri, self.step = uri, step
        super().__init__(
            f"nothing was vacuumed in {uri}: the migration to version {step} is running",
            "its files are not committed yet, and those it reads may be retired",
            "wait until it has ended; if its process is dead, start a leader, which resumes it",
            uri,
            step,
        )


class InvalidChangeError(CatalogError):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"change refused: {reason}",
            "the log would accept it without a word, and the store would be wrong from then on",
            "this is an error of the program; report it",
            reason,
        )


class ReadOnlyError(CatalogError):
    def __init__(self, mode: str) -> None:
        self.mode = mode
        super().__init__(
            f"nothing can be written: the store is open in mode {mode}",
            "that mode promises to leave the store as it is",
            "open it as leader or member to write, or as a savepoint to try",
            mode,
        )


class ClosedError(CatalogError):
    def __init__(self, uri: str) -> None:
        self.uri = uri
        super().__init__(
            f"{uri} was closed by this process",
            "whoever waited to lead it may do so since",
            "open the store again",
            uri,
        )
