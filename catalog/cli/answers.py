"""What commands answer: plain data, which `render` shows and the JSON envelope carries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from catalog.builtin.measures import Measure
    from catalog.copying import Copied
    from catalog.engine.timeline import Timeline
    from catalog.engine.verdict import Verdict
    from catalog.generator import Generated
    from catalog.repairing import Diagnosis, Repaired
    from catalog.stash.findings import Report


@dataclass(frozen=True, slots=True)
class StepDone:
    name: str
    version: int
    seconds: float
    rows_before: int
    rows_after: int
    bytes_before: int
    bytes_after: int


@dataclass(frozen=True, slots=True)
class Started:
    store: str
    mode: str
    version_before: int | None
    """None: it was made and initialised."""
    version: int
    deploy_generation: int
    epoch: int
    ts: int
    steps: tuple[StepDone, ...]
    backup: Copied | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Initialized:
    store: str
    version: int
    done: bool
    """Whether this command did it: else it was there, or nothing was to be written."""
    exists: bool
    rows: Mapping[str, int]
    """What a new store holds, by collection."""


@dataclass(frozen=True, slots=True)
class Founded:
    folder: str
    name: str
    written: tuple[str, ...]
    """Relative to the folder; generated code is not among them."""
    left: str
    """What the gate says of it."""
    then: tuple[str, ...]
    """Commands to go on with, in the folder."""


@dataclass(frozen=True, slots=True)
class Created:
    version: int
    summary: str
    written: tuple[str, ...]
    removed: tuple[str, ...]
    left: str
    """What the gate says now."""
    ready: bool
    """Whether the gate has nothing left to say."""
    then: str
    """The command that records the version again when all is filled in."""


@dataclass(frozen=True, slots=True)
class PlannedWork:
    form: str
    collections: tuple[str, ...]
    files: int
    rows: int
    size: int
    replaces: bool
    """Whether files are replaced; else none is read or written, or files are only added."""


@dataclass(frozen=True, slots=True)
class PlannedStep:
    name: str
    version: int
    summary: str
    reason: str
    works: tuple[PlannedWork, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    store: str
    version: int
    until: int
    steps: tuple[PlannedStep, ...]
    rows_to_rewrite: int
    bytes_to_rewrite: int


@dataclass(frozen=True, slots=True)
class Applied:
    store: str
    version_before: int
    version: int
    current: int
    steps: tuple[StepDone, ...]


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version, and the newest run of the step that leads to it."""

    version: int
    name: str
    state: str
    """PENDING, RUNNING, MIGRATED, ERROR, UNDONE; INITIAL for the version that the store began with; else empty."""
    checksum: str | None
    """`ok`, `differs`, `gone` (no module of this build leads there); none where nothing was recorded."""
    previous: int | None = None
    started_ms: int | None = None
    completed_ms: int | None = None
    rows_before: int | None = None
    rows_after: int | None = None
    bytes_before: int | None = None
    bytes_after: int | None = None
    build: str = ""
    error: str = ""
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Info:
    store: str
    id: str
    copy_of: str | None
    version: int
    build: str
    build_version: int
    build_minimum: int
    ts: int
    frontier: int
    deploy_generation: int
    epoch: int
    holder: str
    pending: int
    versions: tuple[VersionLine, ...]


@dataclass(frozen=True, slots=True)
class History:
    store: str
    version: int
    ts: int
    frontier: int
    timeline: Timeline


@dataclass(frozen=True, slots=True)
class Graph:
    """The same, to be drawn."""

    history: History


@dataclass(frozen=True, slots=True)
class CheckedMigration:
    name: str
    version: int
    verdict: str
    """`ok`, `differs`, or `gone`: this build has no such migration any more."""
    recorded: str
    present: tuple[str, ...]
    """The checksums that this build knows for it; several if it was restyled."""


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    version: int
    verdict: str
    """`ok`, or what is wrong."""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Validated:
    store: str
    version: int
    migrations: tuple[CheckedMigration, ...]
    snapshots: tuple[CheckedSnapshot, ...]


@dataclass(frozen=True, slots=True)
class Undone:
    store: str
    version_before: int
    version: int
    steps: tuple[str, ...]
    done: bool = True
    """Else it is what would be undone."""


@dataclass(frozen=True, slots=True)
class Aborted:
    store: str
    steps: tuple[str, ...]
    done: bool = True
    """Else it is what would be given up."""


@dataclass(frozen=True, slots=True)
class Row:
    key: Any
    value: Any


@dataclass(frozen=True, slots=True)
class Rows:
    store: str
    collection: str
    version: int
    ts: int
    rows: tuple[Row, ...]
    more: bool
    """Whether there are more than were asked for."""


@dataclass(frozen=True, slots=True)
class SettingLine:
    name: str
    value: Any
    source: str


@dataclass(frozen=True, slots=True)
class Configured:
    settings: tuple[SettingLine, ...]


@dataclass(frozen=True, slots=True)
class ExaminedLine:
    name: str
    grade: str
    """`ok`, `warning`, `problem`, or `skipped`."""
    found: str
    next: str
    """What to do; empty if nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Examinations:
    store: str | None
    """None: only the machine was examined."""
    lines: tuple[ExaminedLine, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """What a shell reads to complete commands."""

    shell: str
    script: str


@dataclass(frozen=True, slots=True)
class Epoch:
    store: str
    deploy_generation: int
    epoch: int
    holder: str
    sign: str
    """Of the holder's heartbeat: `beating` (it may still live), `released` (it ended) or `none`."""


@dataclass(frozen=True, slots=True)
class CollectionLine:
    collection: str
    rows: int
    base_files: int
    tail_files: int
    tail_rows: int
    size: int


@dataclass(frozen=True, slots=True)
class Stats:
    store: str
    version: int
    ts: int
    frontier: int
    collections: tuple[CollectionLine, ...]
    shape: Any = None
    """With `--shape`: what `debug generate --like` takes."""
    measures: tuple[Measure, ...] = ()
    """What upgrades and maintenance have measured over time, the oldest first."""
    page: str | None = None
    """With `--html`: where the page is."""


@dataclass(frozen=True, slots=True)
class Edited:
    store: str
    collection: str
    key: Any
    before: Any
    after: Any
    ts: int | None
    """None: nothing was committed, because nothing differs."""


@dataclass(frozen=True, slots=True)
class Copies:
    copied: Copied
    anonymised: bool = False


@dataclass(frozen=True, slots=True)
class Unchecked:
    """A store of which nothing can be said, and why."""

    store: str
    what: str
    why: str
    next: str


@dataclass(frozen=True, slots=True)
class Checked:
    verdicts: tuple[Verdict, ...]
    unchecked: tuple[Unchecked, ...] = ()
    page: str | None = None
    """With `--html`: where the page is."""


@dataclass(frozen=True, slots=True)
class MadeUp:
    generated: Generated


@dataclass(frozen=True, slots=True)
class Health:
    store: str
    report: Report


@dataclass(frozen=True, slots=True)
class Compacted:
    store: str
    ts: int
    collections: tuple[str, ...]
    files_before: int
    files_after: int


@dataclass(frozen=True, slots=True)
class Vacuumed:
    store: str
    done: bool
    frontier: int
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Mended:
    store: str
    diagnosis: Diagnosis
    repaired: Repaired | None
    """None: nothing was done, because nothing is wrong or it was only looked at."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    store: str
    done: bool
    files: int
    size: int
    left: tuple[str, ...] = field(default=())
    """What is there and is not the store's."""
    unfenced: str | None = None
    """Why its leader could not be fenced, if it could not: it may have left files since."""
