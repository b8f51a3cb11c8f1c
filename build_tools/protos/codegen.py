"""Generated code: one Python module and one stub per version of the types, and one for the current types.

Protos are compiled under the project's name, so that many projects can live in one process. Each module carries the
hash of its descriptor, and refuses to load when the proto beside it has changed since.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from google.protobuf import descriptor_pb2

from ..project_tree import SNAPSHOT_NAME, GateError, ProjectTree, command
from ..sources.hashes import parse
from .types import ProtoError, ProtoTypes, compile_proto, run_protoc

_PACKAGE_INIT = '''"""Code generated from `proto/`, by the gate's `codegen`."""

RESTYLED: dict[str, tuple[str, ...]] = {restyled}
"""Of each migration that was restyled after its release, the hashes it had before."""
'''


def generate(tree: ProjectTree) -> list[Path]:
    """Write missing and outdated modules, remove those without a proto, and return the files that changed."""
    wanted = {tree.generated / "__init__.py": _PACKAGE_INIT.replace("{restyled}", repr(_restyled(tree)))}
    for proto in _protos(tree):
        wanted |= _modules(tree, proto)
    tree.generated.mkdir(parents=True, exist_ok=True)
    changed = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.write_text(wanted[path], encoding="utf-8", newline="\n")
    for path in sorted(tree.generated.glob("*.py*")):
        if path not in wanted:
            path.unlink()
            changed.append(path)
    return changed


def _restyled(tree: ProjectTree) -> dict[str, tuple[str, ...]]:
    """Return the earlier hashes of restyled migrations; none if hashes.json is unreadable, which `check` reports."""
    try:
        recorded = parse(tree.hashes.read_text(encoding="utf-8")).migrations
    except (OSError, ValueError):
        return {}
    return {name: entry.restyled for name, entry in sorted(recorded.items()) if entry.restyled}


def check_protos(tree: ProjectTree, replaced: Iterable[Path]) -> None:
    """Refuse, before anything is written, the protos that `generate` would refuse afterwards."""
    for proto in _protos(tree):
        if proto not in replaced:
            compile_file(tree, proto)


def _protos(tree: ProjectTree) -> list[Path]:
    snapshots = [path for path in sorted(tree.old.glob("*.proto")) if SNAPSHOT_NAME.fullmatch(path.name)]
    if not tree.objects.is_file():
        raise GateError(
            f"{tree.objects} is missing", "code is generated from it", "git checkout HEAD -- proto/objects.proto"
        )
    return [tree.objects, *snapshots]


def compile_file(tree: ProjectTree, proto: Path, why: str = "no code can be generated from it") -> ProtoTypes:
    """Compile a proto of the project, or raise an error that gives `why` as the reason why it must compile."""
    try:
        return compile_proto(proto.read_bytes())
    except OSError as error:
        raise GateError(f"{tree.relative(proto)} cannot be read", str(error), command("check")) from error
    except ProtoError as error:
        what = f"{tree.relative(proto)}:{error.line}: {error.message}"
        raise GateError(what, why, f"correct that line, then {command('check')}") from error


def _modules(tree: ProjectTree, proto: Path) -> dict[Path, str]:
    types, source = compile_file(tree, proto), proto.read_bytes()
    code, stub = _generated(source, tree.relative(proto), tree.project)
    module = f"{proto.stem}_pb2"
    home = f"'{tree.project}.{module}'"
    if code.count(home) != 1:
        raise GateError(
            f"protoc wrote {module} in an unknown form",
            f"it does not contain {home} exactly once",
            "use the pinned protoc",
        )
    header = (
        "from catalog.authoring import require_fresh as _require_fresh\n"
        f'DESCRIPTOR_HASH = "{types.hash}"\n'
        f'_require_fresh(__file__, "{tree.relative(proto)}", "{text_hash(source)}")\n'
    )
    code = code.replace(home, f"'{tree.project}.generated.{module}'")
    marker = '"""Generated protocol buffer code."""\n'
    return {
        tree.generated / f"{module}.py": code.replace(marker, marker + header, 1),
        tree.generated / f"{module}.pyi": stub + "\nDESCRIPTOR_HASH: str\n",
    }


@lru_cache(maxsize=64)
def _generated(source: bytes, proto: str, project: str) -> tuple[str, str]:
    """Return the module and the stub that protoc writes for a proto that compiles."""
    renamed = _renamed(compile_proto(source).proto, project, Path(proto).stem)
    with tempfile.TemporaryDirectory() as folder:
        described = Path(folder) / "described.bin"
        described.write_bytes(descriptor_pb2.FileDescriptorSet(file=[renamed]).SerializeToString())
        ok, printed = run_protoc(
            [f"--descriptor_set_in={described}", f"--python_out={folder}", f"--pyi_out={folder}", renamed.name]
        )
        if not ok:
            raise GateError(f"protoc failed on {proto}", printed.strip(), command("check"))
        module = Path(folder) / project / f"{Path(proto).stem}_pb2.py"
        return module.read_text(encoding="utf-8"), module.with_suffix(".pyi").read_text(encoding="utf-8")


def text_hash(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


def _renamed(proto: descriptor_pb2.FileDescriptorProto, project: str, stem: str) -> descriptor_pb2.FileDescriptorProto:
    """Return the same types as `<project>/<stem>.proto`, in the package `<project>.<stem>`."""
    renamed = descriptor_pb2.FileDescriptorProto()
    renamed.CopyFrom(proto)
    before = f".{proto.package}." if proto.package else "."
    after = f".{project}.{stem}."

    def rename(message: descriptor_pb2.DescriptorProto) -> None:
        for field in message.field:
            if field.type_name:
                field.type_name = after + field.type_name.removeprefix(before)
        for nested in message.nested_type:
            rename(nested)

    for message in renamed.message_type:
        rename(message)
    renamed.name = f"{project}/{stem}.proto"
    renamed.package = f"{project}.{stem}"
    return renamed
