"""Arguments of `open_catalog`: refused with what was meant, before anything is opened."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from catalog.engine.stash.arguments import choice, described, require_session
from catalog.engine.store.catalog import Mode
from catalog.errors import WrongArgumentError

_CALL = "open_catalog"
_ADDRESS_OF_SPARK = re.compile(r"local(?:\[.*\])?|local-cluster\[.*\]|yarn|(?:spark|k8s|mesos|sc)://.+")


def parse_mode(mode: object) -> Mode:
    if isinstance(mode, str) and mode in set(Mode):
        return Mode(mode)
    found = described(mode)
    fix = f"{choice(mode, Mode) if isinstance(mode, str) else ''}pass one of: {', '.join(Mode)}"
    raise WrongArgumentError(_CALL, "a mode of opening a store", found, fix)


def require_address(store: object) -> None:
    """Refuse anything that is no address: an empty one would be the folder that the process happens to run in."""
    if isinstance(text := _path(store), str) and text.strip():
        return
    fix = "name a folder, or a prefix of an object store such as s3://bucket/environment"
    found = "an empty one" if store in ("", b"") else described(store)
    raise WrongArgumentError(_CALL, "the address of a store", found, fix)


def require_options(options: object, generation: object, timeout_s: object, observer: object, project: object) -> None:
    """Refuse options that are none, each with the type that it has."""
    if not (options is None or (isinstance(options, Mapping) and _are_texts(options))):
        # They may hold credentials, and are not shown.
        found = "one with other values than texts" if isinstance(options, Mapping) else f"a {type(options).__name__}"
        _refuse("options", "a mapping of texts", found, 'pass storage options such as {"region": "eu-central-1"}')
    if not (generation is None or (_is_whole(generation) and 0 <= generation < 1 << 63)):  # type: ignore[operator] # whole
        _refuse("deploy_generation", "a whole number from 0 on", described(generation), "pass the number of the deploy")
    if not _is_time(timeout_s):
        _refuse("lock_timeout_s", "a number of seconds", described(timeout_s), "pass a number such as 60")
    if not (observer is None or callable(observer)):
        _refuse("observer", "a function", described(observer), "pass a function of one event of catalog.events")
    if not (isinstance(project, str) and project):
        _refuse("project", "the name of a package", described(project), "pass the name, such as 'catalog'")


def require_upgrade(spark: object, reapply: object) -> None:
    """Refuse a session that is none, an address that leads to none, and anything but a truth."""
    if not isinstance(spark, str):
        require_session(_CALL, spark)
    elif not _ADDRESS_OF_SPARK.fullmatch(spark):
        fix = "pass one such as 'local[2]', 'spark://host:7077' or 'sc://host:15002', or leave it out"
        _refuse("spark", "a session or the address of Spark", described(spark), fix)
    if not isinstance(reapply, bool):
        _refuse("reapply", "True or False", described(reapply), "pass True to apply again what was undone")


def _path(store: object) -> object:
    """Return the text of a path or address; of anything else, none."""
    try:
        return os.fspath(store)  # type: ignore[call-overload]  # anything can be given
    except Exception:  # noqa: BLE001 - of no path, or of the caller's own class
        return None


def _refuse(name: str, needed: str, found: str, fix: str) -> None:
    raise WrongArgumentError(_CALL, f"{needed} as {name}", found, fix)


def _are_texts(options: Mapping[object, object]) -> bool:
    return all(isinstance(one, str) for pair in options.items() for one in pair)


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and float(value) >= 0
    except OverflowError:
        return False


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
