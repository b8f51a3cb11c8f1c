"""Mistakes with the instructions about builtins, which are released with a build and followed by every store before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from build_tools.project_tree import GateError
from build_tools.sources.builtin_instructions import DeclaredInstruction, read_instructions
from build_tools.sources.hashes import Hashes, dump, parse
from build_tools.verbs.release import release
from build_tools.verbs.retire import retire
from tests.gate.project_copy import BUILTINS, FINGERPRINTS, HASHES, VERSION, Copy

EVENTS = "Instruction(BuildVersion(0, 2), AUDIT_EVENTS.name, Mechanism.EVOLUTION)"
EVENTS_REPLACED = "Instruction(BuildVersion(0, 2), AUDIT_EVENTS.name, Mechanism.REPLACEMENT)"
METRICS = "Instruction(BuildVersion(0, 3), STORE_METRICS.name, Mechanism.REPLACEMENT)"
METRICS_PATCHED = "Instruction(BuildVersion(0, 2, 1), STORE_METRICS.name, Mechanism.EVOLUTION)"
OTHER = DeclaredInstruction("0.2.0", "catalog.store_metrics", "EVOLUTION")
MAY_GO = "it can be removed when no build before 0.2.0 can be upgraded any more: python -m build_tools retire N"
NO_PLAIN = "is not a plain instruction"
WRITE_OUT = (
    "write each instruction as a literal: Instruction(BuildVersion(0, 3), AUDIT_EVENTS.name, Mechanism.EVOLUTION)"
)


@pytest.fixture(scope="module")
def instructed_template(released_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("instructed") / "project"
    copy = Copy(Path(shutil.copytree(released_template, target)))
    copy.begin("0.2.0")
    copy.instruct(EVENTS)
    copy.commit("audit events have a session")
    copy.release("0.2.0")
    copy.begin("0.3.0")
    copy.commit("begin 0.3.0")
    copy.assert_clean()
    return target


@pytest.fixture
def instructed(instructed_template: Path, tmp_path: Path) -> Copy:
    """The project with an instruction that 0.2.0 released, on the way to 0.3.0."""
    return Copy(Path(shutil.copytree(instructed_template, tmp_path / "project")))


def test_a_removed_instruction_is_refused(instructed: Copy) -> None:
    """A store of 0.1.0 would come here with the schema of old, and nobody would have told what becomes of it."""
    instructed.instruct()
    finding = instructed.only("B801", BUILTINS)
    assert finding.title == "a released instruction is gone"
    assert finding.what == "(0.2.0, catalog.audit_events, EVOLUTION) was released in 0.2.0 and is missing"
    assert finding.fix == f"put it back into MIGRATIONS; git show HEAD:./{BUILTINS} has it\n{MAY_GO}"
    instructed.commit("clean up")
    finding = instructed.only("B801", BUILTINS)
    assert "; git show HEAD:" not in finding.fix
    assert f":./{BUILTINS} has it" in finding.fix


def test_an_instruction_that_says_something_else_than_when_released_is_refused(instructed: Copy) -> None:
    """Stores that followed the one kept their rows; those that follow the other lose them."""
    instructed.instruct(EVENTS_REPLACED)
    finding = instructed.only("B801", BUILTINS)
    assert finding.what == "(0.2.0, catalog.audit_events, EVOLUTION) was released in 0.2.0 and is now REPLACEMENT"
    assert finding.fix == (
        f"put EVOLUTION back; git show HEAD:./{BUILTINS} has it\n"
        "make the new change an instruction for the coming build"
    )


def test_an_instruction_whose_builtin_got_another_name_is_refused(instructed: Copy) -> None:
    """The constant is the same, but the rows of stores are those of the builtin of that name."""
    instructed.edit(BUILTINS, '"audit_events"', '"audit_log_events"')
    gone, late = instructed.expect("B801", "B802")
    assert gone.what == "(0.2.0, catalog.audit_events, EVOLUTION) was released in 0.2.0 and is missing"
    assert late.what.startswith("(0.2.0, catalog.audit_log_events, EVOLUTION) is missing from earlier releases")


def test_a_builtin_that_is_given_up_is_named_in_full_or_by_its_old_constant(instructed: Copy) -> None:
    """What counts is the builtin, not how it is spelled."""
    name = 'BuiltinName("catalog", OBJECT_TYPE_TABLE, "audit_events")'
    instructed.instruct(f"Instruction(BuildVersion(0, 2), {name}, Mechanism.EVOLUTION)")
    instructed.assert_clean()
    instructed.append(BUILTINS, f"\nFORMER_EVENTS = {name}\n")
    instructed.instruct("Instruction(BuildVersion(0, 2), FORMER_EVENTS, Mechanism.EVOLUTION)")
    instructed.assert_clean()


def test_a_project_that_lost_all_its_builtins_is_refused(instructed: Copy) -> None:
    """The file may go only with the last instruction that anybody needs."""
    instructed.remove(BUILTINS)
    assert instructed.only("B801", BUILTINS).line == 0


def test_a_project_without_builtins_is_fine(released: Copy) -> None:
    """So is one whose module of that name is about something else."""
    released.remove(BUILTINS)
    released.assert_clean()
    released.write(BUILTINS, '"""Names."""\n\nNAMES = ("a", "b")\n')
    released.assert_clean()


def test_what_was_not_released_may_change_freely(instructed: Copy) -> None:
    """Nobody has followed it yet, however often it was committed."""
    instructed.instruct(EVENTS, METRICS)
    instructed.commit("metrics begin anew")
    for others in ([METRICS.replace("REPLACEMENT", "EVOLUTION")], []):
        instructed.instruct(EVENTS, *others)
        instructed.assert_clean()
        instructed.commit("think again")
        instructed.assert_clean()
    instructed.release("0.3.0")
    report = instructed.check(require_history=True)
    assert (report.findings, report.notes) == ((), ())


def test_an_instruction_that_no_store_can_need_may_go(instructed: Copy) -> None:
    """Stores of v23 were written by 0.3.0 or later, so none is left that 0.2.0 would have to migrate."""
    instructed.instruct(EVENTS, METRICS)
    instructed.next_version('no_change("because it is a test")')
    instructed.commit("a version")
    instructed.release("0.3.0")
    instructed.begin("0.4.0")
    instructed.instruct()
    assert [finding.what[:7] for finding in instructed.expect("B801", "B801")] == ["(0.2.0,", "(0.3.0,"]
    retire(instructed.tree, 22)
    assert [finding.what[:7] for finding in instructed.expect("B801", "B801")] == ["(0.2.0,", "(0.3.0,"]
    retire(instructed.tree, 23)
    instructed.assert_clean()
    instructed.commit("end support for what was before 0.3.0")
    instructed.release("0.4.0")
    assert instructed.check(require_history=True).ok


def test_a_backport_into_a_released_build_is_refused(instructed: Copy) -> None:
    """Stores that are at that build, or went past it, would never follow it."""
    instructed.instruct(EVENTS, METRICS.replace("0, 3", "0, 2"))
    finding = instructed.only("B802", BUILTINS)
    assert finding.title == "an instruction was added to a released build"
    assert finding.what == (
        f"(0.2.0, catalog.store_metrics, REPLACEMENT) is missing from earlier releases: 0.2.0 ({HASHES})"
    )
    assert finding.fix == "assign it to the coming build, 0.3.0"
    instructed.instruct(EVENTS, METRICS)
    instructed.assert_clean()


def test_an_instruction_between_two_releases_is_a_backport_too(instructed: Copy) -> None:
    """There never was such a build, and stores have gone past it all the same."""
    instructed.instruct(EVENTS, METRICS.replace("0, 3", "0, 1, 5"))
    assert ": 0.2.0 (proto/hashes.json)" in instructed.only("B802", BUILTINS).what


def test_a_backport_into_a_patch_of_an_earlier_release_is_refused(instructed: Copy) -> None:
    """Who came to the patch could not go on to the later release, which does not know what was done."""
    instructed.release("0.3.0")
    instructed.git("checkout", "--quiet", "-b", "patches", "v0.2.0")
    instructed.begin("0.2.1")
    instructed.commit("begin 0.2.1")
    instructed.assert_clean()
    instructed.instruct(EVENTS, METRICS_PATCHED)
    finding = instructed.only("B802", BUILTINS)
    assert finding.what == (
        "(0.2.1, catalog.store_metrics, EVOLUTION) is missing from earlier releases: 0.3.0 (tag v0.3.0)"
    )
    assert finding.fix == (
        "make the change in a build after 0.3.0; a patch of an earlier one cannot have it\n"
        "(if this branch will be merged where that was released: git rebase first)"
    )
    instructed.git("tag", "--delete", "v0.3.0")
    assert ": 0.3.0 (branch main)" in instructed.only("B802", BUILTINS).what


def test_a_patch_may_have_what_the_later_release_has_too(instructed: Copy) -> None:
    """It was in the later one first, so stores go on from both."""
    instructed.instruct(EVENTS, METRICS_PATCHED)
    instructed.commit("metrics have a host")
    instructed.release("0.3.0")
    instructed.git("checkout", "--quiet", "-b", "patches", "v0.2.0")
    instructed.begin("0.2.1")
    instructed.instruct(EVENTS, METRICS_PATCHED)
    instructed.assert_clean()
    instructed.commit("metrics have a host")
    instructed.release("0.2.1")
    assert instructed.check(require_history=True).ok


def test_a_patch_keeps_what_a_later_release_could_let_go(instructed: Copy) -> None:
    """Retiring ends support for those who go on from here, not here."""
    instructed.next_version('no_change("because it is a test")')
    instructed.release("0.3.0")
    retire(instructed.tree, 23)
    instructed.begin("0.4.0")
    instructed.instruct()
    instructed.commit("end support for what was before 0.3.0")
    instructed.release("0.4.0")
    instructed.git("checkout", "--quiet", "-b", "patches", "v0.2.0")
    instructed.begin("0.2.1")
    instructed.assert_clean()


def test_a_release_that_was_only_tagged_counts(instructed: Copy) -> None:
    """Whoever has the tag has the release, whether or not it was recorded."""
    instructed.instruct(EVENTS, METRICS)
    instructed.commit("metrics begin anew")
    instructed.git("tag", "v0.3.0")
    instructed.begin("0.4.0")
    instructed.instruct(EVENTS)
    finding = instructed.only("B801", BUILTINS)
    assert finding.what == "(0.3.0, catalog.store_metrics, REPLACEMENT) was released in 0.3.0 and is missing"
    instructed.instruct(EVENTS, METRICS, METRICS.replace("STORE_METRICS", "MIGRATION_HISTORY"))
    assert instructed.only("B802", BUILTINS).what.endswith(": 0.3.0 (tag v0.3.0)")


def test_an_instruction_for_a_later_build_than_the_coming_one_is_refused(instructed: Copy) -> None:
    """The build that is coming would not follow it, and would not load."""
    instructed.instruct(EVENTS, METRICS.replace("0, 3", "0, 4"))
    finding = instructed.only("B803", BUILTINS)
    assert finding.what == "(0.4.0, catalog.store_metrics, REPLACEMENT) is for 0.4.0, and the coming build is 0.3.0"
    assert finding.fix == f"assign it to 0.3.0, or raise BUILD in {VERSION} first"


def test_two_instructions_for_one_builtin_and_build_are_refused(instructed: Copy) -> None:
    """Nobody could tell which of them counts."""
    instructed.instruct(EVENTS, METRICS, METRICS.replace("REPLACEMENT", "EVOLUTION"))
    finding = instructed.only("B804", BUILTINS)
    line = instructed.read(BUILTINS).split("\n").index(f"    {METRICS},") + 1
    assert (finding.line, finding.what) == (
        line + 1, f"catalog.store_metrics already has an instruction for 0.3.0, in line {line}",
    )  # fmt: skip
    assert finding.fix == "keep the intended one; a replacement includes every evolution"


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("*OTHERS", f"`*OTHERS` {NO_PLAIN}"),
        ("patch(2)", f"`patch(2)` {NO_PLAIN}"),
        (EVENTS.replace("(0, 2)", ".parse(BUILD)"), f"`{EVENTS.replace('(0, 2)', '.parse(BUILD)')[:60]}…` {NO_PLAIN}"),
        (EVENTS.replace("0, 2", "0, MINOR"), "a build is not one to three plain numbers"),
        (EVENTS.replace("0, 2", "0, 2, 0, 1"), "a build is not one to three plain numbers"),
        (EVENTS.replace("0, 2", ""), "a build is not one to three plain numbers"),
        (EVENTS.replace("EVOLUTION", "REVOLUTION"), "there is no Mechanism.REVOLUTION"),
        (EVENTS.replace("AUDIT_EVENTS", "NOTHING"), "the name of `NOTHING.name` is not a literal string"),
        (EVENTS.replace("AUDIT_EVENTS.name", "find()"), "the name of `find()` is not a literal string"),
        (EVENTS.replace("BuildVersion(0, 2), ", ""), f"`{EVENTS.replace('BuildVersion(0, 2), ', '')}` {NO_PLAIN}"),
    ],
)  # fmt: skip
def test_a_computed_instruction_is_refused(instructed: Copy, written: str, message: str) -> None:
    """The gate runs nothing, so it could not tell what it stands for; what is gone is not told apart."""
    instructed.instruct(written)
    finding = instructed.only("B800", BUILTINS)
    assert (finding.what, finding.fix) == (message, WRITE_OUT)
    assert instructed.read(BUILTINS).split("\n")[finding.line - 1] == f"    {written},"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\nMIGRATIONS += (patch(2),)\n", "MIGRATIONS is not set once, at module level"),
        ("\nDECLARED = trimmed(DECLARED)\n", "DECLARED is not set once, at module level"),
        ("\n\ndef Instruction(*parts):\n    pass\n", "`Instruction` is not the one of catalog.authoring"),
        ("\nfrom catalog.version import BuildVersion\n", "`BuildVersion` is not the one of catalog.authoring"),
    ],
)  # fmt: skip
def test_instructions_that_are_not_what_runs_are_refused(instructed: Copy, text: str, message: str) -> None:
    """What is read has to be what a start follows."""
    instructed.append(BUILTINS, text)
    assert message in {finding.what for finding in instructed.check().findings}
    assert {finding.code for finding in instructed.check().findings} == {"B800"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    MIGRATIONS,\n", "    MIGRATIONS[1:],\n"),
        ("    MIGRATIONS,\n", ""),
        ("    MIGRATIONS,\n", "    (),\n"),
    ],
)
def test_what_is_declared_has_the_instructions_that_are_listed(instructed: Copy, old: str, new: str) -> None:
    """A list that nothing uses proves nothing."""
    instructed.edit(BUILTINS, old, new)
    finding = instructed.only("B800", BUILTINS)
    assert finding.what == "DECLARED is not `Declaration(build, builtins, MIGRATIONS)`: it may have other instructions"


def test_a_list_that_is_made_elsewhere_is_refused(instructed: Copy) -> None:
    """It has to stand there, as the actions of a migration have to."""
    instructed.write(BUILTINS, instructed.read(BUILTINS).replace("= (\n    Instruction", "= tuple(\n    Instruction"))
    assert instructed.only("B800", BUILTINS).what == "MIGRATIONS is not a literal tuple"


def test_a_module_that_is_not_python_is_one_finding(instructed: Copy) -> None:
    """The way back is to the newest that can be read."""
    instructed.append(BUILTINS, "\n)\n")
    finding = instructed.only("B800", BUILTINS)
    assert finding.what == "it is not Python: unmatched ')'"
    assert finding.fix == f"correct {BUILTINS}, or git checkout HEAD -- {BUILTINS}"


def test_a_release_records_the_instructions_that_are_new(instructed: Copy) -> None:
    """Each stands with the first release that had it; a release without any is recorded too."""
    instructed.instruct(EVENTS, METRICS)
    instructed.release("0.3.0")
    recorded = json.loads(instructed.read(HASHES))["releases"]
    assert recorded == {
        "0.1.0": [],
        "0.2.0": ["0.2.0 catalog.audit_events EVOLUTION"],
        "0.3.0": ["0.3.0 catalog.store_metrics REPLACEMENT"],
    }
    with pytest.raises(GateError, match=r"0\.3\.0 is already released"):
        release(instructed.tree, "0.2.9")


def test_a_release_before_its_instructions_is_refused(instructed: Copy) -> None:
    """It would not follow them, and nobody after it would."""
    instructed.instruct(EVENTS, METRICS)
    before = instructed.digest()
    with pytest.raises(
        GateError, match=r"\(0\.3\.0, catalog\.store_metrics, REPLACEMENT\) cannot be in 0\.2\.5"
    ) as error:
        release(instructed.tree, "0.2.5")
    assert error.value.fix == "choose a higher number, or assign the instructions to 0.2.5"
    assert instructed.digest() == before


@pytest.mark.parametrize(
    ("forged", "state"),
    [
        ({}, "is missing"),
        ({"0.2.0": ()}, "now has none"),
        ({"0.2.0": (OTHER,)}, "now has (0.2.0, catalog.store_metrics, EVOLUTION)"),
    ],
)
def test_an_edited_record_of_a_release_is_refused(
    instructed: Copy, forged: dict[str, tuple[DeclaredInstruction, ...]], state: str
) -> None:
    """History has the record as it was made, so that taking an instruction out of both silences nothing."""
    hashes = instructed.hashes
    instructed.write(HASHES, dump(Hashes(hashes.snapshots, hashes.migrations, releases={"0.1.0": (), **forged})))
    instructed.instruct(*[EVENTS.replace("AUDIT_EVENTS", "STORE_METRICS")] * ("metrics" in state))
    edited, gone = instructed.expect("H304", "B801")
    assert edited.what.startswith("the release 0.2.0 had (0.2.0, catalog.audit_events, EVOLUTION) (commit ")
    assert edited.what.endswith(f") and {state}")
    assert edited.fix.endswith(': ["0.2.0 catalog.audit_events EVOLUTION"]')
    assert gone.what == "(0.2.0, catalog.audit_events, EVOLUTION) was released in 0.2.0 and is missing"


def test_a_record_of_releases_that_cannot_be_read_is_one_finding(instructed: Copy) -> None:
    """It says what a record looks like."""
    for wrong in ('"0.2"', '["0.2.0 catalog.audit_events"]', '["0.2.0 catalog.audit_events REVOLUTION"]', "[1]"):
        text = f'{{"snapshots": {{}}, "migrations": {{}}, "releases": {{"0.2.0": {wrong}}}}}'
        with pytest.raises(ValueError, match=r'list of instructions such as "0\.3\.0 catalog\.audit_events EVOLUTION"'):
            parse(text)
    with pytest.raises(ValueError, match='"v1" is not a release'):
        parse('{"snapshots": {}, "migrations": {}, "releases": {"v1": []}}')
    instructed.edit(HASHES, "audit_events EVOLUTION", "audit_events REVOLUTION")
    assert instructed.check().findings[0].code == "H300"


def test_without_history_the_record_alone_is_compared(instructed: Copy) -> None:
    """An unpacked archive knows what it was released with."""
    instructed.remove(".git")
    instructed.assert_clean()
    instructed.instruct()
    finding = instructed.only("B801", BUILTINS)
    assert finding.fix == f"put it back into MIGRATIONS\n{MAY_GO}"
    assert [finding.code for finding in instructed.check(require_history=True).findings] == ["H305", "B801"]


def fingerprints(release: str, **builtins: str) -> str:
    return json.dumps({"release": release, "builtins": {name: {"fingerprint": of} for name, of in builtins.items()}})


def test_a_release_whose_fingerprints_are_not_recorded_is_refused(instructed: Copy) -> None:
    """No test could tell that a schema has changed since; the release itself says so first."""
    instructed.write(FINGERPRINTS, fingerprints("0.2.0", events="a"))
    instructed.assert_clean()
    instructed.commit("fingerprints")
    run = instructed.call("release", "0.3.0")
    assert "\nLeft to do:\n\nB805 the fingerprints of the last release are not recorded\n" in run.stdout
    finding = instructed.only("B805", FINGERPRINTS)
    assert finding.what == "builtin_fingerprints.json is for 0.2.0, and the last release is 0.3.0"
    assert finding.fix == "./dev golden"
    instructed.begin("0.4.0")
    finding = instructed.only("B805", FINGERPRINTS)
    assert finding.fix == "./dev golden where BUILD is 0.3.0 (git checkout v0.3.0), and keep the file that it writes"
    instructed.write(FINGERPRINTS, fingerprints("0.3.0", events="b"))
    instructed.assert_clean()
    instructed.commit("release 0.3.0")
    instructed.assert_clean()


def test_fingerprints_that_cannot_be_read_are_refused(instructed: Copy) -> None:
    """They are brought back as they were."""
    instructed.write(FINGERPRINTS, fingerprints("0.2.0", events="a"))
    instructed.commit("fingerprints")
    for wrong in ("", "[]", '{"release": "0.2.0"}'):
        instructed.write(FINGERPRINTS, wrong)
        finding = instructed.only("B805", FINGERPRINTS)
        assert finding.what == "builtin_fingerprints.json does not hold a release and its builtins"
        assert finding.fix == f"git checkout HEAD -- {FINGERPRINTS}"


def test_edited_fingerprints_of_a_release_are_refused(instructed: Copy) -> None:
    """To make the test pass by what it compares with, instead of an instruction, is found by history."""
    instructed.write(FINGERPRINTS, fingerprints("0.2.0", events="a"))
    instructed.commit("fingerprints")
    instructed.write(FINGERPRINTS, fingerprints("0.2.0", events="b"))
    instructed.commit("make the test pass")
    finding = instructed.only("B806", FINGERPRINTS)
    assert finding.what == "the fingerprints of 0.2.0 are not those recorded at that release"
    revision = instructed.git("rev-parse", "HEAD~1")[:10]
    assert finding.fix == f"git checkout {revision} -- {FINGERPRINTS}"


def test_names_are_read_through_constants_and_plain_functions() -> None:
    """As projects write them; whatever else is not followed."""
    words = (
        "from catalog.authoring import Builtin, BuiltinName, Declaration, Instruction, Mechanism\n"
        "from catalog.authoring import BuildVersion\n"
        'SCHEMA = "shop"\n'
        "def table(name, *columns):\n"
        '    """A table."""\n'
        "    return Builtin(BuiltinName(SCHEMA, 3, name), columns)\n"
        "def view(name):\n"
        "    name = name.upper()\n"
        "    return Builtin(BuiltinName(SCHEMA, 3, name), ())\n"
        'ORDERS = table("orders", 1, 2)\n'
        'CARTS = Builtin(BuiltinName("shop", 3, "carts"), ())\n'
        'PRICES = view("prices")\n'
        "MIGRATIONS = (\n"
        "    Instruction(BuildVersion(1), ORDERS.name, Mechanism.EVOLUTION),\n"
        "    Instruction(BuildVersion(1, 2), CARTS.name, Mechanism.REPLACEMENT),\n"
        "    Instruction(BuildVersion(1, 2, 3), PRICES.name, Mechanism.REPLACEMENT),\n"
        ")\n"
        "DECLARED = Declaration(BuildVersion(2), (ORDERS, CARTS), instructions=MIGRATIONS)\n"
    )
    read = read_instructions(words.encode())
    assert read.written == (
        (DeclaredInstruction("1.0.0", "shop.orders", "EVOLUTION"), 14),
        (DeclaredInstruction("1.2.0", "shop.carts", "REPLACEMENT"), 15),
    )
    assert [(problem.line, problem.message) for problem in read.problems] == [
        (16, "the name of `PRICES.name` is not a literal string"),
    ]
