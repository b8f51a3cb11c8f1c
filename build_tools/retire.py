"""Ending support for old versions: their modules and snapshots go, their hashes and field numbers stay."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from .codegen import check_protos, generate
from .descriptors import ProtoError, compile_proto
from .edits import Edits, dispatch_from, text_of, version_text, versions_of
from .hashes import Numbers, dump
from .snapshot import Made, read_hashes
from .tree import MIGRATION_NAME, SNAPSHOT_NAME, GateError, Tree, command


def retire(tree: Tree, minimum: int) -> Made:
    """Make `minimum` the oldest version that can still be upgraded."""
    versions, hashes = versions_of(tree), read_hashes(tree)
    if not versions.minimum < minimum <= versions.current:
        choices = f"v{versions.minimum + 1}..v{versions.current}"
        raise GateError(
            f"v{minimum} cannot become the oldest version",
            f"supported are v{versions.minimum}..v{versions.current}",
            f"choose one of {choices}" if versions.minimum < versions.current else "there is nothing left to retire",
        )
    numbers: Numbers = {part: dict(named) for part, named in hashes.retired_numbers.items()}
    edits = Edits()
    snapshots = {
        int(name["version"]): path for path in tree.old.iterdir() if (name := SNAPSHOT_NAME.fullmatch(path.name))
    }
    for version, path in sorted(snapshots.items()):
        if version <= minimum:
            _remember(path, numbers)
        if version < minimum:
            edits.removes.append(path)
    for path in sorted(tree.migrations.glob("*.py")):
        name = MIGRATION_NAME.fullmatch(path.stem)
        if name is not None and int(name["old"]) < minimum:
            edits.removes += [path, tree.migration_test(path.stem)]
    if minimum >= versions.first_proto:
        edits.removes.append(tree.migrations / "legacy_json_objects.py")
    edits.writes = {
        tree.version: version_text(text_of(tree, tree.version), minimum=minimum, current=versions.current),
        tree.upgrade: dispatch_from(text_of(tree, tree.upgrade), minimum),
        tree.hashes: dump(replace(hashes, retired_numbers=numbers)),
    }
    gone = [path.stem for path in edits.removes if path.stem in tree.unwritten]
    if gone:
        text = text_of(tree, tree.root / "pyproject.toml")
        edits.writes[tree.root / "pyproject.toml"] = re.sub(rf'\s*"(?:{"|".join(gone)})",?', "", text)
    removed = tuple(tree.relative(path) for path in edits.removes if path.is_file())
    check_protos(tree, edits.removes)
    edits.apply()
    generate(tree)
    summary = f"v{minimum} is now the oldest version; what else used those before it, such as tests, is yours to remove"
    return Made(versions.current, summary, tuple(tree.relative(path) for path in edits.writes), removed)


def _remember(path: Path, numbers: Numbers) -> None:
    try:
        types = compile_proto(path.read_bytes())
    except ProtoError as error:
        raise GateError(
            f"{path.name}:{error.line}: {error.message}", "its field numbers must be remembered", command("check")
        ) from error
    for part, named in types.numbers.items():
        numbers.setdefault(part, {}).update({number: name for number, (name, _) in named.items()})
