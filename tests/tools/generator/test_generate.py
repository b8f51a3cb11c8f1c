"""Made-up stores: whole, of their version in every row, the same for the same seed, and shaped like others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from catalog import open_catalog
from catalog.engine.log.delta import DeltaLog
from catalog.engine.log.protocol import AppTxn, FileKind
from catalog.engine.stash.compaction import FILE_BYTES_MAX
from catalog.engine.stash.registry import Registry
from catalog.errors import NotEmptyError, StoreTooNewError, StoreTooOldError
from catalog.migrations import legacy_json_objects as legacy
from catalog.tools.fsck.stash import fsck
from catalog.tools.generator import Generated, StoreShape, generate, measure
from catalog.upgrade import PROJECT
from tests.tools.generator.meaning import check
from tests.tools.generator.plain_rows import ENGINE, plain_rows, stored_rows

VERSIONS = range(PROJECT.minimum, PROJECT.current + 1)
ROWS, SEED = 2_000, 11
WITHOUT_SAMPLES = replace(PROJECT, samples=None)


class Stores(dict[int, Generated]):
    """A store of each version, made when it is first asked for."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __missing__(self, version: int) -> Generated:
        self[version] = generate(PROJECT, self.place / f"v{version}", version, ROWS, SEED)
        return self[version]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(tmp_path_factory.mktemp("stores"))


def findings(store: str, version: int) -> list[str]:
    report = fsck(
        DeltaLog(f"{store}/stash"),
        Registry.of(PROJECT.types(version)),
        PROJECT.constraints.at(version),
        every_state=True,
    )
    return [str(finding) for finding in report.findings]


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= PROJECT.first_proto])
def test_a_store_is_whole(stores: Stores, version: int) -> None:
    """Files, bytes, constraints and marks, by the types of its version and at every ts."""
    assert findings(stores[version].uri, version) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_mean_what_their_version_says(stores: Stores, version: int) -> None:
    """Orphans and their comments among them, below version 21 only."""
    check(version, plain_rows(stores[version].uri, version))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_store_has_as_many_rows_as_it_says(stores: Stores, version: int) -> None:
    rows = {name: len(found) for name, found in stored_rows(stores[version].uri).items() if name not in ENGINE}
    assert rows == {name: count for name, count in stores[version].rows.items() if count}
    assert stores[version].total == pytest.approx(ROWS, rel=0.05)
    assert sorted(rows, key=lambda name: -rows[name])[:3] == ["item", "audit_log", "storage_metadata"]


def test_json_rows_are_canonical(stores: Stores) -> None:
    """And there is a row of every collection that version 14 has."""
    rows = stored_rows(stores[14].uri)
    assert rows.keys() == legacy.COLLECTIONS.keys() | {"config", "fence_token"}
    for name, kinds in legacy.COLLECTIONS.items():
        for key, value in rows[name]:
            assert legacy.encode(legacy.decode(kinds.key, key)) == key
            assert legacy.encode(legacy.decode(kinds.value, value)) == value


@pytest.mark.parametrize("version", [14, 22])
def test_base_and_tail_have_to_be_merged(stores: Stores, version: int) -> None:
    """Several later commits change, remove and add rows, and some rows change more than once."""
    log = DeltaLog(f"{stores[version].uri}/stash")
    state = log.state(log.verify())
    files = [file for file in state.files.values() if file.collection == "item"]
    base = {key for file in files if file.kind is FileKind.BASE for key in log.read(file)["key"].to_pylist()}
    tails = [log.read(file) for file in files if file.kind is FileKind.TAIL]
    assert len(tails) == 3
    retractions, additions = Counter[bytes](), Counter[bytes]()
    for tail in tails:
        retractions.update(tail.filter(pc.less(tail["diff"], 0))["key"].to_pylist())
        additions.update(tail.filter(pc.greater(tail["diff"], 0))["key"].to_pylist())
    assert additions.keys() - base
    assert retractions.keys() - additions.keys()
    assert max(retractions.values()) == 3
    assert state.app_txns[AppTxn.STASH_VERSION] == version
    assert tuple(state.fence) == (0, 1)


def test_some_values_are_large(stores: Stores) -> None:
    sizes = [len(value) for _, value in stored_rows(stores[22].uri)["item"]]
    assert max(sizes) > 30_000
    assert sorted(sizes)[len(sizes) // 2] < 1_000


@pytest.mark.parametrize("version", [14, 15, 22])
def test_the_same_seed_makes_the_same_rows(stores: Stores, version: int, tmp_path: Path) -> None:
    again = generate(PROJECT, tmp_path / "again", version, ROWS, SEED)
    other = generate(PROJECT, tmp_path / "other", version, ROWS, SEED + 1)
    assert stored_rows(again.uri) == stored_rows(stores[version].uri)
    assert stored_rows(other.uri)["item"] != stored_rows(again.uri)["item"]


def test_a_store_of_the_current_version_can_be_led(tmp_path: Path) -> None:
    """Ids that a leader takes are new, and its changes fit the rows that are there."""
    made = generate(PROJECT, tmp_path / "store", PROJECT.current, 300, SEED)
    with open_catalog(made.uri, mode="leader") as cat:
        schema = cat.table("schema")["key"].to_pylist()
        assert cat.allocate("schema") > max(key["id"] for key in schema)
        assert cat.epoch == 2


def test_a_place_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("keep", encoding="utf-8")
    with pytest.raises(NotEmptyError, match=r"mine\.txt"):
        generate(PROJECT, tmp_path, 22, 10, SEED)
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_unknown_versions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreTooOldError):
        generate(PROJECT, tmp_path / "old", PROJECT.minimum - 1, 10, SEED)
    with pytest.raises(StoreTooNewError):
        generate(PROJECT, tmp_path / "new", PROJECT.current + 1, 10, SEED)
    assert list(tmp_path.iterdir()) == []


