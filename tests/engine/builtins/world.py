"""A store, the processes that migrate its builtins, and what must be true of them whatever happens.

Processes come in rounds: up to three of one build and deploy generation at once, to read or to lead, and others of
another build beside them. Any of them may stop or lose an answer at any step of a log.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from catalog.constraints import CONSTRAINTS
from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import BuiltinName, Declaration, Mechanism
from catalog.engine.builtins.mapping_rows import MappingRows
from catalog.engine.builtins.migrate import (
    BuiltinMigrationResult,
    BuiltinMigrator,
    finalize_unused,
    run_leader,
    run_read_only,
)
from catalog.engine.builtins.plan import StoredBuiltins, select
from catalog.engine.builtins.replacement_shards import MIGRATION_SHARD, ReplacementShards
from catalog.engine.shard.shard import Shard
from catalog.engine.stash.registry import Registry
from catalog.engine.stash.stash import Stash
from catalog.engine.stash.transaction import Transaction
from catalog.errors import (
    BuiltinOvertakenError,
    BuiltinsTooNewError,
    CommitFailedError,
    FencedError,
    IndeterminateError,
    ShardFinalizedError,
    StaleGenerationError,
)
from catalog.generated import objects_pb2 as types
from tests.engine.builtins.logs import STASH, Disk, Step, pass_step
from tests.engine.builtins.releases import Author
from tests.engine.builtins.turns import Actor, Turns
from tests.engine.log.places import Crash

REGISTRY = Registry.of(types)
NOBODY = Fence(0, 0)
RELEASES, BUILTINS, ROUNDS = 10, 5, 6
Start = tuple[int, int, str]
"""The number of a build, a deploy generation, and whether to read or to lead."""
Deployment = tuple[BuildVersion, int]
"""A build, and the deploy generation it runs under."""


def open_process(disk: Disk, declared: Declaration, generation: int, step: Step = pass_step) -> BuiltinMigrator:
    stash = Stash.open(disk.open(STASH, step), REGISTRY, CONSTRAINTS)
    numbers = disk.numbers
    return BuiltinMigrator(
        declared, stash, lambda shard: disk.open(shard, step), generation, lambda: f"s{next(numbers):06d}"
    )


def lead(process: BuiltinMigrator) -> BuiltinMigrationResult:
    process.stash.take_over(process.generation, "test")
    return run_leader(process)


class Kind(StrEnum):
    """What a round is about."""

    UPGRADE = "upgrade"
    DUEL = "duel"
    RIVALS = "rivals"


KINDS = (Kind.UPGRADE, Kind.UPGRADE, Kind.DUEL, Kind.RIVALS)


@dataclass
class World:
    chance: random.Random
    releases: list[Declaration]
    kinds: tuple[Kind, ...] = KINDS
    disk: Disk = field(default_factory=Disk)
    generation: int = 2
    past: list[tuple[int, int]] = field(default_factory=list)
    """Whatever was ever deployed, by the number of its build and its generation."""
    leaders: list[Deployment] = field(default_factory=list)
    """All that ever took over."""
    live: list[tuple[Deployment, BuiltinMigrationResult]] = field(default_factory=list)
    """Processes that have started."""
    agreed: dict[tuple[Deployment, BuildVersion | None, BuiltinName], str] = field(default_factory=dict)
    served: dict[BuiltinName, tuple[str, BuildVersion]] = field(default_factory=dict)
    """The shard that a leader wrote to, and its build."""
    finalized: set[str] = field(default_factory=set)
    observer: Stash = field(init=False)
    violations: list[str] = field(default_factory=list)
    """What was seen in the middle of a step."""

    def __post_init__(self) -> None:
        self.disk.open(STASH).create("made")
        self.disk.finalizing = self.note_finalized
        self.observer = Stash.open(self.disk.open(STASH), REGISTRY, CONSTRAINTS)

    def play(self) -> None:
        for _ in range(ROUNDS):
            self.round()
            self.check()
        self.end()

    def round(self) -> None:
        """Some deployments at once, and now and then one of before again."""
        kinds = {Kind.UPGRADE: self.upgrade, Kind.DUEL: self.duel, Kind.RIVALS: self.rivals}
        wanted = kinds[self.chance.choice(self.kinds)]()
        if self.past and self.chance.random() < 0.5:
            wanted.append((*self.chance.choice(self.past[-4:]), "read"))
        self.past += [(number, generation) for number, generation, _ in wanted]
        faulty = self.chance.random() < 0.6
        turns = Turns(
            self.chance,
            crash_rate=self.chance.choice([0.002, 0.01]) if faulty else 0.0,
            lose_rate=self.chance.choice([0.0, 0.1]) if faulty else 0.0,
            switch_rate=self.chance.choice([0.02, 0.1, 0.3]),
            stall_rate=self.chance.choice([0.0, 0.2, 0.5]),
        )
        actors = turns.run([self.body(*one) for one in wanted])
        for actor, (number, _, mode) in zip(actors, wanted, strict=True):
            self.check_end(actor, self.releases[number - 1].build, mode)
        if self.chance.random() < 0.5:
            self.disk.deliver()
        if self.chance.random() < 0.3:
            self.live.clear()

    def upgrade(self) -> list[Start]:
        """Some build, mostly the next, and now and then another beside it."""
        now = self.newest_number()
        target = min(RELEASES, max(1, now + self.chance.choice([-1, 0, 0, 1, 1, 1, 2, 3])))
        self.generation += self.chance.choice([0, 1])
        modes = [self.chance.choice(["read", "lead", "lead"]) for _ in range(self.chance.randint(1, 3))]
        wanted = [(target, self.generation, mode) for mode in modes]
        if self.chance.random() < 0.5:
            beside = self.chance.randint(now, RELEASES)
            mode = self.chance.choice(["read", "lead"])
            generation = self.generation + self.chance.choice([0, 1] if mode == "lead" else [-1, 0, 1])
            wanted += [(beside, generation, mode) for _ in range(self.chance.randint(1, 2))]
        return wanted

    def duel(self) -> list[Start]:
        """Leaders of two builds, the higher after the lower."""
        target = self.due_number()
        self.generation += 1
        return [
            (target, self.generation - 1, "lead"),
            (min(RELEASES, target + self.chance.randint(1, 3)), self.generation, "lead"),
        ]

    def rivals(self) -> list[Start]:
        """Two generations of one build, the lower of which does not lead."""
        target = self.due_number()
        self.generation += 1
        readers = self.chance.randint(1, 2)
        return [*[(target, self.generation - 1, "read")] * readers, (target, self.generation, "lead")]

    def due_number(self) -> int:
        """The build that somebody has not finished with, or the next."""
        stored, now = self.stored(), self.newest_number()
        return now if stored.version != stored.newest else min(RELEASES, now + 1)

    def body(self, number: int, generation: int, mode: str) -> Callable[[Actor], None]:
        declared = self.releases[number - 1]

        def work(actor: Actor) -> None:
            process = open_process(self.disk, declared, generation, actor.step)
            if mode == "read":
                self.started(process, run_read_only(process))
                return
            process.stash.take_over(generation, "test")
            self.took_over((declared.build, generation))
            outcome = run_leader(process)
            self.started(process, outcome)
            self.serve(declared, process, outcome)

        return work

    def took_over(self, deployment: Deployment) -> None:
        self.leaders.append(deployment)
        self.agreed = {key: shard for key, shard in self.agreed.items() if key[0] >= deployment}

    def started(self, process: BuiltinMigrator, outcome: BuiltinMigrationResult) -> None:
        """Of one build and generation, from one build before, all use the same shards.

        None was given up at the ts that the process looked at.
        """
        deployment = (process.declared.build, process.generation)
        overtaken = self.is_overtaken(deployment)
        self.observer.refresh()
        seen = MappingRows(Transaction(REGISTRY, self.observer.view(process.stash.ts))).unfinalized()
        assert not {used.shard for used in outcome.used.values()} & set(seen), f"{deployment} uses what was given up"
        for name, used in outcome.used.items():
            if used.shard is not None and not overtaken:
                known = self.agreed.setdefault((deployment, outcome.plan.after, name), used.shard)
                assert known == used.shard, f"{deployment} uses {known} and {used.shard} for {name}"
                assert used.shard not in self.finalized, f"{deployment} uses {used.shard}, which is finalised"
        self.live.append((deployment, outcome))

    def serve(self, declared: Declaration, process: BuiltinMigrator, outcome: BuiltinMigrationResult) -> None:
        """A leader writes from here on: what it wrote is given up by an instruction alone."""
        self.observer.refresh()
        if process.stash.fence != self.observer.replica.state.fence:
            return
        for name, used in outcome.used.items():
            assert used.shard is not None
            shard, build = self.served.get(name, (used.shard, declared.build))
            if shard != used.shard:
                selected = select(self.releases[-1].instructions, build, declared.build)
                assert selected.get(name) is Mechanism.REPLACEMENT, f"data of {name} were given up by nobody's wish"
            self.served[name] = (used.shard, max(build, declared.build))

    def is_overtaken(self, deployment: Deployment) -> bool:
        return any(deployment < leader for leader in self.leaders)

    def note_finalized(self, name: str) -> None:
        """Whatever is finalised is in nobody's use at that very moment."""
        if name in self.finalized or not self.disk.is_finalized(name):
            return
        self.finalized.add(name)
        if name in self.mapped():
            self.violations.append(f"{name} is finalised, and mapped")
        for deployment, outcome in self.live:
            if name in {used.shard for used in outcome.used.values()} and not self.is_overtaken(deployment):
                self.violations.append(f"{name} is finalised, and {deployment} uses it")

    def check_end(self, actor: Actor, build: BuildVersion, mode: str) -> None:
        """A process ends well, or by a fault, or because a newer one is there."""
        match actor.error:
            case None | Crash():
                return
            case CommitFailedError() | IndeterminateError():
                assert actor.met_fault, repr(actor.error)
            case FencedError() | StaleGenerationError():
                assert mode == "lead", repr(actor.error)
            case BuiltinsTooNewError() | BuiltinOvertakenError() | ShardFinalizedError():
                assert any(build < leader for leader, _ in self.leaders), repr(actor.error)
            case error:
                raise error

    def check(self) -> None:
        """At rest: nothing is lost, the store is what it says it is, and every build that may start does."""
        self.look_around()
        stored, entries = self.stored(), ReplacementShards(self.disk.open, NOBODY).read()
        known = {*self.mapped(), *self.records().unfinalized(), *(one.shard for one in entries), MIGRATION_SHARD}
        lost = self.disk.shards() - self.finalized - known
        assert not lost, f"nothing knows of {lost}"
        keys = [(one.id, one.build, one.generation) for one in entries]
        assert len(keys) == len(set(keys)), "two entries for one key"
        if stored.version is not None and stored.version == stored.newest:
            self.check_store(self.release(stored.version), stored)
        if self.chance.random() < 0.15:
            self.check_start(self.releases[self.chance.randint(self.newest_number(), RELEASES) - 1])

        self.check_again()

    def check_again(self) -> None:
        """Whoever was there to read, and is of no lower build than the leaders so far, can come again."""
        there = sorted({one for one in self.past[-6:] if one[0] >= self.newest_number()})
        if there:
            number, generation = self.chance.choice(there)
            run_read_only(open_process(self.disk.forked(), self.releases[number - 1], generation))

    def look_around(self) -> None:
        """Also at what was finalised by a commit that arrived late."""
        for name in self.disk.shards():
            self.note_finalized(name)
        assert self.violations == []

    def check_store(self, declared: Declaration, stored: StoredBuiltins) -> None:
        """A store that was migrated to a build, and that no newer one has begun on, has its schemas."""
        for builtin in declared.builtins:
            mapped = stored.builtins[builtin.name]
            assert mapped.fingerprint == builtin.fingerprint, f"{builtin.name} has another fingerprint"
            latest = Shard.open(self.disk.open(mapped.shard), NOBODY).latest()
            assert latest is not None
            assert latest.schema == builtin.schema, f"{builtin.name} has another schema"

    def check_start(self, declared: Declaration) -> None:
        """Whatever was left behind, a build that is not older than the leaders so far can read and lead."""
        disk = self.disk.forked()
        generation = self.generation + 5
        run_read_only(open_process(disk, declared, generation))
        lead(open_process(disk, declared, generation))

    def end(self) -> None:
        """The newest build leads; what is there then is what it uses, and nothing else."""
        declared, generation = self.releases[-1], self.generation + 5
        self.disk.deliver()
        self.look_around()
        process = open_process(self.disk, declared, generation)
        process.stash.take_over(generation, "test")
        self.took_over((declared.build, generation))
        outcome = run_leader(process)
        self.serve(declared, process, outcome)
        self.check_store(declared, self.stored())
        assert self.stored().version == declared.build
        looked = run_read_only(open_process(self.disk, declared, generation))
        assert looked.used == outcome.used
        while left := self.records().unfinalized():  # a start finalises some, and those after it go on
            finalize_unused(process)
            assert len(self.records().unfinalized()) < len(left)
        entries = ReplacementShards(self.disk.open, NOBODY).read()
        assert {(one.build, one.generation) for one in entries} <= {(declared.build, generation)}
        used = {own.shard for own in outcome.used.values()}
        assert self.disk.shards() - self.finalized - {MIGRATION_SHARD} == used, "shards are left over"
        assert self.violations == []

    def release(self, build: BuildVersion) -> Declaration:
        return next(one for one in self.releases if one.build == build)

    def newest_number(self) -> int:
        newest = self.stored().newest
        return 1 if newest is None else newest.minor

    def records(self) -> MappingRows:
        self.observer.refresh()
        return MappingRows(Transaction(REGISTRY, self.observer.view()))

    def stored(self) -> StoredBuiltins:
        return self.records().stored(self.releases[-1])

    def mapped(self) -> Mapping[str, int]:
        """The shards that the stash says are used."""
        records = self.records()
        rows = records.tx.rows(types.StorageMetadataKey)
        return {value.shard: key.id for key, value in rows}  # type: ignore[attr-defined]


def make_world(seed: int, kinds: tuple[Kind, ...] = KINDS) -> World:
    chance = random.Random(seed)  # noqa: S311 - no secret
    return World(chance, Author(chance).releases(RELEASES, BUILTINS), kinds)
