"""Migrations of the stash: one step at a time from version N to N + 1, each one commit.

`executor` runs the steps that are due. A step goes through these modules in order: `plan` (what will be read and
written), `step_runner` (begin, run, commit or fail), `step_execution` (files written and verified), `step_job` (its one
job on Spark), `partitions` (the rows of each task), `rewrite_task`, `rewriters`, `frame_input` and `frame_action` (the
work of an executor), `new_rows` (what stored rows become), `constraint_hashes` (unique fields and references across
tasks), `violations` (the rules). `recorder` writes the events of runs, `system_rows` reads and writes the engine's own
collections, and `undo` takes the newest steps back, each by `undo_step`; `contradictions` are rows of the engine that
the log contradicts.
"""
