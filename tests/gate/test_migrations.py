"""Mistakes in the form of a migration: its file, its shape, its imports and its test."""

from __future__ import annotations

import pytest

from tests.gate.project_copy import (
    NEWEST_STEP,
    SNAPSHOT,
    UPGRADE,
    Copy,
    function,
    migration,
    step,
)

NAME = "v21_to_v22"
TEST = f"tests/migrations/test_{NAME}.py"
WIRE = 'wire_compatible("role")\nwire_compatible("database")\nwire_compatible("schema")\nwire_compatible("item")'
FROZEN_TYPES = (
    "use the frozen types of its two versions: from catalog.generated import objects_v21_pb2, objects_v22_pb2"
)
LITERALS = "remove it, and write the needed parts as literals or functions in this module"
PYSPARK = (
    "inside the frame function, import pyspark.sql.functions or pyspark.sql.Window; name types of columns\n"
    'as texts, such as cast("bigint"); under TYPE_CHECKING, import types of pyspark.sql'
)


def add(tree: Copy, text: str) -> None:
    """Add to v21_to_v22 and record it."""
    tree.append(NEWEST_STEP, f"\n\n{text}\n")
    tree.rerecord(NAME)


def test_a_missing_migration_is_refused(tree: Copy) -> None:
    """Stores of the earlier version could not be upgraded."""
    tree.remove(step(17))
    finding = tree.only("M601", step(17))
    assert finding.fix == f"git checkout HEAD -- {step(17)}"


@pytest.mark.parametrize("name", ["v17_v18.py", "from_17.py", "V17_to_V18.py", "roles.py"])
def test_a_misnamed_migration_is_missing_and_does_not_belong(tree: Copy, name: str) -> None:
    """One module per step, found by its name; anything else lives elsewhere."""
    tree.move(step(17), f"catalog/migrations/{name}")
    missing, misplaced = (found for found in tree.check().findings if found.code in {"M601", "M602"})
    assert (missing.code, missing.path) == ("M601", step(17))
    assert (misplaced.code, misplaced.path) == ("M602", f"catalog/migrations/{name}")
    assert misplaced.what == f"{name} is not named vN_to_vM.py"
    assert misplaced.fix == "name it after its versions, or move it elsewhere"


@pytest.mark.parametrize("name", ["v17_to_v19", "v22_to_v23", "v13_to_v14"])
def test_a_migration_that_is_no_step_is_refused(tree: Copy, name: str) -> None:
    """One version at a time, within the supported ones."""
    tree.write(f"catalog/migrations/{name}.py", migration('no_change("because it is an example")'))
    tree.write(f"tests/migrations/test_{name}.py", tree.read(TEST))
    finding = next(finding for finding in tree.check().findings if finding.code == "M602")
    assert finding.path == f"catalog/migrations/{name}.py"
    assert finding.what == f"{name} is not a step within v14..v22"
    assert finding.fix == f"one step per module, one version at a time; to make one: {SNAPSHOT}"


@pytest.mark.parametrize("docstring", ["", '"""  """\n'])
def test_a_migration_without_a_docstring_is_refused(tree: Copy, docstring: str) -> None:
    """In a year nobody could tell what changed and why."""
    _, _, rest = migration(WIRE).partition("\n")
    tree.write(NEWEST_STEP, docstring + rest)
    tree.rerecord(NAME)
    finding = tree.only("M603", NEWEST_STEP)
    assert finding.fix == "begin the module with a docstring"


@pytest.mark.parametrize("other", ["def upgrad(", "async def upgrade(", "if True:\n  def upgrade("])
def test_a_migration_without_upgrade_is_refused(tree: Copy, other: str) -> None:
    """The engine asks for its actions by that name, at the top of the module."""
    tree.write(NEWEST_STEP, migration(WIRE).replace("def upgrade(", other))
    tree.rerecord(NAME)
    finding = tree.only("M604", NEWEST_STEP)
    assert finding.what == f"{NAME} has no function upgrade()"
    assert finding.fix == "write: def upgrade() -> list[Action]: return [...]"


