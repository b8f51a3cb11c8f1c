"""An anonymised copy says nothing of what its source said, and is a store like any other."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from catalog import open_catalog
from catalog.engine.base.project import Privacy
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.place import StorePlace
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.row_types import ENGINE_COLLECTIONS, row_types
from catalog.engine.stash.registry import Collection, Registry, encode
from catalog.engine.stash.view import BaseFileCache, load_view
from catalog.errors import UnreadableRowError
from catalog.generated import objects_v21_pb2 as v21
from catalog.migrations import legacy_json_objects as legacy
from catalog.objects import AuditLogKey, AuditLogValue
from catalog.tools.anonymise import ENGINE, Anonymiser, Replacements, text_fields
from catalog.tools.copy import copy_store
from catalog.tools.fsck.store import check_store
from catalog.tools.generator.shape import measure
from catalog.upgrade import PROJECT
from tests.cli.commands import call, fail, in_process
from tests.cli.commands import text as shown_text
from tests.engine.migrate.stores import append, lead, open_log, state_of, version_of
from tests.engine.spark.conftest import spark

__all__ = ["spark"]

VERSIONS = range(PROJECT.minimum, PROJECT.current + 1)
DIRECT_UNTIL = 20
"""Steps up to here need no session."""
KEY = "a key that the tests keep"
PRIVATE = ENGINE.private | PROJECT.privacy.private
HARMLESS = ENGINE.harmless | PROJECT.privacy.harmless
Stores = Callable[[int], Path]
Told = tuple[str, str]
"""A path, and a text that stands there."""


@pytest.fixture(scope="session")
def copies(templates: Stores, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Anonymised copies that nobody writes to, under one key."""
    folder = tmp_path_factory.mktemp("anonymised")

    def copied(version: int) -> Path:
        target = folder / str(version)
        if not target.exists():
            anonymise(templates(version), target, KEY)
        return target

    return copied


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What stands in every store: names of fields, marks and files, of which a private text may be one by chance."""
    store = tmp_path_factory.mktemp("blank") / "store"
    call("init", "--store", store)
    return b"\n".join([*contents(store), Path(legacy.__file__).read_bytes()])


def anonymise(source: Path, target: Path, key: str | None = None) -> None:
    place = StorePlace.at(PROJECT, source)
    rewrite = Anonymiser.of(place, key)
    copy_store(place, StorePlace.at(PROJECT, target), rewrite=rewrite)


def documents(store: Path) -> dict[str, list[tuple[Any, Any]]]:
    """Every row as plain data, by collection, in the order of keys."""
    state, version = state_of(store), version_of(store)
    view, types = load_view(BaseFileCache(open_log(store)), state), row_types(PROJECT, version)
    own = Registry.of(PROJECT.current_types)
    found = {}
    for name in sorted(view.collections()):
        kind = own.named(name) if name in ENGINE_COLLECTIONS else types[name]
        decode = _message_row if isinstance(kind, Collection) else _json_row
        found[name] = [decode(kind, *row) for row in view.rows(name)]
    return found


def _message_row(kind: Any, key: bytes, value: bytes) -> tuple[Any, Any]:  # noqa: ANN401
    key_message, value_message = kind.decode(key, value)
    return tuple(  # type: ignore[return-value]
        MessageToDict(message, preserving_proto_field_name=True) for message in (key_message, value_message)
    )


def _json_row(_kind: object, key: bytes, value: bytes) -> tuple[Any, Any]:
    return json.loads(key), json.loads(value)


def texts(found: object, path: str) -> Iterator[Told]:
    """Every text in plain data, with its path; the entries of an object whose members are data have two."""
    match found:
        case str():
            yield path, found
        case list():
            for element in found:
                members = element.items() if isinstance(element, dict) else [("", element)]
                for name, value in members:
                    yield from texts(value, f"{path}.{name}".rstrip("."))
        case dict() if path == "cluster.value.spark_conf":
            for name, value in found.items():
                yield f"{path}.name", name
                yield f"{path}.value", value
        case dict():
            for name, value in found.items():
                yield from texts(value, f"{path}.{name}")
        case _:
            pass


def told(store: Path) -> Iterator[Told]:
    for name, rows in documents(store).items():
        for key, value in rows:
            yield from texts(key, f"{name}.key")
            yield from texts(value, f"{name}.value")


def contents(store: Path) -> Iterator[bytes]:
    """All that there is to be found in a store: names, bytes, and what the bytes of parquet files hold."""
    for path in sorted(store.rglob("*")):
        yield str(path.relative_to(store)).encode()
        if path.is_file():
            raw = path.read_bytes()
            yield raw
            if path.suffix == ".parquet":
                rows = pq.ParquetFile(io.BytesIO(raw)).read().to_pylist()
                yield repr(rows).encode()
                yield b"\n".join(cell for row in rows for cell in row.values() if isinstance(cell, bytes))


def declared(version: int) -> set[str]:
    """The paths of all texts of a version, from its types."""
    types = row_types(PROJECT, version)
    registry = Registry.of(PROJECT.current_types)
    found = set()
    for name in {*types, *ENGINE_COLLECTIONS}:
        kind: Any = registry.named(name) if name in ENGINE_COLLECTIONS else types[name]
        for side, message in (("key", kind.key_type), ("value", kind.value_type)):
            path = f"{name}.{side}"
            own = _hinted(message, path) if is_dataclass(message) else text_fields(message.DESCRIPTOR, path)
            found |= set(own)
    return found


def _hinted(hint: Any, path: str) -> Iterator[str]:  # noqa: ANN401 - annotations are data here
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        for member in fields(hint):
            yield from _hinted(hints[member.name], f"{path}.{member.name}")
    elif hint is str:
        yield path
    elif getattr(hint, "__origin__", None) is not None and "Mapping" in str(hint):
        yield from (f"{path}.name", f"{path}.value")
    elif not (isinstance(hint, type) and issubclass(hint, Enum)):
        for part in get_args(hint):
            yield from _hinted(part, path)


def test_every_text_of_every_version_is_declared_private_or_harmless() -> None:
    """Whoever adds a field says which it is; until then it is replaced. What no version has is declared no more."""
    found = set().union(*(declared(version) for version in VERSIONS))
    assert "item.value.create_sql" in found
    assert sorted(found - PRIVATE - HARMLESS) == []
    assert sorted((PRIVATE | HARMLESS) - found) == []
    assert PRIVATE.isdisjoint(HARMLESS)
    assert "cluster.value.spark_conf.name" in declared(14)


@pytest.mark.parametrize("version", VERSIONS)
def test_no_private_text_is_anywhere_in_the_copy(templates: Stores, copies: Stores, blank: bytes, version: int) -> None:
    """Neither as a whole nor by its longer words: in no byte of no file, compressed or not."""
    originals = list(told(templates(version)))
    kept = {text for path, text in originals if path not in PRIVATE} | PROJECT.privacy.words
    private = {text for path, text in originals if path in PRIVATE} - kept
    words = {word for text in private for word in re.findall(r"\w{6,}", text)}
    standing = "\n".join(kept)  # the generator has the same words for what is harmless
    sought = {
        text for text in {*private, *words} if len(text) >= 4 and text not in standing and text.encode() not in blank
    }
    assert len(sought) > 300
    haystack = b"\n".join(contents(copies(version)))
    for form in (str.encode, lambda text: json.dumps(text)[1:-1].encode(), lambda text: repr(text)[1:-1].encode()):
        assert [text for text in sought if form(text) in haystack] == []
    assert any(text.encode() in b"\n".join(contents(templates(version))) for text in sought)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_copy_is_in_order_and_of_the_same_shape(templates: Stores, copies: Stores, version: int) -> None:
    """It passes every check, and has as many rows of about the same size, with the same optional fields."""
    source, copy = templates(version), copies(version)
    report = check_store(StorePlace.at(PROJECT, copy))
    assert (report.ok, report.findings) == (True, ())
    before, after = measure(PROJECT, source), measure(PROJECT, copy)
    assert (after.version, after.collections.keys()) == (version, before.collections.keys())
    for name, own in before.collections.items():
        like = after.collections[name]
        assert (like.rows, like.present) == (own.rows, own.present), name
        assert own.value_bytes_mean <= like.value_bytes_mean < own.value_bytes_mean + 64, name
        assert own.value_bytes_p95 <= like.value_bytes_p95 < own.value_bytes_p95 + 160, name


@pytest.mark.parametrize("version", [14, 15, 18, 22])
def test_the_same_text_has_the_same_replacement_and_no_other_has_it(
    templates: Stores, copies: Stores, version: int
) -> None:
    """Throughout the store: so an audited name is still the object's. All that is not private stays as it was."""
    replaced: dict[str, str] = {}
    before, after = documents(templates(version)), documents(copies(version))
    for name in before.keys() - {"setting", "server_configuration", "timestamp"}:  # which have other keys
        for one, other in zip(before[name], after[name], strict=True):
            assert one[0] == other[0]
            for row in (one[1], other[1]):
                row.pop("spark_conf", None)  # which are in another order
            pairs = zip(texts(one[1], f"{name}.value"), texts(other[1], f"{name}.value"), strict=True)
            for (path, text), (_, made) in pairs:
                if path not in PRIVATE:
                    assert text == made, path
                else:
                    assert replaced.setdefault(text, made) == made, path
    assert len(replaced) > 100
    assert len(set(replaced.values())) == len(replaced)
    kept = {text for text, made in replaced.items() if text == made}
    assert kept <= PROJECT.privacy.words | {""}
    for text, made in replaced.items():
        if text not in kept:
            assert len(made) == max(len(text.encode()), 16)
            assert re.fullmatch(r"[b-z][b-z2-9]{2}_(?:[b-z2-9]{3}_)*[b-z2-9]{0,3}", made)


