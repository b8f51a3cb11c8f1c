"""Virtual environments that find the packages of this one: made in a moment, where a full one is a gigabyte."""

from __future__ import annotations

import hashlib
import sys
import sysconfig
import venv
from pathlib import Path

LENT = "lent.pth"


def lend_environment(folder: Path) -> Path:
    """Make an environment with all packages of this one but the project's own; return its folder of programs.

    Packages that are installed into it come before lent ones. What a `.pth` file of this environment adds, such as the
    checkout of an editable install, is not lent: only the first environment reads those.
    """
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    programs = folder / "bin"
    _site_packages(folder).joinpath(LENT).write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    mine = f"#!{sys.executable}\n".encode()
    for script in Path(sys.executable).parent.iterdir():
        if script.is_file() and not script.is_symlink() and (source := script.read_bytes()).startswith(mine):
            lent = programs / script.name
            lent.write_bytes(source.replace(mine, f"#!{programs / 'python'}\n".encode(), 1))
            lent.chmod(0o755)
    return programs


def lend_to_clone(clone: Path) -> Path:
    """Give a clone the `.venv` that `./dev` would make, with the clone's own package in it; return the clone."""
    folder = clone / ".venv"
    lend_environment(folder)
    lent = _site_packages(folder) / LENT
    lent.write_text(f"{clone}\n{lent.read_text(encoding='utf-8')}", encoding="utf-8")
    tools = next(line for line in (clone / "dev").read_text(encoding="utf-8").splitlines() if line.startswith("nox="))
    (folder / "dev-tools").write_text(tools.split("'")[1], encoding="utf-8")
    (folder / "installed-dev").write_text(
        hashlib.sha256((clone / "pyproject.toml").read_bytes()).hexdigest(), encoding="utf-8"
    )
    return clone


def _site_packages(folder: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(folder), "platbase": str(folder)}))
