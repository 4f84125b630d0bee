"""The trace that `tracelane.open` returns: facts, tables, a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex

from ..base.errors import UsageError
from ..base.picture import Picture
from ..base.safe_text import safe
from ..base.units import format_ns
from ..export.timeline_svg import timeline_svg
from ..index.captures import Choice
from ..index.options import DEFAULT_OPTIONS, IndexOptions
from ..read.source import TIME_DIGITS
from ..sql import TIMEOUT_S
from ..tables.analysis import Option
from ..tables.host.slice_table import NAMES, slice_table
from ..tables.registry import BY_NAME
from ..tables.selection import Selection
from ..trace import Trace, open_trace
from ..trace.step_spans import step_spans

if TYPE_CHECKING:
    from ..tables.compare.summary import Summary
    from ..tables.frame.scope import Attribute, Scope
    from ..tables.frame.table import Table, Tables
    from .analyses import AnalysisMethods
else:
    from .methods import AnalysisMethods


@dataclass(frozen=True)
class TraceInfo:
    """What a trace holds. Times are ns; `start` and `end` lie on the axis on which columns of times count."""

    paths: tuple[str, ...]
    start: int
    end: int
    wall_start: int | None  # ns since 1970 of `start`, None where the file does not say
    processes: int
    lanes: int
    slices: int
    instants: int
    samples: int
    flows: int
    steps: tuple[str, ...]  # their labels, as `step=` takes them
    ranks: tuple[int, ...]
    notes: tuple[str, ...]
    problems: int  # of reading; `doctor()` says which

    @property
    def span(self) -> int:
        """The length of the trace in ns."""
        return self.end - self.start

    def _repr_html_(self) -> str:
        rows = {
            "files": ", ".join(Path(path).name for path in self.paths),
            "length": format_ns(self.span),
            "slices": f"{self.slices:,} on {self.lanes:,} lanes of {self.processes:,} processes",
            "flows": f"{self.flows:,}",
            "counter samples": f"{self.samples:,}",
            "steps": f"{len(self.steps):,}",
            "notes": "; ".join(self.notes) or "none",
        }
        lines = (f"<tr><th>{key}</th><td>{escape(safe(value))}</td></tr>" for key, value in rows.items())
        return f"<table>{''.join(lines)}</table>"


class OpenedTrace(AnalysisMethods):
    """A trace, as `tracelane.open` returns it. Each method returns a table of typed columns.

    `table["duration_ns"]` is a numpy array, `table.units` says in what; `to_pandas()`, `to_arrow()` and
    `to_polars()` are there where the packages are. Close it, or use it in a `with` statement, to let go of
    the files.
    """

    def __init__(self, trace: Trace, reading: Selection) -> None:
        self._trace = trace
        self._reading = reading

    def __enter__(self) -> OpenedTrace:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the files."""
        self.close()

    def __repr__(self) -> str:
        """Return the names of the files, the number of slices, and the length."""
        info = self.info
        names = ", ".join(Path(path).name for path in info.paths)
        return f"<tracelane trace {safe(names)}: {info.slices:,} slices in {format_ns(info.span)}>"

    def _repr_html_(self) -> str:
        return self.info._repr_html_()

    def close(self) -> None:
        """Let go of the files of the index."""
        self._trace.close()

    @cached_property
    def info(self) -> TraceInfo:
        """What the trace holds."""
        trace = self._trace
        start, end = trace.span
        base = next((one.base_time_ns for one in trace.sources if one.base_time_ns is not None), None)
        spans = step_spans(trace, trace.clocks, self._reading.step_name)
        ranks = (trace.rank(source) for source in range(len(trace.indexes)))
        return TraceInfo(
            tuple(source.path for source in trace.sources),
            start,
            end,
            None if base is None else base + start,
            len(trace.processes),
            len(trace.lanes),
            sum(lane.slices + lane.unclosed for lane in trace.lanes),
            sum(lane.instants for lane in trace.lanes),
            sum(lane.samples for lane in trace.lanes),
            sum(index.length("flows.source") for index in trace.indexes),
            () if spans is None else spans.labels,
            tuple(rank for rank in ranks if rank is not None),
            tuple(note for source in trace.sources for note in source.notes),
            sum(len(source.problems) for source in trace.sources),
        )

    def slices(
        self,
        *,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        columns: Sequence[str] = NAMES,
        limit: int | None = None,
    ) -> Table:
        """Return single slices in order of time, each whole though the range may cut it.

        where: a filter, as "nccl cat:kernel dur>1ms"; step: the label of a step, or "nth:-1" for the last
        one; lanes: a regular expression that their titles match; begin, end: trace time in ns.
        columns: which of id, name, short_name, category, start_ns, duration_ns, self_ns, depth, lane,
        process, pid, tid, step and rank; memory is taken for these only. limit: at most so many, the
        earliest.
        """
        _check_limit(limit)
        return slice_table(self._scope(Selection(begin, end, step, lanes, where)), columns, limit)

    def tables(
        self,
        analysis: str,
        *,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        **options: Any,
    ) -> Tables:
        """Return all tables of an analysis by name, each computed when it is asked for first.

        `t.tables("idle")["gaps"]` is `t.idle(table="gaps")`; options are those of the method of that name.
        """
        return self._tables(analysis, Selection(begin, end, step, lanes, where), options)

    def sql(
        self,
        query: str,
        *,
        engine: Literal["auto", "duckdb", "sqlite"] = "auto",
        timeout: float = TIMEOUT_S,
    ) -> Table:
        """Return the rows of a SELECT over the views slices, ops, kernels, launches, flows, counters, steps
        and args('key'), with arg(id, 'key') as a value: see docs/sql.md.

        engine: auto is DuckDB where it is installed (tracelane[sql]), else SQLite. timeout: seconds after
        which the query is stopped, 0: never.
        """
        from ..sql.query import run_query

        if not isinstance(query, str):
            raise UsageError(f"a query is a text, not {query!r}")
        if not isinstance(timeout, Real) or not timeout >= 0:
            raise UsageError(f"timeout is a number of seconds, 0 for never, not {timeout!r}")
        with run_query(self._trace, query, engine, self._reading.step_name, timeout) as answer:
            return answer.table(f"answered by {answer.engine}")

    def plot(
        self,
        *,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        width: int = 1000,
        rows: int = 60,
    ) -> Picture:
        """Return the timeline as an SVG picture, which a notebook draws; `str()` of it is the SVG text.

        width: in pixels. rows: at most so many rows of lanes are drawn.
        """
        if not all(hasattr(one, "__index__") for one in (width, rows)) or width < MIN_WIDTH or rows < 1:
            raise UsageError(f"width must be at least {MIN_WIDTH} pixels, and rows at least 1")
        scope = self._scope(Selection(begin, end, step, lanes))
        return timeline_svg(scope, width, rows)

    def _scope(self, selection: Selection) -> Scope:
        return self._selected(selection).scope(self._trace)

    def _selected(self, selection: Selection) -> Selection:
        reading = self._reading
        return selection._replace(
            step_name=reading.step_name,
            attribute=reading.attribute,
            device_offsets=reading.device_offsets,
        )

    def _tables(self, analysis: str, selection: Selection, options: Mapping[str, Any]) -> Tables:
        row = BY_NAME.get(analysis)
        if row is None:
            raise UsageError(f"there is no analysis {analysis!r}; there are {', '.join(BY_NAME)}")
        known = {option.name for option in row.options} | ({"limit"} if row.limits != "rows" else set())
        for name in options:
            if name not in known:
                raise UsageError(f"{analysis} has no option {name!r}; it has {', '.join(known) or 'none'}")
        for option in row.options:
            value = options.get(option.name, option.default)
            _check_option(option, value)
            if option.choices and value != option.default and value not in option.choices:
                raise UsageError(f"{option.name}: {value!r} is none of {', '.join(option.choices)}")
        if "limit" in options:
            _check_limit(options["limit"])
        sides = {option.name for option in row.options if option.is_side}
        values = {name: _summary(value) if name in sides else value for name, value in options.items()}
        return row.run(self._scope(selection), **values)

    def _table(self, analysis: str, selection: Selection, options: dict[str, Any], table: str) -> Table:
        tables = self._tables(analysis, selection, options)
        if not table:
            return tables.main
        try:
            return tables[table]
        except KeyError as error:
            raise UsageError(str(error.args[0])) from None