@pytest.mark.parametrize(
    ("line", "imported", "fix"),
    [
        ("from catalog.objects import RoleKey", "catalog.objects.RoleKey", FROZEN_TYPES),
        ("import catalog.objects", "catalog.objects", FROZEN_TYPES),
        ("from catalog import objects", "catalog.objects", FROZEN_TYPES),
        ("from catalog.generated import objects_pb2", "catalog.generated.objects_pb2", FROZEN_TYPES),
        ("from catalog.generated import objects_v20_pb2", "catalog.generated.objects_v20_pb2", FROZEN_TYPES),
        ("import catalog.generated.objects_v17_pb2", "catalog.generated.objects_v17_pb2", FROZEN_TYPES),
        ("from catalog.migrations import legacy_json_objects", "catalog.migrations.legacy_json_objects", FROZEN_TYPES),
        ("from ..objects import RoleKey", "..objects.RoleKey", FROZEN_TYPES),
        ("from .v20_to_v21 import upgrade as before", ".v20_to_v21.upgrade", LITERALS),
        ("from . import v20_to_v21", "..v20_to_v21", LITERALS),
        ("from catalog.migrations import v20_to_v21", "catalog.migrations.v20_to_v21", LITERALS),
        ("from catalog.version import STASH_VERSION", "catalog.version.STASH_VERSION", LITERALS),
        ("from catalog import *", "catalog.*", LITERALS),
        ("import datetime", "datetime", LITERALS),
        ("from datetime import datetime", "datetime.datetime", LITERALS),
        ("import random", "random", LITERALS),
        ("import collections", "collections", LITERALS),
        ("import pyarrow.parquet", "pyarrow.parquet", LITERALS),
        ("from pyarrow import fs", "pyarrow.fs", LITERALS),
        ("from pyspark.sql import functions", "pyspark.sql.functions", PYSPARK),
        ("import pyspark", "pyspark", PYSPARK),
    ],
)
def test_a_forbidden_import_in_a_migration_is_refused(tree: Copy, line: str, imported: str, fix: str) -> None:
    """A migration keeps its meaning while today's code, the clock and other versions change."""
    add(tree, line)
    finding = tree.only("M608", NEWEST_STEP)
    assert finding.what == f"it imports {imported}"
    assert finding.fix == fix
    assert tree.read(NEWEST_STEP).splitlines()[finding.line - 1] == line


@pytest.mark.parametrize(
    "text",
    [
        "def change():\n    import time",
        "def change():\n    def inner():\n        import time",
        "async def change():\n    import time",
        "class Change:\n    import time",
        "if True:\n    import time",
        "if False:\n    pass\nelse:\n    import time",
        "if False:\n    pass\nelif True:\n    import time",
        "try:\n    import time\nexcept ImportError:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    import time",
        "try:\n    pass\nfinally:\n    import time",
        "for _ in ():\n    pass\nelse:\n    import time",
        "while False:\n    import time",
        "with x:\n    import time",
        "match 1:\n    case 1:\n        import time",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import time",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    pass\nelse:\n    import time",
    ],
)
def test_a_hidden_import_in_a_migration_is_refused(tree: Copy, text: str) -> None:
    """Wherever it stands."""
    add(tree, text)
    finding = tree.only("M608", NEWEST_STEP)
    assert finding.what == "it imports time"
    assert tree.read(NEWEST_STEP).splitlines()[finding.line - 1].strip() == "import time"


def test_what_a_migration_needs_may_be_imported(tree: Copy) -> None:
    """Its two neighbours, the actions, Arrow, typing, and pyspark where frames are made."""
    tree.rewrite_step(
        FRAME,
        """

from collections import abc
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from catalog import actions
from catalog.generated import objects_v21_pb2 as v21
from catalog.generated import objects_v22_pb2
from pyarrow import RecordBatch, compute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sweep(frames):
    import pyspark.sql.functions as F
    from pyspark.sql import Window, functions
    from pyspark.sql.functions import col
    from pyspark.sql.window import WindowSpec

    return frames
""",
    )
    tree.assert_clean()


