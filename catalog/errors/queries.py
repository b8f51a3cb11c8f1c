"""A statement of SQL cannot be answered as it is."""

from __future__ import annotations

from catalog.errors.root import CatalogError


class StatementError(CatalogError):
    def __init__(self, found: str, position: str, shown: str, fix: str) -> None:
        self.found, self.position, self.shown, self.fix = found, position, shown, fix
        super().__init__(f"{position}: {found}" if position else found, shown, fix, found, position, shown, fix)


class StatementRefusedError(CatalogError):
    def __init__(self, word: str, meant: str | None) -> None:
        self.word, self.meant = word, meant
        super().__init__(
            f"{word} is refused",
            "only statements that read are answered: SELECT, WITH, FROM, VALUES, TABLE, SHOW, DESCRIBE and EXPLAIN",
            f"did you mean {meant}?" if meant else "programs write by `open_catalog`, people by `catalog debug edit`",
            word,
            meant,
        )
