"""Everything that is done with a checkout, one session each; `./dev SESSION` runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import nox

nox.needs_version = ">=2026.2.9"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.sessions = ["build", "lint", "types", "tests", "docs"]

PROJECT = nox.project.load_toml("pyproject.toml")
DIST = Path("dist")
OTHER_PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, name))


@nox.session
def check(session: nox.Session) -> None:
    """Run the gate; what follows `--` goes to it."""
    run_gate(session, "check")


@nox.session
def create(session: nox.Session) -> None:
    """Make a new version from the edited types: `./dev create "why"`."""
    run_gate(session, "snapshot")


@nox.session
def gate(session: nox.Session) -> None:
    """Run any verb of the gate: `./dev gate show`, `./dev gate release 1.2.3`, …."""
    run_gate(session)


def run_gate(session: nox.Session, *verb: str) -> None:
    session.install(*PROJECT["build-system"]["requires"])
    session.run("python", "-m", "build_tools", *verb, *session.posargs, env={"GATE_RUN_BY": "./dev"})


@nox.session
def build(session: nox.Session) -> None:
    """Run the gate against the whole history, then build the sdist and from it the wheel."""
    session.install(*PROJECT["build-system"]["requires"], "build")
    session.run(
        "python", "-m", "build_tools", "check", "--require-history", *session.posargs, env={"GATE_RUN_BY": "./dev"}
    )
    shutil.rmtree(DIST, ignore_errors=True)
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(DIST), silent=True)
    session.log("built %s", ", ".join(sorted(path.name for path in DIST.iterdir())))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the import layers."""
    session.install("-e", ".", *group("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly."""
    session.install("-e", ".", *group("types"))
    session.run("mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; what follows `--` goes to pytest."""
    run_tests(session)


@nox.session(python=OTHER_PYTHONS)
def matrix(session: nox.Session) -> None:
    """Run the tests on every Python that is present."""
    run_tests(session)


def run_tests(session: nox.Session) -> None:
    session.install("-e", ".", *group("test"))
    session.run("pytest", "-n", "2", "--dist", "loadgroup", *session.posargs)


SOAKS: dict[str, list[str]] = {
    "properties": ["tests/unit"],
    "simulation": ["tests/simulation"],
    "kills": ["tests/crashes/test_kills.py"],
    "sizes": ["tests/contract/test_sizes.py"],
    "upgrades": ["tests/kills"],
    "shards": ["tests/shard/test_properties.py"],
    "builtins": ["tests/builtin/test_simulation.py"],
}


@nox.session
def soak(session: nox.Session) -> None:
    """Run the long versions of tests, or some, by name: see SOAKS; each ends in a summary."""
    if unknown := set(session.posargs) - SOAKS.keys():
        session.error(f"there is no soak {', '.join(sorted(unknown))}; there are {', '.join(SOAKS)}")
    session.install("-e", ".", *group("test"))
    for name in session.posargs or SOAKS:
        command = ["pytest", "-n", "2", "--dist", "loadgroup", "-rP", "--hypothesis-profile", "soak", *SOAKS[name]]
        output = str(session.run(*command, env={"CRASHES": "500", "UPGRADE_KILLS": "200"}, silent=True))
        session.log("for benchmarks/results:\n%s", summary(name, output))


def summary(name: str, output: str) -> str:
    """One paragraph that says what ran, what it said of itself, and where: the last line of pytest has the rest."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607 - the checkout's own
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = output.splitlines()
    said = dict.fromkeys(line.removeprefix("soak: ") for line in lines if line.startswith("soak: "))
    machine = f"commit {commit or 'unknown'}, {os.cpu_count()} cores, {memory_gib:.0f} GiB"
    return "\n".join([machine, f"$ ./dev soak {name}", *said, lines[-1].strip("= ")])


@nox.session
def golden(session: nox.Session) -> None:
    """Write the golden files that a new version lacks, or make some again: `./dev golden v22_to_v23`."""
    session.install("-e", ".", *group("test"))
    session.run("python", "-m", "tests.upgrade.golden", *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """Do the main job: build the package, install the wheel, show the versions, and upgrade a store with it."""
    build(session)
    (wheel,) = DIST.glob("*.whl")
    session.install("--reinstall-package", PROJECT["project"]["name"], f"{wheel}[gate,spark]")
    session.run("catalog", "--version")
    session.run("python", "-m", "build_tools", "show")
    session.run("python", "-P", "-m", "catalog.cli.demo")  # -P: the wheel's, not the checkout's


@nox.session
def upgrade_check(session: nox.Session) -> None:
    """Try the upgrade of every store in a folder, each on a scratch copy: `./dev upgrade_check DIR [--html=FILE]`."""
    page = [word for word in session.posargs if word.startswith("--html=")]
    places = [place for place in session.posargs if place not in ("--", *page)]
    stores = [store for place in places for store in stores_at(place)]
    if not stores:
        session.error(f"there is no store in {', '.join(places) or 'nothing'}; a store is a folder with store.json")
    session.install("-e", ".[s3,spark]")
    session.run("catalog", "debug", "upgrade-check", *stores, *page)


def stores_at(place: str) -> list[str]:
    """The stores in a folder, however deep; of an object store, the one whose address this is."""
    return [place] if "://" in place else sorted(str(found.parent) for found in Path(place).rglob("store.json"))


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks; each prints ratios to a named limit or peer."""
    session.install("-e", ".", *group("bench"))
    for script in [Path("benchmarks", f"{name}.py") for name in session.posargs] or sorted(
        Path("benchmarks").glob("*.py")
    ):
        session.run("python", str(script))


@nox.session
def docs(session: nox.Session) -> None:
    """Check generated pages, links and navigation, and build the site; `./dev docs --write` writes the pages first."""
    session.install("-e", ".", *group("docs"))
    session.run("python", "docs/reference.py", *session.posargs)
    session.run("python", "docs/website.py")
