"""What is found out about a machine: its Java, its packages, its disks and its clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

import pytest

from catalog.engine.spark.class_archive import ClassArchive
from catalog.errors import UsageError
from catalog.tools.doctor import machine_checks
from catalog.tools.doctor.check_list import plan
from catalog.tools.doctor.machine_checks import (
    GIB,
    check_archive,
    check_java,
    check_packages,
    check_scratch,
    check_spark,
    check_types,
    judge_room,
)
from catalog.tools.doctor.requirements import Requirement, read_requirements
from catalog.tools.doctor.runner import Check, CheckResult, DoctorContext, Status, examine
from catalog.tools.doctor.storage_checks import check_clock
from catalog.upgrade import PROJECT

PROC = Path("/proc")
"""A file system that has no room, and lets nobody write."""


def subject(**variables: str) -> DoctorContext:
    return DoctorContext(PROJECT, variables=variables)


def only(found: Iterator[CheckResult]) -> CheckResult:
    (one,) = found
    return one


def test_without_a_store_the_machine_alone_is_examined() -> None:
    """And with one its place and itself as well; an object store has no disk of ours."""
    assert [own.name for own in plan(DoctorContext(PROJECT))] == [
        *("python", "packages", "types", "java", "spark", "archive", "scratch", "clock")
    ]
    names = [own.name for own in plan(DoctorContext(PROJECT, "somewhere"))]
    place = ["address", "rights", "disk", "store", "log", "commits", "version", "migrations", "builtins", "leader"]
    assert names[8:] == place
    assert "disk" not in [own.name for own in plan(DoctorContext(PROJECT, "s3://bucket/store"))]


def test_no_examination_stops_another() -> None:
    """One that fails is a problem, and only what depends on it is passed over."""

    def refuse(_subject: DoctorContext) -> Iterator[CheckResult]:
        raise UsageError("it does not work", "it never did", "do something else")

    def crash(_subject: DoctorContext) -> Iterator[CheckResult]:
        raise ZeroDivisionError("by nought")

    def pass_well(_subject: DoctorContext) -> Iterator[CheckResult]:
        yield CheckResult("well", Status.OK, "it is well")

    planned = [
        Check("refused", refuse),
        Check("next", pass_well, after="refused"),
        Check("later", pass_well, after="next"),
        Check("crashed", crash),
        Check("well", pass_well),
    ]
    found = list(examine(subject(), planned))
    assert [(own.name, own.grade.value) for own in found] == [
        ("refused", "problem"),
        ("next", "skipped"),
        ("later", "skipped"),
        ("crashed", "problem"),
        ("well", "ok"),
    ]
    assert (found[0].found, found[0].next) == ("it does not work", "do something else")
    assert found[2].found == "not checked: see refused"
    assert "ZeroDivisionError: by nought" in found[3].found


@pytest.mark.parametrize(
    ("wanted", "installed", "fits"),
    [
        (">=8.2", "8.2", True),
        (">=8.2", "8.1.9", False),
        ("<1.7,>=1.6.6", "1.6.10", True),
        ("<1.7,>=1.6.6", "1.7.0", False),
        ("==0.0.25", "0.0.25", True),
        ("==0.0.25", "0.0.26", False),
        ("==4.3.*", "4.3.0", True),
        ("==4.3.*", "4.30.0", False),
        ("<3", "3.0.0rc1", False),
        ("!=2.0", "2.0.0", False),
        ("", "1", True),
    ],
)
def test_a_version_fits_or_not(wanted: str, installed: str, fits: bool) -> None:  # noqa: FBT001 - a column
    """Compared by numbers, and not by letters."""
    assert Requirement("x", wanted, "", installed).fits is fits


def test_the_requirements_are_those_of_the_package() -> None:
    """As it was installed: those of every use, and of each extra."""
    found = {own.name: own for own in read_requirements()}
    assert found["deltalake"].extra == ""
    assert found["pyspark"].extra == found["pandas"].extra == "spark"
    assert found["obstore"].extra == "s3"
    assert all(own.fits for own in found.values())


def test_a_package_that_is_missing_broken_or_of_another_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A problem if everything needs it, a warning if only some does, and nothing where it is not needed."""
    stated = (
        Requirement("absent", ">=1", "", None),
        Requirement("unfit", "<2", "", "2.1"),
        Requirement("no_such_module", "", "", "1.0"),
        Requirement("pyspark", "==4.3.*", "spark", None),
        Requirement("pandas", "<3", "spark", "3.0"),
        Requirement("obstore", ">=0.12", "s3", None),
        Requirement("grpcio-tools", "", "gate", None),
        Requirement("click", ">=8", "", "8.5"),
    )
    monkeypatch.setattr(machine_checks, "read_requirements", lambda: stated)
    found = [(own.grade.value, own.found, own.next) for own in check_packages(DoctorContext(PROJECT))]
    assert [(grade, text.split(" ")[0]) for grade, text, _ in found] == [
        ("problem", "absent>=1"),
        ("problem", "unfit<2"),
        ("problem", "no_such_module"),
        ("warning", "pyspark==4.3.*"),
        ("warning", "pandas<3"),
        ("ok", "stash-catalog"),
    ]
    assert found[0][2] == "pip install 'stash-catalog'"
    assert found[3][2] == "pip install 'stash-catalog[spark]'"
    assert "click 8.5" in found[-1][1]
    remote = [own.found for own in check_packages(DoctorContext(PROJECT, "s3://bucket/store"))]
    assert any(text.startswith("obstore>=0.12 is needed, and not installed") for text in remote)


