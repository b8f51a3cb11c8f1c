"""The list of checks: the machine always, a place if one is named, a store if the place has one."""

from __future__ import annotations

from catalog.tools.doctor.machine_checks import (
    check_archive,
    check_java,
    check_packages,
    check_python,
    check_scratch,
    check_spark,
    check_types,
)
from catalog.tools.doctor.runner import Check, DoctorContext
from catalog.tools.doctor.storage_checks import (
    check_address,
    check_clock,
    check_commits,
    check_rights,
    check_room,
)
from catalog.tools.doctor.store_checks import (
    check_builtins,
    check_identity,
    check_leader,
    check_log,
    check_migrations,
    check_version,
)

_MACHINE = (
    Check("python", check_python),
    Check("packages", check_packages),
    Check("types", check_types),
    Check("java", check_java),
    Check("spark", check_spark, after="java"),
    Check("archive", check_archive, after="spark"),
    Check("scratch", check_scratch),
    Check("clock", check_clock),
)
_PLACE = (Check("address", check_address), Check("rights", check_rights, after="address"))
_DISK = (Check("disk", check_room, after="address"),)
_STORE = (
    Check("store", check_identity, after="address"),
    Check("log", check_log, after="store"),
    Check("commits", check_commits, after="log"),
    Check("version", check_version, after="log"),
    Check("migrations", check_migrations, after="version"),
    Check("builtins", check_builtins, after="version"),
    Check("leader", check_leader, after="log"),
)


def plan(subject: DoctorContext) -> tuple[Check, ...]:
    """Return the checks in the order in which problems are best corrected."""
    if subject.store is None:
        return _MACHINE
    return (*_MACHINE, *_PLACE, *(() if subject.is_remote else _DISK), *_STORE)
