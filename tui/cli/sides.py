"""One side of a comparison as it is typed: `A`, `A:step=4`, `A:+10ms..+20ms`, or a summary's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tracelane.core.base.errors import UsageError
from tracelane.core.export.summary_file import is_summary_source, read_summary
from tracelane.core.index.inputs import check_there
from tracelane.core.index.opening import keep_cached
from tracelane.core.store.opened import open_store
from tracelane.core.store.tables import summary_of_store
from tracelane.core.tables.summary import Summary, summarise

from .opened import TraceOptions
from .options import STEP, is_store_path, split_side


def read_sides(
    sides: Sequence[str],
    like: TraceOptions,
    opened: TraceOptions | None = None,
    more: Sequence[str] = (),
) -> list[Summary]:
    """Return the summary of each side, read from a file of one or made from a trace or a part of it, chosen
    as `like` says. What is `opened` afterwards must be there, and does not leave the cache while sides are
    read; nor do they. Of `more` paths none may be missing.

    Raises UsageError for a part that means nothing, UnreadableError for what cannot be read.
    """
    parts = [split_side(side) for side in sides]
    check_there([*(opened.traces if opened else ()), *more, *(path for path, _ in parts)])
    all_options = [side_options(like, *part) for part in parts]
    for one in (*([opened] if opened else []), *all_options):
        if not is_store_path(one.traces[0]):
            keep_cached(one.files, one.index_options)
    return [_read_side(text, options) for text, options in zip(sides, all_options)]


def _read_side(text: str, options: TraceOptions) -> Summary:
    path, part = split_side(text)
    if is_store_path(path):
        if part or options.where is not None or options.lanes is not None:
            raise UsageError(f"{path} holds summaries of whole traces: it has no parts such as {text!r}")
        return summary_of_store(open_store(path))
    first = options.files.members[0]
    if str(first.path) == path and is_summary_source(first.source):
        if part:
            raise UsageError(f"{path} is a summary: it has no parts such as {part!r}")
        for name in ("where", "lanes"):
            if getattr(options, name) is not None:
                raise UsageError(f"{path} is a summary, in which --{name} can choose nothing: name the trace")
        return read_summary(Path(path))
    return summarise(options.scope(), Path(text).name)


def side_options(like: TraceOptions, path: str, part: str) -> TraceOptions:
    """Return what options say of one side; UsageError for a part that means nothing."""
    begin, dots, end = part.partition("..")
    if part.startswith(STEP):
        return replace(like, traces=(path,), step=part.removeprefix(STEP))
    if part and not dots:
        raise UsageError(f"what part of {path} is {part!r}? Say step=4, or FROM..TO as +10ms..+20ms")
    return replace(like, traces=(path,), begin=begin or None, end=end or None)