def test_the_legacy_types_may_be_imported_by_the_step_that_ends_them(tree: Copy) -> None:
    """v14_to_v15 reads JSON, so it alone knows its types."""
    assert "legacy_json_objects" in tree.read(step(14))
    tree.assert_clean()


def test_pyspark_may_be_imported_in_frame_functions_only(tree: Copy) -> None:
    """Elsewhere a row would start Spark."""
    add(tree, "def helper():\n    from pyspark.sql import functions")
    assert tree.only("M608", NEWEST_STEP).fix == PYSPARK


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ('open("/etc/hostname")', "open"),
        ('print("row")', "print"),
        ('exec("x = 1")', "exec"),
        ('eval("1")', "eval"),
        ('__import__("time")', "__import__"),
        ('compile("1", "", "eval")', "compile"),
        ('hash("row")', "hash"),
        ("id(object)", "id"),
    ],
)
def test_a_migration_that_reaches_outside_is_refused(tree: Copy, call: str, name: str) -> None:
    """Its output depends on the rows alone, so that it can be run again."""
    add(tree, f"def change(key, value):\n    return {call}")
    finding = tree.only("M620", NEWEST_STEP)
    assert finding.what == f"it uses {name}()"
    assert finding.fix == "compute everything from the rows; write other values as literals"


FRAME = f'{WIRE}\nframe(sweep, reads=("comment",), writes=("comment",))'


def sweep(text: str) -> str:
    """Return a frame function with one expression."""
    return f"\n\ndef sweep(frames):\n    from pyspark.sql import functions as F\n\n    return {text}\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("F.uuid()", "uuid"),
        ("F.rand(7)", "rand"),
        ("F.current_timestamp()", "current_timestamp"),
        ("F.current_date()", "current_date"),
        ("F.unix_timestamp()", "unix_timestamp"),
        ("F.monotonically_increasing_id()", "monotonically_increasing_id"),
        ('F.expr("concat(key.id, uuid())")', "uuid"),
        ('F.expr("current_date")', "current_date"),
        ('frames["comment"].where(f"{1} < RAND ()")', "RAND"),
        ('frames["comment"].sample(0.5)', "sample"),
        ('F.call_function("uuid")', "uuid"),
        ("[]\n    F.shuffle(frames)", "shuffle"),
    ],
)
def test_a_frame_that_reads_a_clock_or_draws_lots_is_refused(tree: Copy, text: str, name: str) -> None:
    """By a function, in the text of an expression, by name."""
    tree.rewrite_step(FRAME, sweep(text))
    assert tree.only("M620", NEWEST_STEP).what == f"it uses {name}()"


@pytest.mark.parametrize(
    "text",
    [
        "list(set(value.names))",
        "[name for name in {*value.names}]",
        "', '.join(frozenset(value.names) - {'a'})",
        "(*{name for name in value.names},)",
        "value\n    seen = set(value.names)\n    for name in seen:\n        value.names.append(name)",
    ],
)
def test_a_migration_that_takes_a_set_in_its_order_is_refused(tree: Copy, text: str) -> None:
    """Texts are hashed otherwise in every process, so no rehearsal in one of them sees it."""
    add(tree, f"def change(key, value):\n    return {text}")
    finding = tree.only("M620", NEWEST_STEP)
    assert finding.what == "it uses the order of a set, which differs between processes"
    assert finding.fix == "sort it: sorted(…)"


@pytest.mark.parametrize(
    "text",
    [
        "sorted(set(value.names))",
        "sorted(name for name in {*value.names} if name)",
        "len({name for name in value.names}), max(set(value.names)), 'a' in {'a', 'b'}",
        "set(value.names) | {'a'}, {*set(value.names), *{'a'}}",
    ],
)
def test_a_set_without_an_order_is_right(tree: Copy, text: str) -> None:
    """Sorted, counted, or asked for its elements."""
    add(tree, f"def change(key, value):\n    return {text}")
    tree.assert_clean()


