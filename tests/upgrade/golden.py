"""The golden files: what a new store of each version holds, what each step makes of generated rows, and which builtins
the last release had.

`./dev golden` runs this module, and writes what the newest version or release still lacks. With names it makes those
again: `initial`, `builtins`, or a step such as `v17_to_v18`. A step that was released makes the same of the same rows
for ever; to make its digest again is refused as long as it does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from google.protobuf import json_format

from catalog import open_catalog
from catalog.builtins import DECLARED
from catalog.engine.base.project import BuildVersion
from catalog.engine.builtins.declaration import BuiltinName, Declaration
from catalog.engine.builtins.plan import StoredBuiltin, StoredBuiltins, plan
from catalog.engine.migrate.executor import upgrade
from catalog.engine.migrate.step_runner import StepRunner
from catalog.engine.migrate.system_rows import SystemRows
from catalog.engine.spark.jobs import SparkJobs
from catalog.engine.spark.session import find_session
from catalog.engine.stash.recorded_types import record_name
from catalog.engine.stash.registry import Registry, encode
from catalog.engine.store.catalog import Catalog
from catalog.engine.store.probed_place import PROBED
from catalog.errors import UninstructedSchemaError
from catalog.objects import ConfigKey
from catalog.tools.generator import generate
from catalog.upgrade import PROJECT
from catalog.version import BUILD
from tests.upgrade.stores import digest, log_of, rows_at

ROWS, SEED = 1_500, 22
COMMAND = "./dev golden"
FOLDER = Path(__file__).parents[1] / "golden"
INITIAL = FOLDER / f"initial_v{PROJECT.current}.json"
INITIALISED_TS = 2
"""After the log is made and its fence taken; what follows is about builtins."""
DIGESTS = FOLDER / "digests.json"
FINGERPRINTS = FOLDER / "builtin_fingerprints.json"
HASHES = Path(__file__).parents[2] / "proto" / "hashes.json"


@dataclass(frozen=True, slots=True)
class StepDigests:
    """Of the rows that are generated for a step, and of what it makes of them."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class ReleasedBuiltins:
    """What the last release had."""

    release: str
    builtins: dict[str, dict[str, Any]]
    """By their names as people know them: the three parts of each, and its fingerprint."""


class FrozenStepError(Exception):
    """A released step no longer makes of rows what it made of them."""


def step_name(version: int) -> str:
    return f"v{version}_to_v{version + 1}"


STEPS = {step_name(version): version for version in range(PROJECT.minimum, PROJECT.current)}


def dump(catalog: Catalog, as_of: int | None = None) -> dict[str, list[Any]]:
    """Every row but the fence and what names the build and the place, as JSON."""
    view, registry = catalog._stash.view(as_of), catalog._stash.registry  # noqa: SLF001
    own = {encode(ConfigKey(name=name)) for name in (record_name(catalog.version), PROBED)}
    return {
        name: [
            [json_format.MessageToDict(part, preserving_proto_field_name=True) for part in collection.decode(*row)]
            for row in view.rows(name)
            if name != "config" or row[0] not in own
        ]
        for name, collection in sorted(registry.by_name.items())
        if name != "fence_token"
    }


def read_digests() -> dict[str, StepDigests]:
    return {name: StepDigests(**entry) for name, entry in json.loads(DIGESTS.read_text(encoding="utf-8")).items()}


def lacking() -> list[str]:
    """What the newest version still lacks."""
    known = read_digests()
    fixed = [] if INITIAL.is_file() else ["initial"]
    if is_release(BUILD) and read_released().release != BUILD:
        fixed.append("builtins")
    return [*fixed, *(name for name in STEPS if name not in known)]


def is_release(build: str) -> bool:
    """Whether a build is given to users: its version is a number and nothing else."""
    return str(BuildVersion.parse(build)) == build


