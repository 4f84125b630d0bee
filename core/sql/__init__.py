"""Queries in SQL over slices, flows and counters of a trace: DuckDB where it is installed, else SQLite."""