def test_a_store_is_made_like_another(stores: Stores, tmp_path: Path) -> None:
    """Proportions, lengths and the share of optional fields, with more rows and at another version."""
    measured = measure(PROJECT, stores[21].uri)
    item = replace(measured.collections["item"], rows=400, value_bytes_mean=900.0, value_bytes_p95=2_000)
    cluster = replace(measured.collections["cluster"], rows=600)
    like = replace(measured, collections={"item": replace(item, present={"value.oid": 0.1}), "cluster": cluster})
    made = generate(PROJECT, tmp_path / "like", 22, 3_000, SEED, like=StoreShape.from_json(like.to_json()))
    found = measure(PROJECT, made.uri).collections
    assert found["cluster"].rows == pytest.approx(1_800, rel=0.15)
    assert found["item"].rows == pytest.approx(1_000, rel=0.2)
    assert found["item"].value_bytes_mean == pytest.approx(900, rel=0.15)
    assert found["item"].value_bytes_p95 == pytest.approx(2_000, rel=0.25)
    assert found["item"].present["value.oid"] == pytest.approx(0.1, abs=0.05)
    assert findings(made.uri, 22) == []


@pytest.mark.parametrize("version", [14, 15, 22])
def test_what_is_measured_is_what_is_stored(stores: Stores, version: int) -> None:
    statistics = measure(PROJECT, stores[version].uri)
    assert StoreShape.from_json(statistics.to_json()) == statistics
    assert statistics.version == version
    for name, rows in stored_rows(stores[version].uri).items():
        own = statistics.collections[name]
        lengths = sorted(len(value) for _, value in rows)
        assert own.rows == len(rows)
        assert own.key_bytes_mean == pytest.approx(sum(len(key) for key, _ in rows) / len(rows))
        assert own.value_bytes_mean == pytest.approx(sum(lengths) / len(rows))
        assert own.value_bytes_p95 == pytest.approx(lengths[-(-len(rows) * 95 // 100) - 1], rel=0.04)
    if version == 15:
        comments = [value["comment"] is not None for _, value in plain_rows(stores[15].uri, 15)["item"]]
        assert statistics.collections["item"].present == {"value.comment": sum(comments) / len(comments)}


def test_files_are_bounded(tmp_path: Path) -> None:
    """Long values make more base files, each within the bound, and their keys do not overlap."""
    usual = measure(PROJECT, generate(PROJECT, tmp_path / "usual", 22, 300, SEED).uri)
    long = replace(usual.collections["item"], rows=10_000, value_bytes_mean=400_000.0, value_bytes_p95=500_000)
    made = generate(PROJECT, tmp_path / "long", 22, 400, SEED, like=replace(usual, collections={"item": long}))
    log = DeltaLog(f"{made.uri}/stash")
    files = [f for f in log.state(log.verify()).files.values() if (f.collection, f.kind) == ("item", FileKind.BASE)]
    tables = [log.read(file, ["key", "value"]) for file in files]
    assert len(tables) > 1
    assert all(table.nbytes <= FILE_BYTES_MAX for table in tables)
    bounds = sorted((table["key"][0].as_py(), table["key"][-1].as_py()) for table in tables)
    assert all(last < first for (_, last), (first, _) in pairwise(bounds))


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(version=st.sampled_from(VERSIONS), rows=st.integers(0, 600), seed=st.integers(0, 2**64))
def test_any_seed_and_size_makes_a_whole_store(
    tmp_path_factory: pytest.TempPathFactory, version: int, rows: int, seed: int
) -> None:
    made = generate(PROJECT, tmp_path_factory.mktemp("any") / "store", version, rows, seed)
    assert made.total == pytest.approx(rows, abs=200)
    if version >= PROJECT.first_proto:
        assert findings(made.uri, version) == []


@pytest.mark.parametrize("version", [15, 19, 22])
def test_a_project_without_samples_gets_rows_by_descriptors(version: int, tmp_path: Path) -> None:
    """Whatever they mean, they keep the constraints."""
    made = generate(WITHOUT_SAMPLES, tmp_path / "store", version, 800, SEED)
    assert findings(made.uri, version) == []
    assert made.rows.keys() == Registry.of(PROJECT.types(version)).by_name.keys() - ENGINE
    assert min(rows for name, rows in made.rows.items() if name != "id_alloc") > 10
