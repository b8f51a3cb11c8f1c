"""The rows of `id_alloc` in a store whose project has no sample of them: ids go on after those that were made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from catalog.generator.samples import Sample

if TYPE_CHECKING:
    from catalog.generator.draw import Draw

ALLOCATORS: Final = "id_alloc"


def allocator_sample(collections: Sequence[str]) -> Sample:
    """An allocator for each of these collections, by its name."""
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
    """Of each collection the id after the last that it ever had; ids are counted from 1."""
    return [draw.extent(name).total + 1 for name in collections]
