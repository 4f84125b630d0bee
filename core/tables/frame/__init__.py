"""What every analysis is made of: which slices count, device work as rows, and the one shape of tables.

A `Scope` says which slices of a trace count (a range, a step, lanes, a filter). `work_of(scope)` gives the
device work in it as a `Frame`, whose columns `frame_columns` defines once each; `shape` aggregates groups of
its rows to columns of a table. `schema` and `table` are what each analysis returns, `table_rows` its values
as text, `frames` the same for pandas, Arrow and polars, `cached` the results stored with an index. `kinds`
tells from its name what a kernel does, `work_device` is what it runs on; `metrics` are numbers whose names
last from run to run.

Nothing else of core/tables stands below but the rows of the registry.
"""
