"""Show what launched a kernel: annotation, op, launch, kernel, with the time between them.

For an op or annotation, list the kernels that were launched under it. JSON is one list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.safe_text import json_text
from tracelane.core.export.chains import SourceChains, links_table
from tracelane.core.export.slices import SliceRows
from tracelane.core.tables.table import Tables
from tracelane.core.trace import Trace
from tracelane.tui.text.chains import chain_text, launched_text
from tracelane.tui.times import parse_time, time_frame

from .opened import TraceOptions
from .printing import Printout, print_output

MOST_DIGITS = 18
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
    links = Tables(scope, 0, {"links": lambda: links_table(list(_entries(matching)), scope)})
    print_output(
        Printout("chain", links),
        options.form,
        json=lambda _: _json(matching),
        text=lambda _: ["\n\n".join(_texts(matching, trace.opening_span[0], count))],
    )


class Pick(NamedTuple):
    """Which of the slices that match are shown: the one at a time, all, so many, else the first."""

    at: str | None
    every: bool
    limit: int | None


def _time(trace: Trace, text: str, options: TraceOptions) -> int:
    if re.fullmatch(r"\s*-?\d+\s*", text):
        if len(text.strip()) > MOST_DIGITS:
            raise UsageError(f"--at: {text.strip()[:MOST_DIGITS]}… outside every trace")
        return int(text)  # what `start_ns` says
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
    time = None if pick.at is None else _time(trace, pick.at, options)
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


def _texts(matching: list[Match], zero: int, count: int) -> Iterator[str]:
    for chains, position, is_kernel in matching:
        yield (chain_text if is_kernel else launched_text)(chains, zero, position)
    if len(matching) < count:
        yield f"{len(matching)} of {count:,} that match: --all shows all, --at TIME the one there"


def _json(matching: list[Match]) -> Iterator[str]:
    """Yield the list an entry at a time: it may be long."""
    yield "["
    for number, entry in enumerate(_entries(matching)):
        yield f"{',' if number else ''}\n {json_text(entry)}"
    yield "\n]\n"


def _entries(matching: list[Match]) -> Iterator[dict[str, Any]]:
    for chains, position, is_kernel in matching:
        yield chains.chain_json(position) if is_kernel else chains.launched_json(position)
