"""The package's own bottom: public names, versions, errors, the dispatch and the generated code."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import catalog
from catalog import errors
from catalog.engine.base.project import BuildVersion, load_generated, require_fresh
from catalog.errors import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    CatalogError,
    GeneratedCodeError,
    ReaderFencedError,
    ShardFinalizedError,
    StoreTooNewError,
    StoreTooOldError,
    TableTooLargeError,
    UnfitBuiltinsError,
    UnfitEvolutionError,
    UnfitSchemaError,
    UninstructedSchemaError,
    WriterSchemaError,
)
from catalog.objects import RoleId, RoleKey, RoleValue
from catalog.upgrade import PROJECT, migration_from
from catalog.version import MIN_STASH_VERSION, STASH_VERSION, StashVersion, parse_version


def test_the_public_names_are_these_and_no_others() -> None:
    """Whoever adds a public name adds it here."""
    assert sorted(catalog.__all__) == [
        "Catalog",
        "CatalogError",
        "MIN_STASH_VERSION",
        "Mode",
        "STASH_VERSION",
        "__version__",
        "open_catalog",
    ]


def test_importing_the_package_loads_no_engine_and_no_snapshot() -> None:
    """`import catalog` stays cheap: no Spark, no Arrow, no protobuf, no migration."""
    code = "import sys, catalog; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = ("pyspark", "pyarrow", "google.protobuf", "catalog.generated", "catalog.migrations", "catalog.upgrade")
    assert [name for name in loaded if name.startswith(heavy)] == []


@pytest.mark.parametrize("number", get_args(StashVersion))
def test_every_supported_version_passes(number: int) -> None:
    """What is within the bounds is a version."""
    assert parse_version(number) == number


@pytest.mark.parametrize("number", [-1, 0, MIN_STASH_VERSION - 1])
def test_a_store_that_is_too_old_is_refused_with_the_way_out(number: int) -> None:
    """Nothing runs on a version whose types are gone."""
    with pytest.raises(StoreTooOldError, match=f"version {number}, the oldest") as caught:
        parse_version(number)
    assert (caught.value.version, caught.value.minimum) == (number, MIN_STASH_VERSION)
    assert "next: open the store once with a release that supports version" in str(caught.value)


@pytest.mark.parametrize("number", [STASH_VERSION + 1, 1000])
def test_a_store_that_is_too_new_is_refused_with_the_way_out(number: int) -> None:
    """Nothing runs on a version whose types this build does not know."""
    with pytest.raises(StoreTooNewError, match=f"version {number}, the newest") as caught:
        parse_version(number)
    assert (caught.value.version, caught.value.current) == (number, STASH_VERSION)
    assert f"next: run a build that knows version {number}" in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        CatalogError("a", "b", "c"),
        StoreTooOldError(3, 14),
        StoreTooNewError(30, 22),
        GeneratedCodeError("objects_pb2", "proto/objects.proto", "build_tools"),
        ReaderFencedError("shards/s1", 3, "name", "name: a deleted field is never used again"),
        WriterSchemaError("shards/s1", None),
        ShardFinalizedError("shards/s1"),
        TableTooLargeError("shards/s1", 7),
        UnfitSchemaError("name", "it is there twice"),
        UnfitBuiltinsError("catalog.audit_events", "it is declared twice"),
        UninstructedSchemaError("catalog.audit_events", "f1", "f2", "0.1.0", "0.2.0"),
        UnfitEvolutionError("catalog.audit_events", "actor", "actor: a field keeps its type, from string to int8"),
        BuiltinsTooNewError("0.1.0", "0.2.0", ("catalog.audit_events",)),
        BuiltinOvertakenError("catalog.audit_events", "s1", "actor: a field keeps its type, from string to int8"),
    ],
)
def test_every_error_survives_pickling_with_its_facts(error: CatalogError) -> None:
    """Spark sends errors between processes."""
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - made on the line before
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_every_error_is_in_the_tree_drawn_at_the_top_and_says_three_things() -> None:
    """One root, and a text with what, why and next."""
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(value, CatalogError) and value.__name__ in (errors.__doc__ or "") for value in classes)
    assert str(CatalogError("a", "b", "c")) == "a\nwhy:  b\nnext: c"


@pytest.mark.parametrize("version", range(MIN_STASH_VERSION, STASH_VERSION))
def test_every_old_version_has_a_migration_that_declares_its_actions(version: int) -> None:
    """The dispatch leads on, one version at a time."""
    module = migration_from(parse_version(version), PROJECT.build)
    assert module is not None
    assert module.__name__ == f"catalog.migrations.v{version}_to_v{version + 1}"
    assert module.upgrade()


def test_the_current_version_needs_no_migration() -> None:
    """An up-to-date store is done."""
    assert migration_from(STASH_VERSION, PROJECT.build) is None


def test_builds_compare_by_number() -> None:
    """A guard such as `build < BuildVersion(0, 50)` counts, it does not spell."""
    assert BuildVersion.parse("0.9.1") < BuildVersion(0, 50) < BuildVersion.parse("0.100.0.dev0") < BuildVersion(1)
    with pytest.raises(ValueError, match="no build version"):
        BuildVersion.parse("fresh")


def test_current_types_are_reached_by_name_and_survive_pickling() -> None:
    """A message that crosses a process boundary finds its class again."""
    row = (RoleKey(id=RoleId(user=1000)), RoleValue(name="ann", permissions=1))
    assert pickle.loads(pickle.dumps(row)) == row  # noqa: S301 - made on the line before
    assert type(row[0]).__module__ == "catalog.generated.objects_pb2"
    assert RoleKey.DESCRIPTOR.file.name == "catalog/objects.proto"
    assert RoleKey.DESCRIPTOR.full_name == "catalog.objects.RoleKey"


def test_a_project_serves_the_frozen_types_of_a_version() -> None:
    """The types of v17 are those of v17, and each module carries its hash."""
    types = PROJECT.types(17)
    assert types.RoleValue.DESCRIPTOR.full_name == "catalog.objects_v17.RoleValue"
    assert types.DESCRIPTOR_HASH.startswith("sha256:")
    with pytest.raises(StoreTooNewError):
        PROJECT.types(99)


def test_stale_generated_code_refuses_to_load_and_says_how_to_regenerate(tmp_path: Path) -> None:
    """Code that was generated from another proto never reads a row."""
    module = tmp_path / "shop" / "generated" / "objects_pb2.py"
    proto = tmp_path / "proto" / "objects.proto"
    proto.parent.mkdir()
    proto.write_text('syntax = "proto3";')
    with pytest.raises(GeneratedCodeError, match="next: python -m build_tools codegen"):
        require_fresh(str(module), "proto/objects.proto", "0" * 64)
    proto.unlink()
    require_fresh(str(module), "proto/objects.proto", "0" * 64)


def test_missing_generated_code_says_how_to_generate_it() -> None:
    """A fresh checkout that was never built gets one clear error."""
    with pytest.raises(GeneratedCodeError, match="objects_v99_pb2 is missing"):
        load_generated("catalog", "objects_v99", "proto/old/objects_v99.proto")
