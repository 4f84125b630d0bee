"""Telemetry logs: formats, clocks, and lanes over a trace; lanes of counters computed from a trace."""
