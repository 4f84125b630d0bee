"""What the values of options are completed from in a shell, where click has no list: terms, metrics,
and what the trace on the line has.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import click

from tracelane.core.base.late_pattern import late_pattern

if TYPE_CHECKING:  # loaded when a shell asks
    from collections.abc import Callable, Sequence

    from tracelane.core.trace import Trace

_SPECIAL = late_pattern(r"[^\w:/@-]", re.ASCII)
"""What shells or regular expressions read as something else; a dot matches it and needs no quoting."""
TERMS = ("name=", "cat:", "lane:", "dur>", "dur<", "self>", "self<", "arg.")
"""What terms of a filter begin with, beside words."""
MAX = 200
"""Proposals that are made at once."""
DEFAULT_METRICS = ("kernels.time", "step.length.median", "ops.self_cpu")
"""The first of these that both sides have is what --fail-above holds to, where --metric does not say: the
time of kernels, without copies and memsets, repeats where walls of the host do not.
"""


def complete_terms(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return what a filter's next term may begin with, after the terms that stand there."""
    before, blank, last = incomplete.rpartition(" ")
    return [before + blank + term for term in TERMS if term.startswith(last)]


def complete_lanes(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return expressions that the titles of lanes of the trace on the line match."""

    def patterns(trace: Trace) -> list[str]:
        return [_SPECIAL.sub(".", lane.title) for lane in trace.lanes]

    return _of_trace(ctx, _SPECIAL.sub(".", incomplete), patterns)


def complete_steps(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the labels of the steps of the trace on the line."""

    def labels(trace: Trace) -> list[str]:
        from tracelane.core.tables.frame.cached import cached_step_spans

        spans = cached_step_spans(trace, trace.clocks)
        return [] if spans is None else list(spans.labels)

    return _of_trace(ctx, incomplete, labels)


def complete_columns(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the columns of the table that a command makes of the trace on the line."""
    from tracelane.core.tables.registry import BY_NAME

    row = BY_NAME.get(str(ctx.info_name).replace("-", "_"))

    def keys(trace: Trace) -> list[str]:
        from tracelane.core.tables.frame.scope import Scope

        if row is None:
            return ["start", "duration", "self"] if ctx.info_name == "slices" else []
        return [column.key for column in row.run(Scope(trace, clocks=trace.clocks)).main.columns]

    return _of_trace(ctx, incomplete, keys)


def complete_metrics(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the metrics that are mostly asked for, and what the names of all others begin with."""
    from tracelane.core.tables.metric_groups import GROUPS, ROW_GROUPS

    known = [*DEFAULT_METRICS, *(f"{group}." for group in (*GROUPS, *ROW_GROUPS))]
    return [name for name in known if name.startswith(incomplete)]


def complete_limits(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return metrics with what a limit has between them and its value."""
    metrics = complete_metrics(ctx, param, incomplete)
    return [name if name.endswith(".") else f"{name}=" for name in metrics]


def _of_trace(ctx: click.Context, incomplete: str, texts: Callable[[Trace], Sequence[str]]) -> list[str]:
    """Return texts of the first trace on the line that begin so; none where it has no index yet.

    An option whose value is still to come ends click's parsing: words before it are then in `ctx.args`.
    """
    from tracelane.core.base.safe_text import safe
    from tracelane.core.index.indexing import cached_index
    from tracelane.core.read.source import open_source
    from tracelane.core.trace import trace_of

    words = [*(ctx.params.get("traces") or ()), *ctx.args]
    path = next((word for word in words if word is not None and os.path.isfile(word)), None)
    try:
        index = None if path is None else cached_index(open_source(path))
        if path is None or index is None:
            return []
        texts_of_trace = dict.fromkeys(safe(text) for text in texts(trace_of(path, index)))
    except Exception:  # a shell is waiting: it gets no completions rather than a message
        return []
    return [text for text in texts_of_trace if text.startswith(incomplete)][:MAX]
