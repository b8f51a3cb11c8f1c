"""catalog new: a project of one's own, or a reason why there is none, and then nothing is made."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from build_tools.check import check
from build_tools.project_tree import find_tree
from build_tools.protos.types import ENGINE_COLLECTIONS, compile_proto
from catalog import __version__
from catalog.cli.answer import ExitCode
from catalog.tools.new_project.scaffold import FILES
from tests.cli.commands import bytes_of, call, complaint, ended, fail, on_screen, text, three_lines
from tests.conftest import ROOT

NO_NAMES = [
    "",
    " ",
    "Shop",
    "2shop",
    "_shop",
    "shop-front",
    "shop.front",
    "class",
    "x" * 41,
    "sh\0p",
    "café",
    "../shop",
]
TAKEN = {
    "json": "Python has a module of this name",
    "click": "a package of this name is installed",
    "catalog": "a package of this name is installed",
    "stash_catalog": "a package of this name is installed",
    "google": "a package of this name is installed",
    "tests": "every project has another file or folder of this name",
}


def test_a_project_passes_its_gate(tmp_path: Path) -> None:
    """It is named like its folder, everything in it says so, and folders on the way are made."""
    folder = tmp_path / "ours" / "My-Shop 2"
    made = call("new", folder)
    assert (made["name"], made["folder"]) == ("my_shop_2", str(folder))
    assert check(find_tree(folder, search=False)).findings == ()
    listed = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert set(made["written"]) == {path for path in listed if not path.startswith("my_shop_2/generated/")}
    assert {"my_shop_2/generated/objects_pb2.py", "proto/old/objects_v1.proto", ".gitignore"} <= listed
    for path in made["written"]:
        assert "@project@" not in (folder / path).read_text(encoding="utf-8")
    assert f'"stash-catalog[spark]~={__version__}"' in (folder / "pyproject.toml").read_text(encoding="utf-8")


def test_what_to_do_next_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After what the gate says; the folder may be the one where one is, and named otherwise."""
    monkeypatch.chdir(tmp_path)
    shown = text("new", ".", "--name", "shop")
    assert shown.startswith(f"created the project shop in {tmp_path}\n  .github/workflows/check.yml\n")
    assert "\ngate: clean\n\nnext, in that folder:\n  pip install --editable . --group dev\n" in shown


def test_a_repository_without_files_becomes_a_project(tmp_path: Path) -> None:
    """Its history is the one thing that a folder may have."""
    subprocess.run(["git", "init", "-q", tmp_path / "shop"], check=True)
    call("new", tmp_path / "shop")
    listed = ["git", "-C", str(tmp_path / "shop"), "status", "--porcelain", "--untracked-files=all"]
    shown = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert "?? shop/upgrade.py\n" in shown
    assert "generated" not in shown


@pytest.mark.parametrize("name", NO_NAMES)
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    """With what a name is."""
    refused = fail("new", tmp_path / "shop", "--name", name, expect=ExitCode.USAGE)
    assert refused.message == f"{name!r} is not a valid project name"
    assert "--name shop" in refused.next
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", TAKEN)
def test_a_name_that_something_else_has_is_refused(tmp_path: Path, name: str) -> None:
    """Python's own modules, what is installed, and other folders of a project; given, or as the folder is called."""
    for words in (["shop", "--name", name], [name]):
        refused = fail("new", tmp_path / words[0], *words[1:], expect=ExitCode.USAGE)
        assert (refused.message, refused.why) == (f"a project cannot be named {name}", TAKEN[name])
    assert list(tmp_path.iterdir()) == []


def _file_inside(place: Path) -> None:
    place.mkdir()
    (place / ".hidden").write_text("", encoding="utf-8")


def _file_above(place: Path) -> None:
    place.parent.rmdir()
    place.parent.touch()


