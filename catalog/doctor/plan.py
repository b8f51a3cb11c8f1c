"""Which examinations a subject needs: the machine always, a place if there is one, a store if the place has one."""

from __future__ import annotations

from catalog.doctor.examination import Examination, Subject
from catalog.doctor.machine import (
    look_at_java,
    look_at_packages,
    look_at_python,
    look_at_scratch,
    look_at_spark,
    look_at_types,
)
from catalog.doctor.place import (
    look_at_address,
    look_at_clock,
    look_at_commits,
    look_at_rights,
    look_at_room,
)
from catalog.doctor.store import (
    look_at_identity,
    look_at_leader,
    look_at_log,
    look_at_migrations,
    look_at_version,
)

_MACHINE = (
    Examination("python", look_at_python),
    Examination("packages", look_at_packages),
    Examination("types", look_at_types),
    Examination("java", look_at_java),
    Examination("spark", look_at_spark, after="java"),
    Examination("scratch", look_at_scratch),
    Examination("clock", look_at_clock),
)
_PLACE = (Examination("address", look_at_address), Examination("rights", look_at_rights, after="address"))
_DISK = (Examination("disk", look_at_room, after="address"),)
_STORE = (
    Examination("store", look_at_identity, after="address"),
    Examination("log", look_at_log, after="store"),
    Examination("commits", look_at_commits, after="log"),
    Examination("version", look_at_version, after="log"),
    Examination("migrations", look_at_migrations, after="version"),
    Examination("leader", look_at_leader, after="log"),
)


def plan(subject: Subject) -> tuple[Examination, ...]:
    """What is to be looked at, in the order in which problems are best mended."""
    if subject.store is None:
        return _MACHINE
    return (*_MACHINE, *_PLACE, *(() if subject.is_remote else _DISK), *_STORE)
