"""Every exit code, as the real program ends with it."""

from __future__ import annotations

import json

from catalog.cli.answer import ExitCode
from tests.cli.commands import ended, in_program, on_screen, three_lines
from tests.cli.conftest import Stores
from tests.cli.histories import forge_checksums, kill_in_step, pretend_version


def test_done_is_0(store_of: Stores) -> None:
    """With the answer on standard output and nothing else anywhere."""
    shown = in_program("info", "--check", "--store", store_of(), expect=ExitCode.DONE)
    assert "is at version" in shown.out
    assert shown.err == ""


def test_nothing_to_do_is_0(store_of: Stores) -> None:
    """It is no failure that all was done before."""
    shown = in_program("apply", "--next", "--store", store_of(), expect=ExitCode.DONE)
    assert shown.out.startswith("nothing to do: ")


def test_failed_is_1(store_of: Stores) -> None:
    """In three lines on standard error."""
    store = store_of()
    pretend_version(store, 99)
    shown = in_program("start", "--store", store, expect=ExitCode.FAILED)
    assert shown.out == ""
    three_lines(shown.err)


def test_a_wrong_call_is_2() -> None:
    """With what was probably meant."""
    shown = in_program("info", "--chek", expect=ExitCode.USAGE)
    assert three_lines(shown.err)[2] == "next: did you mean --check?"


def test_pending_migrations_are_3(store_of: Stores) -> None:
    """The answer is shown all the same, and what is wrong with it apart."""
    shown = in_program("info", "--check", "--store", store_of(19), expect=ExitCode.PENDING)
    assert "3 migrations are pending" in shown.out
    three_lines(shown.err)


def test_a_checksum_mismatch_is_4(store_of: Stores) -> None:
    """Also for whoever reads JSON."""
    store = store_of(15, 18)
    forge_checksums(store, 17)
    shown = in_program("validate", "--format", "json", "--store", store, expect=ExitCode.CHECKSUM)
    assert json.loads(shown.out)["error"]["code"] == "ChecksumError"
    assert shown.err == ""


def test_fenced_is_5(store_of: Stores) -> None:
    """A deployment that was replaced is refused."""
    store = store_of()
    in_program("start", "--deploy-generation", "2", "--store", store)
    shown = in_program("start", "--deploy-generation", "1", "--store", store, expect=ExitCode.HELD)
    three_lines(shown.err)


def test_an_unfinished_migration_is_6(store_of: Stores) -> None:
    """Its process was killed, and nobody has said yet what becomes of it."""
    store = store_of(15, 18)
    kill_in_step(store, 19)
    shown = in_program("info", "--check", "--store", store, expect=ExitCode.UNFINISHED)
    assert three_lines(shown.err)[0].startswith("v18_to_v19 is not finished")


def test_an_interrupted_question_is_130(store_of: Stores) -> None:
    """By ctrl-C on a terminal; nothing is said and nothing done."""
    store = store_of(21, 22)
    with on_screen("undo", "--store", store) as child:
        child.expect("Type yes to continue: ")
        child.sendintr()
        assert ended(child) == ExitCode.INTERRUPTED
        assert "Traceback" not in child.before
    assert "is at version 22" in in_program("info", "--store", store).out
