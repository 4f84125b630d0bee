"""What the host did: its operators and calls, which call lies in which, the slices of a range and of a
search.

`op_events` and `host_columns` are the host's slices as columns, `op_sums` and `ops` PyTorch's key_averages,
`tree` and `icicle` the call tree as a table and drawn, `range_table` and `slice_table` slices summed up and
one by one, `allocations` what allocators recorded, `sections` the sections of a SambaTune report.

Below stand the rooms steps and frame.
"""