def read_released() -> ReleasedBuiltins:
    return ReleasedBuiltins(**json.loads(FINGERPRINTS.read_text(encoding="utf-8")))


def require_instructions(declared: Declaration, released: ReleasedBuiltins) -> None:
    """Refuse a schema that changed since the last release, and a builtin that went, without an instruction."""
    names = {
        text: BuiltinName(entry["schema_name"], entry["object_type"], entry["object_name"])
        for text, entry in released.builtins.items()
    }
    mapped = {names[text]: StoredBuiltin(1, entry["fingerprint"], "s1") for text, entry in released.builtins.items()}
    planned = plan(declared, StoredBuiltins(BuildVersion.parse(released.release), None, mapped))
    present = {builtin.name for builtin in declared.builtins}
    for text, name in names.items():
        if name not in present and name not in planned.given_up:
            fingerprint = mapped[name].fingerprint
            raise UninstructedSchemaError(text, fingerprint, "none", released.release, str(declared.build))


def write_released(declared: Declaration) -> None:
    """Record the builtins of a release, as soon as the build is one."""
    require_instructions(declared, read_released())
    builtins = {
        str(one.name): {**asdict(one.name), "fingerprint": one.fingerprint}
        for one in sorted(declared.builtins, key=lambda one: one.name)
    }
    content = asdict(ReleasedBuiltins(str(declared.build), builtins))
    FINGERPRINTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_initial() -> None:
    with TemporaryDirectory() as folder, open_catalog(folder) as catalog:
        INITIAL.write_text(
            json.dumps(dump(catalog, INITIALISED_TS), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )


def write_digests(names: Iterable[str]) -> None:
    """Take each step on generated rows, and record what came of it."""
    known = read_digests()
    for name in names:
        made = take_step(STEPS[name])
        release = json.loads(HASHES.read_text(encoding="utf-8"))["migrations"][name]["released"]
        before = known.get(name)
        if before is not None and release is not None and made.before == before.before and made != before:
            raise FrozenStepError(
                f"{name} was released in {release}, and makes other rows of the same rows now: undo the edit, and say "
                "what should be different in a new version"
            )
        known[name] = made
    content = {name: asdict(known[name]) for name in STEPS if name in known}
    DIGESTS.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def take_step(version: int) -> StepDigests:
    """Generate the rows of a version and take the one step that leads on from it."""
    with TemporaryDirectory() as folder:
        store = Path(folder, "store")
        generate(PROJECT, store, version, ROWS, SEED)
        before, log = rows_at(store), log_of(store)
        state = log.state(log.verify())
        journal = SystemRows(log, Registry.of(PROJECT.current_types), state.fence, state)
        runner = StepRunner(journal, PROJECT, (str(store), {}), SparkJobs(lambda: find_session(None)))
        upgrade(runner, until=version + 1)
        return StepDigests(digest(before), digest(rows_at(store)))


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=COMMAND, description="Write the golden files that are lacking, or some again."
    )
    parser.add_argument(
        "names", nargs="*", help="initial, builtins, or a step such as v17_to_v18; none: whatever is lacking"
    )
    names = parser.parse_args(words).names or lacking()
    if unknown := set(names) - {"initial", "builtins", *STEPS}:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are initial, builtins, {', '.join(STEPS)}")
    if "builtins" in names and not is_release(BUILD):
        parser.error(f"{BUILD} is no release: its builtins may still change")
    if "initial" in names:
        write_initial()
        print(f"wrote tests/golden/{INITIAL.name}: review what a new store holds")
    if "builtins" in names:
        write_released(DECLARED)
        print(f"wrote tests/golden/{FINGERPRINTS.name}: what {BUILD} has")
    if steps := [name for name in names if name in STEPS]:
        try:
            write_digests(steps)
        except FrozenStepError as error:
            print(error)
            return 1
        print(f"wrote tests/golden/{DIGESTS.name}: {', '.join(steps)}")
    if not names:
        print("every golden file is there")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
