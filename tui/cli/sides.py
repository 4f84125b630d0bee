"""One side of a comparison as it is typed: `A`, `A:step=4`, `A:+10ms..+20ms`, or a summary's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracelane.core.base.errors import UsageError
from tracelane.core.remote.files import is_url

from .opened import chosen_trace
from .options import is_store_path
from .scoped import Times, scope_of_options

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.tables.selection import Selection
    from tracelane.core.tables.summary import Summary

STEP = "step="


def split_side(text: str) -> tuple[str, str]:
    """Return (path, part): the part is what stands behind the first colon before which there is a file."""
    if is_url(text):
        path, _, part = text.rpartition(":")
        return (path, part) if is_url(path) and (part.startswith(STEP) or ".." in part) else (text, "")
    if Path(text).exists():
        return text, ""
    at = text.find(":")
    while at >= 0:
        if Path(text[:at]).exists():
            return text[:at], text[at + 1 :]
        at = text.find(":", at + 1)
    return text, ""


def read_sides(
    sides: Sequence[str],
    index_options: IndexOptions,
    choice: Choice,
    chosen: Selection,
    traces: Sequence[str] = (),
) -> list[Summary]:
    """Return the summary of each side, read from a file of one or made from a trace or a part of it. `traces`
    are opened afterwards: all must be there, and none leaves the cache while another is read.

    Raises UsageError for a part that means nothing, UnreadableError for what cannot be read.
    """
    from tracelane.core.export.summary_file import is_summary
    from tracelane.core.index.inputs import check_there
    from tracelane.core.index.opening import keep_cached

    paths = [*traces, *(split_side(side)[0] for side in sides)]
    check_there(paths)
    for path in paths:
        if not is_summary(Path(path)) and not is_store_path(path):
            keep_cached([path], choice, index_options)
    return [_read_side(side, index_options, choice, chosen) for side in sides]


def _read_side(text: str, index_options: IndexOptions, choice: Choice, chosen: Selection) -> Summary:
    from tracelane.core.export.summary_file import is_summary, read_summary
    from tracelane.core.tables.summary import summarise

    path, part = split_side(text)
    if is_summary(Path(path)):
        if part:
            raise UsageError(f"{path} is a summary: it has no parts such as {part!r}")
        if chosen.where is not None:
            raise UsageError(f"{path} is a summary, in which --where can choose nothing: name the trace")
        return read_summary(Path(path))
    if is_store_path(path):
        from tracelane.core.store.comparison import summary_of_store
        from tracelane.core.store.opened import open_store

        if part or chosen.where is not None:
            raise UsageError(f"{path} holds summaries of whole traces: it has no parts such as {text!r}")
        return summary_of_store(open_store(path))
    trace = chosen_trace([path], index_options, choice)
    begin, dots, end = part.partition("..")
    if part and not dots and not part.startswith(STEP):
        raise UsageError(f"what part of {path} is {part!r}? Say step=4, or FROM..TO as +10ms..+20ms")
    times = Times()
    if part.startswith(STEP):
        chosen = replace(chosen, step=part.removeprefix(STEP))
    elif dots:
        times = Times(begin or None, end or None)
    return summarise(scope_of_options(trace, times, chosen), Path(text).name)
