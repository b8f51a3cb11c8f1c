"""What two processes may be told to do, and what may go wrong meanwhile, for Hypothesis to choose from."""

from __future__ import annotations

from hypothesis import strategies as st

from catalog.engine.log.protocol import FaultPoint
from tests.engine.stash.simulation.model import OWNED, PARENTS, Name, Row, Step

COLLECTIONS = ["setting", "setting", "item", "item", "schema", "database", "role"]
VERBS = ["upsert"] * 8 + ["delete"] * 2 + ["insert", "update", "get", "scan"]
RACING_VERBS = ["upsert", "upsert", "upsert", "get", "scan"]
ROUTINE = [
    FaultPoint.WRITE_BEFORE_FILE,
    FaultPoint.WRITE_AFTER_FILE,
    FaultPoint.COMMIT_BEFORE_LOG,
    FaultPoint.COMMIT_AFTER_LOG,
]
"""The points that every write passes; the others only some."""


@st.composite
def steps(draw: st.DrawFn, verbs: list[str] = VERBS) -> Step:
    """Mostly what may be done, so that enough of it is."""
    name = Name(draw(st.sampled_from(COLLECTIONS)), draw(st.integers(1, 4)))
    parents = [1, 1, 1, 2, 3] if name.collection == "item" else [0, 1, 1, 2]
    parent = draw(st.sampled_from(parents)) if name.collection in PARENTS else 0
    owner = draw(st.sampled_from([1, 1, 1, 1, 2, 3])) if name.collection in OWNED else 0
    return Step(draw(st.sampled_from(verbs)), name, Row(draw(st.sampled_from("abcdefgh")), parent, owner))


scripts = st.lists(steps(), min_size=1, max_size=4)
racing_scripts = st.lists(steps(RACING_VERBS), min_size=1, max_size=3)
races = st.tuples(
    racing_scripts,
    racing_scripts,
    st.none() | steps(["upsert"]),
    st.sampled_from([None, FaultPoint.WRITE_AFTER_FILE, FaultPoint.COMMIT_BEFORE_LOG]),
)
Race = tuple[list[Step], list[Step], Step | None, FaultPoint | None]
which = st.integers(0, 1)
faults = st.tuples(
    st.one_of(
        st.sampled_from([(point,) for point in ROUTINE]),
        st.sampled_from([(point,) for point in FaultPoint if not point.startswith("create")]),
        st.sampled_from(
            [
                (FaultPoint.COMMIT_BEFORE_LOG, FaultPoint.COMMIT_SEAL),
                (FaultPoint.COMMIT_AFTER_LOG, FaultPoint.COMMIT_PROBE),
            ]
        ),
    ),
    st.sampled_from([0, 0, 1, 2, 4]),
    st.booleans(),
)
Fault = tuple[tuple[FaultPoint, ...], int, bool]
