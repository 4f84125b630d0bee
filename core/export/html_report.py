"""A page that stands alone: pictures of the timeline and the tables that answer where time goes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..base.safe_text import safe
from ..base.units import format_ns
from ..tables.registry import BY_NAME
from ..tables.scope import Scope
from ..tables.table import Table
from .html_page import flame, page_end, page_head, page_table
from .report import environment, example_of
from .timeline_svg import timeline_svg

WIDTH = 1180
ROWS = 50
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
    yield page_head(title, has_flame=True)
    yield f"<h1>{name}</h1><p>{escape(safe(scope.text))}</p>"
    window = scope.range or trace.opening_span
    yield f"<h2>The timeline</h2><p>{format_ns(window[1] - window[0])}</p>"
    yield f'<div class="picture">{timeline_svg(scope, WIDTH, ROWS)}</div>'
    example = example_of(scope)
    if example.label and (example.start, example.end) != window:
        yield f"<h2>{escape(safe(example.label[:1].upper() + example.label[1:]))}</h2>"
        picture = timeline_svg(scope, WIDTH, ROWS, (example.start, example.end))
        yield f'<div class="picture">{picture}</div>'
    for analysis, table, heading, limit, sort in SECTIONS:
        scope.check()
        tables = BY_NAME[analysis].run(scope)
        yield from _section(heading, tables[table] if table else tables.main, limit, sort)
    yield "<h2>Call tree</h2><p>Each call as wide as its time; a click zooms to it, one beside it back.</p>"
    yield from flame(trace, BY_NAME["tree"].run(scope).main)
    facts = [(escape(safe(what)), escape(safe(value))) for what, value in environment(trace)]
    rows = "".join(f"<tr><th>{what}</th><td>{value}</td></tr>" for what, value in facts)
    if rows:
        yield f'<h2>Environment</h2><div class="picture"><table>{rows}</table></div>'
    yield page_end(has_flame=True)


def _section(heading: str, table: Table, limit: int, sort: str) -> Iterator[str]:
    yield f"<h2>{escape(heading)}</h2>"
    if not len(table):
        notes = "".join(f"<div>{escape(safe(note))}</div>" for note in table.notes)
        yield f"<p>nothing in it</p>{notes}"
        return
    ordered = table.sort(sort) if sort and sort in table.data else table
    yield page_table(ordered, limit or len(table))
