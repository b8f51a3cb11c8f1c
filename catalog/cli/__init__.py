"""The `catalog` command: one plain function per verb."""
