"""Columnar collections whose schema evolves, each a log of its own. Begin with `shard.Shard` and `schema.Schema`."""
