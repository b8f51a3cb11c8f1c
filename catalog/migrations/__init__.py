"""The steps from one version of the stash to the next, each a module `vN_to_vM` with M = N + 1.

A step knows the frozen types of its two neighbours and nothing of the rest of the program, for it has to mean
the same long after the rest has changed. Only the dispatch in `catalog.upgrade` imports the modules, and only
when a store needs them; so this package imports none of them, and nothing that steps might share lives here.
"""
