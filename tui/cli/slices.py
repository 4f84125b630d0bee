"""The commands on single slices: listing them, what launched one, and what a query makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import click
import numpy as np

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.safe_text import csv_line, json_text
from tracelane.core.base.units import format_count
from tracelane.core.export.chains import SourceChains, links_table
from tracelane.core.export.formats import JsonTable, json_pieces
from tracelane.core.export.slices import SliceRows, csv_pieces, slices_json, slices_table
from tracelane.core.query.filter import parse
from tracelane.core.sql.query import QueryAnswer, run_query, unit_of_column
from tracelane.core.tables.frame.schema import Column
from tracelane.core.tables.frame.table import Tables
from tracelane.core.trace import Trace
from tracelane.tui.text.chains import chain_text, launched_text
from tracelane.tui.times import parse_time, time_frame

from .options import LISTED_ROWS
from .printing import Printout, as_text, print_output
from .trace_options import TraceOptions

DRAWN = (
    Column("name", "name", "text", is_name=True),
    Column("duration_ns", "duration", "ns"),
    Column("self_ns", "self", "ns"),
    Column("start_ns", "start (ns)", "id"),
    Column("lane", "lane", "text"),
    Column("category", "category", "text"),
)
"""The columns of a printed table; starts are those of the file."""


def run_slices(options: TraceOptions) -> None:
    sort, limit = options.sort, options.limit
    if options.where is not None:
        parse(options.where)  # a wrong one is said before reading
    rows = SliceRows(options.scope())
    if sort:
        try:
            rows.sort(sort.removeprefix("-"), not sort.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None
    tables = Tables(rows.scope.text, 0, {"slices": lambda: slices_table(rows, limit or LISTED_ROWS)})
    print_output(
        Printout("slices", tables),
        options.form,
        json=lambda _: slices_json(rows, limit),
        csv=lambda _: csv_pieces(rows, limit),
        text=lambda _: [_slices_text(rows, limit or LISTED_ROWS)],
    )


def _slices_text(rows: SliceRows, limit: int) -> str:
    """Return the first slices as a table, and how many there are."""
    table = slices_table(rows, limit)
    text = as_text(replace(table, columns=DRAWN, notes=()))
    total, left = len(rows), len(rows) - limit
    count = f"{format_count(total)} {'slice' if total == 1 else 'slices'}"
    return text + f"\n{count}" + (f", {format_count(left)} of them not listed (--limit)" if left > 0 else "")


MAX_DIGITS = 18
"""Of a time in ns: 31 years from any origin."""


def run_chain(options: TraceOptions, name: str, at: str | None, every: bool) -> None:
    pattern = Pattern(name)
    pattern.check("--name")
    trace, matching, count = _matching(options, pattern, Pick(at, every, options.limit))
    if len(matching) > 1:  # what has been printed cannot be taken back where a column proves damaged later
        trace.check_columns()
    if not matching and options.form != "json":
        raise TracelaneError(f"no slice name matches {name!r}")
    scope = f"{name}, {len(matching):,} of {count:,}"
    links = Tables(scope, 0, {"links": lambda: links_table(list(_chain_entries(matching)), scope)})
    print_output(
        Printout("chain", links),
        options.form,
        json=lambda _: _chains_json(matching),
        text=lambda _: ["\n\n".join(_chain_texts(matching, trace.opening_span[0], count))],
    )


class Pick(NamedTuple):
    """Which of the slices that match are shown: the one at a time, all, so many, else the first."""

    at: str | None
    every: bool
    limit: int | None


def _typed_time(trace: Trace, text: str, options: TraceOptions) -> int:
    if re.fullmatch(r"\s*-?\d+\s*", text):
        if len(text.strip()) > MAX_DIGITS:
            raise UsageError(f"--at: {text.strip()[:MAX_DIGITS]}… outside every trace")
        return whole_number(text)  # what `start_ns` says
    return parse_time(text, time_frame(trace, trace.clocks, options.tz or "", steps=options.step_name or ""))


class Match(NamedTuple):
    """A slice that is shown."""

    chains: SourceChains
    position: int
    is_kernel: bool  # whether it is device work


def _matching(options: TraceOptions, pattern: Pattern, pick: Pick) -> tuple[Trace, list[Match], int]:
    """Return the trace, what is shown, and how many slices match in the part that the options choose."""
    scope = options.scope()
    trace, is_whole = scope.trace, scope.range is None and scope.lanes is None and scope.where is None
    time = None if pick.at is None else _typed_time(trace, pick.at, options)
    sources = [SourceChains(trace, source) for source in range(trace.source_count)]
    named = [chains.named(pattern) for chains in sources]
    if not is_whole:
        rows = SliceRows(scope)
        named = [some[np.isin(some, rows.positions(source))] for source, some in enumerate(named)]
    device = [chains.are_device_work(some) for chains, some in zip(sources, named)]
    kernels = any(mask.any() for mask in device)
    entries: list[tuple[int, int, int]] = []
    count = 0
    most = pick.limit or (None if pick.every else 1)
    for source, (chains, some, mask) in enumerate(zip(sources, named, device)):
        some = some[mask] if kernels else some
        count += len(some)
        some = chains.at(some, time) if time is not None else some[:most]
        starts = chains.slices(some).starts.tolist()
        entries += [(start, source, position) for start, position in zip(starts, some.tolist())]
    if time is None:
        entries.sort()
    elif most is not None and len(entries) > 1:
        entries.sort(key=lambda entry: abs(entry[0] - time))
    return trace, [Match(sources[at], position, kernels) for _, at, position in entries[:most]], count


def _chain_texts(matching: list[Match], zero: int, count: int) -> Iterator[str]:
    for chains, position, is_kernel in matching:
        yield (chain_text if is_kernel else launched_text)(chains, zero, position)
    if len(matching) < count:
        yield f"{len(matching)} of {count:,} that match: --all shows all, --at TIME the one there"


def _chains_json(matching: list[Match]) -> Iterator[str]:
    """Yield the list an entry at a time: it may be long."""
    yield "["
    for number, entry in enumerate(_chain_entries(matching)):
        yield f"{',' if number else ''}\n {json_text(entry)}"
    yield "\n]\n"


def _chain_entries(matching: list[Match]) -> Iterator[dict[str, Any]]:
    for chains, position, is_kernel in matching:
        yield chains.chain_json(position) if is_kernel else chains.launched_json(position)


MAX_QUERY_LENGTH = 1 << 20


def run_sql(
    options: TraceOptions,
    query: str | None,
    file: Path | None,
    engine: Literal["auto", "duckdb", "sqlite"],
    timeout: float,
) -> None:
    text = _query(query, file)
    trace, limit = options.open(), options.limit
    with run_query(trace, text, engine, options.step_name, timeout) as answer:
        scope, most = (
            f"answered by {answer.engine}",
            limit or (LISTED_ROWS if options.form == "text" else None),
        )
        rows = Tables(scope, 0, {"rows": lambda: answer.table(scope, most)})
        print_output(
            Printout("sql", rows),
            options.form,
            json=lambda _: _answer_json(answer, scope, limit),
            csv=lambda _: map(csv_line, chain([answer.columns], islice(answer.rows, limit))),
        )


def _query(query: str | None, file: Path | None) -> str:
    """Return the text of the query; UsageError where there are two, or none."""
    if (query is None) == (file is None):
        raise UsageError('give one query: as "select …" behind the trace, or with --file')
    if query is not None:
        return query
    assert file is not None
    with click.open_file(str(file), encoding="utf-8", errors="strict") as source:
        try:
            text: str = source.read(MAX_QUERY_LENGTH + 1)
        except UnicodeDecodeError:
            raise UsageError(f"{file} is no text in UTF-8") from None
    if len(text) > MAX_QUERY_LENGTH:
        raise UsageError(f"{file} is too long for a query")
    return text


def _answer_json(answer: QueryAnswer, scope: str, limit: int | None) -> Iterator[str]:
    columns = [{"name": key, "unit": unit_of_column(key)} for key in answer.columns]
    rows = (dict(zip(answer.columns, row)) for row in islice(answer.rows, limit))
    return json_pieces("sql", scope, 0, {"rows": JsonTable(columns, rows)})
