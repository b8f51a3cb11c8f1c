"""Everything that is done with a checkout, one session each; `./dev SESSION` runs them.

All sessions share one environment, `.venv`. Exceptions: `matrix` has one for each Python, `demo` one for the wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import nox

nox.needs_version = ">=2026.2.9"
nox.options.default_venv_backend = "none"
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = False
nox.options.download_python = "never"
nox.options.sessions = ["test"]

PROJECT = nox.project.load_toml("pyproject.toml")
DIST = Path("dist")
OTHER_PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PYTHON = sys.executable
BESIDE = ["build", "lint", "types", "docs"]
"""The sessions that `./dev test` runs at the same time as the tests."""
QUICK = ["-m", "not spark and not cluster and not slow"]
WORKERS = ["-n", "3", "--dist", "loadgroup"]
"""One more than cores: while a test waits for a process or a socket, another one works."""
ARCHIVE = ".cache"
"""The folder of the class archive that all tests share."""
INSTALL = [
    *("uv", "pip", "install", "--quiet", "--python", PYTHON),
    "--config-settings-package=pyspark:--build-option=--compression=stored",  # an sdist; compressing it takes long
]


def install(session: nox.Session) -> None:
    """Bring `.venv` up to date: the package, every dependency group, the generated code of the types."""
    if is_new("dev", "pyproject.toml"):
        groups = [word for name in ("lint", "types", "test", "docs") for word in ("--group", name)]
        session.run_install(*INSTALL, *groups, "--editable", ".", external=True)
        keep("dev", "pyproject.toml")
        keep("types", *types_of_rows())
    if is_new("types", *types_of_rows()):
        session.run_install(PYTHON, "-m", "build_tools", "codegen", silent=True, external=True)
        keep("types", *types_of_rows())


def install_gate(session: nox.Session) -> None:
    """Install what the gate needs: far less than everything."""
    if is_new("dev", "pyproject.toml") and is_new("gate", "pyproject.toml"):
        session.run_install(*INSTALL, *PROJECT["build-system"]["requires"], external=True)
        keep("gate", "pyproject.toml")


def types_of_rows() -> list[str]:
    return sorted(str(path) for path in Path("proto").rglob("*.proto"))


def is_new(name: str, *files: str) -> bool:
    """Tell if these files differ from those that `.venv` was made for."""
    stamp = Path(sys.prefix, f"installed-{name}")
    return not stamp.is_file() or stamp.read_text(encoding="utf-8") != digest(*files)


def keep(name: str, *files: str) -> None:
    Path(sys.prefix, f"installed-{name}").write_text(digest(*files), encoding="utf-8")


def digest(*files: str) -> str:
    return hashlib.sha256(b"\0".join(Path(file).read_bytes() for file in files)).hexdigest()


def group(name: str) -> list[str]:
    return list(nox.project.dependency_groups(PROJECT, name))


@nox.session
def test(session: nox.Session) -> None:
    """Run the tests, and the gate, lint, types and docs beside them; `./dev test quick` runs what needs no Java."""
    quick = session.posargs[:1] == ["quick"]
    words = [*QUICK, *session.posargs[1:]] if quick else session.posargs
    begin = time.monotonic()
    install(session)
    session.log("the environment is there after %.0f s", time.monotonic() - begin)
    beside = ["lint"] if quick else BESIDE
    if not quick:  # fifteen seconds, and every Java of the tests starts in half the time
        session.run("python", "-m", "catalog.engine.spark.archive_maker", ARCHIVE, success_codes=[0, 1])
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        command = [PYTHON, "-m", "nox", "--sessions", *beside]
        with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as others:  # noqa: S603 - our own
            try:
                run_pytest(session, *words)
            finally:
                status = others.wait()
                output.seek(0)
                session.log("beside the tests:\n%s", output.read().rstrip())
    if status != 0:
        session.error(f"{', '.join(beside)}: one of them failed, see above")
    session.log("the tests and %s passed, %.0f s in all", ", ".join(beside), time.monotonic() - begin)


def run_pytest(session: nox.Session, *words: str) -> None:
    session.run("python", "-m", "pytest", *WORKERS, "--durations=20", "--durations-min=1", *words)


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
    install_gate(session)
    session.run("python", "-m", "build_tools", *verb, *session.posargs, env={"GATE_RUN_BY": "./dev"})


@nox.session
def build(session: nox.Session) -> None:
    """Run the gate against the whole history, then build the sdist and from it the wheel."""
    install(session)
    gate = [PYTHON, "-m", "build_tools", "check", "--require-history", *session.posargs]
    session.run(*gate, env={"GATE_RUN_BY": "./dev"}, external=True)
    shutil.rmtree(DIST, ignore_errors=True)
    session.run(PYTHON, "-m", "build", "--no-isolation", "--outdir", str(DIST), silent=True, external=True)
    session.log("built %s", ", ".join(sorted(path.name for path in DIST.iterdir())))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, formatting and the import layers."""
    install(session)
    session.run("python", "-m", "ruff", "check", ".")
    session.run("python", "-m", "ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache")


