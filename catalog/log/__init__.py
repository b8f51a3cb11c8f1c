"""The log: atomic commits in one order, on Delta Lake or in memory, and the storage beneath."""