def test_names_that_settings_refer_to_are_found_again(tmp_path: Path) -> None:
    """A new store holds nothing but what the software writes: its copy says the same."""
    call("init", "--store", tmp_path / "new")
    anonymise(tmp_path / "new", tmp_path / "copy")
    mine, theirs = documents(tmp_path / "new"), documents(tmp_path / "copy")
    others = {"fence_token", "storage_metadata"}
    assert {name: rows for name, rows in mine.items() if name not in others} == {
        name: rows for name, rows in theirs.items() if name not in others
    }
    ((_, fence),) = mine["fence_token"]
    ((_, copied),) = theirs["fence_token"]
    assert copied["epoch"] == fence["epoch"]
    assert copied["holder"] != fence["holder"]


def test_shards_stay_behind_and_are_made_again(tmp_path: Path) -> None:
    """Their rows say names too. The copy has builtins without data, which its first leader makes."""
    with open_catalog(tmp_path / "source") as cat, cat.transaction() as tx:
        event = AuditLogValue(event_type="AUDIT_EVENT_TYPE_ALTER", object_type="OBJECT_TYPE_TABLE", actor="annabel")
        tx.insert(AuditLogKey(id=1), event)
    open_catalog(tmp_path / "source").close()
    assert list((tmp_path / "source" / "shards").iterdir())
    anonymise(tmp_path / "source", tmp_path / "copy")
    assert not (tmp_path / "copy" / "shards").exists()
    assert "storage_metadata" not in documents(tmp_path / "copy")
    assert check_store(StorePlace.at(PROJECT, tmp_path / "copy")).ok
    assert b"annabel" not in b"".join(contents(tmp_path / "copy"))
    open_catalog(tmp_path / "copy").close()
    before, after = documents(tmp_path / "source"), documents(tmp_path / "copy")
    assert before["builtin_mapping"] == after["builtin_mapping"]
    assert [key for key, _ in before["storage_metadata"]] == [key for key, _ in after["storage_metadata"]]
    assert check_store(StorePlace.at(PROJECT, tmp_path / "copy")).ok
    assert b"annabel" not in b"".join(contents(tmp_path / "copy"))


