"""What is examined of the machine alone: Python, packages, generated types, Java, Spark, room for scratch copies.

Starts no JVM, and loads no pyspark, unless it is asked to start Spark.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from catalog.doctor.examination import Examined, Grade, Subject
from catalog.doctor.requirements import DISTRIBUTION, Requirement, read_requirements
from catalog.spark.java import Java, find_java

MIB: Final = 1 << 20
GIB: Final = 1 << 30
PYTHONS: Final = ((3, 11), (3, 13))
"""The oldest and the newest that this package is tested with."""
JAVAS: Final = (17, 21)
_SAID = re.compile(r'version "(?P<version>[^"]+)"')
_CORE = re.compile(r"spark-core_[0-9.]+-(?P<version>.+)\.jar")
_JAVA_ANSWERS_S = 30.0
_FREE_MIN = 100 * MIB
_FREE_ENOUGH = GIB
_INSTALL_JAVA = "install Java 17 or 21, and set JAVA_HOME or put it on the path"


def look_at_python(_subject: Subject) -> Iterator[Examined]:
    own = sys.version_info[:2]
    told = f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    oldest, newest = (".".join(map(str, bound)) for bound in PYTHONS)
    if own > PYTHONS[1]:
        fix = f"use one of Python {oldest} to {newest} where it matters"
        yield Examined("python", Grade.WARNING, f"{told} is newer than what this build was tested with", fix)
    else:
        yield Examined("python", Grade.OK, told)


def look_at_packages(subject: Subject) -> Iterator[Examined]:
    """Whether each that is needed is installed, of a version that fits, and can be loaded if it is always needed."""
    requirements = read_requirements()
    if not requirements:
        fix = f"install it: pip install '{DISTRIBUTION}[spark]'"
        yield Examined("packages", Grade.WARNING, f"{DISTRIBUTION} is not installed: what it needs is not known", fix)
        return
    fitting = []
    for own in requirements:
        if (wrong := _wrong(own, subject)) is not None:
            yield wrong
        elif own.installed is not None:
            fitting.append(f"{own.name} {own.installed}")
    yield Examined("packages", Grade.OK, f"{DISTRIBUTION} {version(DISTRIBUTION)}, with {', '.join(fitting)}")


def _wrong(own: Requirement, subject: Subject) -> Examined | None:
    """What is wrong with a package; nothing if it fits, or is missing and not needed here."""
    wanted = f"{own.name}{own.wanted}"
    install = f"pip install '{DISTRIBUTION}{f'[{own.extra}]' if own.extra else ''}'"
    if own.installed is None:
        if not own.extra or (own.extra == "s3" and subject.is_remote):
            return Examined("packages", Grade.PROBLEM, f"{wanted} is needed, and not installed", install)
        if own.extra == "spark":
            found = f"{wanted} is needed for steps that rewrite rows and for DataFrames, and not installed"
            return Examined("packages", Grade.WARNING, found, install)
    elif not own.fits:
        grade = Grade.WARNING if own.extra else Grade.PROBLEM
        return Examined("packages", grade, f"{wanted} is needed, and {own.installed} is installed", install)
    elif not own.extra and (broken := _broken(own.name)):
        fix = f"install it anew: pip install --force-reinstall '{wanted}'"
        return Examined("packages", Grade.PROBLEM, f"{own.name} {own.installed} cannot be loaded: {broken}", fix)
    return None


def _broken(name: str) -> str:
    """Why a package that is always needed cannot be loaded; empty if it can be."""
    module = {"deltalake": "catalog.log.delta", "protobuf": "google.protobuf.message"}.get(name, name)
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - a broken library raises anything
        return f"{type(error).__name__}: {error}"
    return ""


def look_at_types(subject: Subject) -> Iterator[Examined]:
    """Whether the code that was generated from the types is there, and of these types."""
    project = subject.project
    for number in range(project.first_proto, project.current + 1):
        project.types(number)
    module = project.current_types
    found = f"project {project.name}, build {project.build}: versions {project.minimum} to {project.current}"
    yield Examined("types", Grade.OK, f"{found}, generated in {Path(str(module.__file__)).parent}")


def look_at_java(subject: Subject) -> Iterator[Examined]:
    """The Java that Spark would take: that of JAVA_HOME if it is set, else the one on the path."""
    if remote := _server(subject):
        yield Examined("java", Grade.OK, f"none is needed here: Spark is at {remote}")
        return
    java = find_java(subject.variables)
    if java is None:
        told = "there is none: steps that rewrite rows cannot run on this machine"
        yield Examined("java", Grade.WARNING, told, _INSTALL_JAVA)
    elif not java.is_there:
        fix = "correct or unset JAVA_HOME: Spark takes no other Java while it is set"
        home = java.program.parents[1]
        yield Examined("java", Grade.PROBLEM, f"JAVA_HOME is {home}, and there is no {java.program}", fix)
    else:
        yield _judged_java(java, java.version or (_asked_version(java) if subject.starts_spark else None))


def _judged_java(java: Java, told: str | None) -> Examined:
    where = f"at {java.program}, by {'JAVA_HOME' if java.by_home else 'the path'}"
    if told is None:
        return Examined("java", Grade.WARNING, f"of an unknown version {where}", "see `catalog doctor --deep`")
    major = int(re.split(r"[.+-]", told.removeprefix("1."))[0])
    if major in JAVAS:
        return Examined("java", Grade.OK, f"Java {told} {where}")
    if major < min(JAVAS):
        return Examined("java", Grade.PROBLEM, f"Java {told} {where} is too old for Spark", _INSTALL_JAVA)
    return Examined("java", Grade.WARNING, f"Java {told} {where} is none that Spark is tested with", _INSTALL_JAVA)


def _asked_version(java: Java) -> str | None:
    """What it says itself, which starts a JVM."""
    done = subprocess.run(  # noqa: S603 - the Java of this machine
        [java.program, "-version"], capture_output=True, text=True, timeout=_JAVA_ANSWERS_S, check=False
    )
    said = _SAID.search(done.stderr + done.stdout)
    return said["version"] if said else None


def look_at_spark(subject: Subject) -> Iterator[Examined]:
    """Whether pyspark is there; and if it may be started, whether a job ends in the processes it starts."""
    if find_spec("pyspark") is None:
        fix = f"pip install '{DISTRIBUTION}[spark]'"
        yield Examined("spark", Grade.WARNING, "pyspark is not installed: no step that rewrites rows can run", fix)
        return
    address, own = _server(subject) or subject.spark or "this machine", _pyspark()
    home = None if _server(subject) else subject.variables.get("SPARK_HOME")
    if home is not None and (there := _spark_at(Path(home))) != own:
        found = f"SPARK_HOME is {home}, where {f'Spark {there}' if there else 'no Spark'} is, and pyspark is {own}"
        yield Examined("spark", Grade.PROBLEM, found, "unset SPARK_HOME: pyspark has a Spark of its own with it")
        return
    told = f"pyspark {own}, on {address}"
    if not subject.starts_spark:
        yield Examined("spark", Grade.OK, f"{told}; not started, which --deep does")
        return
    from catalog.spark.jobs import SparkJobs  # noqa: PLC0415 - loads Arrow
    from catalog.spark.session import find_session  # noqa: PLC0415

    began_s = time.monotonic()
    jobs = SparkJobs(lambda: find_session(subject.spark))
    session = jobs.session
    started_s = time.monotonic()
    outcome = jobs.collect([jobs.tasks(_answer, [1, 2])], lambda _done, _count: None, count=2)
    ended_s = time.monotonic()
    if sorted(outcome.reports) != [1, 2]:
        yield Examined("spark", Grade.PROBLEM, f"{told}: a job of two tasks answered {outcome.reports}", "see its log")
        return
    took = f"started in {started_s - began_s:.1f} s, two tasks took {ended_s - started_s:.1f} s"
    yield Examined("spark", Grade.OK, f"Spark {session.version} on {address} {took}")


def _pyspark() -> str:
    """The version of pyspark, without loading it."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "of no known version"


