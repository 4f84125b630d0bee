"""Checks of the recording: what could not be read, wrong clocks, overlaps, missing or lost data."""
