"""A place that lets a second writer win is refused before a store is made or led there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog import open_catalog
from catalog.engine.base.project import BuildVersion
from catalog.engine.log.maintenance import Policy
from catalog.engine.log.place import StorePlace
from catalog.engine.storage.base import StoredFile, open_storage
from catalog.engine.store.catalog import Mode
from catalog.engine.store.leadership import LeadershipOptions, leading
from catalog.engine.store.open import open_store
from catalog.errors import NotExclusiveError, StoreUnreachableError
from catalog.objects import SettingKey, SettingValue
from catalog.tools.compact import compact_store
from catalog.tools.copy import copy_store
from catalog.tools.generator import generate
from catalog.tools.vacuum import vacuum_store
from catalog.upgrade import PROJECT
from tests.engine.log.lossy_proxy import Proxy, proxied
from tests.object_store import make_bucket, storage_options

NEXT_BUILD = replace(PROJECT, build=BuildVersion(99))


@pytest.fixture
def proxy(object_store: str) -> Iterator[Proxy]:
    with proxied(object_store) as found:
        yield found


@pytest.fixture
def straight(object_store: str) -> StorePlace:
    """An empty place of an object store that honours conditional puts."""
    return StorePlace.at(PROJECT, f"s3://{make_bucket(object_store)}/store", storage_options(object_store))


@pytest.fixture
def behind(straight: StorePlace, proxy: Proxy) -> StorePlace:
    """The same place, behind the proxy."""
    return replace(straight, options=storage_options(proxy.address))


def files(place: StorePlace) -> set[StoredFile]:
    return set(open_storage(place.uri, place.options).entries())


def start(place: StorePlace, mode: Mode = Mode.LEADER) -> None:
    open_store(place, mode, LeadershipOptions()).close()


def lead_by_hand(place: StorePlace) -> None:
    with leading(place, LeadershipOptions()):
        pass


def vacuum(place: StorePlace) -> None:
    vacuum_store(place, Policy())


def copy(place: StorePlace, tmp_path: Path) -> None:
    start(StorePlace.at(PROJECT, tmp_path / "store"))
    copy_store(StorePlace.at(PROJECT, tmp_path / "store"), place)


MAKERS: dict[str, Callable[[StorePlace, Path], object]] = {
    "a leader": lambda place, _: start(place),
    "a copy": copy,
    "generated rows": lambda place, _: generate(PROJECT, place.uri, 22, 100, 1, options=place.options),
}


@pytest.mark.parametrize("maker", MAKERS)
def test_no_store_is_made_where_conditional_puts_are_ignored(
    straight: StorePlace, behind: StorePlace, proxy: Proxy, maker: str, tmp_path: Path
) -> None:
    """The place stays empty; without the proxy the same place will do."""
    proxy.drops_conditions = True
    with pytest.raises(NotExclusiveError, match="`If-None-Match`") as refused:
        MAKERS[maker](behind, tmp_path)
    assert refused.value.uri == straight.uri
    assert files(straight) == set()
    shutil.rmtree(tmp_path / "store", ignore_errors=True)
    MAKERS[maker](straight, tmp_path)
    start(straight)


def test_a_store_that_was_begun_is_not_finished_where_conditional_puts_are_ignored(
    straight: StorePlace, behind: StorePlace, proxy: Proxy
) -> None:
    """The process that wrote store.json stopped before there was a log."""
    start(straight)
    storage = straight.storage
    for file in files(straight):
        if file.path != "store.json":
            storage.delete(file.path)
    before = files(straight)
    proxy.drops_conditions = True
    with pytest.raises(NotExclusiveError):
        start(behind)
    assert files(straight) == before
    proxy.drops_conditions = False
    start(behind)


@pytest.mark.parametrize(
    "write",
    [start, lead_by_hand, lambda place: start(place, Mode.MEMBER), compact_store, vacuum],
    ids=["a leader", "a command that leads", "a member", "a compaction", "a vacuum"],
)
def test_a_store_is_not_written_where_conditional_puts_are_ignored(
    straight: StorePlace, behind: StorePlace, proxy: Proxy, write: Callable[[StorePlace], object]
) -> None:
    """It was made honestly, and is then reached another way; its leader is not fenced."""
    start(straight)
    before = files(straight)
    proxy.drops_conditions = True
    with pytest.raises(NotExclusiveError):
        write(behind)
    assert files(straight) == before
    with closing(open_store(behind, Mode.READ_ONLY, LeadershipOptions())) as reader:
        assert reader.epoch == 1  # it writes no commit, so it may read wherever it can
    proxy.drops_conditions = False
    write(behind)


def test_the_first_leader_of_a_build_probes_the_place_and_later_ones_do_not(behind: StorePlace, proxy: Proxy) -> None:
    """Nor does a member of that build; a start that finds nothing to do asks for nothing more."""
    start(behind)
    assert proxy.probes == 2
    start(behind)
    start(behind, Mode.MEMBER)
    lead_by_hand(behind)
    assert proxy.probes == 2
    start(replace(behind, project=NEXT_BUILD))
    assert proxy.probes == 4
    start(replace(behind, project=NEXT_BUILD))
    assert proxy.probes == 4
    proxy.drops_conditions = True
    with pytest.raises(NotExclusiveError):
        start(replace(behind, project=replace(PROJECT, build=BuildVersion(100))))


def test_a_copy_is_probed_at_its_own_place(straight: StorePlace, proxy: Proxy) -> None:
    """Also one whose files were copied by hand, with every row of the store."""
    start(straight)
    moved = replace(straight, uri=f"{straight.uri}-copied", options=storage_options(proxy.address))
    for file in files(straight):
        content = straight.storage.read(file.path)
        assert content is not None
        moved.storage.write(file.path, content)
    proxy.drops_conditions = True
    with pytest.raises(NotExclusiveError):
        start(moved)
    proxy.drops_conditions = False
    start(moved)
    assert proxy.probes == 4


@pytest.mark.parametrize("lost", [1, 2])
def test_lost_answers_do_not_make_a_place_unfit(
    straight: StorePlace, behind: StorePlace, proxy: Proxy, lost: int
) -> None:
    """The client tries again, and its own file is there already."""
    proxy.probe_answers_to_lose = lost
    start(behind)
    assert proxy.probes == 2 + lost
    assert not [file for file in files(straight) if file.path.endswith(".probe")]


def test_a_network_that_is_down_is_told_as_what_it_is(straight: StorePlace, behind: StorePlace, proxy: Proxy) -> None:
    """The storage did not answer: nobody knows what it would have done."""
    proxy.probe_answers_to_lose = 1000
    with pytest.raises(StoreUnreachableError, match=r"cannot write .*probe") as error:
        start(behind)
    assert "did not answer" in error.value.why
    assert files(straight) == set()


def careless_link(source: Any, target: Any) -> None:  # noqa: ANN401 - as `os.link` takes them
    """Link as a file system does that takes no notice of a name that is taken."""
    Path(target).unlink(missing_ok=True)
    shutil.copyfile(source, target)


@pytest.fixture
def careless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patched:
        patched.setattr(os, "link", careless_link)
        yield


@pytest.mark.usefixtures("careless")
def test_no_store_is_made_in_a_folder_whose_links_replace_files(tmp_path: Path) -> None:
    """As of some network file systems; the folder holds nothing afterwards."""
    with pytest.raises(NotExclusiveError, match="a hard link in a folder"):
        open_catalog(tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []


def test_a_folder_that_was_moved_to_such_a_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record of its old place does not count."""
    open_catalog(tmp_path / "store").close()
    shutil.copytree(tmp_path / "store", tmp_path / "moved")
    monkeypatch.setattr(os, "link", careless_link)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "moved").rglob("*.*")}
    for mode in ("leader", "member"):
        with pytest.raises(NotExclusiveError):
            open_catalog(tmp_path / "moved", mode)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "moved").rglob("*.*")} == before


def test_the_leftover_of_a_killed_probe_is_no_obstacle(tmp_path: Path) -> None:
    """Neither to making the store, nor to writing it."""
    store = tmp_path / "store"
    store.mkdir()
    for left in ("0123456789abcdef" * 2 + ".probe", "." + "0123456789abcdef" * 2 + f".probe.{'f' * 32}.tmp"):
        (store / left).write_bytes(b"first")
    with open_catalog(store) as cat, cat.transaction() as tx:
        tx.upsert(SettingKey(name="colour"), SettingValue(value="red"))
