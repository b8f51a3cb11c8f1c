"""Rules of builtin migration, each broken on purpose: what the simulation must notice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from threading import get_ident
from typing import Any

import pytest

from catalog.builtin import evolving, plan, run
from catalog.builtin.declared import BuiltinName, Instruction, Mechanism
from catalog.builtin.entries import Entries, Entry
from catalog.builtin.plan import Plan
from catalog.builtin.records import Fact, Records
from catalog.builtin.run import Outcome, Process, Used
from catalog.log.protocol import Fence
from catalog.project import Build
from catalog.shard.shard import Shard
from tests.builtin import world
from tests.builtin.world import KINDS, Kind

Break = Callable[[pytest.MonkeyPatch], None]


def own_entries_are_deleted(patch: pytest.MonkeyPatch) -> None:
    def is_earlier_than(self: Entry, build: Build, fence: Fence) -> bool:
        return (self.build, self.generation) <= (build, fence.generation)

    patch.setattr(Entry, "is_earlier_than", is_earlier_than)


def entries_of_higher_builds_are_deleted(patch: pytest.MonkeyPatch) -> None:
    def is_earlier_than(self: Entry, build: Build, fence: Fence) -> bool:
        return (self.build, self.generation) != (build, fence.generation)

    patch.setattr(Entry, "is_earlier_than", is_earlier_than)


def earlier_entries_are_kept(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "is_earlier_than", lambda *_: False)


def shards_of_earlier_entries_are_given_up_though_in_use(patch: pytest.MonkeyPatch) -> None:
    record = run._record  # noqa: SLF001

    def broken(records: Records, planned: Plan, used: Mapping[BuiltinName, Used], earlier: tuple[Entry, ...]) -> None:
        record(records, planned, used, earlier)
        records.condemn({entry.shard: "broken" for entry in earlier})

    patch.setattr(run, "_record", broken)


def replaced_shards_are_not_given_up(patch: pytest.MonkeyPatch) -> None:
    record = run._record  # noqa: SLF001

    def broken(records: Records, planned: Plan, used: Mapping[BuiltinName, Used], earlier: tuple[Entry, ...]) -> None:
        condemn = records.condemn
        replaced = {change.mapped.shard for change in planned.replaced}

        class Forgetful(Records):
            def condemn(self, shards: Mapping[str, str]) -> None:
                condemn({shard: why for shard, why in shards.items() if shard not in replaced})

        record(Forgetful(records.tx), planned, used, earlier)

    patch.setattr(run, "_record", broken)


def what_is_given_up_is_recorded_in_a_commit_of_its_own(patch: pytest.MonkeyPatch) -> None:
    record, clean = run._record, run.clean  # noqa: SLF001
    given_up: dict[int, dict[str, str]] = {}

    class Late(Records):
        def condemn(self, shards: Mapping[str, str]) -> None:
            given_up[get_ident()] = dict(shards)

    def record_late(records: Records, *args: Any) -> None:  # noqa: ANN401 - passed on
        record(Late(records.tx), *args)

    def clean_late(process: Process, spent: frozenset[Entry] = frozenset()) -> None:
        records = process.begin()
        records.condemn(given_up.pop(get_ident()))
        process.commit(records)
        clean(process, spent)

    patch.setattr(run, "_record", record_late)
    patch.setattr(run, "clean", clean_late)


def generations_share_their_entries(patch: pytest.MonkeyPatch) -> None:
    own = Entries.own

    def broken(self: Entries, *args: Any) -> Mapping[int, str]:  # noqa: ANN401 - passed on
        return own(replace(self, fence=Fence(0, 0)), *args)

    patch.setattr(Entries, "own", broken)


def builds_share_their_entries(patch: pytest.MonkeyPatch) -> None:
    own = Entries.own

    def broken(self: Entries, ids: Iterable[int], _build: Build, *args: Any) -> Mapping[int, str]:  # noqa: ANN401
        return own(self, ids, Build(0, 1), *args)

    patch.setattr(Entries, "own", broken)


def condemned_entries_are_used_again(patch: pytest.MonkeyPatch) -> None:
    own = Entries.own

    def broken(
        self: Entries, ids: Iterable[int], build: Build, _condemned: frozenset[str], new_id: Callable[[], str]
    ) -> Mapping[int, str]:
        return own(self, ids, build, frozenset(), new_id)

    patch.setattr(Entries, "own", broken)


def entries_are_added_whatever_others_added(patch: pytest.MonkeyPatch) -> None:
    append = Shard.append

    def broken(self: Shard, *args: Any, expected: int | None = None) -> int:  # noqa: ANN401 - passed on
        del expected
        return append(self, *args)

    patch.setattr(Shard, "append", broken)


def shards_are_made_before_their_entries(patch: pytest.MonkeyPatch) -> None:
    replacements = run._replacements  # noqa: SLF001

    def broken(process: Process, *args: Any) -> dict[BuiltinName, Used]:  # noqa: ANN401 - passed on
        def new_id() -> str:
            shard = process.new_id()
            process.made_shard(shard)
            return shard

        return replacements(replace(process, new_id=new_id), *args)

    patch.setattr(run, "_replacements", broken)


def readers_register_schemas(patch: pytest.MonkeyPatch) -> None:
    looked_at = run._looked_at  # noqa: SLF001

    def broken(process: Process, planned: Plan, condemned: frozenset[str]) -> Outcome:
        for change in planned.evolved:
            evolving.evolve(process.shard(change.mapped.shard), change, lambda: None)
        return looked_at(process, planned, condemned)

    patch.setattr(run, "_looked_at", broken)


def readers_give_up_with_their_shard(patch: pytest.MonkeyPatch) -> None:
    def broken(process: Process) -> Outcome:
        records = process.begin()
        planned = plan.plan(process.declared, records.stored(process.declared))
        return run._looked_at(process, planned, frozenset(records.unfinalized()))  # noqa: SLF001

    patch.setattr(world, "run_read_only", broken)


def leaders_evolve_without_looking_whether_they_lead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Process, "require_lead", lambda _self: None)


def leaders_do_not_say_that_they_begin(patch: pytest.MonkeyPatch) -> None:
    set_fact = Records.set_fact

    def broken(self: Records, fact: Fact, build: Build) -> None:
        if fact is not Fact.BEGUN:
            set_fact(self, fact, build)

    patch.setattr(Records, "set_fact", broken)


def the_version_is_written_first(patch: pytest.MonkeyPatch) -> None:
    announce = run._announce  # noqa: SLF001

    def broken(process: Process) -> None:
        announce(process)
        records = process.begin()
        planned = plan.plan(process.declared, records.stored(process.declared))
        run._finish(process, planned)  # noqa: SLF001

    patch.setattr(run, "_announce", broken)


def records_are_removed_before_their_shards_are_finalised(patch: pytest.MonkeyPatch) -> None:
    def broken(process: Process, spent: frozenset[Entry] = frozenset()) -> None:
        records = process.begin()
        condemned = frozenset(records.unfinalized())
        process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)
        records.forget(condemned)
        process.commit(records)
        for shard in sorted(condemned):
            process.made_shard(shard).finalize()

    patch.setattr(run, "clean", broken)


def entries_outlive_their_shards(patch: pytest.MonkeyPatch) -> None:
    def broken(process: Process, spent: frozenset[Entry] = frozenset()) -> None:
        condemned = frozenset(process.begin().unfinalized())
        for shard in sorted(condemned):
            process.made_shard(shard).finalize()
        records = process.begin()
        records.forget(condemned)
        process.commit(records)
        process.entries.delete(lambda entry: entry in spent or entry.shard in condemned)

    patch.setattr(run, "clean", broken)


def the_last_instruction_wins(patch: pytest.MonkeyPatch) -> None:
    def broken(
        instructions: Iterable[Instruction], after: Build | None, upto: Build
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
    own_entries_are_deleted: Where(42),
    entries_of_higher_builds_are_deleted: Where(),
    earlier_entries_are_kept: Where(),
    shards_of_earlier_entries_are_given_up_though_in_use: Where(),
    replaced_shards_are_not_given_up: Where(),
    what_is_given_up_is_recorded_in_a_commit_of_its_own: Where(24),
    generations_share_their_entries: Where(8),
    builds_share_their_entries: Where(),
    condemned_entries_are_used_again: Where(50),
    entries_are_added_whatever_others_added: Where(14),
    shards_are_made_before_their_entries: Where(),
    readers_register_schemas: Where(),
    readers_give_up_with_their_shard: Where(37, (Kind.RIVALS,)),
    leaders_evolve_without_looking_whether_they_lead: Where(24),
    leaders_do_not_say_that_they_begin: Where(),
    the_version_is_written_first: Where(),
    records_are_removed_before_their_shards_are_finalised: Where(2),
    entries_outlive_their_shards: Where(3),
    the_last_instruction_wins: Where(1),
    instructions_are_never_over: Where(),
}
