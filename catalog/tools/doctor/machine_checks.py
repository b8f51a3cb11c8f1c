"""Checks of the machine: Python, packages, generated types, Java, Spark, its class archive, room for scratch copies.

Starts no JVM and loads no pyspark, unless Spark is to be started.
"""

from __future__ import annotations

import os
import re
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

from catalog.engine.base.disk import free_bytes
from catalog.engine.spark.class_archive import OFF, VARIABLE, ClassArchive, archive_folder, class_folder
from catalog.engine.spark.java import Java, find_java
from catalog.tools.doctor.requirements import DISTRIBUTION, Requirement, read_requirements
from catalog.tools.doctor.runner import CheckResult, DoctorContext, Status

MIB: Final = 1 << 20
GIB: Final = 1 << 30
PYTHONS: Final = ((3, 11), (3, 13))
"""The oldest and the newest Python that this package is tested with."""
JAVAS: Final = (17, 21)
_SAID = re.compile(r'version "(?P<version>[^"]+)"')
_CORE = re.compile(r"spark-core_[0-9.]+-(?P<version>.+)\.jar")
_JAVA_ANSWERS_S = 30.0
_FREE_MIN = 100 * MIB
_FREE_ENOUGH = GIB
_INSTALL_JAVA = "install Java 17 or 21, and set JAVA_HOME or put it on the path"


def check_python(_subject: DoctorContext) -> Iterator[CheckResult]:
    own = sys.version_info[:2]
    text = f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}"
    oldest, newest = (".".join(map(str, bound)) for bound in PYTHONS)
    if own > PYTHONS[1]:
        fix = f"use one of Python {oldest} to {newest} where it matters"
        yield CheckResult("python", Status.WARNING, f"{text} is newer than what this build was tested with", fix)
    else:
        yield CheckResult("python", Status.OK, text)