def test_an_arrow_function_that_draws_lots_is_refused(tree: Copy) -> None:
    """Also in a columnar function."""
    add(tree, "def change(batch):\n    import pyarrow.compute as pc\n\n    return pc.random(batch.num_rows)")
    assert tree.only("M620", NEWEST_STEP).what == "it uses random()"


@pytest.mark.parametrize(
    "text",
    [
        "F.unix_timestamp(F.col('value.created'))",
        'F.expr("value.uuid").alias("current_date")',
        """F.expr("concat('now()', `rand ()`)")""",
    ],
)
def test_a_field_with_the_name_of_such_a_function_is_none(tree: Copy, text: str) -> None:
    """Nor is a text, nor a function of the rows alone."""
    tree.rewrite_step(FRAME, sweep(text))
    tree.assert_clean()


@pytest.mark.parametrize("text", ["sorted(value, key=hash)", "map(print, value)", "[open][0](value)"])
def test_a_builtin_that_reaches_outside_is_refused_by_its_name(tree: Copy, text: str) -> None:
    """Whoever is handed it calls it."""
    add(tree, f"def change(key, value):\n    return {text}")
    finding = tree.only("M620", NEWEST_STEP)
    assert finding.what in {"it uses hash()", "it uses print()", "it uses open()"}
    assert tree.read(NEWEST_STEP).splitlines()[finding.line - 1] == f"    return {text}"


@pytest.mark.parametrize(
    "text",
    [
        "def change(id, value):\n    return id, value",
        "def change(key, value):\n    id = key.id\n    return id, value",
        "def change(key, value):\n    return [id for id in value]",
        "def id(row):\n    return row\n\n\ndef change(key, value):\n    return id(key), value",
    ],
)
def test_a_name_with_a_meaning_of_its_own_is_no_builtin(tree: Copy, text: str) -> None:
    """Rows have ids."""
    add(tree, text)
    tree.assert_clean()


def test_a_stub_that_is_not_written_is_refused(tree: Copy) -> None:
    """A function that raises NotImplementedError would raise in production."""
    add(tree, "def change(key, value):\n    '''Later.'''\n    raise NotImplementedError('later')")
    finding = tree.only("M616", NEWEST_STEP)
    assert finding.what == "change raises NotImplementedError"
    assert finding.fix == "write change, or delete it if no action names it"


def test_a_stub_may_wait_while_its_migration_is_listed_as_unwritten(tree: Copy) -> None:
    """A declared migration may be written later, before the release; then it leaves the list."""
    add(tree, "def change(key, value):\n    raise NotImplementedError")
    tree.edit("pyproject.toml", "unwritten = []", f'unwritten = ["{NAME}"]')
    tree.remove(TEST)
    tree.assert_clean()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        (NAME, "v21_to_v22 is listed as unwritten, but it is written"),
        ("v1_to_v2", "v1_to_v2 is listed as unwritten, but it is missing"),
    ],
)
def test_a_list_of_unwritten_migrations_holds_nothing_else(tree: Copy, name: str, what: str) -> None:
    """What is written, or does not exist, is taken off the list."""
    tree.edit("pyproject.toml", "unwritten = []", f'unwritten = ["{name}"]')
    finding = tree.only("M616", "pyproject.toml")
    assert finding.what == what
    assert finding.fix == f'remove "{name}" from `unwritten` under [tool.catalog]'


def test_a_migration_without_a_test_is_refused(tree: Copy) -> None:
    """Someone shows that old rows become the right new ones."""
    tree.remove(TEST)
    finding = tree.only("M617", TEST)
    assert finding.fix == "write it: old rows in, new rows out"


@pytest.mark.parametrize("text", ["", '"""Later."""\n', "def helper() -> None: ...\n"])
def test_a_test_that_tests_nothing_is_no_test(tree: Copy, text: str) -> None:
    """A file alone shows nothing."""
    tree.write(TEST, text)
    finding = tree.only("M617", TEST)
    assert finding.what == f"{TEST} has no test"
    assert finding.fix == "write it: old rows in, new rows out"


