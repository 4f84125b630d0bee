"""The analyses: each computes tables of a whole trace, of a range or of a step.

`registry` has a row for each; from a row come its command, JSON, panel, Python method and documentation. Each
room has a page at its top that says what it answers and what stands below it; from the lowest: frame, steps,
host, peers, device, then compile, path and compare, then findings and doctor, then ranks and explain.
"""
