"""The verbs that read rows: show, and debug dump, epoch and stats. They print nothing.

Whatever they read, they read at the store's own version, or at the one that it had at the ts that is asked for, with
the frozen types of that version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.cli.answers import CollectionLine, Epoch, Row, Rows, Stats
from catalog.cli.environment import Environment, Look
from catalog.cli.feeds import Changed, Dump
from catalog.cli.filters import parse_filters
from catalog.cli.results import Answer
from catalog.engine.types import ENGINE_COLLECTIONS, RowType, row_types
from catalog.errors import NotInitializedError, UnknownCollectionError, UsageError
from catalog.log.maintenance import require_retained
from catalog.log.protocol import FileKind, Mark, State
from catalog.project import Place
from catalog.stash.collections import Collection, Registry, encode
from catalog.stash.heartbeat import sign_of
from catalog.stash.json_rows import key_from_json, row_to_json
from catalog.stash.view import Bases, View, load_view

if TYPE_CHECKING:
    from catalog.builtin.measures import Measure


@dataclass(frozen=True, slots=True)
class Reader:
    """A store at a ts, and the types that its rows have there."""

    look: Look
    state: State
    version: int
    types: Mapping[str, RowType]

    @classmethod
    def at(cls, environment: Environment, as_of: int | None) -> Reader:
        look, project = environment.look(), environment.project
        state = look.state
        if as_of is not None and as_of != state.version:
            require_retained(look.log, look.state, as_of)
            state = look.log.state(as_of)
        version = state.marks.get(Mark.STASH_VERSION)
        if version is None:
            raise NotInitializedError(look.storage.uri)
        project.check_version(version)
        engine = Registry.of(project.current_types)
        own = {name: engine.named(name) for name in ENGINE_COLLECTIONS}
        return cls(look, state, version, {**row_types(project, version), **own})

    def type_of(self, name: str) -> RowType:
        if name not in self.types:
            raise UnknownCollectionError(name, tuple(sorted(self.types)))
        return self.types[name]

    def view(self, name: str) -> View:
        return load_view(Bases(self.look.log), self.state, (name,))

    def as_json(self, name: str, key: bytes, value: bytes) -> tuple[Any, Any]:
        """A row as JSON; of before protobuf it is that already."""
        kind = self.types.get(name)
        if isinstance(kind, Collection):
            row = row_to_json(kind, key, value)
            return row["key"], row["value"]
        return json.loads(key), json.loads(value)

    def key_of(self, name: str, text: str) -> bytes:
        kind = self.type_of(name)
        told = parse_key(text)
        if not isinstance(kind, Collection):
            return json.dumps(told, ensure_ascii=False, separators=(",", ":"), sort_keys=True).encode()
        return encode(key_from_json(kind.key_type, told))


def show(
    environment: Environment,
    collection: str,
    *,
    key: str | None = None,
    where: Sequence[str] = (),
    as_of: int | None = None,
    limit: int = 0,
) -> Answer:
    """The rows of a collection: one, or all that pass every test, in the order of keys."""
    reader = Reader.at(environment, as_of)
    kind = reader.type_of(collection)
    tests = parse_filters(where, kind)
    view = reader.view(collection)
    if key is None:
        stored = view.rows(collection)
    else:
        wanted = reader.key_of(collection, key)
        value = view.get(collection, wanted)
        stored = iter(() if value is None else [(wanted, value)])
    found: list[Row] = []
    for own_key, own_value in stored:
        row = Row(*reader.as_json(collection, own_key, own_value))
        if all(test(row.key, row.value) for test in tests):
            found.append(row)
            if limit and len(found) > limit:
                break
    shown = tuple(found[:limit] if limit else found)
    return Answer(
        Rows(reader.look.storage.uri, collection, reader.version, reader.state.version, shown, len(found) > len(shown))
    )


def dump(
    environment: Environment,
    *,
    only: Sequence[str] = (),
    ignore: Sequence[str] = (),
    consolidate: bool = False,
    as_of: int | None = None,
) -> Answer:
    """Every stored row, by collection: as it came or went, or consolidated to those that are there."""
    reader = Reader.at(environment, as_of)
    for name in (*only, *ignore):
        reader.type_of(name)
    stored = {file.collection for file in reader.state.files.values()}
    names = [name for name in sorted(stored) if (not only or name in only) and name not in ignore]
    changes = _consolidated if consolidate else _stored
    rows = (change for name in names for change in changes(reader, name))
    return Answer(Dump(reader.look.storage.uri, reader.version, reader.state.version, rows))


def epoch(environment: Environment) -> Answer:
    """Who leads a store, and whether it shows signs of life."""
    look = environment.look()
    fence = look.state.fence
    sign = sign_of(look.storage, fence)
    return Answer(Epoch(look.storage.uri, fence.generation, fence.epoch, look.holder, sign))


def stats(environment: Environment, *, shape: bool = False, as_of: int | None = None) -> Answer:
    """Rows, files and bytes by collection."""
    reader = Reader.at(environment, as_of)
    names = sorted({file.collection for file in reader.state.files.values()})
    measured = None
    if shape:
        from catalog.generator.statistics import measure_log  # noqa: PLC0415 - reads every row

        measured = measure_log(environment.project, reader.look.log)
    return Answer(
        Stats(
            reader.look.storage.uri,
            reader.version,
            reader.state.version,
            reader.look.state.frontier,
            tuple(_line(reader, name) for name in names),
            measured,
            () if as_of is not None else _measures(environment, reader),
        )
    )


def _measures(environment: Environment, reader: Reader) -> tuple[Measure, ...]:
    """What is known of the past; nothing of a store whose rows are older than messages."""
    from catalog.builtin.keeping import keep  # noqa: PLC0415 - as above
    from catalog.builtin.run import find  # noqa: PLC0415
    from catalog.leading import own_stash  # noqa: PLC0415

    project = environment.project
    if not project.first_proto <= reader.version <= project.current:
        return ()
    place = Place(reader.look.storage.uri, environment.options, project)
    keeper = keep(place, own_stash(project, reader.look.log), None, find)
    return () if keeper is None else keeper.measures()


def parse_key(text: str) -> Any:  # noqa: ANN401 - JSON
    """A key as JSON: an object, or fields such as `id=5` or `database_id=1,name=x`."""
    if text.lstrip().startswith("{"):
        return parse_object("the key", text)
    pairs = [part.partition("=") for part in text.split(",")]
    if not all(name and equals for name, equals, _ in pairs):
        raise UsageError(
            f"{text!r} is no key",
            "a key is a JSON object, or fields with their values",
            'write it as id=5 or {"id": 5}',
        )
    return {name.strip(): _scalar(value) for name, _, value in pairs}


def parse_object(what: str, text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{what} is no JSON: {error}", f"it begins with {text[:40]!r}", "give a JSON object"
        ) from error
    if not isinstance(found, dict):
        raise UsageError(f"{what} is no JSON object", f"it is {text[:40]!r}", 'give one such as {"id": 5}')
    return found


def _scalar(text: str) -> Any:  # noqa: ANN401 - JSON
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _stored(reader: Reader, name: str) -> Iterator[Changed]:
    files = [file for file in reader.state.files.values() if file.collection == name]
    for file in sorted(files, key=lambda file: (file.ts_min, file.kind is FileKind.TAIL, file.path)):
        for batch in reader.look.log.read(file).to_batches():
            for row in batch.to_pylist():
                yield Changed(name, *reader.as_json(name, row["key"], row["value"]), row["ts"], row["diff"])


def _consolidated(reader: Reader, name: str) -> Iterator[Changed]:
    for key, value in reader.view(name).rows(name):
        yield Changed(name, *reader.as_json(name, key, value), reader.state.version, 1)


def _line(reader: Reader, name: str) -> CollectionLine:
    files = [file for file in reader.state.files.values() if file.collection == name]
    base = [file for file in files if file.kind is FileKind.BASE]
    tail = [file for file in files if file.kind is FileKind.TAIL]
    came = sum(sum(reader.look.log.read(file, ["diff"])["diff"].to_pylist()) for file in tail)
    return CollectionLine(
        name,
        sum(file.rows for file in base) + came,
        len(base),
        len(tail),
        sum(file.rows for file in tail),
        sum(file.size for file in files),
    )
