"""Queries on an open index: what a cell shows, all facts of a slice, what it belongs to."""
