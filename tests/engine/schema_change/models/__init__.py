"""Exhaustive models of online schema change: small state machines whose every interleaving is visited.

`index_model` builds and drops an index, `unique_model` makes a unique constraint, `column_model` adds, fills, drops and
scrubs a column, each against short transactions and one bulk write. They are the reference of the protocol: one
function per move, one function per promise, and one flag of `Rules` per rule that can be broken.
"""
