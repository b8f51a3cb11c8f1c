"""A migration did not run, may not run, or cannot be undone."""

from __future__ import annotations

from catalog.errors.root import CatalogError


class StepRefusedError(CatalogError):
    def __init__(self, step: str, rule: str, found: str, count: int, version: int) -> None:
        self.step, self.rule, self.found, self.count, self.version = step, rule, found, count, version
        super().__init__(
            f"{step} was not applied: {found}",
            f"a rule of every step is broken, {count} times: {rule}",
            f"mend the migration or the rows; the store is unchanged, at version {version}",
            step,
            rule,
            found,
            count,
            version,
        )


class StepDisturbedError(CatalogError):
    def __init__(self, step: str, collections: str, attempts: int) -> None:
        self.step, self.collections, self.attempts = step, collections, attempts
        super().__init__(
            f"{step} was not applied: {collections} changed while it ran, {attempts} times in a row",
            "another process writes to what the step rewrites",
            "stop the members of the old version, and start again",
            step,
            collections,
            attempts,
        )


class StepTimedOutError(CatalogError):
    def __init__(self, step: str, timeout_s: float, version: int) -> None:
        self.step, self.timeout_s, self.version = step, timeout_s, version
        super().__init__(
            f"{step} was not applied: {timeout_s} s are over",
            "that much time was given for all of it",
            f"give it more time; the store is unchanged, at version {version}",
            step,
            timeout_s,
            version,
        )


class UnwrittenStepError(CatalogError):
    def __init__(self, step: str, reason: str) -> None:
        self.step, self.reason = step, reason
        super().__init__(
            f"{step} cannot run: {reason}",
            "a migration must say what happens to every collection that changes",
            f"write {step}.py, and run the gate",
            step,
            reason,
        )


class ChecksumError(CatalogError):
    def __init__(self, steps: str) -> None:
        self.steps = steps
        super().__init__(
            f"migrations that the store has behind it are not those of this build: {steps}",
            "an applied migration was edited, so nobody knows what rows of its version look like",
            "run the build that applied them; if the edit is right, `catalog repair --checksums` records it",
            steps,
        )


class UndoneError(CatalogError):
    def __init__(self, version: int, current: int) -> None:
        self.version, self.current = version, current
        super().__init__(
            f"the upgrade from version {version} was undone, and this build would apply it again",
            "whoever undid it had a reason",
            f"run a build of version {version}, or have it applied again: `catalog start --reapply`, or reapply=True",
            version,
            current,
        )


class NotUndoableError(CatalogError):
    def __init__(self, step: str, reason: str) -> None:
        self.step, self.reason = step, reason
        super().__init__(
            f"{step} cannot be undone: {reason}",
            "an undo gives back the earlier rows exactly, or does not happen",
            "go on with this version, or restore a copy of the store from before the step",
            step,
            reason,
        )


class PreflightError(CatalogError):
    def __init__(self, uri: str, reason: str, fix: str) -> None:
        self.uri, self.reason, self.fix = uri, reason, fix
        super().__init__(
            f"{uri} was not upgraded: {reason}",
            "looked at before anything was touched or fenced",
            fix,
            uri,
            reason,
            fix,
        )


class SparkJobError(CatalogError):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"a job on Spark failed: {reason}",
            "its tasks were tried as often as Spark is set to, and nothing of them was committed",
            "mend the cause; Spark's own log says more",
            reason,
        )
