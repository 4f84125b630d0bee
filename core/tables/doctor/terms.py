"""The sum of a file's events by kind: every event is counted in exactly one term."""

from __future__ import annotations

from collections.abc import Mapping

from ...index.store import Index

TERMS: Mapping[str, str] = {
    "slices": "slices: complete events, and begins with their end",
    "pairs": "ends that close a begin",
    "instant_events": "instants, and events of other phases",
    "counter_events": "counter events",
    "flow_events": "flow events",
    "metadata": "metadata",
    "async_events": "async events",
    "unmatched_begin": "begins without an end",
    "unmatched_end": "ends without a begin",
    "without_time": "events without a usable time",
    "empty": "empty objects",
    "not_objects": "elements that are no objects",
    "unreadable": "events that could not be read",
}
"""Term -> what it counts."""


def event_terms(index: Index) -> dict[str, int]:
    """Return the number of events of each term, in the order of TERMS."""
    return {term: read_report_count(index, term) for term in TERMS}


def event_total(index: Index) -> int:
    """Return how many events a file has, the unreadable ones with them."""
    return read_report_count(index, "events")


def read_report_count(index: Index, name: str) -> int:
    """Return a count of the read report."""
    return int(index.read_report[name])
