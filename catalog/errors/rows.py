"""Rows, columns or collections are not what a call says."""

from __future__ import annotations

from catalog.errors.root import CatalogError, ConstraintError


class UnknownCollectionError(CatalogError):
    def __init__(self, name: str, known: tuple[str, ...]) -> None:
        self.name, self.known = name, known
        super().__init__(
            f"there is no collection {name}",
            "a collection is known by its name, or by the type of its keys at this version",
            f"use one of: {', '.join(known)}",
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
    def __init__(self, collection: str, key: str) -> None:
        self.collection, self.key = collection, key
        super().__init__(
            f"`{collection}` has no row {key}",
            "update and delete take keys that are there",
            "use insert or upsert, or correct the key",
            collection,
            key,
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
