"""Exports: tables as text, cuts of a trace, marks, reports, and formats of other viewers."""
