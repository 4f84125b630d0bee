"""torch.compile: its phases, the regions and graphs that it made, and what a compiled kernel was made of.

`compile_phases` finds the phases in a trace, `compile_regions` the regions, their calls and recompilations,
`artefacts` reads what a compiler wrote beside it, `compile` makes the tables.

Below stand the rooms device, host, steps and frame.
"""
