"""The rows of a bulk write, derived from one state: what it means there, in files that are not committed yet.

The files are dated right after that state. Whatever was written before has a smaller ts, and keys that others write
afterwards are derived again by whoever commits, so that no two writers of a key have one ts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from catalog.engine.base.fence import Fence
from catalog.engine.log.data_files import rows_table
from catalog.engine.log.protocol import DataFile, FileKind, LogState, Row
from catalog.engine.schema_change.bulk_verb import Verb
from catalog.engine.schema_change.derive import (
    Evidence,
    RowImage,
    Schemas,
    check_images,
    completed,
    derived_rows,
    stored_row,
    with_defaults,
)
from catalog.engine.schema_change.layers import LayeredView
from catalog.engine.schema_change.row_text import row_key_text
from catalog.engine.schema_change.rows import RowCodec, RowCodecs, RowValues
from catalog.engine.schema_change.schema import ElementKind, State, TableSchema
from catalog.engine.schema_change.types import Value
from catalog.errors import KeyExistsError
from catalog.errors.tables import UnfitFrameError

_LAYER_ROWS = 200_000


@dataclass(slots=True)
class DerivedRows:
    """Rows that are to be written, and the files that say so at one state."""

    verb: Verb
    now: datetime
    view: LayeredView
    """The rows that were read."""
    schemas: Schemas
    """Of that state."""
    codec: RowCodec
    given: dict[bytes, RowValues] = field(default_factory=dict)
    """The columns that are set, of each key; a row that changes nothing is among them, as others may change it."""
    files: dict[str, tuple[DataFile, ...]] = field(default_factory=dict)
    """Layers by collection."""

    @property
    def schema(self) -> TableSchema:
        return self.codec.schema

    @property
    def ts(self) -> int:
        """The ts that files are dated at."""
        return self.view.state.version + 1

    @property
    def own(self) -> LayeredView:
        """Return the changes alone as a view: rows and entries that it adds, and those that it removes."""
        files = {file.path: file for own in self.files.values() for file in own}
        return LayeredView(self.view.cache, LogState(self.ts, files, {}))

    def add(self, rows: Iterable[tuple[bytes, RowValues]], fence: Fence) -> None:
        """Derive rows by their keys, and write the layers of them; refuse a key that is there twice."""
        added: dict[bytes, RowValues] = {}
        for key, values in rows:
            if key in added or key in self.given:
                text = f"the key {row_key_text(self.schema, values)} is there twice"
                raise UnfitFrameError(self.schema.name, text)
            added[key] = values
        changed: dict[str, dict[bytes, Row]] = {}
        for image in self._images(added):
            for collection, own in derived_rows(self.codec, [image], self.ts).items():
                newest = changed.setdefault(collection, {})
                for row in sorted(own, key=lambda row: row[3]):  # an added one outweighs a removed one
                    newest[row[0]] = row
        for collection, newest in changed.items():
            ordered = [newest[key] for key in sorted(newest)]
            made = tuple(
                self.view.cache.log.write(collection, FileKind.LAYER, fence, rows_table(ordered[at : at + _LAYER_ROWS]))
                for at in range(0, len(ordered), _LAYER_ROWS)
            )
            self.files[collection] = (*self.files.get(collection, ()), *made)
        self.given.update(added)

    def check(self, codecs: RowCodecs) -> None:
        """Check every constraint over all that is changed, at the state that was read."""
        evidence = Evidence(with_files(self.view, self.files))
        check_images(self.schemas, codecs, evidence, self._changed())

    def rebased(
        self, view: LayeredView, codec: RowCodec, keys: Iterable[bytes]
    ) -> tuple[list[RowImage], dict[str, list[Row]]]:
        """Return some rows before and after at a newer state, and the tail rows that make them so.

        The rows undo what the files say of these keys, wherever it is something else.
        """
        images, rows, own, ts = list[RowImage](), dict[str, list[Row]](), self.own, view.state.version + 1
        for key in keys:
            stored, made = view.get(codec.schema.collection, key), own.get(self.schema.collection, key)
            before = None if stored is None else codec.row(key, stored)
            image = self._image(codec, self.given[key], before)
            outdated = [before, None if made is None else self.codec.row(key, made)]
            for element in codec.schema.stores:
                gone = dict(stored_row(codec, element, row) for row in outdated if row is not None)
                found = rows.setdefault(element.collection, [])
                if image.after is not None:
                    becomes = stored_row(codec, element, image.after)
                    gone.pop(becomes[0], None)
                    found.append((*becomes, ts, 1))
                found += [(*old, ts, -1) for old in gone.items()]
            if image.before != image.after:
                images.append(image)
        return images, {collection: found for collection, found in rows.items() if found}

    def _images(self, given: Mapping[bytes, RowValues]) -> Iterator[RowImage]:
        found = self.view.dated(self.schema.collection, given.keys())
        for key, values in given.items():
            stored = found.get(key, (0, None))[1]
            yield self._image(self.codec, values, None if stored is None else self.codec.row(key, stored))

    def _image(self, codec: RowCodec, values: RowValues, before: dict[int, Value] | None) -> RowImage:
        """Return a row before and after."""
        schema = codec.schema
        if self.verb is Verb.DELETE:
            return RowImage(schema, before, None)
        if self.verb is Verb.APPEND and before is not None:
            raise KeyExistsError(schema.name, row_key_text(schema, values))
        row = with_defaults(schema, values, self.now) if before is None else {**before, **values}
        return RowImage(schema, before, completed(schema, row, self.now))

    def _changed(self) -> Iterator[RowImage]:
        """Yield every row that is changed, before and after, as the files have it."""
        collection = self.schema.collection
        for table in self.own.newest(collection):
            keys = table["key"].to_pylist()
            known = self.view.dated(collection, keys)
            for key, value, diff in zip(keys, table["value"].to_pylist(), table["diff"].to_pylist(), strict=True):
                stored = known.get(key, (0, None))[1]
                was = None if stored is None else self.codec.row(key, stored)
                yield RowImage(self.schema, was, self.codec.row(key, value) if diff > 0 else None)


def duties(schemas: Schemas, schema: TableSchema) -> frozenset[object]:
    """Return what a schema asks of its writers: columns that follow from others, entries, constraints of both sides."""
    columns = {
        (column.id, None if column.state is State.PUBLIC else column.up, column.computed, column.write_default)
        for column in schema.written
    }
    constraints = {
        (element.id, element.support, element.target_element)
        for kind in ElementKind
        for element in schema.enforced(kind)
    }
    referring = {
        (child.id, element.id, element.support, element.target_element)
        for child in schemas.values()
        for element in child.enforced(ElementKind.FOREIGN_KEY)
        if element.target == schema.id
    }
    return frozenset({*columns, *constraints, *referring, *(element.id for element in schema.stores)})


def with_files(view: LayeredView, files: Mapping[str, tuple[DataFile, ...]]) -> LayeredView:
    """Return a view with uncommitted files on top."""
    added = {file.path: file for own in files.values() for file in own}
    state = replace(view.state, files={**view.state.files, **added}, _digest=None)
    return LayeredView(view.cache, state, dict(view.tails))
