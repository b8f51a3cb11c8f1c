"""The archive of Java's classes: found only if it is whole and ours, made once, and never in anybody's way."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from catalog.engine.spark import class_archive, session
from catalog.engine.spark.archive_maker import main
from catalog.engine.spark.class_archive import ClassArchive, archive_folder, class_folder
from catalog.errors import SparkStartError

ROOT = Path(__file__).parents[3]
MIB = 1 << 20
COUNTED = """
from catalog.engine.spark.session import is_archive_used, local_session
spark = local_session(settings={"spark.master": "local[1]"})
assert spark.range(3).count() == 3
print(is_archive_used())
"""
AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from catalog.engine.spark.session import end_session, local_session
start = Barrier(3)
def begin(_):
    start.wait()
    try:
        local_session()
    except Exception as error:
        return type(error).__name__
with ThreadPoolExecutor(3) as threads:
    print(list(threads.map(begin, range(3))))
end_session()
"""
SMALL_MAKER = """
import os, subprocess, sys
from catalog.engine.spark.archive_maker import main
from catalog.engine.spark.class_archive import spark_home
from catalog.engine.spark.java import find_java

def write(staged):
    (jar,) = (spark_home(os.environ) / "jars").glob("spark-launcher_*.jar")
    options = ["-XX:+UseSerialGC", f"-XX:ArchiveClassesAtExit={staged}", "-cp", str(jar)]
    words = ["org.apache.spark.launcher.Main", "java.lang.Object"]
    subprocess.run([find_java(os.environ).program, *options, *words], capture_output=True)
    return str(jar)

sys.exit(main(write))
"""


@pytest.fixture
def archive(tmp_path: Path) -> ClassArchive:
    """Of the Java and the Spark of this machine, in a folder that is not there yet."""
    found = ClassArchive.of(tmp_path / "cache", os.environ)
    assert found is not None
    return found


def put(archive: ClassArchive, content: bytes = b"classes") -> Path:
    """A file that is an archive by its name; Java is not asked."""
    archive.folder.mkdir(mode=0o700, exist_ok=True)
    draft = archive.folder / "draft"
    draft.write_bytes(content)
    draft.chmod(0o600)
    return draft.rename(archive.folder / archive.file_name(draft))


@pytest.mark.parametrize(
    ("setting", "variables", "expected"),
    [
        (None, {"HOME": "/home/ann"}, "/home/ann/.cache/catalog"),
        (None, {"HOME": "/home/ann", "XDG_CACHE_HOME": "/var/cache/ann"}, "/var/cache/ann/catalog"),
        (None, {"HOME": "/home/ann", "XDG_CACHE_HOME": "not/absolute"}, "/home/ann/.cache/catalog"),
        (None, {"HOME": "/home/ann", "CATALOG_CLASS_ARCHIVE": "/srv/classes"}, "/srv/classes"),
        (None, {"HOME": "/home/ann", "CATALOG_CLASS_ARCHIVE": ""}, "/home/ann/.cache/catalog"),
        (None, {"HOME": "/home/ann", "CATALOG_CLASS_ARCHIVE": "off"}, None),
        ("off", {"HOME": "/home/ann", "CATALOG_CLASS_ARCHIVE": "/srv/classes"}, None),
        ("/opt/classes", {"CATALOG_CLASS_ARCHIVE": "off"}, "/opt/classes"),
        (None, {}, None),
        (None, {"HOME": ""}, None),
    ],
)
def test_the_folder_is_named_by_the_setting_the_variable_or_the_cache(
    setting: str | None, variables: dict[str, str], expected: str | None
) -> None:
    """Without a home there is none."""
    assert archive_folder(setting, variables) == (None if expected is None else Path(expected))


def test_an_archive_is_found_if_it_is_whole(archive: ClassArchive) -> None:
    """One that is not is removed, so that another is made: Java crashes if it is given a truncated one."""
    assert archive.find() is None
    path = put(archive)
    assert archive.find() == path
    for damaged in (b"classe", b"klasses", b""):
        path.write_bytes(damaged)
        assert archive.find() is None
        assert not path.exists()


