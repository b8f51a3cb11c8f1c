"""What the gate prints: every finding at once, in three forms with the same facts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from build_tools.check import check
from build_tools.codes import CODES
from build_tools.findings import Finding, Format, Report, render
from build_tools.project_tree import find_tree
from build_tools.sources.hashes import HashEntry
from tests.gate.project_copy import (
    NEWEST_STEP,
    OBJECTS,
    REPOSITORY,
    ROLE_FIELD,
    UPGRADE,
    VERSION,
    Copy,
    snapshot,
)

WORKFLOW_COMMAND = re.compile(
    r"::error file=(?P<file>[^,:]*)(?:,line=(?P<line>\d+))?,title=(?P<title>[^,:]*)::(?P<text>.*)"
)
AWKWARD = Report(
    (Finding("S204", "proto/old/a,b:c%2C.proto", 7, "100% of it: two,\r\nlines", "one\n::error::two"),),
    ("a note: 5%,\nand more",),
)


@pytest.fixture
def five(tree: Copy) -> Copy:
    """A tree with five mistakes at once."""
    tree.edit(OBJECTS, "string holder = 3;", "string holder = 3;\n  string host = 4;")
    tree.remove(snapshot(18))
    tree.edit(UPGRADE, "        case 22:\n            return None\n", "")
    tree.append(NEWEST_STEP, "\nimport time\n")
    tree.rerecord("v21_to_v22")
    tree.write("catalog/roles.py", '"""Roles."""\n\nfrom catalog.generated import objects_v17_pb2\n')
    return tree


FIVE = [
    ("S201", OBJECTS),
    ("S203", snapshot(18)),
    ("D501", UPGRADE),
    ("M608", NEWEST_STEP),
    ("I700", "catalog/roles.py"),
]


def test_five_mistakes_at_once_are_five_findings(five: Copy) -> None:
    """Nobody mends one to be told the next."""
    run = five.run("check")
    assert (run.returncode, run.stderr) == (1, "")
    heads = re.findall(r"(?m)^([A-Z]\d{3}) (.*)\n  at:   ([^:\n]*)", run.stdout)
    assert [(code, path) for code, _, path in heads] == FIVE
    assert [title for _, title, _ in heads] == [CODES[code].title for code, _ in FIVE]
    for word in ("what: ", "why:  ", "fix:  "):
        assert len(re.findall(rf"(?m)^  {word}\S", run.stdout)) == 5
    assert run.stdout.endswith("\ngate: 5 findings\n")


def test_causes_come_first(five: Copy) -> None:
    """Mending from the top down ends what only follows: versions, snapshots, hashes, types, arms, steps, imports."""
    five.edit(VERSION, "Literal[14, ", "Literal[")
    five.record_snapshot(30, HashEntry(f"sha256:{'0' * 64}"))
    five.append(OBJECTS, "\nmessage ShelfKey {}\n")
    codes = [finding.code for finding in five.check().findings]
    assert codes == ["V402", "S201", "S203", "H302", "T108", "D501", "M608", "I700"]


def test_fixes_name_the_command_that_the_gate_was_run_by(tree: Copy) -> None:
    """Who runs it by ./dev is told to go on with ./dev."""
    tree.edit(OBJECTS, ROLE_FIELD, f"{ROLE_FIELD}\n  string colour = 9;")
    tree.write(snapshot(30), "")
    tree.write(UPGRADE, "<<<<<<< HEAD\n")
    by_dev = json.loads(tree.run("check", "--format", "json", GATE_RUN_BY="./dev").stdout)["findings"]
    by_hand = json.loads(tree.run("check", "--format", "json", GATE_RUN_BY="").stdout)["findings"]
    assert [found["code"] for found in by_dev] == [found["code"] for found in by_hand] == ["V404", "S204"]
    assert by_dev[0]["fix"].endswith("; then ./dev create --renumber")
    assert by_dev[1]["fix"] == (
        'to make a new version: remove it, edit proto/objects.proto, then ./dev create "why"\n'
        "to end support for old ones: ./dev gate retire N"
    )
    refused = tree.run("release", "1.0.0", GATE_RUN_BY="./dev")
    assert refused.stderr.endswith("next: ./dev check\n")
    assert by_hand[1]["fix"].endswith(": python -m build_tools retire N")


def test_json_holds_the_same_facts(five: Copy) -> None:
    """For programs: each finding with all that the text says."""
    run = five.run("check", "--format", "json")
    assert (run.returncode, run.stderr) == (1, "")
    printed, report = json.loads(run.stdout), five.check()
    assert printed["ok"] is False
    assert printed["notes"] == list(report.notes)
    assert printed["findings"] == [
        {
            "code": finding.code,
            "title": finding.title,
            "path": finding.path,
            "line": finding.line,
            "what": finding.what,
            "why": finding.why,
            "fix": finding.fix,
        }
        for finding in report.findings
    ]


def test_github_lines_are_workflow_commands_with_the_same_facts(five: Copy) -> None:
    """One command a line, so that each finding stands at its place in a review."""
    run = five.run("check", "--format", "github")
    assert (run.returncode, run.stderr) == (1, "")
    *errors, notice = run.stdout.splitlines()
    assert_commands(errors, five.check())
    assert notice.startswith("::notice::released hashes were not compared with history")


def assert_commands(lines: list[str], report: Report) -> None:
    for line, finding in zip(lines, report.findings, strict=True):
        command = WORKFLOW_COMMAND.fullmatch(line)
        assert command is not None, line
        assert unquote(command["file"]) == finding.path
        assert int(command["line"] or 0) == finding.line
        assert unquote(command["title"]) == f"{finding.code} {finding.title}"
        assert unquote(command["text"]) == f"{finding.what}\nwhy: {finding.why}\nfix: {finding.fix}"


def test_github_lines_escape_what_would_end_them() -> None:
    """Per cent signs, commas, colons and line ends in names and texts change nothing."""
    error, notice = render(AWKWARD, Format.GITHUB).splitlines()
    assert_commands([error], AWKWARD)
    assert notice == "::notice::a note: 5%25,%0Aand more"


def test_text_keeps_lines_of_one_finding_together() -> None:
    """A second line is indented under the first."""
    text = render(AWKWARD, Format.TEXT)
    assert "  fix:  one\n        ::error::two\n" in text
    assert "note: a note: 5%,\n        and more\n" in text
    assert text.endswith("gate: 1 finding")


def test_a_file_with_an_awkward_name_is_reported(tree: Copy) -> None:
    """From the file to the workflow command."""
    tree.write("proto/old/a,b:c%.proto", "")
    (line,) = (line for line in tree.run("check", "--format", "github").stdout.splitlines() if "error" in line)
    assert "file=proto/old/a%2Cb%3Ac%25.proto,title=S204 " in line


def test_a_clean_tree_says_so(released: Copy) -> None:
    """Exit status 0, and one line for people, an object for programs, nothing for a review."""
    outputs = {
        style: released.run("check", "--require-history", "--format", style) for style in ("text", "json", "github")
    }
    assert {run.returncode for run in outputs.values()} == {0}
    assert outputs["text"].stdout == "gate: clean\n"
    assert json.loads(outputs["json"].stdout) == {"ok": True, "findings": [], "notes": []}
    assert outputs["github"].stdout.strip() == ""


def test_the_project_is_found_from_any_folder_in_it(tree: Copy) -> None:
    """Without --root the nearest project upwards is meant."""
    tree.remove(snapshot(18))
    from_inside = check(find_tree(tree.path("catalog/migrations")))
    assert from_inside == tree.check()


def test_every_code_says_what_and_why() -> None:
    """Each has a title and a reason, in one line each, and no two share a title."""
    titles = [code.title for code in CODES.values()]
    assert len(set(titles)) == len(titles)
    for name, code in CODES.items():
        assert re.fullmatch(r"[A-Z][0-9]{3}", name)
        assert code.title
        assert code.why
        assert "\n" not in code.title + code.why


def test_every_code_is_made_by_a_test() -> None:
    """A rule that no test makes fire may never fire."""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("test_*.py")))
    assert [code for code in CODES if f'"{code}"' not in sources] == []


def test_every_code_that_the_gate_adds_is_in_the_table() -> None:
    """Codes are spelled in the rules and explained in one place."""
    sources = "".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "build_tools").rglob("*.py")))
    assert set(re.findall(r'"([A-Z][0-9]{3})"', sources)) == set(CODES)