def test_lists_stay_in_the_order_of_what_is_replaced(copies: Stores) -> None:
    """The settings of a cluster are in the order of their names, whatever these are now."""
    lists = [
        [own["name"] for own in value.get("spark_conf", ())]
        for _, value in documents(copies(PROJECT.current))["cluster"]
    ]
    assert any(len(names) > 1 for names in lists)
    assert lists == [sorted(names) for names in lists]


def test_a_key_gives_the_same_copy_again_and_none_never_does(templates: Stores, copies: Stores, tmp_path: Path) -> None:
    """Without a key, it is made up for one copy and kept nowhere."""
    source = templates(PROJECT.current)
    for name, key in (("same", KEY), ("other", KEY + "!"), ("one", None), ("two", None)):
        anonymise(source, tmp_path / name, key)
    roles = {
        name: [value["name"] for _, value in documents(place)["role"]]
        for name, place in {"kept": copies(PROJECT.current)}.items()
    }
    roles |= {name: [value["name"] for _, value in documents(tmp_path / name)["role"]] for name in ("same", "other")}
    roles |= {name: [value["name"] for _, value in documents(tmp_path / name)["role"]] for name in ("one", "two")}
    assert roles["kept"] == roles["same"]
    assert len({tuple(found) for found in roles.values()}) == 4
    assert KEY not in repr(Replacements.under(KEY, frozenset()))
    assert KEY.encode() not in b"".join(contents(tmp_path / "same"))


