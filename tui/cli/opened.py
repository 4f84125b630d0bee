"""The options that say which part of which traces a command speaks of, and opening them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.tables.selection import Selection

from .options import DEVICE_OFFSET, TRACES, choice_options, is_store_path, with_index_options
from .scoped import (
    ATTRIBUTE,
    FROM,
    LANES,
    SKIP_FIRST,
    STEP,
    STEP_NAME,
    TO,
    TZ,
    WHERE,
    Times,
    scope_of_options,
)

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice, ResolvedFiles
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.tables.scope import Attribute, Scope
    from tracelane.core.tables.table import Tables
    from tracelane.core.trace import Trace

OPTIONS = (DEVICE_OFFSET,)
PARTS = (WHERE, LANES, SKIP_FIRST, ATTRIBUTE, STEP_NAME, STEP, TZ, TO, FROM, TRACES)
"""Both in the order in which decorators are applied: help lists them the other way round."""


@dataclass(frozen=True)
class TraceOptions:
    """What these options said."""

    traces: tuple[str, ...]
    begin: str | None
    end: str | None
    tz: str | None
    step: str | None
    step_name: str | None
    skip_first: int | None
    lanes: str | None
    where: str | None
    index_options: IndexOptions
    choice: Choice
    device_offsets: tuple[str, ...]
    attribute: Attribute

    @property
    def title(self) -> str:
        """What the traces are called."""
        return ", ".join(Path(trace).name for trace in self.traces)

    @cached_property
    def files(self) -> ResolvedFiles:
        """The files that the traces stand for, each looked at once."""
        from tracelane.core.index.opening import resolve_files
        from tracelane.tui.text.progress import ProgressBar

        with ProgressBar(Path(self.traces[0]).name) as progress:
            return resolve_files(self.traces, self.choice, self.index_options.index_dir, progress=progress)

    def store_tables(self, name: str, options: dict[str, Any]) -> Tables | None:
        """Return an analysis over a capture store, None where the traces are none. Raises UsageError."""
        if len(self.traces) != 1 or not is_store_path(self.traces[0]):
            return None
        from tracelane.core.store.opened import open_store
        from tracelane.core.store.tables import store_tables

        parts = (self.begin, self.end, self.step, self.step_name, self.skip_first, self.lanes, self.where)
        if any(part is not None for part in parts) or self.device_offsets or self.choice.ranks:
            raise UsageError(
                f"{self.traces[0]} is a store of summaries of whole traces: a part needs the trace of a rank"
            )
        return store_tables(open_store(self.traces[0]), name, options)

    def scope(self) -> Scope:
        """Open the traces and return what the options ask about."""
        return scope_of_options(
            chosen_trace(self.files, self.index_options, self.choice),
            Times(self.begin, self.end, self.tz),
            Selection(
                step=self.step,
                lanes=self.lanes,
                where=self.where,
                step_name=self.step_name,
                attribute=self.attribute,
                device_offsets=self.device_offsets,
            ),
            self.skip_first,
        )


def chosen_trace(traces: Sequence[str] | ResolvedFiles, index_options: IndexOptions, choice: Choice) -> Trace:
    """Open traces, as they are named or resolved; which of several captures is open is said on stderr.

    Raises UnreadableError for a file without events, of which nothing can be said.
    """
    from tracelane.core.base.errors import UnreadableError
    from tracelane.core.index.choice import left_out_text
    from tracelane.core.read.problem import has_no_event_array
    from tracelane.core.tables.kinds import check_kind_settings
    from tracelane.core.trace import open_trace
    from tracelane.tui.text.progress import ProgressBar

    check_kind_settings()
    first = traces[0] if isinstance(traces, Sequence) else traces.named[0]
    with ProgressBar(Path(first).name) as progress:
        trace = open_trace(traces, index_options, choice=choice, progress=progress)
    if all(has_no_event_array(source.problems) for source in trace.sources):
        raise UnreadableError(f"{trace.sources[0].path}: no trace events in it")
    for event in dict.fromkeys(event for source in trace.sources for event in source.events):
        print_text(f"tracelane: {event}", error=True)
    if left_out := left_out_text(trace.captures, trace.open_capture):
        print_text(left_out, error=True)
    return trace


def with_options(
    command: Callable[..., None],
    kind: type[TraceOptions],
    name: str,
    more: tuple[Callable[..., Any], ...] = (),
) -> Callable[..., None]:
    """Give a command these options and more; it gets them as one value of a kind, its own as they are."""

    def with_values(**values: Any) -> None:
        shared = {field: values.pop(field) for field in kind.__dataclass_fields__}
        command(**{name: kind(**shared)}, **values)

    with_values.__doc__ = command.__doc__
    with_values.__name__ = command.__name__
    # click lists options in the order of the decorators, the innermost last.
    own = getattr(command, "__click_params__", [])
    wrapped = with_index_options(choice_options(with_values))
    for option in (*OPTIONS, *more, *PARTS):
        wrapped = option(wrapped)
    wrapped.__click_params__ = [*own, *wrapped.__click_params__]  # type: ignore[attr-defined]
    return wrapped


def opened_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options; it gets them as `opened`."""
    return with_options(command, TraceOptions, "opened")
