"""The analyses: each computes tables of a whole trace, of a range or of a step."""
