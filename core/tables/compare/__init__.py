"""Two sides of one kind compared: ranges, tables, runs, and whether a change is more than noise.

`comparable` says where two sides cannot be compared, `compare` compares two tables, `summary` is what a run
leaves for later (a baseline), `diff` compares summaries of two or many runs, `diff_trees` two call trees,
`run_pair` shows two runs as one trace, `run_changes` says of two whole runs which kernels and ops changed,
`run_names` what runs are called beside each other.

Below stand the rooms device, host, steps and frame.
"""
