"""The builtins of this build against those of the last release, as `./dev golden` recorded them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from catalog.builtins import DECLARED
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import Declaration, Instruction, Mechanism
from catalog.engine.shard.schema import Column, Schema
from catalog.errors import UninstructedSchemaError
from tests.upgrade import golden
from tests.upgrade.golden import main, read_released, require_instructions, write_released

NEXT = BuildVersion(9, 9)


def changed(*instructions: Instruction) -> Declaration:
    """A later build in which one of our builtins has another column."""
    first, *others = DECLARED.builtins
    evolved = replace(first, schema=Schema((*first.schema.columns, Column(99, "more", pa.string()))))
    return Declaration(NEXT, (evolved, *others), (*DECLARED.instructions, *instructions))


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file as the release of this very build would have it."""
    path = tmp_path / "builtin_fingerprints.json"
    path.write_bytes(golden.FINGERPRINTS.read_bytes())
    monkeypatch.setattr(golden, "FINGERPRINTS", path)
    write_released(DECLARED)
    return path


def test_every_change_since_the_last_release_has_an_instruction() -> None:
    """Or no store of that release could be started with this build."""
    require_instructions(DECLARED, read_released())


def test_a_changed_schema_without_an_instruction_fails(released: Path) -> None:
    """It is named, with what to add; the file stays what it was."""
    before = released.read_bytes()
    with pytest.raises(UninstructedSchemaError, match=r"catalog\.migration_history") as caught:
        require_instructions(changed(), read_released())
    assert "add (9.9.0, catalog.migration_history, EVOLUTION)" in caught.value.next
    with pytest.raises(UninstructedSchemaError):
        write_released(changed())
    assert released.read_bytes() == before


@pytest.mark.usefixtures("released")
def test_a_changed_schema_with_an_instruction_passes() -> None:
    """Of a build after the release."""
    require_instructions(changed(Instruction(NEXT, DECLARED.builtins[0].name, Mechanism.EVOLUTION)), read_released())


@pytest.mark.usefixtures("released")
def test_a_builtin_that_went_without_an_instruction_fails() -> None:
    """Its data would stay behind for ever."""
    gone, *others = DECLARED.builtins
    with pytest.raises(UninstructedSchemaError, match=r"catalog\.migration_history"):
        require_instructions(Declaration(NEXT, tuple(others)), read_released())
    told = (Instruction(NEXT, gone.name, Mechanism.REPLACEMENT),)
    require_instructions(Declaration(NEXT, tuple(others), told), read_released())


def test_the_file_has_every_builtin_of_a_release(released: Path) -> None:
    """Its name in all parts, and its fingerprint."""
    content = json.loads(released.read_text(encoding="utf-8"))
    assert content["release"] == str(DECLARED.build)
    assert {text: entry["fingerprint"] for text, entry in content["builtins"].items()} == dict(DECLARED.fingerprints())
    assert list(content["builtins"]) == [
        "catalog.audit_events", "catalog.migration_history", "catalog.object_dependencies", "catalog.store_metrics",
    ]  # fmt: skip


def test_the_file_is_lacking_as_soon_as_the_build_is_a_release(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not before: until then the builtins may change freely."""
    with pytest.raises(SystemExit):
        main(["builtins"])
    assert "is no release: its builtins may still change" in capsys.readouterr().err
    before = json.loads(released.read_text(encoding="utf-8"))
    released.write_text(json.dumps({"release": "0.1.0", "builtins": {}}), encoding="utf-8")
    monkeypatch.setattr(golden, "BUILD", str(DECLARED.build))
    assert golden.lacking() == ["builtins"]
    assert main([]) == 0
    assert golden.lacking() == []
    assert json.loads(released.read_text(encoding="utf-8")) == before
