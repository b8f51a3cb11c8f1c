"""The command that ends support for old versions: it removes their modules and snapshots, not their hashes."""

from __future__ import annotations

import re
from dataclasses import replace

from ..project_tree import MIGRATION_NAME, SNAPSHOT_NAME, GateError, ProjectTree
from ..protos.codegen import check_protos, compile_file, generate
from ..sources.hashes import Numbers, dump
from .file_edits import Edits, dispatch_from, text_of, version_text, versions_of
from .new_version import Written, read_hashes


def retire(tree: ProjectTree, minimum: int) -> Written:
    """Make `minimum` the oldest version that can still be upgraded."""
    versions, hashes = versions_of(tree), read_hashes(tree)
    if not versions.minimum < minimum <= versions.current:
        choices = f"v{versions.minimum + 1}..v{versions.current}"
        raise GateError(
            f"v{minimum} cannot become the oldest version",
            f"the supported versions are v{versions.minimum}..v{versions.current}",
            f"choose one of {choices}" if versions.minimum < versions.current else "there is nothing left to retire",
        )
    numbers: Numbers = {part: dict(named) for part, named in hashes.retired_numbers.items()}
    edits = Edits()
    snapshots = {
        int(name["version"]): path for path in tree.old.iterdir() if (name := SNAPSHOT_NAME.fullmatch(path.name))
    }
    for version, path in sorted(snapshots.items()):
        if version <= minimum:
            types = compile_file(tree, path, "its field numbers must be recorded")
            for part, named in types.numbers.items():
                numbers.setdefault(part, {}).update({number: name for number, (name, _) in named.items()})
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
    summary = f"v{minimum} is now the oldest version; remove other code for earlier versions, such as tests, yourself"
    return Written(versions.current, summary, tuple(tree.relative(path) for path in edits.writes), removed)
