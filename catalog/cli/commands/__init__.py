"""The commands, one module each, named after the command; `catalog debug X` is `debug_X`. They print nothing.

A module has the result as a dataclass and the function that computes it. It is imported when its command runs.
"""