def test_a_test_that_is_not_python_is_refused(tree: Copy) -> None:
    """It is named, not run."""
    tree.write(TEST, "def test_rows(:\n")
    finding = tree.only("M617", TEST)
    assert finding.what.startswith("it is not Python: ")
    assert finding.fix == "correct the test"


def test_a_stub_in_a_test_is_refused(tree: Copy) -> None:
    """What the recipe wrote for a person to fill in is filled in."""
    tree.append(TEST, "\n\ndef test_more() -> None:\n    raise NotImplementedError\n")
    finding = tree.only("M616", TEST)
    assert finding.what == "test_more raises NotImplementedError"
    assert finding.fix == "assert in the test which old rows become which new rows"


def test_a_released_variant_that_is_deleted_is_refused(tree: Copy) -> None:
    """A recorded migration that no arm and no file remembers is told by its entry."""
    tree.record_migration("v21_to_v22_early", tree.hashes.migrations[NAME])
    finding = tree.only("H302", "proto/hashes.json")
    assert finding.what == "a hash of v21_to_v22_early is recorded, but there is no such migration"
    assert "git checkout HEAD -- catalog/migrations/v21_to_v22_early.py" in finding.fix


def test_a_guarded_variant_is_held_to_the_same_rules(tree: Copy) -> None:
    """Its docstring, its imports, its actions and its test count like those of a plain migration."""
    arm = "        case 21:\n"
    guarded = (
        "        case 21 if build < BuildVersion(0, 1):\n"
        "            from catalog.migrations import v21_to_v22_early\n\n            return v21_to_v22_early\n"
    )
    tree.edit(UPGRADE, arm, guarded + arm)
    tree.write(
        "catalog/migrations/v21_to_v22_early.py",
        migration('per_row("role", change)', function("change") + "\nimport time\n"),
    )
    tree.amend()
    findings = tree.expect("M608", "M611", "M611", "M611", "M617")
    assert {finding.path for finding in findings} == {
        "catalog/migrations/v21_to_v22_early.py",
        "tests/migrations/test_v21_to_v22_early.py",
    }


@pytest.mark.parametrize(
    "body",
    [
        *("assert True", "assert 1 == 1", "x = 1\n    assert x", "pass", "print('rows')", "import os\n    assert os"),
        *("assert v22", "assert v22.RoleValue", "assert v22 is not None", "assert not v22 or True"),
        *("assert callable(v22.RoleValue)", "assert v22.RoleValue() == v22.RoleValue()", "assert 1, v22"),
    ],
)
def test_a_test_that_asserts_nothing_about_the_migration_is_refused(tree: Copy, body: str) -> None:
    """The stub was only silenced."""
    head = "from catalog.generated import objects_v22_pb2 as v22\n"
    tree.write(TEST, f'"""Nothing."""\n\n{head}\n\ndef test_rows() -> None:\n    {body}\n')
    finding = tree.only("M617", TEST)
    assert (finding.what, finding.line) == ("test_rows asserts nothing about the migration", 6)
    assert finding.fix == "assert which old rows become which new rows, by the types or functions of the migration"


@pytest.mark.parametrize(
    "body",
    [
        "row = v22.RoleValue(name='a')\n    text = row.name\n    assert text == 'a'",
        "with pytest.raises(ValueError):\n        v22.RoleValue.FromString(b'x')",
        "same(v22.RoleValue())",
        "for row in [v22.RoleValue()]:\n        assert row.name == ''",
    ],
)
def test_a_test_that_asserts_on_whatever_way_is_one(tree: Copy, body: str) -> None:
    """By a name that leads to the types, an expected error, a function beside it, a loop."""
    head = "import pytest\nfrom catalog.generated import objects_v22_pb2 as v22\n\n\n"
    head += "def same(one):\n    assert one.name == ''\n"
    tree.write(TEST, f'"""Rows."""\n\n{head}\n\ndef test_rows() -> None:\n    {body}\n')
    tree.assert_clean()