def _check_limit(limit: object) -> None:
    if limit is not None and (not isinstance(limit, SupportsIndex) or limit.__index__() < 1):
        raise UsageError(f"limit is a whole number from 1 on, not {limit!r}")


def _check_option(option: Option, value: object) -> None:
    """Check that a value is of the kind of an option's default; UsageError says what it takes."""
    if isinstance(option.default, tuple):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise UsageError(f"{option.name} takes several: write [{value!r}]")
    elif isinstance(option.default, str):
        if not isinstance(value, str):
            raise UsageError(f"{option.name} is a text, not {value!r}")
    elif isinstance(option.default, int | float) and not isinstance(value, SupportsFloat):
        raise UsageError(f"{option.name} is a number, not {value!r}")


def _summary(other: object) -> Summary | None:
    """Return the summary of another opened trace; None without one."""
    from ..tables.compare.summary import summarise
    from ..tables.frame.scope import Scope

    if other is None:
        return None
    if not isinstance(other, OpenedTrace):
        raise UsageError(f"a trace that tracelane.open returned is needed, not {other!r}")
    return summarise(Scope(other._trace), ", ".join(Path(path).name for path in other.info.paths))


MIN_WIDTH = 300


def opened_for_python(
    paths: str | Path | Sequence[str | Path],
    choice: Choice,
    options: IndexOptions = DEFAULT_OPTIONS,
    step_name: str | None = None,
    attribute: Attribute = "launch",
    device_offsets: Sequence[str] = (),
) -> OpenedTrace:
    """Open traces for `tracelane.open`."""
    if isinstance(paths, bytes) or not (isinstance(paths, Path) or hasattr(paths, "__iter__")):
        raise UsageError(f"name a file, a folder, or a list of them, not {paths!r}")
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    if not several:
        raise UsageError("name a file, a folder, or a list of them: the list is empty")
    for path in several:
        if not isinstance(path, str | Path) or not str(path):
            raise UsageError(f"a path is a text or a Path, not {path!r}")
    if options.ts_unit not in TIME_DIGITS:
        raise UsageError(f"ts_unit is {' or '.join(TIME_DIGITS)}, not {options.ts_unit!r}")
    several = [os.path.expanduser(path) for path in several]
    reading = Selection(step_name=step_name, attribute=attribute, device_offsets=tuple(device_offsets))
    return OpenedTrace(open_trace(several, options, choice=choice), reading)
