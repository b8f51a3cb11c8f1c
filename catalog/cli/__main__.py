"""`python -m catalog.cli` is the `catalog` command."""

from catalog.cli.main_group import main

main()