@nox.session
def types(session: nox.Session) -> None:
    """Check types strictly."""
    install(session)
    session.run("python", "-m", "mypy")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests alone; the words after it go to pytest."""
    install(session)
    run_pytest(session, *session.posargs)


@nox.session(python=OTHER_PYTHONS, venv_backend="uv")
def matrix(session: nox.Session) -> None:
    """Run the tests on every Python that is present."""
    session.install("-e", ".", *group("test"))
    run_pytest(session, *session.posargs)


SOAKS: dict[str, list[str]] = {
    "properties": [
        "tests/engine/codec",
        "tests/engine/migrate/test_constraint_hashes.py",
        "tests/engine/migrate/test_partitions.py",
        "tests/engine/stash/test_json_rows.py",
        "tests/gate/test_wire_properties.py",
        "tests/migrations",
        "tests/tools/generator/test_generate.py",
    ],
    "simulation": ["tests/engine/stash/simulation"],
    "kills": ["tests/engine/stash/crashes/test_kills.py"],
    "streams": ["tests/engine/spark/test_restarts.py"],
    "races": ["tests/engine/stash/races/test_races.py"],
    "openings": ["tests/engine/stash/races/test_members.py::test_no_opening_under_writers_is_a_false_alarm"],
    "members": ["tests/engine/stash/races/test_members.py::test_transactions_of_members_can_be_replayed_one_by_one"],
    "damage": ["tests/tools/test_mutations.py"],
    "sizes": ["tests/engine/log/test_sizes.py"],
    "upgrades": ["tests/engine/migrate/kills"],
    "faults": ["tests/engine/migrate/test_faults.py"],
    "shards": ["tests/engine/shard/test_properties.py"],
    "builtins": ["tests/engine/builtins/test_simulation.py"],
}


@nox.session
def soak(session: nox.Session) -> None:
    """Run the long versions of tests, or some, by name: see SOAKS; each ends in a summary."""
    if unknown := set(session.posargs) - SOAKS.keys():
        session.error(f"there is no soak {', '.join(sorted(unknown))}; there are {', '.join(SOAKS)}")
    install(session)
    for name in session.posargs or SOAKS:
        command = ["python", "-m", "pytest", *WORKERS, "-rP", "--hypothesis-profile", "soak", *SOAKS[name]]
        output = str(session.run(*command, env={"CRASHES": "500", "UPGRADE_KILLS": "200"}, silent=True))
        session.log("for benchmarks/results:\n%s", summary(name, output))


def summary(name: str, output: str) -> str:
    """Return one paragraph: the machine, the command, the test's own report, and the last line of pytest."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],  # noqa: S607 - the checkout's own
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    lines = output.splitlines()
    reports = dict.fromkeys(line.removeprefix("soak: ") for line in lines if line.startswith("soak: "))
    machine = f"commit {commit or 'unknown'}, {os.cpu_count()} cores, {memory_gib:.0f} GiB"
    return "\n".join([machine, f"$ ./dev soak {name}", *reports, lines[-1].strip("= ")])


@nox.session
def golden(session: nox.Session) -> None:
    """Write the golden files that a new version lacks, or make some again: `./dev golden v22_to_v23`."""
    install(session)
    session.run("python", "-m", "tests.upgrade.golden", *session.posargs)


@nox.session(venv_backend="uv")
def demo(session: nox.Session) -> None:
    """Do the main job: build the package, install the wheel, show the versions, and upgrade a store with it."""
    build(session)
    (wheel,) = DIST.glob("*.whl")
    session.install("--no-deps", "--reinstall", str(wheel))
    lend_packages(session)
    session.run("catalog", "--version")
    session.run("python", "-m", "build_tools", "show")
    session.run("python", "-P", "examples/demo.py")  # -P: the wheel's, not the checkout's


def lend_packages(session: nox.Session) -> None:
    """Let an environment find, after its own packages, those of `.venv`: Spark is half a gigabyte."""
    script = "import sysconfig; print(sysconfig.get_path('purelib'))"
    folder = str(session.run("python", "-c", script, silent=True, log=False)).strip()
    Path(folder, "lent.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")


@nox.session
def upgrade_check(session: nox.Session) -> None:
    """Try the upgrade of every store in a folder, each on a scratch copy: `./dev upgrade_check DIR [--html=FILE]`."""
    page = [word for word in session.posargs if word.startswith("--html=")]
    places = [place for place in session.posargs if place not in ("--", *page)]
    stores = [store for place in places for store in stores_at(place)]
    if not stores:
        session.error(f"there is no store in {', '.join(places) or 'nothing'}; a store is a folder with store.json")
    install(session)
    session.run("python", "-m", "catalog.cli", "debug", "upgrade-check", *stores, *page)


def stores_at(place: str) -> list[str]:
    """Return the stores in a folder, however deep, or the address of one in an object store."""
    return [place] if "://" in place else sorted(str(found.parent) for found in Path(place).rglob("store.json"))


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks; each prints ratios to a named limit or peer.

    `python -m benchmarks.record` writes those whose figures are committed.
    """
    install(session)
    for script in [Path("benchmarks", f"{name}.py") for name in session.posargs] or sorted(
        path for path in Path("benchmarks").glob("*.py") if path.stem != "record"
    ):
        session.run("python", str(script))


@nox.session
def docs(session: nox.Session) -> None:
    """Check generated pages, links and navigation, and build the site; `./dev docs --write` writes the pages first."""
    install(session)
    session.run("python", "docs/reference.py", *session.posargs)
    session.run("python", "docs/website.py")
