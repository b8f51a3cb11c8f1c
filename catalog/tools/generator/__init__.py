"""Synthetic stores of any version and size, whose rows keep that version's constraints; equal seeds, equal stores.

- `generate`: writes a store: begin here
- `plan`: numbers of rows, and the changes after the first commit
- `draw`: the rows of a collection, as columns
- `random_columns`: columns of random values
- `texts`: words and longer texts
- `sample`: a project's hints for the rows of a collection
- `shape`: row counts and sizes measured on a store, for `--like`
- `allocators`: the rows of `id_alloc`
- `legacy`: rows of versions that have no descriptors

Knows no project: hints beyond descriptors and constraints come from the project's samples.
"""

from catalog.tools.generator.generate import Generated, generate
from catalog.tools.generator.shape import CollectionShape, StoreShape, measure

__all__ = ["CollectionShape", "Generated", "StoreShape", "generate", "measure"]
