"""The rows of the README's comparison that hold figures, from what docs/performance.md says was measured."""

from __future__ import annotations

import re

SECONDS = r"([\d.]+) \([^)]+\)"
"""The median of several turns, before what they lie between."""


def readme_rows(performance: str) -> dict[str, str]:
    """Return by its first cell each row with figures; KeyError where the measured section lacks one."""
    measured = performance.partition("## What it costs")[2].partition("<!-- end")[0]
    gigabytes = int(_figure(measured, "trace", r"([\d,]+) MB of JSON").replace(",", "")) / 1000
    reading = f"reads {gigabytes:.2f} GB of Kineto JSON"
    ours = _figure(measured, "tracelane, as Kineto writes it", SECONDS)
    theirs = _figure(measured, "Perfetto's engine, as its page runs it", SECONDS)
    again = _figure(measured, "command to picture as left, 1,020 MB", r"([\d.]+ ms)")
    memory = _figure(measured, "index, 2 workers", r"(\d+ MB) private memory")
    rows = (
        (reading, f"{ours} s", f"{theirs} s (the engine of its page)", "not measured"),
        ("opens it again", f"{again} to the first picture", "reads it again", "reads it again"),
        ("memory while reading it", f"{memory}, two threads", _memory_of_perfetto(measured), "not measured"),
    )
    return {row[0]: f"| {' | '.join(row)} |" for row in rows}


def _memory_of_perfetto(measured: str) -> str:
    try:
        return _figure(measured, "Perfetto's engine, as its page runs it", r"([\d,]+ MB)")
    except KeyError:
        return "not measured"


def with_rows(readme: str, rows: dict[str, str]) -> str:
    """Return the README with these rows in place of those with the same first words."""
    for title, row in rows.items():
        start = " ".join(title.split()[:1])
        readme = re.sub(rf"^\| {start} .*$", lambda _, row=row: row, readme, flags=re.MULTILINE)  # type: ignore[misc]
    return readme


def _figure(measured: str, row: str, pattern: str) -> str:
    line = re.search(rf"^\| {re.escape(row)} \|(.*)$", measured, re.MULTILINE)
    figure = re.search(pattern, line[1]) if line else None
    if figure is None:
        raise KeyError(f"docs/performance.md does not say {row!r}")
    return figure[1]
