"""`catalog debug copy`: a consistent copy of a live store."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from catalog.cli.answer import CommandResult
from catalog.cli.params import pairs
from catalog.engine.log.place import StorePlace
from catalog.errors import UsageError
from catalog.errors.redaction import secrets_of
from catalog.tools.copy import Copied, copy_store

if TYPE_CHECKING:
    from catalog.cli.app import Invocation
    from catalog.cli.context import StoreTarget
    from catalog.engine.store.scratch_copy import ProgressCallback
    from catalog.tools.anonymise import Anonymiser


def copy(  # noqa: PLR0913 - the options of the command
    run: Invocation,
    *,
    source: str,
    target: str,
    target_option: tuple[str, ...],
    anonymise: bool,
    anonymise_key: str | None,
    without_tables: bool,
) -> CommandResult:
    """Copy a store to an empty place; the copy is reached with the options of its source and its own."""
    options = pairs("--target-option", target_option)
    run.screen.secrets += secrets_of(options, source, target)
    if anonymise_key is not None and not anonymise:
        raise UsageError(
            "--anonymise-key was given without --anonymise",
            "the copy would show every name",
            "add --anonymise, or leave the key out",
        )
    key = os.environ.get("CATALOG_ANONYMISE_KEY") or None if anonymise_key is None else anonymise_key
    run.screen.secrets += () if key is None else (key,)
    store = run.target_at(source)
    rewrite = _anonymiser(store, key) if anonymise else None
    with run.screen.row_progress(f"copying to {target}") as progress:
        copied = copy_to(store, target, options, rewrite, progress, with_tables=not without_tables)
    return CommandResult({"copied": copied, "anonymised": anonymise})


def copy_to(
    store: StoreTarget,
    target: str,
    options: Mapping[str, str] | None = None,
    rewrite: Anonymiser | None = None,
    progress: ProgressCallback | None = None,
    *,
    with_tables: bool = True,
) -> Copied:
    """Copy a store to an address; `progress` receives the rows written and the rows to copy."""
    place = StorePlace.at(store.project, target, {**store.options, **(options or {})})
    return copy_store(store.place, place, progress=progress, rewrite=rewrite, with_tables=with_tables)


def _anonymiser(store: StoreTarget, key: str | None) -> Anonymiser:
    from catalog.tools.anonymise import Anonymiser, require_strong  # noqa: PLC0415 - few copies are anonymised

    try:
        require_strong(key)
    except ValueError as error:
        raise UsageError(
            f"the key of an anonymised copy is too short: {error}",
            "the same names become the same replacements under a key, and under no other",
            "give one of 16 characters or more, or none",
        ) from error
    return Anonymiser.of(store.place, key)
