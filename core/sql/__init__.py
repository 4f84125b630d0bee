"""Queries in SQL over slices, flows and counters of a trace: DuckDB where it is installed, else SQLite."""

TIMEOUT_S = 60.0
"""Seconds after which a query is stopped where nobody says."""
