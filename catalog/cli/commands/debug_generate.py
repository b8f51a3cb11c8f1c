"""`catalog debug generate`: a store with random rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from catalog.cli.answer import CommandResult
from catalog.errors import UsageError
from catalog.tools.generator import generate as generate_store
from catalog.tools.generator.shape import StoreShape

if TYPE_CHECKING:
    from catalog.cli.app import Invocation


def generate(run: Invocation, *, version: int | None, rows: int, seed: int, like: str | None) -> CommandResult:
    """Generate a store at an empty place."""
    target = run.target
    project = target.project
    wanted = project.minimum if version is None else version
    if not project.minimum <= wanted <= project.current:
        raise UsageError(
            f"there is no version {wanted} to generate a store of",
            f"this build knows versions {project.minimum} to {project.current}",
            "give --version one of these",
        )
    shape = None if like is None else _read_shape(like)
    generated = generate_store(project, target.store, wanted, rows, seed, like=shape, options=target.options)
    return CommandResult({"generated": generated})


def _read_shape(like: str) -> StoreShape:
    try:
        found: Any = json.loads(Path(like).read_text(encoding="utf-8"))
        shape = found.get("data", {}).get("shape", found) if "data" in found else found
        return StoreShape.from_json(json.dumps(shape))
    except OSError as error:
        raise UsageError(
            f"{like} cannot be read: {error.strerror}", "--like names a file", "correct the path"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{like} is not the shape of a store: {error}",
            "--like takes the measured shape of a store",
            "make it with `catalog debug stats --shape --format json`",
        ) from error
