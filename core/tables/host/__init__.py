"""What the host did: its operators and calls, which call lies in which, the slices of a range and of a
search.

`op_events` and `host_columns` are the host's slices as columns, `call_columns` its calls of some names as a
frame, of which tables are made as of device work, `op_sums` and `ops` PyTorch's key_averages,
`tree` and `icicle` the call tree as a table and drawn, `range_table` and `slice_table` slices summed up and
one by one, `allocations` what allocators recorded, `sections` the sections of a SambaTune report.

Below stand the rooms steps and frame.
"""
