"""The migrations, one module `vN_to_vM` per step, with M = N + 1.

A migration imports the frozen types of its two versions and nothing else of the program, so that it means the same
after the rest has changed. Only the dispatch in `catalog.upgrade` imports these modules, and only when a store needs
them; this package imports none of them and holds no shared code.
"""
