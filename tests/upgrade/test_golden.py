"""The command that writes golden files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog.upgrade import PROJECT
from tests.upgrade import golden
from tests.upgrade.golden import STEPS, main, read_digests, step_name

CHEAP = step_name(21)
"""A step that starts no JVM."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Golden files and hashes that may be changed."""
    assert golden.lacking() == [], f"write them: {golden.COMMAND}"
    for name in ("INITIAL", "DIGESTS", "HASHES"):
        path: Path = getattr(golden, name)
        (tmp_path / path.name).write_bytes(path.read_bytes())
        monkeypatch.setattr(golden, name, tmp_path / path.name)
    return tmp_path


def change(path: Path, *place: str, to: str | None) -> None:
    """Set one thing in a file of JSON, or take it away."""
    content = json.loads(path.read_text())
    within = content
    for name in place[:-1]:
        within = within[name]
    if to is None:
        del within[place[-1]]
    else:
        within[place[-1]] = to
    path.write_text(json.dumps(content))


def test_nothing_is_lacking(capsys: pytest.CaptureFixture[str]) -> None:
    """Every step of this build has its digest, and its newest version an initial store."""
    assert golden.lacking() == [], f"write them: {golden.COMMAND}"
    assert main([]) == 0
    assert capsys.readouterr().out == "every golden file is there\n"
    assert list(read_digests()) == list(STEPS)


def test_what_is_lacking_is_written_as_it_was(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same files, byte for byte, whoever writes them."""
    initial, digests = (place / golden.INITIAL.name).read_bytes(), (place / "digests.json").read_bytes()
    (place / golden.INITIAL.name).unlink()
    change(place / "digests.json", CHEAP, to=None)
    assert golden.lacking() == ["initial", CHEAP]
    assert main([]) == 0
    assert (place / golden.INITIAL.name).read_bytes() == initial
    assert (place / "digests.json").read_bytes() == digests
    assert capsys.readouterr().out == (
        f"wrote tests/golden/initial_v{PROJECT.current}.json: review what a new store holds\n"
        f"wrote tests/golden/digests.json: {CHEAP}\n"
    )


def test_a_released_step_that_makes_other_rows_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its digest stays what it was; before a release it is made again, and also when other rows are generated."""
    right = read_digests()[CHEAP]
    change(place / "digests.json", CHEAP, "after", to="of before the edit")
    change(place / "hashes.json", "migrations", CHEAP, "released", to="0.1.0")
    assert main([CHEAP]) == 1
    assert f"{CHEAP} was released in 0.1.0" in capsys.readouterr().out
    assert read_digests()[CHEAP].after == "of before the edit"
    change(place / "digests.json", CHEAP, "before", to="other rows")
    assert main([CHEAP]) == 0
    assert read_digests()[CHEAP] == right


def test_what_there_is_not_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """A step is named as its module is."""
    with pytest.raises(SystemExit):
        main(["v1_to_v2"])
    assert "there is no v1_to_v2; there are initial, builtins, " in capsys.readouterr().err