def test_an_archive_that_others_can_write_is_not_used(archive: ClassArchive) -> None:
    """Its code would run as this user. It is left where it is: it may be of use to its owner."""
    path = put(archive)
    path.chmod(0o666)
    assert archive.find() is None
    path.chmod(0o600)
    archive.folder.chmod(0o777)
    assert archive.find() is None
    assert "others may write to it" in (archive.obstacle() or "")
    archive.folder.chmod(0o700)
    assert archive.find() == path


def test_another_java_or_spark_has_an_archive_of_its_own(tmp_path: Path, archive: ClassArchive) -> None:
    """Whatever Java compares when it opens one is in the name."""
    (tmp_path / "java" / "bin").mkdir(parents=True)
    java = tmp_path / "java" / "bin" / "java"
    java.touch(mode=0o755)
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1"')
    other = ClassArchive.of(archive.folder, {**os.environ, "JAVA_HOME": str(tmp_path / "java")})
    assert other is not None
    assert "java-21.0.1" in other.name
    put(archive)
    assert other.find() is None
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="21.0.1" of another vendor')
    again = ClassArchive.of(archive.folder, {**os.environ, "JAVA_HOME": str(tmp_path / "java")})
    assert again is not None
    assert again.name != other.name


def test_there_is_none_without_java_or_beside_a_folder_of_classes(tmp_path: Path) -> None:
    """Java would not use it."""
    assert ClassArchive.of(tmp_path, {**os.environ, "JAVA_HOME": str(tmp_path)}) is None
    (tmp_path / "conf").mkdir()
    variables = {**os.environ, "SPARK_CONF_DIR": str(tmp_path / "conf")}
    assert class_folder(variables) is None
    (tmp_path / "conf" / "spark-defaults.conf").touch()
    assert class_folder(variables) == tmp_path / "conf"
    assert ClassArchive.of(tmp_path, variables) is None


def test_an_attempt_is_made_once_by_one_process(archive: ClassArchive, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it does not succeed: sessions end without trying again, for a while."""
    begun: list[object] = []
    monkeypatch.setattr(os, "posix_spawn", lambda *given, **_: begun.append(given))
    archive.make_later({})
    archive.make_later({})
    assert len(begun) == 1
    assert "since" in (archive.obstacle() or "")
    (mark,) = archive.folder.iterdir()
    long_ago = time.time() - class_archive.RETRY_S
    os.utime(mark, (long_ago, long_ago))
    assert archive.obstacle() is None
    archive.make_later({})
    assert len(begun) == 2
    archive.end_attempt()
    assert archive.obstacle() is None


def test_where_nothing_can_be_written_nothing_is_tried(
    tmp_path: Path, archive: ClassArchive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No process is started, and nothing is raised. A file in place of a folder stops root as well."""
    monkeypatch.setattr(os, "posix_spawn", None)
    (tmp_path / "home").touch()
    within = ClassArchive(tmp_path / "home" / "cache", archive.name)
    assert within.find() is None
    assert within.obstacle() is not None
    within.make_later({})
    monkeypatch.setattr(class_archive, "free_bytes", lambda _: MIB)
    archive.make_later({})
    assert "1 MiB are free" in (archive.obstacle() or "")
    assert not archive.folder.exists()


def test_the_archives_used_last_are_kept(archive: ClassArchive) -> None:
    """Of other versions three, and nothing that was begun long ago."""
    own = put(archive)
    for number in range(5):
        other = archive.folder / f"spark-4.{number}.0-java-17-0-00000000.jsa"
        other.touch()
        os.utime(other, (number, number))
    unfinished, fresh = archive.folder / ".x.jsa.0.tmp", archive.folder / ".x.jsa.1.tmp"
    unfinished.touch()
    fresh.touch()
    os.utime(unfinished, (0, 0))
    archive.sweep()
    kept = {path.name for path in archive.folder.iterdir()}
    assert kept == {own.name, fresh.name, *(f"spark-4.{number}.0-java-17-0-00000000.jsa" for number in (3, 4))}


def test_two_makers_at_once_make_one_archive(archive: ClassArchive) -> None:
    """Whole from the first moment that it has its name, and accepted by Java; nothing else is left."""
    makers = [small_maker(archive) for _ in range(2)]
    while any(process.poll() is None for process in makers):
        assert all(archive.file_name(path) == path.name for path in archive.folder.glob("spark-*.jsa"))
        time.sleep(0.2)
    assert [process.returncode for process in makers] == [0, 0]
    made = [path for path in archive.folder.iterdir() if archive.find() == path]
    assert made
    assert all(path.suffix == ".jsa" for path in archive.folder.iterdir())


def test_a_maker_that_cannot_write_leaves_nothing(archive: ClassArchive) -> None:
    """As on a disk that is full: Java is stopped in the middle of the file."""
    process = small_maker(archive, largest_file=MIB // 16)
    assert process.wait() != 0
    assert list(archive.folder.iterdir()) == []


@pytest.mark.spark
def test_java_uses_the_archive_that_a_maker_made() -> None:
    """The one that all tests share: the maker finds it, or makes it now."""
    shared = ClassArchive.of(archive_folder(None, os.environ), os.environ)
    assert shared is not None
    command = [sys.executable, "-m", "catalog.engine.spark.archive_maker", str(shared.folder)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd="/", check=True)
    assert counted(shared) == "True"


@pytest.mark.spark
def test_a_session_starts_with_an_archive_that_java_refuses(archive: ClassArchive) -> None:
    """Whatever the file holds: with it or without it, Java starts, and nothing is printed."""
    put(archive, b"no archive, but whole by its name")
    assert counted(archive) == "False"


def test_a_maker_without_java_says_so_by_its_exit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And writes nothing."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "argv", ["archive_maker", str(tmp_path / "cache")])
    monkeypatch.setattr(os, "nice", lambda _: 0)
    assert main() == 1
    assert not (tmp_path / "cache").exists()


def test_java_that_crashes_with_its_archive_is_started_without(archive: ClassArchive, tmp_path: Path) -> None:
    """The archive is removed, so that the next session does not meet it."""
    path = put(archive)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\ncase "$*" in *launcher.Main*) printf \'x\\0%s\' "$*" ;; esac\nexit 1\n')
    java.chmod(0o755)
    program = "from catalog.engine.spark.session import local_session; local_session()"
    other = ClassArchive.of(archive.folder, {**os.environ, "JAVA_HOME": str(tmp_path / "java")})
    assert other is not None
    path = path.rename(archive.folder / other.file_name(path))
    done = run_program(program, archive, JAVA_HOME=str(tmp_path / "java"))
    assert SparkStartError.__name__ in done.stderr
    assert not path.exists()


