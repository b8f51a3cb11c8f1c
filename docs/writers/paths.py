"""The pictures of the path of a commit and of a step: what happens in order, and how else it can end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from docs.writers.drawing import LINE, Kind, Picture, Words


@dataclass(frozen=True, slots=True)
class Outcome:
    """What else can come of a stage."""

    when: str
    then: str
    kind: Kind = Kind.BAD
    back_to: int | None = None
    """The stage that it goes back to; none: it ends here."""


@dataclass(frozen=True, slots=True)
class Stage:
    title: str
    said: tuple[str, ...]
    outcomes: tuple[Outcome, ...] = ()
    kind: Kind = Kind.BOX
    title_kind: Words = Words.TITLE


COMMIT = (
    Stage(
        "with cat.transaction() as tx:",
        ("reads one view: base files, and over them the tail", "remembers what it read and scanned"),
        title_kind=Words.NAME,
    ),
    Stage(
        "catch up",
        ("with the commits of others, one at a time",),
        (
            Outcome("another leader took over", "FencedError, for good"),
            Outcome("they touched what it read or scanned", "TransactionConflictError: try it all again"),
        ),
    ),
    Stage(
        "check",
        ("unique fields and references, against the newest state",),
        (Outcome("a row does not fit", "ConstraintError: nothing happened"),),
    ),
    Stage("write", ("tail files, whose ts is the version to be", "fsync files and folders")),
    Stage(
        "compare_and_append",
        ("delta-rs, strict: one winner per version", "after any exception the entry at that version is read:"),
        (
            Outcome("it is another's", "catch up, check, write again", Kind.BOX, back_to=1),
            Outcome("it is absent", "CommitFailedError: it never will be there"),
            Outcome("it is out of reach", "IndeterminateError, with the txid to look for"),
            Outcome("it is ours, by its txid", "it landed: go on", Kind.GOOD),
        ),
        title_kind=Words.NAME,
    ),
    Stage("acknowledge", ("fsync the entry and its folder first",), kind=Kind.GOOD),
    Stage("maintain, if it is due", ("merge the tail, checkpoint and archive,", "move the frontier, vacuum")),
)
STEP = (
    Stage(
        "open as leader",
        ("the store's version is below the build's:", "preflight, then the fence"),
        (Outcome("something is missing, or was edited or undone", "refused: nobody is fenced"),),
    ),
    Stage("plan", ("the module's actions, and the files, rows and bytes", "of each collection")),
    Stage("begin", ("a commit of its own: an event RUNNING;", "a dead one of before becomes ERROR")),
    Stage(
        "divide",
        ("each collection to be rewritten, into parts by its keys",),
        (Outcome("bases overlap, or the tail is large", "the rows go through a shuffle first", Kind.BOX),),
    ),
    Stage(
        "one job on Spark",
        (
            "a task per part: read, verify, change, verify, write, print",
            "a frame action: DataFrames in and out, then the same",
            "prints meet: doubled keys and unique fields, lost references",
        ),
        (Outcome("another leader takes over", "the job ends, FencedError"),),
    ),
    Stage(
        "verify",
        ("reports and findings come back to the driver, no rows",),
        (Outcome("a count or a rule is broken", "an event ERROR; the version stays"),),
    ),
    Stage(
        "commit",
        ("new files added, those that were read removed,", "the version, an event MIGRATED: all at once"),
        (
            Outcome("others wrote what it read or wrote", "begin again, three times at most", Kind.BOX, back_to=2),
            Outcome("others wrote something else", "commit again, same files", Kind.GOOD),
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
    told = "; ".join(
        f"{stage.title}: {' '.join(stage.said)}"
        + "".join(f" (if {outcome.when}: {outcome.then})" for outcome in stage.outcomes)
        for stage in stages
    )
    picture = Picture(title, told, WIDTH)
    tops: list[float] = []
    y = 10.0
    for stage in stages:
        if tops:
            picture.arrow((LEFT + STAGE_WIDTH / 2, y - GAP), (LEFT + STAGE_WIDTH / 2, y))
        tops.append(y)
        y += _draw(picture, stage, y, tops) + GAP
    return picture.svg(y - GAP + 10)


def _draw(picture: Picture, stage: Stage, y: float, tops: Sequence[float]) -> float:
    """One stage and what else can come of it; answers how high it is."""
    own = 20 + LINE * (1 + len(stage.said))
    height = max(own, len(stage.outcomes) * (OUTCOME_HEIGHT + 6) - 6)
    picture.box(LEFT, y, STAGE_WIDTH, height, stage.kind)
    picture.words(LEFT + 14, y + 19, stage.title, stage.title_kind)
    for row, line in enumerate(stage.said, start=1):
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
    """From an outcome along the right edge to the gap above an earlier stage, and into that."""
    edge, gap, into = WIDTH - 12, top - GAP / 2, LEFT + STAGE_WIDTH - 40
    picture.arrow((OUTCOME_LEFT + OUTCOME_WIDTH, y), (edge, y), (edge, gap), (into, gap), (into, top))