@pytest.mark.parametrize("version", [version for version in VERSIONS if version < DIRECT_UNTIL])
def test_the_copy_is_upgraded(copies: Stores, tmp_path: Path, version: int) -> None:
    """Every step up to the one that needs a session takes it, and leaves it in order."""
    store = tmp_path / "copy"
    anonymise(copies(version), store)  # a copy of a copy, too
    upgrade(lead(store), DIRECT_UNTIL)
    assert version_of(store) == DIRECT_UNTIL
    assert check_store(StorePlace.at(PROJECT, store)).ok


@pytest.mark.spark
@pytest.mark.parametrize("version", [14, 20])
def test_the_copy_is_upgraded_on_spark(templates: Stores, tmp_path: Path, version: int, spark: SparkSession) -> None:
    """To the version of this build, where the rows are as many as those of the source, upgraded."""
    counts = []
    for name, place in (("source", templates(version)), ("copy", templates(version))):
        store = tmp_path / name
        if name == "copy":
            anonymise(place, store)
        else:
            copy_store(StorePlace.at(PROJECT, place), StorePlace.at(PROJECT, store))
        open_catalog(store, deploy_generation=1, spark=spark).close()
        assert version_of(store) == PROJECT.current
        assert check_store(StorePlace.at(PROJECT, store)).ok
        counts.append(Counter({name: len(rows) for name, rows in documents(store).items()}))
    assert counts[0] == counts[1]


def test_rows_of_several_files_stay_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, templates: Stores
) -> None:
    """Other keys have another order; files whose keys overlap are read as one."""
    monkeypatch.setattr("catalog.engine.stash.compaction.FILE_BYTES_MAX", 300)
    source, copy = templates(PROJECT.current), tmp_path / "copy"
    anonymise(source, copy)
    assert sum(file.collection == "setting" for file in state_of(copy).files.values()) > 1
    assert check_store(StorePlace.at(PROJECT, copy)).ok
    names = [key["name"] for key, _ in documents(copy)["setting"]]
    assert len(names) == len(documents(source)["setting"])


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (encode(v21.ItemValue(schema_id=1, name="known")) + b"\xba\x3e\x06secret", "fields that this version"),
        (b"\xff\xff", "it is no"),
    ],
)
def test_a_row_that_cannot_be_read_refuses_the_copy(templates: Stores, tmp_path: Path, value: bytes, why: str) -> None:
    """Nobody knows what is in it; nothing of a copy is left."""
    source = tmp_path / "source"
    copy_store(StorePlace.at(PROJECT, templates(21)), StorePlace.at(PROJECT, source))
    append(source, "item", (encode(v21.ItemKey(id=9000)), value, 1))
    with pytest.raises(UnreadableRowError, match=r'a row of `item` cannot be read: \{"id": 9000\}') as caught:
        anonymise(source, tmp_path / "copy")
    assert why in caught.value.found
    assert not [path for path in (tmp_path / "copy").rglob("*") if path.is_file()]


def test_a_legacy_row_that_cannot_be_read_refuses_the_copy(templates: Stores, tmp_path: Path) -> None:
    """The same for rows of before messages, and for a collection that the version does not have."""
    for number, (collection, value) in enumerate((("setting", b'{"value":1}'), ("strange", b"{}"))):
        source = tmp_path / f"source{number}"
        copy_store(StorePlace.at(PROJECT, templates(14)), StorePlace.at(PROJECT, source))
        append(source, collection, (legacy.encode(legacy.SettingKey(name="x")), value, 1))
        with pytest.raises(UnreadableRowError, match=f"`{collection}` cannot be read"):
            anonymise(source, tmp_path / f"copy{number}")


def test_every_kind_of_field_is_replaced(tmp_path: Path) -> None:
    """Bytes, lists, maps of texts and of messages, choices; of a project that declares nothing, all of them."""
    kind = _other_types()
    inner = {"one": "chosen text"}
    original = kind(data=b"some bytes", many=["first", "second", ""], maybe="", number=7, inner=inner)
    original.texts["a name"] = "a value"
    original.parts["another name"].one = "inside"
    collection = Collection("thing", kind, kind)
    anonymiser = Anonymiser(StorePlace.at(replace(PROJECT, privacy=Privacy()), tmp_path), Replacements(b"key"))
    from catalog.tools.anonymise import _Messages  # noqa: PLC0415 - of a project that there is not

    rows = rows_table([(b"", encode(original), 1, 1)])
    (key,), (value,) = _Messages(anonymiser, collection).rewrite(rows)
    made: Any = kind.FromString(value)
    assert key == b""
    for secret in (b"bytes", b"chosen", b"first", b"second", b"name", b"value", b"inside"):
        assert secret not in value
    assert (len(made.data), made.number, list(made.many)[2]) == (16, 7, "")
    assert made.HasField("maybe")
    assert made.inner.WhichOneof("choice") == "one"
    assert made.texts == {anonymiser.replacements.text("a name"): anonymiser.replacements.text("a value")}
    assert [own.one for own in made.parts.values()] == [anonymiser.replacements.text("inside")]


