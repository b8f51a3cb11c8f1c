"""The code of the engine's own types of tables, which every project shares: committed, and made by
`python -m build_tools.protos.engine_code`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from ..project_tree import GateError, command
from .types import run_protoc

ROOT = Path(__file__).parents[2]
PROTO = ROOT / "proto" / "engine" / "tables.proto"
FOLDER = ROOT / "catalog" / "engine" / "schema_change"
_PACKAGE = "stash_catalog"
"""The folder that the proto is compiled under, so that no other package has a file of its name."""


def engine_code() -> dict[Path, str]:
    """Return the module and the stub that protoc makes of the engine's types, by path."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, _PACKAGE, PROTO.name)
        source.parent.mkdir()
        source.write_bytes(PROTO.read_bytes())
        words = [f"--proto_path={folder}", f"--python_out={folder}", f"--pyi_out={folder}", str(source)]
        ok, printed = run_protoc(words)
        if not ok:
            raise GateError(f"protoc failed on {PROTO.name}", printed.strip(), command("check"))
        module = source.with_name(f"{PROTO.stem}_pb2.py")
        code, stub = module.read_text(encoding="utf-8"), module.with_suffix(".pyi").read_text(encoding="utf-8")
    code = code.replace(f"'{_PACKAGE}.{module.stem}'", f"'catalog.engine.schema_change.{module.stem}'")
    return {FOLDER / module.name: code, FOLDER / module.with_suffix(".pyi").name: stub}


def main() -> None:
    for path, text in engine_code().items():
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
