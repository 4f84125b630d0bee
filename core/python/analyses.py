"""The analyses as methods.

Written by docs/update.py from core/tables/registry.py, never by hand.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from ..tables.selection import Selection

if TYPE_CHECKING:
    from ..tables.table import Table


class AnalysisMethods(ABC):
    """A method per analysis. All take the part of the trace that counts, and return a table."""

    @abstractmethod
    def _table(self, analysis: str, selection: Selection, options: dict[str, Any], table: str) -> Table:
        """Run an analysis over a part of the trace; return its table of this name, the first for ""."""

    def range(
        self,
        *,
        by: Literal["name", "lane", "category"] = "name",
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Sum up the slices of a range, or of the whole trace: by name and category, by lane, or by category.

        by: Rows.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("range", selection, {"by": by}, table)

    def tree(
        self,
        *,
        by: Literal["all", "thread", "launch"] = "all",
        bottom_up: bool = False,
        limit: int | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Show the call tree: total time, own time and number of calls of each path of names.

        by: What the roots are: all threads together, each thread, or what launched device work.
        bottom_up: Start with each name, with its callers below it.
        limit: How many rows a list such as the longest gaps has.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("tree", selection, {"by": by, "bottom_up": bottom_up, "limit": limit}, table)

    def ops(
        self,
        *,
        group_by: str = "",
        by: Literal["", "step"] = "",
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Print what PyTorch's key_averages().table() prints, from the trace file alone.

        group_by: Group ops also by input shapes, by N stack frames, or by module.
        by: One table for each step, one below the other.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("ops", selection, {"group_by": group_by, "by": by}, table)

    def steps(
        self,
        *,
        groups: bool = False,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """List the steps with their wall, busy and idle time, and say why these slices are steps.

        Below them: groups of steps (prefill, decode, batch size) with p50, p95, p99 and max.

        groups: Print only the groups: prefill, decode, batch size.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("steps", selection, {"groups": groups}, table)

    def breakdown(
        self,
        *,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Divide the time of each device: busy and idle, compute, communication, copies, and what overlaps.

        Kernel time runs from the first start to the last end; work that runs at the same time counts once.

        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("breakdown", selection, {}, table)

    def kernels(
        self,
        *,
        by: Literal["name", "short", "stream", "type", "kind", "step"] = "name",
        group_by: str = "",
        column: Sequence[str] = (),
        runs: str = "",
        order: Literal["slowest", "time"] = "slowest",
        limit: int | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """List the device work by name: how often it ran, its total, mean, median and longest time.

        by: What a row is. short: the shortest names that differ, also in JSON; kind: GEMM, attention, copy …;
            step: the step that launched the work.
        group_by: A row for each value of an argument.
        column: Add the sum and mean of an argument; with runs, its value.
        runs: List the runs of the kernels whose name matches, and their histogram.
        order: Which runs first.
        limit: How many rows a list such as the longest gaps has.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        options = {
            "by": by,
            "group_by": group_by,
            "column": column,
            "runs": runs,
            "order": order,
            "limit": limit,
        }
        return self._table("kernels", selection, options, table)

    def idle(
        self,
        *,
        kernel_wait: float = 30.0,
        recurring: bool = False,
        limit: int | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Say how long each stream was idle and why; list the longest gaps and the launch that ended each.

        A gap is a host wait if the launch that ended it began after the earlier work was done.

        kernel_wait: A gap that the host did not cause is a kernel wait if it is shorter than this.
        recurring: Group the gaps by the names before and after them.
        limit: How many rows a list such as the longest gaps has.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        options = {"kernel_wait": kernel_wait, "recurring": recurring, "limit": limit}
        return self._table("idle", selection, options, table)

    def launches(
        self,
        *,
        limit: int | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Say how long each launch call took, how long its work then waited, and how long the queues were.

        Work is matched to its launch by flow, else by correlation. It counts where it starts, with its whole
        time.

        limit: How many rows a list such as the longest gaps has.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("launches", selection, {"limit": limit}, table)

    def sections(
        self,
        *,
        by: Literal["both", "hyperfunction", "hypersection"] = "both",
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """List the section calls of a SambaTune report by hyperfunction and hypersection, with mean
        arguments.

        A hyperfunction is a row of the report. A hypersection is the argument of that name, or the colour
        where there is none. Estimated and measured latency come first, then their ratio.

        by: Rows.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("sections", selection, {"by": by}, table)

    def ranks(
        self,
        *,
        group_by: Literal["", "host", "tp", "pp", "dp"] = "",
        worst: int = 0,
        first: Literal["", "ranks", "steps", "collectives", "imbalance", "heat"] = "",
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """List for each rank step time, compute, communication, idle and waiting time, and how often it came
        last.

        group_by: Sum the ranks up by host, or by the groups of the parallel layout that the files name.
        worst: Only the N ranks that the others wait for most.
        first: The table to print first; csv holds only this one. imbalance: each rank step by step; heat: the
            same as a map.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("ranks", selection, {"group_by": group_by, "worst": worst, "first": first}, table)

    def findings(
        self,
        *,
        baseline: AnalysisMethods | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """List what costs time: how much, where to see it, when its rule applies, and what usually helps.

        Findings are ranked by the time that each claims. Claims overlap, so they are never added up. Rules
        for which the trace lacks the data are listed as not checked.

        baseline: Also compare with this run: whether compiling made the steps slower.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("findings", selection, {"baseline": baseline}, table)

    def doctor(
        self,
        *,
        strict: bool = False,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Check whether a trace can be trusted: what was not read, clocks, overlaps, what was lost.

        Each row says what it distorts. The exit code is 0 if there is nothing, 1 from a warning on, and 2 if
        the trace is unreadable.

        strict: Exit with 1 also for notes.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("doctor", selection, {"strict": strict}, table)

    def memory(
        self,
        *,
        first: Literal["allocators", "peak", "kept", "copies", "curve"] = "allocators",
        limit: int | None = None,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Report the memory that was allocated: at the peak and at the end, by which ops, and the copies.

        Allocations are in the trace if it was recorded with profile_memory=True.

        first: The table to print first; csv holds only this one. curve: every record.
        limit: How many rows a list such as the longest gaps has.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("memory", selection, {"first": first, "limit": limit}, table)

    def compile(
        self,
        *,
        first: Literal["signs", "regions", "graphs", "steps", "code", "phases", "compilations"] = "signs",
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Say whether torch.compile was used and how that is known, what ran compiled, and what compiling
        took.

        Regions form a tree: a region inside another one is a graph break, or compilation is disabled there.

        first: The table to print first; csv holds only this one.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("compile", selection, {"first": first}, table)

    def summary(
        self,
        *,
        rows: int = 30,
        where: str | None = None,
        step: int | str | None = None,
        lanes: str | None = None,
        begin: int | None = None,
        end: int | None = None,
        table: str = "",
    ) -> Table:
        """Summarise a trace: its metrics, kernels, ops, categories and steps, under names that do not change.

        rows: The number of rows to keep of each table.
        where: count only slices that match a filter, as "nccl cat:kernel dur>1ms".
        step: count this step only, by its label in `info.steps`, or as "nth:-1" for the last one.
        lanes: count only lanes whose title matches this regular expression.
        begin, end: count from and up to here, ns of trace time, as in columns of times.
        table: the name of another table of the analysis; the first one is returned without it.
        """
        selection = Selection(begin, end, step, lanes, where)
        return self._table("summary", selection, {"rows": rows}, table)
