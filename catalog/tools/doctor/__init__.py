"""Checks of a machine, a place and a store before they are used; nothing is changed.

- `check_list`: the list of all checks, in their order
- `runner`: runs checks; one that fails stops no other
- `machine_checks`: Python, packages, generated types, Java, Spark, the archive of its classes, free space
- `requirements`: the requirements of the package against the installed versions
- `storage_checks`: the place of a store: access, free space, clocks
- `store_checks`: the store: identity, log, version, migrations, leader
"""
