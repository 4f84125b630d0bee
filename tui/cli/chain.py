"""`tracelane chain`: where a kernel comes from, and what an op launched."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.output import print_pieces, print_text
from tracelane.core.base.pattern import Pattern
from tracelane.core.base.safe_text import json_text

from .opened import chosen_trace
from .options import TRACE, choice_options, with_index_options
from .scoped import STEP_NAME, steps_there

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.trace import Trace

MOST_DIGITS = 18
"""Of a time in ns: 31 years from any origin."""


@click.command()
@TRACE
@click.option("--name", required=True, metavar="REGEX", help="Slices whose name matches.")
@click.option(
    "--at",
    metavar="TIME",
    help="The slice at this time: +12.5ms, @µs or a whole number of ns as in the file, step:4.",
)
@click.option("--all", "every", is_flag=True, help="All that match, not only the first.")
@STEP_NAME
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@choice_options
@with_index_options
def chain(
    trace: str,
    name: str,
    at: str | None,
    every: bool,
    step_name: str | None,
    as_json: bool,
    index_options: IndexOptions,
    choice: Choice,
) -> None:
    """Show what launched a kernel: annotation, op, launch, kernel, with the time between them.

    For an op or annotation, list the kernels that were launched under it.
    """
    pattern = Pattern(name)
    pattern.check("--name")
    opened = chosen_trace([trace], index_options, choice)
    if step_name is not None:
        steps_there(opened, "--step-name", step_name)
    matching, count = _matching(opened, pattern, None if at is None else _time(opened, at, step_name), every)
    if len(matching) > 1:
        _check_columns(opened)
    if as_json:
        _print_json(opened, matching)
        return
    if not matching:
        raise TracelaneError(f"no slice has a name in which {name!r} is found")
    from tracelane.tui.text.chains import chain_text, launched_text

    for number, (source, position, is_kernel) in enumerate(matching):
        write = chain_text if is_kernel else launched_text
        print_text(("\n" if number else "") + write(opened, source, opened.launches(source), position))
    if len(matching) < count:
        print_text(f"\n{len(matching)} of {count:,} that match: --all shows all, --at TIME the one there")


def _time(trace: Trace, text: str, step_name: str | None) -> int:
    from tracelane.tui.clock import time_frame
    from tracelane.tui.times import parse_time

    if re.fullmatch(r"\s*-?\d+\s*", text):
        if len(text.strip()) > MOST_DIGITS:
            raise UsageError(f"--at: {text.strip()[:MOST_DIGITS]}… lies outside every trace")
        return int(text)  # what `ts_ns` says
    return parse_time(text, time_frame(trace, trace.clocks, steps=step_name or ""))


def _matching(
    trace: Trace, pattern: Pattern, time: int | None, every: bool
) -> tuple[list[tuple[int, int, bool]], int]:
    """Return ((source, position, whether it is device work) of what is to be shown, how many match)."""
    import numpy as np

    from tracelane.core.export.chains import slices_at, slices_named

    named = [slices_named(index, pattern) for index in trace.indexes]
    device = [np.isin(some, trace.launches(source).kernels) for source, some in enumerate(named)]
    kernels = any(mask.any() for mask in device)
    entries: list[tuple[int, int, int]] = []
    count = 0
    for source, (index, some, mask) in enumerate(zip(trace.indexes, named, device)):
        some = some[mask] if kernels else some
        count += len(some)
        if time is not None:
            some = slices_at(index, some, time)
        elif not every:
            some = some[:1]
        entries += [(index.start(p), source, p) for p in some.tolist()]
    if time is None:
        entries.sort()
    elif not every and len(entries) > 1:
        entries.sort(key=lambda entry: abs(entry[0] - time))
    return [(source, p, kernels) for _, source, p in (entries if every else entries[:1])], count


def _check_columns(trace: Trace) -> None:
    """Check all columns: what has been printed cannot be taken back where one proves damaged afterwards."""
    for index in trace.indexes:
        index.check(*index.manifest["columns"])


def _print_json(trace: Trace, matching: list[tuple[int, int, bool]]) -> None:
    """Write the list an entry at a time: it may be long."""
    entries = _entries(trace, matching)
    first = [json_text(entry) for entry in itertools.islice(entries, 1)]
    print_text("[", end="")
    print_pieces(f"\n {entry}" for entry in first)
    print_pieces(f",\n {json_text(entry)}" for entry in entries)
    print_text("\n]")


def _entries(trace: Trace, matching: list[tuple[int, int, bool]]) -> Iterator[object]:
    from tracelane.core.export.chains import ReplayFacts, chain_from, chain_json, launched_json
    from tracelane.core.query.launches import kernels_under

    replays: dict[int, ReplayFacts] = {}
    for source, position, is_kernel in matching:
        index, launches = trace.indexes[source], trace.launches(source)
        if source not in replays:
            replays[source] = ReplayFacts(index, launches)
        if is_kernel:
            chain = chain_from(index, launches, position)
            yield {**chain_json(index, chain), **replays[source].entry(chain.launch, position)}
        else:
            launched = launched_json(index, position, kernels_under(index, launches, position))
            yield {**launched, **replays[source].entry(position)}
