"""Errors of migrations: refused, failed, or impossible to undo."""

from __future__ import annotations

from catalog.errors.base import CatalogError


class StepRefusedError(CatalogError):
    step: str
    rule: str
    found: str
    count: int
    version: int
    what = "{step} was not applied: {found}"
    why = "a rule for every migration is broken{times}: {rule}"
    next = (
        "correct the migration or the rows, and try it on a copy: `catalog debug upgrade-check`; "
        "the store is unchanged, at version {version}"
    )

    @property
    def times(self) -> str:
        return f" by {self.count} rows" if self.count != 1 else ""


class MigrationFailedError(CatalogError):
    step: str
    found: str
    what = "{step} was not applied: {found}"
    why = "the gate reads what a migration declares; what its functions do is seen only when they run"
    next = "correct {step}.py, and try it on a copy: `catalog debug upgrade-check`; the store is unchanged"


class StepDisturbedError(CatalogError):
    step: str
    collections: str
    attempts: int
    what = "{step} was not applied: {collections} changed while it ran, {attempts} times in a row"
    why = "another process writes to the collections that the migration rewrites"
    next = "stop the members of the old version, and start again"


class StepTimedOutError(CatalogError):
    step: str
    timeout_s: float
    version: int
    what = "{step} was not applied within {timeout_s} s"
    why = "the timeout covers the whole upgrade"
    next = "allow more time; the store is unchanged, at version {version}"


class UnwrittenStepError(CatalogError):
    step: str
    reason: str
    what = "{step} cannot run: {reason}"
    why = "a migration must declare what happens to every collection that changes"
    next = "write {step}.py, and run the gate"


class ChecksumError(CatalogError):
    steps: str
    what = "these migrations of the store differ from those of this build: {steps}"
    why = "an applied migration was edited, so the rows of its version may not be what this build expects"
    next = "run the build that applied them; if the edit is right, `catalog repair --checksums` records it"


class UndoneError(CatalogError):
    version: int
    current: int
    what = "the migration from version {version} was undone, and is applied again only on request"
    why = "it was undone on purpose, and a start without that request would reverse the undo"
    next = "run a build of version {version}, or apply it again: `catalog apply --reapply`, or reapply=True in Python"


class NotUndoableError(CatalogError):
    step: str
    reason: str
    what = "{step} cannot be undone: {reason}"
    why = "an undo restores the earlier rows exactly, or does not happen; nothing was undone"
    next = "continue with this version, or restore a copy of the store from before the step"


class UndoStoppedError(CatalogError):
    target: int
    version: int
    undone: tuple[str, ...]
    reason: str
    latest: int
    what = "the undo to version {target} stopped half way, and the store is at version {version}: {reason}"
    why = "each step is undone in a commit of its own; undone, and to stay so: {undone}"
    next = (
        "remove the cause and go on with `catalog undo --to {target}`, "
        "or back to version {latest} with `catalog apply --reapply`"
    )


class PreflightError(CatalogError):
    uri: str
    reason: str
    fix: str
    what = "{uri} was not upgraded: {reason}"
    why = "this was checked before anything was changed or fenced"


class SparkJobError(CatalogError):
    reason: str
    fix: str = "remove the cause; Spark's own log has the details"
    what = "a job on Spark failed: {reason}"
    why = "Spark retried its tasks as often as it is configured to, and none of their output was committed"


class SparkStartError(CatalogError):
    reason: str
    log: str
    what = "Spark did not start: {reason}"
    why = "it needs Java 17 or 21, found by JAVA_HOME or on the path, and memory for one Java process"
    next = "remove the cause; the output of Spark is in {log}"
