"""Several ranks: what each did, which is last in each step, and groups of them (host, tensor or pipeline
parallel).

`ranks` gathers the facts, `rank_groups` the groups, `rank_tables` makes the tables. Which rank keeps the
others waiting is asked of the findings, so that both name the same one.

Below stand findings, and the rooms device, peers, steps and frame.
"""
