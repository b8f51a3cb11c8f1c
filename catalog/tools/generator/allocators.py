"""The rows of `id_alloc` for a project that has no sample of them: allocators continue after the generated ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.tools.generator.sample import Sample

if TYPE_CHECKING:
    from catalog.tools.generator.draw import Draw

ALLOCATORS: Final = "id_alloc"


def allocator_sample(collections: Sequence[str]) -> Sample:
    """Return a sample with an allocator for each of these collections, by its name."""
    names = pa.array(collections, pa.string())
    return Sample(
        {
            "key.name": lambda draw: names.take(draw.numbers),
            "value.next_id": lambda draw: pa.array(_following(draw, collections), pa.uint64()).take(draw.numbers),
        },
        share=0.0,
        rows_min=len(collections),
        room=lambda _: len(collections),
        inserts=False,
        updates=False,
        deletes=False,
    )


def _following(draw: Draw, collections: Sequence[str]) -> list[int]:
    """Return for each collection the id after its last; ids start at 1."""
    return [draw.extent(name).total + 1 for name in collections]
