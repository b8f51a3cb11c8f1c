"""Simulated releases: builds one after the other, each with its builtins and the instructions of all before it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import pyarrow as pa

from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import Builtin, BuiltinName, Declaration, Instruction, Mechanism
from catalog.engine.shard.schema import Column, Schema

TABLE = 1
TYPES = [pa.int64(), pa.string(), pa.list_(pa.string())]


def name(text: str) -> BuiltinName:
    return BuiltinName("catalog", TABLE, text)


def build(number: int) -> BuildVersion:
    return BuildVersion(0, number)


@dataclass
class Author:
    """Writes one release after the other, as people do: mostly small changes, each with its instruction."""

    chance: random.Random
    builtins: dict[str, Schema] = field(default_factory=dict)
    instructions: list[Instruction] = field(default_factory=list)
    column_ids: int = 0

    def releases(self, count: int, builtin_count: int) -> list[Declaration]:
        for number in range(builtin_count):
            self.builtins[f"b{number}"] = self.new_schema()
        made = [self.release(1)]
        while len(made) < count:
            for text in self.chance.sample(sorted(self.builtins), self.chance.choice([0, 1, 1, 2, 3])):
                self.change(text, len(made) + 1)
            if self.chance.random() < 0.15:
                self.builtins[f"b{builtin_count + len(made)}"] = self.new_schema()
            made.append(self.release(len(made) + 1))
        return made

    def release(self, number: int) -> Declaration:
        own = tuple(Builtin(name(text), schema) for text, schema in sorted(self.builtins.items()))
        return Declaration(build(number), own, tuple(self.instructions))

    def change(self, text: str, number: int) -> None:
        mechanism = self.chance.choice([Mechanism.EVOLUTION, Mechanism.EVOLUTION, Mechanism.REPLACEMENT])
        if mechanism is Mechanism.EVOLUTION:
            self.builtins[text] = self.evolved(self.builtins[text])
        elif self.chance.random() < 0.1 and len(self.builtins) > 5:
            del self.builtins[text]
        else:
            self.builtins[text] = self.new_schema()
        self.instructions.append(Instruction(build(number), name(text), mechanism))

    def new_schema(self) -> Schema:
        return Schema.of(self.new_column(nullable=False), self.new_column(), self.new_column())

    def evolved(self, schema: Schema) -> Schema:
        columns = list(schema.columns)
        kind = self.chance.choice(["add", "add", "delete", "nullable"])
        if kind == "delete" and len(columns) > 1:
            columns.remove(self.chance.choice(columns))
        elif kind == "nullable" and not all(column.nullable for column in columns):
            columns = [replace(column, nullable=True) for column in columns]
        else:
            columns.insert(self.chance.randint(0, len(columns)), self.new_column())
        return Schema(tuple(columns))

    def new_column(self, *, nullable: bool = True) -> Column:
        self.column_ids += 1
        return Column(self.column_ids, f"c{self.column_ids}", self.chance.choice(TYPES), nullable)