def check_packages(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that required packages are installed in a fitting version, and that those always needed can be loaded."""
    requirements = read_requirements()
    if not requirements:
        fix = f"install it: pip install '{DISTRIBUTION}[spark]'"
        yield CheckResult(
            "packages", Status.WARNING, f"{DISTRIBUTION} is not installed: what it needs is not known", fix
        )
        return
    fitting = []
    for own in requirements:
        if (wrong := _wrong(own, subject)) is not None:
            yield wrong
        elif own.installed is not None:
            fitting.append(f"{own.name} {own.installed}")
    yield CheckResult("packages", Status.OK, f"{DISTRIBUTION} {version(DISTRIBUTION)}, with {', '.join(fitting)}")


def _wrong(own: Requirement, subject: DoctorContext) -> CheckResult | None:
    """Return the problem of a package; none if it fits, or is missing and not needed here."""
    wanted = f"{own.name}{own.wanted}"
    install = f"pip install '{DISTRIBUTION}{f'[{own.extra}]' if own.extra else ''}'"
    if own.installed is None:
        if not own.extra or (own.extra == "s3" and subject.is_remote):
            return CheckResult("packages", Status.PROBLEM, f"{wanted} is needed, and not installed", install)
        if own.extra == "spark":
            found = f"{wanted} is needed for steps that rewrite rows and for DataFrames, and not installed"
            return CheckResult("packages", Status.WARNING, found, install)
    elif not own.fits:
        grade = Status.WARNING if own.extra else Status.PROBLEM
        return CheckResult("packages", grade, f"{wanted} is needed, and {own.installed} is installed", install)
    elif not own.extra and (broken := _broken(own.name)):
        fix = f"install it anew: pip install --force-reinstall '{wanted}'"
        return CheckResult("packages", Status.PROBLEM, f"{own.name} {own.installed} cannot be loaded: {broken}", fix)
    return None


def _broken(name: str) -> str:
    """Return the reason why a package cannot be loaded; empty if it can be."""
    module = {"deltalake": "catalog.engine.log.delta_table", "protobuf": "google.protobuf.message"}.get(name, name)
    try:
        import_module(module)
    except Exception as error:  # noqa: BLE001 - a broken library raises anything
        return f"{type(error).__name__}: {error}"
    return ""


def check_types(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that the generated code exists and belongs to the present types."""
    project = subject.project
    for number in range(project.first_proto, project.current + 1):
        project.types(number)
    module = project.current_types
    found = f"project {project.name}, build {project.build}: versions {project.minimum} to {project.current}"
    yield CheckResult("types", Status.OK, f"{found}, generated in {Path(str(module.__file__)).parent}")


def check_java(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check the Java that Spark takes: that of JAVA_HOME if it is set, else the one on the path."""
    if remote := _server(subject):
        yield CheckResult("java", Status.OK, f"none is needed here: Spark is at {remote}")
        return
    java = find_java(subject.variables)
    if java is None:
        text = "there is none: steps that rewrite rows cannot run on this machine"
        yield CheckResult("java", Status.WARNING, text, _INSTALL_JAVA)
    elif not java.is_there:
        fix = "correct or unset JAVA_HOME: Spark takes no other Java while it is set"
        home = java.program.parents[1]
        yield CheckResult("java", Status.PROBLEM, f"JAVA_HOME is {home}, and there is no {java.program}", fix)
    else:
        yield _judged_java(java, java.version or (_asked_version(java) if subject.starts_spark else None))


def _judged_java(java: Java, text: str | None) -> CheckResult:
    where = f"at {java.program}, by {'JAVA_HOME' if java.by_home else 'the path'}"
    if text is None:
        return CheckResult("java", Status.WARNING, f"of an unknown version {where}", "see `catalog doctor --deep`")
    major = int(re.split(r"[.+-]", text.removeprefix("1."))[0])
    if major in JAVAS:
        return CheckResult("java", Status.OK, f"Java {text} {where}")
    if major < min(JAVAS):
        return CheckResult("java", Status.PROBLEM, f"Java {text} {where} is too old for Spark", _INSTALL_JAVA)
    return CheckResult(
        "java", Status.WARNING, f"Java {text} {where} is not one that Spark is tested with", _INSTALL_JAVA
    )


def _asked_version(java: Java) -> str | None:
    """Ask Java for its version, which starts a JVM."""
    done = subprocess.run(  # noqa: S603 - the Java of this machine
        [java.program, "-version"], capture_output=True, text=True, timeout=_JAVA_ANSWERS_S, check=False
    )
    match = _SAID.search(done.stderr + done.stdout)
    return match["version"] if match else None


def check_spark(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check that pyspark is installed; if it may be started, run a job."""
    if find_spec("pyspark") is None:
        fix = f"pip install '{DISTRIBUTION}[spark]'"
        yield CheckResult("spark", Status.WARNING, "pyspark is not installed: no step that rewrites rows can run", fix)
        return
    address, own = _server(subject) or subject.spark or "this machine", _pyspark()
    home = None if _server(subject) else subject.variables.get("SPARK_HOME")
    if home is not None and (there := _spark_at(Path(home))) != own:
        found = f"SPARK_HOME is {home}, where {f'Spark {there}' if there else 'no Spark'} is, and pyspark is {own}"
        yield CheckResult("spark", Status.PROBLEM, found, "unset SPARK_HOME: pyspark has a Spark of its own with it")
        return
    text = f"pyspark {own}, on {address}"
    if not subject.starts_spark:
        yield CheckResult("spark", Status.OK, f"{text}; not started, which --deep does")
        return
    from catalog.engine.spark.jobs import SparkJobs  # noqa: PLC0415 - loads Arrow
    from catalog.engine.spark.session import find_session  # noqa: PLC0415

    began_s = time.monotonic()
    jobs = SparkJobs(lambda: find_session(subject.spark, subject.class_archive))
    session = jobs.session
    started_s = time.monotonic()
    outcome = jobs.collect([jobs.tasks(_answer, [[1], [2]])], lambda _done, _count: None, count=2)
    ended_s = time.monotonic()
    if sorted(outcome.reports) != [1, 2]:
        yield CheckResult(
            "spark", Status.PROBLEM, f"{text}: a job of two tasks answered {outcome.reports}", "see its log"
        )
        return
    took = f"started in {started_s - began_s:.1f} s, two tasks took {ended_s - started_s:.1f} s"
    yield CheckResult("spark", Status.OK, f"Spark {session.version} on {address} {took}")


def check_archive(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check the archive of Java's classes: its place and size, and if it was used, or why there is none."""
    folder = archive_folder(subject.class_archive, subject.variables)
    archive = ClassArchive.of(folder, subject.variables)
    path = None if archive is None else archive.find()
    if _server(subject):
        yield CheckResult("archive", Status.SKIPPED, "Java runs elsewhere")
    elif path is not None:
        told = f"Java's classes, {path.stat().st_size >> 20} MiB, are at {path}"
        if not subject.starts_spark:
            yield CheckResult("archive", Status.OK, told)
            return
        from catalog.engine.spark.session import is_archive_used  # noqa: PLC0415 - Spark was started

        if is_archive_used():
            yield CheckResult("archive", Status.OK, f"{told}; Java used them")
        else:
            fix = f"remove the file: another is made; or set class_archive to {OFF}"
            yield CheckResult("archive", Status.WARNING, f"{told}; Java did not use them, and started slowly", fix)
    elif folder is None:
        turned_off = "it is turned off" if _is_off(subject) else "there is no HOME for it"
        yield CheckResult("archive", Status.OK, f"none of Java's classes, because {turned_off}: Spark starts slowly")
    elif archive is None:
        yield CheckResult("archive", Status.WARNING, *_no_archive(subject))
    elif (obstacle := archive.obstacle()) is not None:
        fix = "correct that, or name another folder by the setting class_archive"
        yield CheckResult("archive", Status.WARNING, f"there is none of Java's classes, because {obstacle}", fix)
    else:
        yield CheckResult("archive", Status.OK, f"none of Java's classes yet: the next session makes one in {folder}")


def _is_off(subject: DoctorContext) -> bool:
    return OFF in {subject.class_archive, subject.variables.get(VARIABLE)}


def _no_archive(subject: DoctorContext) -> tuple[str, str]:
    """Return the reason why the Java and the Spark of this machine can have no archive, and the remedy."""
    if (folder := class_folder(subject.variables)) is not None:
        return f"Java uses none of its classes while {folder} has files", "move settings of Spark elsewhere"
    return "there is none of Java's classes, because Java or Spark cannot be examined", "see java and spark"


def _pyspark() -> str:
    """Return the version of pyspark, without loading it."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        return "of no known version"


def _spark_at(home: Path) -> str | None:
    """Return the version of the Spark in a folder; none if there is none."""
    found = [_CORE.fullmatch(file.name) for file in home.glob("jars/spark-core_*.jar")]
    return next((match["version"] for match in found if match is not None), None)


def _answer(number: int) -> tuple[object, list[tuple[int, bytes]]]:
    return number, []


def _server(subject: DoctorContext) -> str | None:
    """Return the address of the Connect server that jobs go to; none if they run elsewhere."""
    address = subject.spark or subject.variables.get("SPARK_REMOTE")
    return address if address is not None and address.startswith("sc://") else None


def check_scratch(subject: DoctorContext) -> Iterator[CheckResult]:
    """Check the folder for temporary files, where Spark works and scratch copies are made."""
    folder = subject.scratch
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"probe")
            file.flush()
    except OSError as error:
        fix = "set TMPDIR to a folder that can be written to"
        yield CheckResult("scratch", Status.PROBLEM, f"{folder} cannot be written to: {error.strerror}", fix)
        return
    yield from judge_room("scratch", folder, 0)


def judge_room(name: str, folder: Path, needed: int) -> Iterator[CheckResult]:
    """Check that an existing folder has room for about this many bytes."""
    free, status = free_bytes(folder), os.statvfs(folder)
    text = f"{free / GIB:.1f} GiB are free in {folder}"
    if status.f_files and status.f_favail == 0:
        yield CheckResult(
            name, Status.PROBLEM, f"no file can be added in {folder}: no inode is free", "remove some files"
        )
    elif free < _FREE_MIN:
        yield CheckResult(
            name, Status.PROBLEM, f"only {free // MIB} MiB are free in {folder}", "make room on that disk"
        )
    elif free < max(needed, _FREE_ENOUGH):
        wanted = f"about {max(needed, _FREE_ENOUGH) / GIB:.1f} GiB would be enough"
        yield CheckResult(name, Status.WARNING, f"{text}; {wanted}", "make room on that disk, or name a larger one")
    else:
        yield CheckResult(name, Status.OK, text)
