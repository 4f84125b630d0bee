"""A page that stands alone: pictures of the timeline and the tables that answer where time goes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..base.safe_text import safe
from ..base.units import format_ns
from ..tables.frames import html_table
from ..tables.registry import BY_NAME
from ..tables.scope import Scope
from ..tables.table import Table
from .report import environment, example_of
from .timeline_svg import timeline_svg

WIDTH = 1180
ROWS = 50
STYLE = (
    "body{font:14px system-ui,sans-serif;max-width:1200px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:2px 10px;border-bottom:1px solid #ddd;"
    "font-variant-numeric:tabular-nums}h2{margin-top:2em}"
)
SECTIONS = (
    ("breakdown", "", "How devices spend their time", 0, ""),
    ("steps", "", "Steps", 30, ""),
    ("findings", "", "What stands out", 20, ""),
    ("kernels", "", "Kernels", 20, "total_ns"),
    ("ops", "", "Ops", 20, "self_cpu_ns"),
    ("idle", "gaps", "Longest gaps", 15, ""),
    ("launches", "", "Launches", 15, ""),
)
"""(analysis, table or "" for its first, heading, rows or 0 for all, the column that is greatest first)."""


def html_report(scope: Scope, title: str) -> Iterator[str]:
    """Yield the page of a scope piece by piece; nothing in it is loaded from elsewhere. Raises Cancelled."""
    trace = scope.trace
    name = escape(safe(title))
    yield f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
    yield (
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">"
    )
    yield f"<style>{STYLE}</style></head><body><h1>{name}</h1><p>{escape(safe(scope.text))}</p>"
    lanes = None if scope.lanes is None else sorted(scope.lanes)
    window = scope.range or trace.opening_span
    yield f"<h2>The timeline</h2><p>{format_ns(window[1] - window[0])}</p>"
    yield timeline_svg(trace, window, lanes, scope.clocks, WIDTH, ROWS).svg
    example = example_of(scope)
    if example.label and (example.start, example.end) != window:
        yield f"<h2>{escape(safe(example.label[:1].upper() + example.label[1:]))}</h2>"
        yield timeline_svg(trace, (example.start, example.end), lanes, scope.clocks, WIDTH, ROWS).svg
    for analysis, table, heading, limit, sort in SECTIONS:
        scope.check()
        tables = BY_NAME[analysis].run(scope)
        yield from _section(heading, tables[table] if table else tables.main, limit, sort)
    facts = [(escape(safe(what)), escape(safe(value))) for what, value in environment(trace)]
    rows = "".join(f"<tr><th>{what}</th><td>{value}</td></tr>" for what, value in facts)
    if rows:
        yield f"<h2>Environment</h2><table>{rows}</table>"
    yield "</body></html>\n"


def _section(heading: str, table: Table, limit: int, sort: str) -> Iterator[str]:
    yield f"<h2>{escape(heading)}</h2>"
    if not len(table):
        notes = "".join(f"<div>{escape(safe(note))}</div>" for note in table.notes)
        yield f"<p>nothing in it</p>{notes}"
        return
    ordered = table.sort(sort) if sort and sort in table.data else table
    yield html_table(ordered, limit or len(table))
