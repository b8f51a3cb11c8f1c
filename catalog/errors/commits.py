"""Errors of commits and of reads at a ts: refused, failed, uncertain, or out of the readable range."""

from __future__ import annotations

from catalog.errors.base import CatalogError, RetryableError


class ConflictError(RetryableError):
    uri: str
    expected: int
    found: int
    what = "commit refused: {uri} is at ts {found}, and the commit was prepared for ts {expected}"
    why = "another process committed first"
    next = "read again and repeat the change"


class CommitFailedError(RetryableError):
    uri: str
    version: int
    reason: str
    what = "commit {version} of {uri} did not happen: {reason}"
    why = "the log was read again, and the commit is not in it"
    next = "remove the cause and repeat the change"


class TransactionConflictError(RetryableError):
    began: int
    now: int
    what = "transaction refused: rows that it read at ts {began} have changed by ts {now}"
    why = "another transaction committed first"
    next = "run the transaction again from the start"


class TimedOutError(RetryableError):
    waited_for: str
    waited_s: float
    what = "gave up after waiting {waited_s} s for {waited_for}"
    why = "the timeout has passed; nothing was changed"
    next = "allow more time, or end what was waited for"


class DiagnosisOutdatedError(RetryableError):
    uri: str
    thing: str
    what = "nothing was repaired: {thing} of {uri} is no longer as it was diagnosed"
    why = "another process has written or repaired it since"
    next = "diagnose the store again"


class IndeterminateError(CatalogError):
    uri: str
    version: int
    txid: str
    reason: str
    what = "it is not known whether commit {version} of {uri} happened: {reason}"
    why = "the storage's answer was lost, and the log cannot be read"
    next = "when the storage answers again, check whether log entry {version} carries {txid}"


class FencedError(CatalogError):
    held: tuple[int, int]
    current: tuple[int, int]
    what = (
        "commit refused: this process holds generation {held[0]}, epoch {held[1]}; "
        "the store is at generation {current[0]}, epoch {current[1]}"
    )
    why = "another process opened this catalog as leader"
    next = "stop this process; a retry cannot succeed"


class StaleGenerationError(CatalogError):
    wanted: int
    current: int
    what = "cannot lead with deploy generation {wanted}: the store is at generation {current}"
    why = "a newer deployment has taken over the store"
    next = "stop this process; an older deployment never takes over from a newer one"


class RetiredError(CatalogError):
    uri: str
    version: int
    earliest: int
    what = "ts {version} of {uri} can no longer be read"
    why = "its retention has ended"
    next = "the earliest ts that can be read is {earliest}"

    def templates(self) -> tuple[str, str, str]:
        if str(self.version).startswith("-"):
            return "there is no ts {version}", "ts are the numbers of commits, from 0 on", self.next
        return super().templates()


class NotYetInitializedError(CatalogError):
    uri: str
    ts: int
    first: int
    what = "{uri} had no rows yet at ts {ts}"
    why = "it was made there, and initialised at ts {first}"
    next = "read at ts {first} or later; `catalog history` lists them with their times"


class NoSuchVersionError(CatalogError):
    uri: str
    version: int
    newest: int
    what = "ts {version} of {uri} cannot be read"
    why = "nothing has been committed there yet"
    next = "the newest ts that can be read is {newest}"


class StepRunningError(CatalogError):
    uri: str
    step: int
    what = "nothing was vacuumed in {uri}: the migration to version {step} is running"
    why = "the files that it writes are not committed yet, and the files that it reads may be retired"
    next = "wait until it has ended; if its process is dead, start a leader, which resumes it"


class InvalidChangeError(CatalogError):
    reason: str
    what = "change refused: {reason}"
    why = "the log would accept it without an error, and the store would be wrong from then on"
    next = "this is a bug in the program; please report it"


class ReadOnlyError(CatalogError):
    mode: str
    what = "nothing can be written: the store is open in mode {mode}"
    why = "that mode never changes the store"
    next = "open it as leader or member to write, or as a savepoint to try a change"


class ClosedError(CatalogError):
    uri: str
    what = "this process has closed {uri}"
    why = "another process may lead the store by now"
    next = "open the store again"
