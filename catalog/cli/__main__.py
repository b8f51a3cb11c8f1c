"""`python -m catalog.cli` is the `catalog` command."""

from catalog.cli.main import main

main()
