"""Stores of any version, made up: rows that keep that version's constraints, in any number, the same for the same seed.

Knows no project: what descriptors and constraints do not say, a project says by its samples.
"""

from catalog.generator.generate import Generated, generate
from catalog.generator.statistics import CollectionStatistics, Statistics, measure

__all__ = ["CollectionStatistics", "Generated", "Statistics", "generate", "measure"]