def test_threads_that_start_at_once_start_java_in_turn(tmp_path: Path) -> None:
    """No Java is left without an owner, and no other process finds the address of a Java among its variables."""
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    one, two = tmp_path / "one", tmp_path / "two"
    submit.write_text(f"#!/bin/sh\nmkdir {one} || touch {two}\nsleep 0.2\nrmdir {one}\nexit 1\n")
    submit.chmod(0o755)
    done = run_program(AT_ONCE, ClassArchive(tmp_path, "none"), SPARK_HOME=str(tmp_path))
    assert (done.stdout, done.stderr) == ("['SparkStartError', 'SparkStartError', 'SparkStartError']\n", "")
    assert not two.exists()


def test_a_start_that_was_given_up_before_java_ran_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor an open pipe: whoever gave it up could not end what was not there yet."""
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text("#!/bin/sh\nexec cat\n")
    submit.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    java = session._LocalJava(tmp_path, tmp_path / "spark.log", {}, None, is_ended=True)  # noqa: SLF001
    with pytest.raises(SparkStartError):
        java._launched({}, [])  # noqa: SLF001
    assert java.process is not None
    assert java.process.stdin is not None
    assert (java.process.stdin.closed, java.process.returncode) == (True, -signal.SIGKILL)


def small_maker(archive: ClassArchive, largest_file: int | None = None) -> subprocess.Popen[bytes]:
    """The program of makers, with a Java that loads a few classes of Spark and no session."""
    command = [sys.executable, "-c", SMALL_MAKER, str(archive.folder)]
    limit = None if largest_file is None else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file,) * 2)
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd="/", preexec_fn=limit)  # noqa: PLW1509 - one thread


def counted(archive: ClassArchive) -> str:
    done = run_program(COUNTED, archive)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


def run_program(program: str, archive: ClassArchive, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(ROOT), class_archive.VARIABLE: str(archive.folder), **environment}
    return subprocess.run(
        [sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=False, timeout=600
    )
