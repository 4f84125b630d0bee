"""What a trace is about, in rows that lead to places: device work, idle time, ranks, host work and more.

`rows` has their shape and those that are stored, `overview` counts them from the tables of the rooms below,
`pair_rows` says what changed from one run to another.
"""
