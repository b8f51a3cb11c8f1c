"""Projects of one's own, made from the files in `_template`.

A file `NAME.in` becomes `NAME`, with `@project@` and `@build@` replaced in its path and its text. The gate makes the
rest: the first snapshot, its hash and the generated code. A project is there as a whole or not at all.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Any, Final

from catalog.errors import UsageError
from catalog.gate import load_gate
from catalog.version import BUILD

FILES: Final = Path(__file__).parent / "_template"
_SUFFIX = ".in"
_PLACEHOLDER = re.compile("@(project|build)@")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NAME_CHARACTERS_MAX = 40
_SHOWN_MAX = 3
_TAKEN_HERE: Final = frozenset({"proto", "store", "tests", "dist", "build", "noxfile"})
"""Other folders and files of a project."""
_ALLOWED_BEFORE: Final = frozenset({".git"})
"""What a folder may hold that is to become a project: the history that it will have."""


@dataclass(frozen=True, slots=True)
class Made:
    folder: Path
    name: str
    files: tuple[str, ...]
    """Those to be committed; generated code is not among them."""
    findings: str
    """What the gate says of it."""


def suggest_name(folder: Path) -> str:
    """The name that a project in this folder has if nobody says otherwise."""
    return re.sub(r"[^a-z0-9_]+", "_", Path(os.path.realpath(folder)).name.lower()).strip("_")


def check_name(name: str, folder: Path) -> None:
    """Refuse what cannot be the name of a project's package."""
    if _NAME.fullmatch(name) is None or iskeyword(name) or len(name) > _NAME_CHARACTERS_MAX:
        raise UsageError(
            f"{name!r} is no name for a project",
            "its package has that name: a small letter, then small letters, digits and underscores, "
            f"{_NAME_CHARACTERS_MAX} at most, and no keyword of Python",
            "choose one with --name, such as --name shop",
        )
    if name in _TAKEN_HERE:
        raise _taken(name, "a project has other files of that name")
    if name in sys.stdlib_module_names:
        raise _taken(name, "Python has a module of that name")
    if _is_installed(name, folder):
        raise _taken(name, "a package of that name is installed here")


def check_folder(folder: Path) -> None:
    """Refuse a place where a project would meet something else."""
    try:
        if folder.is_symlink() and not folder.exists():
            raise UsageError(f"{folder} leads nowhere", "it is a link to nothing", "name a folder that is empty")
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder", "a project is a folder", "name one that is empty, or not there")
        found = sorted(entry.name for entry in folder.iterdir() if entry.name not in _ALLOWED_BEFORE)
    except (OSError, ValueError) as error:
        raise _no_place(folder, error) from error
    if found:
        raise UsageError(
            f"{folder} is not empty: it holds {', '.join(found[:_SHOWN_MAX])}{', …' * (len(found) > _SHOWN_MAX)}",
            "a project is made of files of its own, and none is overwritten",
            "name a folder that is empty, or not there yet",
        )


def make_project(folder: Path, name: str) -> Made:
    """Make a project; where something is in the way, nothing is made."""
    check_folder(folder)
    check_name(name, folder)
    missing = [place for place in (folder, *folder.absolute().parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = _fill(folder, name)
    except BaseException as error:
        for place in missing:
            with suppress(OSError):  # not all of them may have been made
                place.rmdir()
        if isinstance(error, OSError | ValueError):
            raise _no_place(folder, error) from error
        raise
    findings = load_gate("findings")
    return Made(folder, name, files, findings.render(load_gate("check").check(_tree(folder)), findings.Format.TEXT))


def _fill(folder: Path, name: str) -> tuple[str, ...]:
    """Make everything apart, where the gate can look at it, and then put it in its place."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as apart:
        stage = Path(apart).resolve()
        for path, text in _filled_in({"project": name, "build": BUILD}).items():
            (stage / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / path).write_text(text, encoding="utf-8")
        tree = _tree(stage)
        try:
            load_gate("snapshot").amend(tree)
        except load_gate("tree").GateError as error:
            raise UsageError(error.what, error.why, error.fix) from error
        files = tuple(
            sorted(
                path.relative_to(stage).as_posix()
                for path in stage.rglob("*")
                if path.is_file() and tree.generated not in path.parents
            )
        )
        names = sorted(entry.name for entry in stage.iterdir())
        try:
            for entry in names:
                (stage / entry).rename(folder / entry)
        except BaseException:
            for entry in names:
                if not (stage / entry).exists():
                    (folder / entry).rename(stage / entry)
            raise
    return files


def _filled_in(values: Mapping[str, str]) -> dict[str, str]:
    """Every file of a project, by its path."""

    def filled(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)

    return {
        filled(path.relative_to(FILES).as_posix().removesuffix(_SUFFIX)): filled(path.read_text(encoding="utf-8"))
        for path in sorted(FILES.rglob(f"*{_SUFFIX}"))
    }


def _tree(folder: Path) -> Any:  # noqa: ANN401 - of the gate
    return load_gate("tree").find_tree(folder, search=False)


def _is_installed(name: str, folder: Path) -> bool:
    """Whether importing that name, or installing something of that name, would meet something else."""
    with suppress(PackageNotFoundError):
        distribution(name)
        return True
    spec = find_spec(name)
    if spec is None or spec.origin is not None:
        return spec is not None
    ours = {Path.cwd() / name, folder.absolute()}  # a folder that is only where this was run is no package
    return any(Path(place) not in ours for place in spec.submodule_search_locations or ())


def _taken(name: str, why: str) -> UsageError:
    return UsageError(f"a project cannot be named {name}", why, "choose another name with --name")


def _no_place(folder: Path, error: Exception) -> UsageError:
    return UsageError(f"no project can be made in {folder}", str(error), "name a folder that can be written")
