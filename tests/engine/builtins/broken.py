"""Rules of builtin migration, each broken on purpose: what the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from threading import get_ident
from typing import Any

import pytest

from catalog.engine.base.fence import Fence
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins import migrate, plan, schema_evolution
from catalog.engine.builtins.declaration import BuiltinName, Instruction, Mechanism
from catalog.engine.builtins.mapping_rows import ConfigKey, MappingRows
from catalog.engine.builtins.migrate import BuiltinMigrationResult, BuiltinMigrator, ResolvedBuiltin
from catalog.engine.builtins.plan import BuiltinPlan
from catalog.engine.builtins.replacement_shards import ReplacementShard, ReplacementShards
from catalog.engine.shard.shard import Shard
from tests.engine.builtins import world
from tests.engine.builtins.world import KINDS, Kind

Break = Callable[[pytest.MonkeyPatch], None]


def own_entries_are_deleted(patch: pytest.MonkeyPatch) -> None:
    def is_earlier_than(self: ReplacementShard, build: BuildVersion, fence: Fence) -> bool:
        return (self.build, self.generation) <= (build, fence.generation)

    patch.setattr(ReplacementShard, "is_earlier_than", is_earlier_than)


def entries_of_higher_builds_are_deleted(patch: pytest.MonkeyPatch) -> None:
    def is_earlier_than(self: ReplacementShard, build: BuildVersion, fence: Fence) -> bool:
        return (self.build, self.generation) != (build, fence.generation)

    patch.setattr(ReplacementShard, "is_earlier_than", is_earlier_than)


def earlier_entries_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplacementShard, "is_earlier_than", lambda *_: False)


def shards_of_earlier_entries_are_given_up_though_in_use(patch: pytest.MonkeyPatch) -> None:
    record = migrate._record  # noqa: SLF001

    def broken(
        records: MappingRows,
        planned: BuiltinPlan,
        used: Mapping[BuiltinName, ResolvedBuiltin],
        earlier: tuple[ReplacementShard, ...],
    ) -> None:
        record(records, planned, used, earlier)
        records.condemn({entry.shard: "broken" for entry in earlier})

    patch.setattr(migrate, "_record", broken)


def replaced_shards_are_not_given_up(patch: pytest.MonkeyPatch) -> None:
    record = migrate._record  # noqa: SLF001

    def broken(
        records: MappingRows,
        planned: BuiltinPlan,
        used: Mapping[BuiltinName, ResolvedBuiltin],
        earlier: tuple[ReplacementShard, ...],
    ) -> None:
        condemn = records.condemn
        replaced = {change.mapped.shard for change in planned.replaced}

        class Forgetful(MappingRows):
            def condemn(self, shards: Mapping[str, str]) -> None:
                condemn({shard: why for shard, why in shards.items() if shard not in replaced})

        record(Forgetful(records.tx), planned, used, earlier)

    patch.setattr(migrate, "_record", broken)


def what_is_given_up_is_recorded_in_a_commit_of_its_own(patch: pytest.MonkeyPatch) -> None:
    record, clean = migrate._record, migrate.finalize_unused  # noqa: SLF001
    given_up: dict[int, dict[str, str]] = {}

    class Late(MappingRows):
        def condemn(self, shards: Mapping[str, str]) -> None:
            given_up[get_ident()] = dict(shards)

    def record_late(records: MappingRows, *args: Any) -> None:  # noqa: ANN401 - passed on
        record(Late(records.tx), *args)

    def clean_late(process: BuiltinMigrator, spent: frozenset[ReplacementShard] = frozenset()) -> None:
        records = process.begin()
        records.condemn(given_up.pop(get_ident()))
        process.commit(records)
        clean(process, spent)

    patch.setattr(migrate, "_record", record_late)
    patch.setattr(migrate, "finalize_unused", clean_late)


def generations_share_their_entries(patch: pytest.MonkeyPatch) -> None:
    own = ReplacementShards.own

    def broken(self: ReplacementShards, *args: Any) -> Mapping[int, str]:  # noqa: ANN401 - passed on
        return own(replace(self, fence=Fence(0, 0)), *args)

    patch.setattr(ReplacementShards, "own", broken)


def builds_share_their_entries(patch: pytest.MonkeyPatch) -> None:
    own = ReplacementShards.own

    def broken(self: ReplacementShards, ids: Iterable[int], _build: BuildVersion, *args: Any) -> Mapping[int, str]:  # noqa: ANN401
        return own(self, ids, BuildVersion(0, 1), *args)

    patch.setattr(ReplacementShards, "own", broken)


def condemned_entries_are_used_again(patch: pytest.MonkeyPatch) -> None:
    own = ReplacementShards.own

    def broken(
        self: ReplacementShards,
        ids: Iterable[int],
        build: BuildVersion,
        _condemned: frozenset[str],
        new_id: Callable[[], str],
    ) -> Mapping[int, str]:
        return own(self, ids, build, frozenset(), new_id)

    patch.setattr(ReplacementShards, "own", broken)


def entries_are_added_whatever_others_added(patch: pytest.MonkeyPatch) -> None:
    append = Shard.append

    def broken(self: Shard, *args: Any, expected: int | None = None) -> int:  # noqa: ANN401 - passed on
        del expected
        return append(self, *args)

    patch.setattr(Shard, "append", broken)


def shards_are_made_before_their_entries(patch: pytest.MonkeyPatch) -> None:
    replacements = migrate._replacements  # noqa: SLF001

    def broken(process: BuiltinMigrator, *args: Any) -> dict[BuiltinName, ResolvedBuiltin]:  # noqa: ANN401 - passed on
        def new_id() -> str:
            shard = process.new_id()
            process.made_shard(shard)
            return shard

        return replacements(replace(process, new_id=new_id), *args)

    patch.setattr(migrate, "_replacements", broken)


def readers_register_schemas(patch: pytest.MonkeyPatch) -> None:
    looked_at = migrate._looked_at  # noqa: SLF001

    def broken(process: BuiltinMigrator, planned: BuiltinPlan, condemned: frozenset[str]) -> BuiltinMigrationResult:
        for change in planned.evolved:
            schema_evolution.evolve(process.shard(change.mapped.shard), change, lambda: None)
        return looked_at(process, planned, condemned)

    patch.setattr(migrate, "_looked_at", broken)


def readers_give_up_with_their_shard(patch: pytest.MonkeyPatch) -> None:
    def broken(process: BuiltinMigrator) -> BuiltinMigrationResult:
        records = process.begin()
        planned = plan.plan(process.declared, records.stored(process.declared))
        return migrate._looked_at(process, planned, frozenset(records.unfinalized()))  # noqa: SLF001

    patch.setattr(world, "run_read_only", broken)


def leaders_evolve_without_looking_whether_they_lead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BuiltinMigrator, "require_lead", lambda _self: None)


def leaders_do_not_say_that_they_begin(patch: pytest.MonkeyPatch) -> None:
    set_fact = MappingRows.set_fact

    def broken(self: MappingRows, fact: ConfigKey, build: BuildVersion) -> None:
        if fact is not ConfigKey.BEGUN:
            set_fact(self, fact, build)

    patch.setattr(MappingRows, "set_fact", broken)


def the_version_is_written_first(patch: pytest.MonkeyPatch) -> None:
    announce = migrate._announce  # noqa: SLF001

    def broken(process: BuiltinMigrator) -> None:
        announce(process)
        records = process.begin()
        planned = plan.plan(process.declared, records.stored(process.declared))
        migrate._finish(process, planned, None)  # noqa: SLF001

    patch.setattr(migrate, "_announce", broken)


def records_are_removed_before_their_shards_are_finalised(patch: pytest.MonkeyPatch) -> None:
    def broken(process: BuiltinMigrator, spent: frozenset[ReplacementShard] = frozenset()) -> None:
        records = process.begin()
        condemned = frozenset(records.unfinalized())
        process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)
        records.forget(condemned)
        process.commit(records)
        for shard in sorted(condemned):
            process.made_shard(shard).finalize()

    patch.setattr(migrate, "finalize_unused", broken)


def entries_outlive_their_shards(patch: pytest.MonkeyPatch) -> None:
    def broken(process: BuiltinMigrator, spent: frozenset[ReplacementShard] = frozenset()) -> None:
        condemned = frozenset(process.begin().unfinalized())
        for shard in sorted(condemned):
            process.made_shard(shard).finalize()
        records = process.begin()
        records.forget(condemned)
        process.commit(records)
        process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)

    patch.setattr(migrate, "finalize_unused", broken)


def the_last_instruction_wins(patch: pytest.MonkeyPatch) -> None:
    def broken(
        instructions: Iterable[Instruction], after: BuildVersion | None, upto: BuildVersion
    ) -> Mapping[BuiltinName, Mechanism]:
        due = [one for one in instructions if (after is None or one.build > after) and one.build <= upto]
        return {one.name: one.mechanism for one in due}

    patch.setattr(plan, "select", broken)


def instructions_are_never_over(patch: pytest.MonkeyPatch) -> None:
    select = plan.select
    patch.setattr(plan, "select", lambda instructions, _after, upto: select(instructions, None, upto))


@dataclass(frozen=True, slots=True)
class Where:
    """Where to look for what a broken rule does: far from it, that costs time and proves no more."""

    first_seed: int = 0
    kinds: tuple[Kind, ...] = KINDS


BROKEN: dict[Break, Where] = {
    own_entries_are_deleted: Where(83),
    entries_of_higher_builds_are_deleted: Where(1),
    earlier_entries_are_kept: Where(),
    shards_of_earlier_entries_are_given_up_though_in_use: Where(),
    replaced_shards_are_not_given_up: Where(),
    what_is_given_up_is_recorded_in_a_commit_of_its_own: Where(98),
    generations_share_their_entries: Where(36),
    builds_share_their_entries: Where(1),
    condemned_entries_are_used_again: Where(100),
    entries_are_added_whatever_others_added: Where(14),
    shards_are_made_before_their_entries: Where(1),
    readers_register_schemas: Where(1),
    readers_give_up_with_their_shard: Where(41, (Kind.RIVALS,)),
    leaders_evolve_without_looking_whether_they_lead: Where(779),
    leaders_do_not_say_that_they_begin: Where(2),
    the_version_is_written_first: Where(),
    records_are_removed_before_their_shards_are_finalised: Where(11),
    entries_outlive_their_shards: Where(91),
    the_last_instruction_wins: Where(1),
    instructions_are_never_over: Where(1),
}