def test_the_types_of_this_build_can_be_loaded() -> None:
    """Of every version that they were generated for."""
    found = only(iter(check_types(DoctorContext(PROJECT))))
    assert found.grade is Status.OK
    assert f"versions {PROJECT.minimum} to {PROJECT.current}" in found.found


def java_home(folder: Path, stated: str | None) -> Path:
    """A folder as Java is installed in, with a program that says its version, if it is run."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text('#!/bin/sh\necho "openjdk version \\"21.0.4\\" 2024-07-16" >&2\n', encoding="utf-8")
    program.chmod(0o755)
    if stated is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{stated}"\n', encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("stated", "grade"),
    [
        ("17.0.15", Status.OK),
        ("21", Status.OK),
        ("1.8.0_392", Status.PROBLEM),
        ("11.0.2", Status.PROBLEM),
        ("19.0.1", Status.WARNING),
        ("25-ea", Status.WARNING),
        (None, Status.WARNING),
    ],
)
def test_java_is_known_by_the_file_beside_it(tmp_path: Path, stated: str | None, grade: Status) -> None:
    """It is not run for that: where there is no such file, its version is not known."""
    found = only(iter(check_java(subject(JAVA_HOME=str(java_home(tmp_path / "java", stated))))))
    assert found.grade is grade
    assert (f"Java {stated}" in found.found) is (stated is not None)
    assert bool(found.next) is (grade is not Status.OK)


def test_java_is_run_if_it_may_be(tmp_path: Path) -> None:
    """Then it says its version itself."""
    variables = {"PATH": str(java_home(tmp_path / "java", None) / "bin")}
    found = only(iter(check_java(DoctorContext(PROJECT, variables=variables, starts_spark=True))))
    assert (found.grade, "Java 21.0.4" in found.found, "by the path" in found.found) == (Status.OK, True, True)


@pytest.mark.parametrize(
    ("variables", "grade", "said"),
    [
        ({"JAVA_HOME": "/no/such/java", "PATH": "/usr/bin:/bin"}, Status.PROBLEM, "JAVA_HOME is /no/such/java"),
        ({"PATH": "/no/such/folder"}, Status.WARNING, "there is none"),
        ({"SPARK_REMOTE": "sc://host:15002", "PATH": "/no/such/folder"}, Status.OK, "Spark is at sc://host:15002"),
    ],
)
def test_a_java_that_spark_would_not_find_is_said(variables: Mapping[str, str], grade: Status, said: str) -> None:
    """A wrong JAVA_HOME hides the Java on the path; a server of Spark elsewhere needs none here."""
    found = only(iter(check_java(DoctorContext(PROJECT, variables=variables))))
    assert (found.grade, said in found.found) == (grade, True)


def test_a_spark_of_another_version_is_a_problem(tmp_path: Path) -> None:
    """SPARK_HOME hides the Spark that came with pyspark; a server elsewhere has its own."""
    jars = tmp_path / "jars"
    for content in (None, "spark-core_2.12-3.5.1.jar"):
        jars.mkdir(exist_ok=True)
        if content is not None:
            (jars / content).touch()
        found = only(iter(check_spark(subject(SPARK_HOME=str(tmp_path)))))
        assert (found.grade, "unset SPARK_HOME" in found.next) == (Status.PROBLEM, True)
        assert ("Spark 3.5.1 is" in found.found) is (content is not None)
    (jars / "spark-core_2.12-3.5.1.jar").rename(jars / f"spark-core_2.13-{version('pyspark')}.jar")
    assert only(iter(check_spark(subject(SPARK_HOME=str(tmp_path))))).grade is Status.OK
    remote = subject(SPARK_HOME="/nowhere", SPARK_REMOTE="sc://host:15002")
    assert only(iter(check_spark(remote))).grade is Status.OK


@pytest.mark.parametrize(
    ("variables", "grade", "said"),
    [
        ({"CATALOG_CLASS_ARCHIVE": "off"}, Status.OK, "it is turned off"),
        ({"HOME": ""}, Status.OK, "there is no HOME for it"),
        ({"HOME": "{}"}, Status.OK, "the next session makes one in {}/.cache/catalog"),
        ({"CATALOG_CLASS_ARCHIVE": "/proc/classes"}, Status.WARNING, "0 MiB are free in /proc"),
        ({"HOME": "{}", "SPARK_CONF_DIR": "/proc"}, Status.WARNING, "while /proc has files"),
        ({"SPARK_REMOTE": "sc://host:15002"}, Status.SKIPPED, "Java runs elsewhere"),
    ],
)
def test_an_archive_that_is_not_there_is_explained(
    tmp_path: Path, variables: Mapping[str, str], grade: Status, said: str
) -> None:
    """Spark starts without it, some seconds later: that is no problem."""
    placed = {name: value.format(tmp_path) for name, value in variables.items()}
    found = only(iter(check_archive(subject(PATH=os.environ["PATH"], **placed))))
    assert (found.grade, said.format(tmp_path) in found.found) == (grade, True), found


def test_an_archive_is_told_with_its_place_and_size(tmp_path: Path) -> None:
    """One that is damaged is none."""
    archive = ClassArchive.of(tmp_path, os.environ)
    assert archive is not None
    (tmp_path / "draft").write_bytes(bytes(3 << 20))
    path = (tmp_path / "draft").rename(tmp_path / archive.file_name(tmp_path / "draft"))
    context = DoctorContext(PROJECT, class_archive=str(tmp_path))
    assert only(iter(check_archive(context))).found == f"Java's classes, 3 MiB, are at {path}"
    path.write_bytes(b"")
    assert "yet" in only(iter(check_archive(context))).found


def test_room_is_judged_by_what_is_needed(tmp_path: Path) -> None:
    """Little is a warning, next to nothing a problem."""
    assert only(judge_room("disk", tmp_path, 0)).grade in {Status.OK, Status.WARNING}
    short = only(judge_room("disk", tmp_path, 1 << 60))
    assert short.grade is Status.WARNING
    assert f"about {(1 << 60) / GIB:.1f} GiB would be enough" in short.found
    if PROC.is_dir():
        assert only(judge_room("disk", PROC, 0)).grade is Status.PROBLEM


def test_a_scratch_folder_that_cannot_be_written_to_is_a_problem(tmp_path: Path) -> None:
    """Or is not there; one that can be is left empty."""
    assert only(iter(check_scratch(DoctorContext(PROJECT, scratch=tmp_path)))).grade is not Status.PROBLEM
    assert list(tmp_path.iterdir()) == []
    for folder in (tmp_path / "none", *([PROC] if PROC.is_dir() else [])):
        found = only(iter(check_scratch(DoctorContext(PROJECT, scratch=folder))))
        assert (found.grade, "cannot be written to" in found.found) == (Status.PROBLEM, True)


def test_a_clock_that_is_set_meanwhile_is_noticed() -> None:
    """By the one that cannot be set."""
    assert only(iter(check_clock(DoctorContext(PROJECT)))).grade is Status.OK
    began = time.time() - 90, time.monotonic()
    moved = only(iter(check_clock(DoctorContext(PROJECT, began_s=began))))
    assert (moved.grade, "moved by +90.0 s" in moved.found) == (Status.WARNING, True)