def _other_types() -> Any:  # noqa: ANN401 - a class of messages
    file = descriptor_pb2.FileDescriptorProto(name="anonymised.proto", package="anonymised", syntax="proto3")
    thing = file.message_type.add(name="Thing")
    field = descriptor_pb2.FieldDescriptorProto
    thing.oneof_decl.add(name="choice")
    thing.oneof_decl.add(name="_maybe")
    thing.field.add(name="data", number=1, type=field.TYPE_BYTES, label=field.LABEL_OPTIONAL)
    thing.field.add(name="many", number=2, type=field.TYPE_STRING, label=field.LABEL_REPEATED)
    thing.field.add(name="number", number=3, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    thing.field.add(name="one", number=4, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, oneof_index=0)
    thing.field.add(name="other", number=5, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, oneof_index=0)
    thing.field.add(
        name="maybe", number=6, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, oneof_index=1, proto3_optional=True
    )
    part = file.message_type.add(name="Part")
    part.oneof_decl.add(name="choice")
    part.field.add(name="one", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL, oneof_index=0)
    for number, (name, held) in enumerate((("texts", field.TYPE_STRING), ("parts", field.TYPE_MESSAGE)), start=8):
        entry = thing.nested_type.add(name=f"{name.title()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
        value = entry.field.add(name="value", number=2, type=held, label=field.LABEL_OPTIONAL)
        if held == field.TYPE_MESSAGE:
            value.type_name = ".anonymised.Part"
        thing.field.add(
            name=name,
            number=number,
            type=field.TYPE_MESSAGE,
            label=field.LABEL_REPEATED,
            type_name=f".anonymised.Thing.{entry.name}",
        )
    thing.field.add(
        name="inner", number=7, type=field.TYPE_MESSAGE, label=field.LABEL_OPTIONAL, type_name=".anonymised.Part"
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    kind: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName("anonymised.Thing"))
    return kind


class TestCommand:
    """`catalog debug copy --anonymise`."""

    def test_it_copies_and_says_so(self, templates: Stores, tmp_path: Path) -> None:
        """In text and in JSON; the copy says what it is a copy of, by an id that tells nothing."""
        source = templates(21)
        shown = shown_text("debug", "copy", source, tmp_path / "copy", "--anonymise")
        assert re.fullmatch(r".* was copied and anonymised to .*: [\d,]+ rows at version 21\n", shown)
        assert call("debug", "copy", source, tmp_path / "two", "--anonymise")["anonymised"] is True
        assert call("debug", "copy", source, tmp_path / "three")["anonymised"] is False
        assert call("debug", "fsck", "--store", tmp_path / "copy")["report"]["findings"] == []
        identity = json.loads((tmp_path / "copy" / "store.json").read_text(encoding="utf-8"))
        assert identity["copy_of"] == json.loads((source / "store.json").read_text(encoding="utf-8"))["id"]
        assert str(source) not in (tmp_path / "copy" / "store.json").read_text(encoding="utf-8")

    def test_a_key_by_flag_or_variable(
        self, templates: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both give the same copy; nobody is shown it."""
        shown = [in_process("debug", "copy", templates(21), tmp_path / "one", "--anonymise", "--anonymise-key", KEY)]
        monkeypatch.setenv("CATALOG_ANONYMISE_KEY", KEY)
        shown.append(in_process("debug", "copy", templates(21), tmp_path / "two", "--anonymise"))
        assert [own.exit for own in shown] == [0, 0]
        assert KEY not in str(shown)
        one, two = (documents(tmp_path / name) for name in ("one", "two"))
        assert one == two

    def test_a_wrong_key_is_refused(self, templates: Stores, tmp_path: Path) -> None:
        """One that could be guessed, and one that would not be used; nothing is written."""
        source, target = templates(21), tmp_path / "copy"
        failed = fail("debug", "copy", source, target, "--anonymise", "--anonymise-key", "short", expect=2)  # type: ignore[arg-type]
        assert "16 characters" in failed.next
        assert "short:" not in failed.why
        failed = fail("debug", "copy", source, target, "--anonymise-key", KEY, expect=2)  # type: ignore[arg-type]
        assert failed.code == "UsageError"
        assert not target.exists()
