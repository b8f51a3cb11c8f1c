"""What of a scratch copy's rows is at fault before any step has run; on the driver, and only if there is something.

What is found is set aside, so that steps do not trip over it and tell it again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from catalog.codec import bounded_batches
from catalog.engine.cutting import cut
from catalog.engine.journal import Journal
from catalog.engine.judging import Judge, Rows
from catalog.engine.links import Links
from catalog.engine.made import Keys, add_keys
from catalog.engine.naming import Naming
from catalog.engine.parts import divide, live_rows
from catalog.engine.prints import Wanted
from catalog.engine.rewriting import Rewrite
from catalog.engine.tasks import Found, Setting, Task, gather, kinds_of, run_task
from catalog.engine.types import ENGINE_COLLECTIONS, registry_of
from catalog.log.protocol import Operation
from catalog.project import Project
from catalog.stash.view import Bases, load_view


@dataclass(slots=True)
class Sifted:
    dead: Keys = field(default_factory=dict)
    """Rows that were taken out, for whatever reason."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """How many were at fault, by collection."""
    left_out: Counter[str] = field(default_factory=Counter)
    """How many were taken out because they refer to such rows."""


def sift(journal: Journal, project: Project) -> Sifted:
    """Take out the rows of a protobuf version that cannot be read, are there twice or refer to nothing."""
    sifted, links = Sifted(), Links(project, journal.version)
    _cut_unknown(journal, project, sifted)
    unread = _unreadable(journal, project)
    sifted.set_aside.update({name: len(keys) for name, keys in unread.items()})
    add_keys(sifted.dead, unread)
    cut(journal, unread)
    version = journal.version
    registry, constraints = registry_of(project, version), project.constraints.at(version)
    naming = Naming(journal.log, journal.state, (), registry, constraints, sifted.dead)
    named = naming.name(_findings(journal, project), is_thorough=True)
    sifted.set_aside += named.set_aside
    add_keys(sifted.dead, named.spoilt)
    cut(journal, named.spoilt, named.doubled)
    if sifted.dead:
        left = links.left_out(load_view(Bases(journal.log), journal.state), sifted.dead)
        sifted.left_out.update({name: len(keys) for name, keys in left.items()})
        add_keys(sifted.dead, left)
        cut(journal, left)
    return sifted


def _cut_unknown(journal: Journal, project: Project, sifted: Sifted) -> None:
    """Take out whole collections that the version does not know."""
    known = registry_of(project, journal.version).by_name
    files = [file for file in journal.state.files.values() if file.collection not in known]
    for name in sorted({file.collection for file in files}):
        sifted.set_aside[name] = live_rows(journal.log, [file for file in files if file.collection == name])
    if files:
        journal.append(Operation.TRANSACTION, (), {}, removes=files)


def _unreadable(journal: Journal, project: Project) -> Keys:
    registry, judge = registry_of(project, journal.version), Judge("", sample=1, faults_max=None)
    view = load_view(Bases(journal.log), journal.state)
    for name in _stored(journal):
        reading = Rewrite(registry.named(name), registry, judge)
        for table in view.tables(name):
            for batch in bounded_batches(table):
                reading.read(Rows(batch["key"], batch["value"]))
    return judge.faulty


def _findings(journal: Journal, project: Project) -> list[Found]:
    """What prints say of rows that can all be read."""
    version, ts = journal.version, journal.state.version
    wanted = {name: Wanted.all_of(project.constraints.at(version), name) for name in _stored(journal)}
    setting = Setting(journal.log, project.name, version, version, journal.fence, ts, ts + 1, wanted=wanted)
    kinds, blobs = kinds_of(wanted), list[bytes]()
    for name in wanted:
        for part in divide(journal.log, journal.state, name).parts:
            _, emission = run_task(setting, Task(part))
            blobs += [blob for _, blob in emission.packed(kinds, buckets=1)]
    return gather(kinds, None, blobs)


def _stored(journal: Journal) -> list[str]:
    return sorted({file.collection for file in journal.state.files.values()} - ENGINE_COLLECTIONS)