def _spark_at(home: Path) -> str | None:
    """The version of the Spark in a folder; none if there is none."""
    found = [_CORE.fullmatch(file.name) for file in home.glob("jars/spark-core_*.jar")]
    return next((match["version"] for match in found if match is not None), None)


def _answer(number: int) -> tuple[object, list[tuple[int, bytes]]]:
    return number, []


def _server(subject: Subject) -> str | None:
    """The Connect server that jobs go to, if it is one."""
    address = subject.spark or subject.variables.get("SPARK_REMOTE")
    return address if address is not None and address.startswith("sc://") else None


def look_at_scratch(subject: Subject) -> Iterator[Examined]:
    """The folder for temporary files, where Spark works and scratch copies are made."""
    folder = subject.scratch
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"probe")
            file.flush()
    except OSError as error:
        fix = "set TMPDIR to a folder that can be written to"
        yield Examined("scratch", Grade.PROBLEM, f"{folder} cannot be written to: {error.strerror}", fix)
        return
    yield from judge_room("scratch", folder, 0)


def judge_room(name: str, folder: Path, needed: int) -> Iterator[Examined]:
    """Whether there is room in a folder that is there, for about so many bytes."""
    free, status = shutil.disk_usage(folder).free, os.statvfs(folder)
    told = f"{free / GIB:.1f} GiB are free in {folder}"
    if status.f_files and status.f_favail == 0:
        yield Examined(name, Grade.PROBLEM, f"no file can be added in {folder}: no inode is free", "remove some files")
    elif free < _FREE_MIN:
        yield Examined(name, Grade.PROBLEM, f"only {free // MIB} MiB are free in {folder}", "make room on that disk")
    elif free < max(needed, _FREE_ENOUGH):
        wanted = f"about {max(needed, _FREE_ENOUGH) / GIB:.1f} GiB would be enough"
        yield Examined(name, Grade.WARNING, f"{told}; {wanted}", "make room on that disk, or name a larger one")
    else:
        yield Examined(name, Grade.OK, told)
