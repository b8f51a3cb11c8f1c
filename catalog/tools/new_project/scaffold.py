"""The scaffold of `catalog new`: a project made from the files in `template/`, complete or not at all.

A file `NAME.in` becomes `NAME`, with `@project@` and `@build@` replaced in its path and its text. The gate makes the
rest: the first snapshot, its hash and the generated code.
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

from catalog.engine.base.gate_loader import load_gate
from catalog.errors import UsageError
from catalog.version import BUILD

FILES: Final = Path(__file__).parent / "template"
_SUFFIX = ".in"
_PLACEHOLDER = re.compile("@(project|build)@")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_NAME_CHARACTERS_MAX = 40
_LISTED_MAX = 3
_RESERVED: Final = frozenset({"proto", "store", "tests", "dist", "build", "noxfile"})
"""Names of other folders and files of a project."""
_ALLOWED_BEFORE: Final = frozenset({".git"})


@dataclass(frozen=True, slots=True)
class NewProject:
    """A project as `make_project` wrote it."""

    folder: Path
    name: str
    files: tuple[str, ...]
    """The files to commit; generated code is not among them."""
    findings: str
    """The report of the gate."""


def suggest_name(folder: Path) -> str:
    """Return the default name of a project in this folder."""
    return re.sub(r"[^a-z0-9_]+", "_", Path(os.path.realpath(folder)).name.lower()).strip("_")


def check_name(name: str, folder: Path) -> None:
    """Raise unless this can be the name of a project's package."""
    if _NAME.fullmatch(name) is None or iskeyword(name) or len(name) > _NAME_CHARACTERS_MAX:
        raise UsageError(
            f"{name!r} is not a valid project name",
            "the package gets this name: a lowercase letter, then lowercase letters, digits and underscores, "
            f"at most {_NAME_CHARACTERS_MAX} characters, no keyword of Python",
            "choose another name, such as --name shop",
        )
    reason = ""
    if name in _RESERVED:
        reason = "every project has another file or folder of this name"
    elif name in sys.stdlib_module_names:
        reason = "Python has a module of this name"
    elif _is_installed(name, folder):
        reason = "a package of this name is installed"
    if reason:
        raise UsageError(f"a project cannot be named {name}", reason, "choose another name with --name")


def check_folder(folder: Path) -> None:
    """Raise unless the folder is empty, holds only a git repository without files, or does not exist."""
    fix = "choose an empty folder, or one that does not exist yet"
    try:
        if folder.is_symlink() and not folder.exists():
            raise UsageError(f"{folder} is a broken link", "its target does not exist", fix)
        if not folder.exists():
            return
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder", "a project is a folder", fix)
        found = sorted(entry.name for entry in folder.iterdir() if entry.name not in _ALLOWED_BEFORE)
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from error
    if found:
        listed = ", ".join(found[:_LISTED_MAX]) + ", …" * (len(found) > _LISTED_MAX)
        raise UsageError(f"{folder} is not empty: it holds {listed}", "no existing file is overwritten", fix)


def make_project(folder: Path, name: str) -> NewProject:
    """Write a project; on any error nothing is left behind."""
    check_folder(folder)
    check_name(name, folder)
    missing = [place for place in (folder, *folder.absolute().parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files = _fill(folder, name)
    except BaseException as error:
        for place in missing:
            with suppress(OSError):  # perhaps it was not made yet
                place.rmdir()
        if isinstance(error, OSError | ValueError):
            raise _unwritable(folder, error) from error
        raise
    findings = load_gate("findings")
    report = load_gate("check").check(_tree(folder))
    return NewProject(folder, name, files, findings.render(report, findings.Format.TEXT))


def _fill(folder: Path, name: str) -> tuple[str, ...]:
    """Write the files into a temporary folder, run the gate there, then move them all; return their paths."""
    with tempfile.TemporaryDirectory(dir=folder, prefix=".new-") as temporary:
        stage = Path(temporary).resolve()
        for path, text in _rendered({"project": name, "build": BUILD}).items():
            (stage / path).parent.mkdir(parents=True, exist_ok=True)
            (stage / path).write_text(text, encoding="utf-8")
        tree = _tree(stage)
        try:
            load_gate("verbs.new_version").amend(tree)
        except load_gate("project_tree").GateError as error:
            raise UsageError(error.what, error.why, error.fix) from error
        own = (path for path in stage.rglob("*") if path.is_file() and tree.generated not in path.parents)
        files = tuple(sorted(path.relative_to(stage).as_posix() for path in own))
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


def _rendered(values: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every file of the template by its path, with placeholders replaced in both."""

    def render(text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: values[found[1]], text)

    return {
        render(path.relative_to(FILES).as_posix().removesuffix(_SUFFIX)): render(path.read_text(encoding="utf-8"))
        for path in sorted(FILES.rglob(f"*{_SUFFIX}"))
    }


def _tree(folder: Path) -> Any:  # noqa: ANN401 - of the gate
    return load_gate("project_tree").find_tree(folder, search=False)


def _is_installed(name: str, folder: Path) -> bool:
    """Tell if a distribution or an importable package has this name already."""
    with suppress(PackageNotFoundError):
        distribution(name)
        return True
    spec = find_spec(name)
    if spec is None or spec.origin is not None:
        return spec is not None
    ours = {Path.cwd() / name, folder.absolute()}  # a plain folder where the command runs is not a package
    return any(Path(place) not in ours for place in spec.submodule_search_locations or ())


def _unwritable(folder: Path, error: Exception) -> UsageError:
    return UsageError(f"no project can be made in {folder}", str(error), "choose a folder that can be written")
