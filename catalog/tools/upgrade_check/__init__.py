"""Upgrade check: the whole upgrade of a store, tried on a scratch copy with every row verified.

- `check`: the check from the copy to the report: begin here
- `prescreen`: rows that are wrong before any step runs
- `trial`: one step on the scratch copy; rows that break a rule are set aside
- `field_scan`: the fields that rows have set
- `fields`: fields before and after a step, and warnings of those that empty
- `repetition`: every action run twice over a sample
- `references`: references followed from rows that were set aside
- `drop_rows`: rows deleted from the scratch copy
- `report`: the result, as plain data
"""
