"""The pictures of the path of a commit and of a step: their stages in order, and how else each can end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docs.writers.drawing import LINE, Kind, Picture, Words


@dataclass(frozen=True, slots=True)
class Outcome:
    """Another end of a stage."""

    when: str
    then: str
    kind: Kind = Kind.BAD
    back_to: int | None = None
    """The stage that follows; None: the path ends here."""


@dataclass(frozen=True, slots=True)
class Stage:
    title: str
    lines: tuple[str, ...]
    outcomes: tuple[Outcome, ...] = ()
    kind: Kind = Kind.BOX
    title_kind: Words = Words.TITLE


COMMIT = (
    Stage(
        "with cat.transaction() as tx:",
        ("reads one view: base files merged with the tail", "remembers what it read and scanned"),
        title_kind=Words.NAME,
    ),
    Stage(
        "catch up",
        ("with the commits of other processes, one at a time",),
        (
            Outcome("another leader took over", "FencedError, for good"),
            Outcome("they changed rows it read or scanned", "TransactionConflictError: repeat it all"),
        ),
    ),
    Stage(
        "check",
        ("unique fields and references, against the newest state",),
        (Outcome("a row breaks a constraint", "ConstraintError: nothing changed"),),
    ),
    Stage("write", ("tail files, whose ts is the next version", "fsync files and folders")),
    Stage(
        "compare_and_append",
        ("delta-rs, strict: one winner per version", "after any exception the entry at that version is read:"),
        (
            Outcome("it is another commit", "catch up, check, write again", Kind.BOX, back_to=1),
            Outcome("it is absent", "CommitFailedError: it can never land"),
            Outcome("the log is unreachable", "IndeterminateError, with the txid to look for"),
            Outcome("it has our txid", "it landed: go on", Kind.GOOD),
        ),
        title_kind=Words.NAME,
    ),
    Stage("acknowledge", ("fsync the entry and its folder first",), kind=Kind.GOOD),
    Stage("maintain, if it is due", ("compact, checkpoint and archive,", "move the frontier, vacuum")),
)
STEP = (
    Stage(
        "open as leader",
        ("the store's version is below the build's:", "preflight, then the fence"),
        (Outcome("a requirement or migration is not in order", "refused: no process is fenced"),),
    ),
    Stage("plan", ("the module's actions, and the files, rows and bytes", "of each collection")),
    Stage("begin", ("a commit of its own: migration event RUNNING;", "the event of a dead run becomes ERROR")),
    Stage(
        "divide",
        ("each collection to rewrite, into partitions by key",),
        (Outcome("bases overlap, or the tail is large", "the rows are shuffled first", Kind.BOX),),
    ),
    Stage(
        "one job on Spark",
        (
            "a task per partition: read, verify, change, verify, write, hash",
            "a frame action: DataFrames in and out, then the same",
            "hashes are joined: duplicate keys and fields, missing references",
        ),
        (Outcome("another leader takes over", "the job ends, FencedError"),),
    ),
    Stage(
        "verify",
        ("reports and findings come back to the driver, no rows",),
        (Outcome("a count or a rule fails", "migration event ERROR; the version stays"),),
    ),
    Stage(
        "commit",
        (
            "adds the new files, removes those that were read,",
            "sets the version, migration event MIGRATED: all at once",
        ),
        (
            Outcome("another commit touched these rows", "begin again, three times at most", Kind.BOX, back_to=2),
            Outcome("another commit touched other rows", "commit again, same files", Kind.GOOD),
        ),
        kind=Kind.GOOD,
    ),
)
WIDTH, LEFT, STAGE_WIDTH, OUTCOME_LEFT, OUTCOME_WIDTH = 820, 10, 410, 470, 320
OUTCOME_HEIGHT, GAP = 46, 22


def commit_path() -> str:
    return _path("The path of a commit", COMMIT)


def step_path() -> str:
    return _path("The path of a step", STEP)


def _path(title: str, stages: Sequence[Stage]) -> str:
    description = "; ".join(
        f"{stage.title}: {' '.join(stage.lines)}"
        + "".join(f" (if {outcome.when}: {outcome.then})" for outcome in stage.outcomes)
        for stage in stages
    )
    picture = Picture(title, description, WIDTH)
    tops: list[float] = []
    y = 10.0
    for stage in stages:
        if tops:
            picture.arrow((LEFT + STAGE_WIDTH / 2, y - GAP), (LEFT + STAGE_WIDTH / 2, y))
        tops.append(y)
        y += _draw(picture, stage, y, tops) + GAP
    return picture.svg(y - GAP + 10)


def _draw(picture: Picture, stage: Stage, y: float, tops: Sequence[float]) -> float:
    """Draw one stage and its other ends; return its height."""
    own = 20 + LINE * (1 + len(stage.lines))
    height = max(own, len(stage.outcomes) * (OUTCOME_HEIGHT + 6) - 6)
    picture.box(LEFT, y, STAGE_WIDTH, height, stage.kind)
    picture.words(LEFT + 14, y + 19, stage.title, stage.title_kind)
    for row, line in enumerate(stage.lines, start=1):
        picture.words(LEFT + 14, y + 19 + LINE * row, line, Words.QUIET)
    for row, outcome in enumerate(stage.outcomes):
        top = y + row * (OUTCOME_HEIGHT + 6)
        middle = top + OUTCOME_HEIGHT / 2
        picture.box(OUTCOME_LEFT, top, OUTCOME_WIDTH, OUTCOME_HEIGHT, outcome.kind)
        picture.words(OUTCOME_LEFT + 12, top + 15, outcome.when, Words.QUIET)
        picture.words(OUTCOME_LEFT + 12, top + 32, outcome.then)
        picture.arrow((LEFT + STAGE_WIDTH, middle), (OUTCOME_LEFT, middle))
        if outcome.back_to is not None:
            _draw_back(picture, middle, tops[outcome.back_to])
    return height


def _draw_back(picture: Picture, y: float, top: float) -> None:
    """Draw an arrow from an outcome along the right edge into an earlier stage."""
    edge, gap, into = WIDTH - 12, top - GAP / 2, LEFT + STAGE_WIDTH - 40
    picture.arrow((OUTCOME_LEFT + OUTCOME_WIDTH, y), (edge, y), (edge, gap), (into, gap), (into, top))