PLACES: dict[str, tuple[Callable[[Path], object], str]] = {
    "not empty": (_file_inside, "is not empty: it holds .hidden"),
    "a file": (lambda place: place.write_text("", encoding="utf-8"), "is not a folder"),
    "a link to nothing": (lambda place: place.symlink_to("nowhere"), "is a broken link"),
    "a loop": (lambda place: place.symlink_to(place), "is a broken link"),
    "below a file": (_file_above, "no project can be made in"),
}


@pytest.mark.parametrize("kind", PLACES)
def test_a_place_that_holds_something_else_is_refused(tmp_path: Path, kind: str) -> None:
    """It stays as it is."""
    (tmp_path / "ours").mkdir()
    place = tmp_path / "ours" / "shop"
    make, said = PLACES[kind]
    make(place)
    before = bytes_of(tmp_path)
    what, *_ = complaint("new", place, expect=ExitCode.USAGE)
    assert said in what
    assert bytes_of(tmp_path) == before


def test_a_place_with_a_name_too_long_for_any_folder_is_refused(tmp_path: Path) -> None:
    """By the file system, whose reason is told."""
    what, why, _ = complaint("new", tmp_path / ("x" * 300), "--name", "shop", expect=ExitCode.USAGE)
    assert what.startswith("no project can be made in ")
    assert os.strerror(errno.ENAMETOOLONG) in why


def test_what_cannot_be_finished_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is full after some of it was put in its place leaves nothing."""
    rename = Path.rename

    def fill_up(self: Path, target: Path) -> Path:
        if self.name == "proto" and target.parent.name == "shop":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fill_up)
    refused = fail("new", tmp_path / "ours" / "shop", expect=ExitCode.USAGE)
    assert os.strerror(errno.ENOSPC) in refused.why
    assert list(tmp_path.iterdir()) == []


def test_a_name_is_asked_for_on_a_terminal(tmp_path: Path) -> None:
    """That of the folder is offered if it will do; an end of input makes nothing, and what is typed is judged."""
    with on_screen("new", tmp_path / "shop") as child:
        child.expect_exact("Name of the package [shop]: ")
        child.send("\x04")
        assert ended(child) == ExitCode.USAGE
        assert "nothing was done" in child.before
    assert list(tmp_path.iterdir()) == []
    with on_screen("new", tmp_path / "json") as child:
        child.expect_exact("Name of the package: ")
        child.sendline("Lake")
        assert ended(child) == ExitCode.USAGE
        three_lines("\n".join(child.before.replace("\r", "").splitlines()[-3:]))
    assert list(tmp_path.iterdir()) == []
    with on_screen("new", tmp_path / "json") as child:
        child.expect_exact("Name of the package: ")
        child.sendline("lake")
        assert ended(child) == ExitCode.DONE
    assert (tmp_path / "json" / "lake" / "upgrade.py").is_file()
    with on_screen("new", tmp_path / "shop") as child:
        child.expect_exact("[shop]: ")
        child.sendline("")
        assert ended(child) == ExitCode.DONE
    assert (tmp_path / "shop" / "shop" / "upgrade.py").is_file()


def test_a_place_that_will_not_do_is_not_asked_about(tmp_path: Path) -> None:
    """The folder is looked at before anybody types."""
    _file_inside(tmp_path / "shop")
    with on_screen("new", tmp_path / "shop") as child:
        assert ended(child) == ExitCode.USAGE
        assert "Name of" not in child.before


def test_the_engine_finds_its_own_types_in_a_project() -> None:
    """As they are in this repository, down to the numbers of fields."""
    ours = compile_proto((ROOT / "proto" / "objects.proto").read_bytes())
    theirs = compile_proto((FILES / "proto" / "objects.proto.in").read_bytes())
    for collection in (*ENGINE_COLLECTIONS, "id_alloc"):
        for own, other in (
            (ours.key(collection), theirs.key(collection)),
            (ours.value(collection), theirs.value(collection)),
        ):
            assert [_shape(field) for field in own.fields] == [_shape(field) for field in other.fields]


def _shape(field: object) -> tuple[object, ...]:
    return tuple(getattr(field, name) for name in ("name", "number", "type", "has_presence", "is_repeated"))
