"""Rows, columns or collections are not what a call says."""

from __future__ import annotations

from difflib import get_close_matches

from catalog.errors.root import CatalogError, ConstraintError


class UnknownCollectionError(CatalogError):
    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"there is no collection {name}",
            "a collection is known by its name, or by the type of its keys at this version",
            f"{_suggestion(name, known)}use one of: {', '.join(known)}",
            name,
            known,
        )


class KeyExistsError(ConstraintError):
    def __init__(self, collection: str, key: str) -> None:
        self.collection, self.key = collection, key
        super().__init__(
            f"`{collection}` already has a row {key}",
            "insert takes new keys only",
            "use update or upsert",
            collection,
            key,
        )


class NoSuchRowError(ConstraintError):
    def __init__(self, collection: str, key: str, close: tuple[str, ...] = ()) -> None:
        self.collection, self.key, self.close = collection, key, close
        super().__init__(
            f"`{collection}` has no row {key}",
            "update and delete take keys that are there",
            f"correct the key; there are: {'; '.join(close)}" if close else "use insert or upsert, or correct the key",
            collection,
            key,
            close,
        )


class RowChangedError(ConstraintError):
    def __init__(self, collection: str, key: str, shown_ts: int, ts: int) -> None:
        self.collection, self.key, self.shown_ts, self.ts = collection, key, shown_ts, ts
        super().__init__(
            f"nothing was written: the row {key} of `{collection}` is no longer what it was at ts {shown_ts}",
            f"somebody else changed it by ts {ts}, after it was shown",
            "look at the row again, and decide again",
            collection,
            key,
            shown_ts,
            ts,
        )


class ProtectedRowError(ConstraintError):
    def __init__(self, collection: str) -> None:
        self.collection = collection
        super().__init__(
            f"nothing was written: the rows of `{collection}` are the engine's own",
            "by them it knows the version of a store, who leads it and which migrations it has behind it",
            "if it must be, say so with --protected",
            collection,
        )


class MarkedRowError(ConstraintError):
    def __init__(self, collection: str, key: str, mark: str, fix: str) -> None:
        self.collection, self.key, self.mark, self.fix = collection, key, mark, fix
        super().__init__(
            f"nothing was written: the row {key} of `{collection}` says the same as the log's own {mark}",
            "changed by itself, the row and the log would contradict each other",
            fix,
            collection,
            key,
            mark,
            fix,
        )


class UnfitJsonError(CatalogError):
    def __init__(self, message: str, path: str, found: str, fields: tuple[str, ...]) -> None:
        self.message, self.path, self.found, self.fields = message, path, found, fields
        at = f" at {path}" if path else ""
        super().__init__(
            f"this JSON is no {message}{at}: {found}",
            "read in any other way, it might say something that nobody meant",
            f"correct it; the fields of {message} are {', '.join(fields)}" if fields else "correct it",
            message,
            path,
            found,
            fields,
        )


class ValueTypeError(ConstraintError):
    def __init__(self, collection: str, found: str, needed: str) -> None:
        self.collection, self.found, self.needed = collection, found, needed
        super().__init__(
            f"a row of `{collection}` cannot hold a {found}",
            "the type of the key names the collection, and the collection the type of the value",
            f"pass a {needed}",
            collection,
            found,
            needed,
        )


class DuplicateError(ConstraintError):
    def __init__(self, collection: str, paths: tuple[str, ...], rows: tuple[str, ...]) -> None:
        self.collection, self.paths, self.rows = collection, paths, rows
        super().__init__(
            f"rows of `{collection}` would agree in {', '.join(paths)}: {'; '.join(rows)}",
            "these fields are unique together",
            "choose another value, or change the other row first",
            collection,
            paths,
            rows,
        )


class DanglingReferenceError(ConstraintError):
    def __init__(self, collection: str, row: str, path: str, target: str, referred: str) -> None:
        self.collection, self.row, self.path, self.target, self.referred = collection, row, path, target, referred
        super().__init__(
            f"{path} of `{collection}` {row} would refer to `{target}` {referred}, which would not be there",
            "what a row refers to must exist",
            "insert the row that is referred to, or change or delete the row that refers to it",
            collection,
            row,
            path,
            target,
            referred,
        )


class UnfitColumnError(CatalogError):
    def __init__(self, column: str, found: str, needed: str) -> None:
        self.column, self.found, self.needed = column, found, needed
        super().__init__(
            f"{column} holds {found}; needed: {needed}",
            "written as it is, it would be lost or become another value",
            "correct the migration or query that makes this column",
            column,
            found,
            needed,
        )


class ReadOptionError(CatalogError):
    def __init__(self, option: str, found: str, needed: str) -> None:
        self.option, self.found, self.needed = option, found, needed
        super().__init__(
            f"option {option} of the catalog format: {found}",
            "read without it, the rows might not be those that were asked for",
            f"needed: {needed}",
            option,
            found,
            needed,
        )


class OtherFeedError(CatalogError):
    def __init__(self, uri: str, collection: str, found: str) -> None:
        self.uri, self.collection, self.found = uri, collection, found
        whose = "another store" if found == collection else f"the collection {found}" if found else "something else"
        super().__init__(
            f"the feed of {collection} in {uri} cannot go on from this checkpoint",
            f"it was left by a feed of {whose}, whose offsets say nothing of this one",
            "name the store and the collection that the checkpoint is of, or begin with a new checkpoint",
            uri,
            collection,
            found,
        )


def _suggestion(name: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(name, known, 1)
    return f"did you mean {close[0]}? else " if close else ""
