"""The analyses as methods, for type checkers: written by docs/update.py from the registry."""

from collections.abc import Sequence
from typing import Literal, TypedDict, Unpack

from ..tables.frame.table import Table

class Part(TypedDict, total=False):
    """The part of the trace that counts, and the name of another table than the first."""

    where: str | None
    step: int | str | None
    lanes: str | None
    begin: int | None
    end: int | None
    table: str

class AnalysisMethods:
    def range(self, *, by: Literal["name", "lane", "category"] = "name", **part: Unpack[Part]) -> Table:
        """Sum up the slices of a range, or of the whole trace: by name and category, by lane, or by
        category.
        """

    def tree(
        self,
        *,
        by: Literal["all", "thread", "launch"] = "all",
        bottom_up: bool = False,
        limit: int | None = None,
        **part: Unpack[Part],
    ) -> Table:
        """Show the call tree: total time, own time and number of calls of each path of names."""

    def ops(
        self,
        *,
        group_by: str = "",
        by: Literal["", "step"] = "",
        no_frames: bool = False,
        **part: Unpack[Part],
    ) -> Table:
        """Print what PyTorch's key_averages().table() prints, from the trace file alone."""

    def steps(self, *, groups: bool = False, **part: Unpack[Part]) -> Table:
        """List the steps with their wall, busy and idle time, and say why these slices are steps."""

    def breakdown(self, **part: Unpack[Part]) -> Table:
        """Divide the time of each device: busy and idle, compute, communication, copies, and what
        overlaps.
        """

    def kernels(
        self,
        *,
        by: Literal["name", "short", "stream", "type", "kind", "step", "op", "module", "annotation"] = "name",
        group_by: str = "",
        column: Sequence[str] = (),
        runs: str = "",
        order: Literal["slowest", "time"] = "slowest",
        limit: int | None = None,
        **part: Unpack[Part],
    ) -> Table:
        """List the device work by name: how often it ran, its total, mean, median and longest time."""

    def efficiency(self, **part: Unpack[Part]) -> Table:
        """Say what operators achieve by name and shapes: FLOP/s, bytes/s, and their part of the peak."""

    def source(self, *, artefacts: str = "", **part: Unpack[Part]) -> Table:
        """Say which source lines, ops and FX nodes each compiled kernel was made of, and why graphs broke or
        were compiled again.
        """

    def idle(
        self,
        *,
        kernel_wait: float = 30.0,
        recurring: bool = False,
        limit: int | None = None,
        **part: Unpack[Part],
    ) -> Table:
        """Say how long each stream was idle and why; list the longest gaps and the launch that ended each."""

    def launches(self, *, limit: int | None = None, **part: Unpack[Part]) -> Table:
        """Say how long each launch call took, how long its work then waited, and how long the queues were."""

    def critical_path(
        self,
        *,
        by: Literal["", "name", "kind", "rank", "op"] = "",
        without: Sequence[str] = (),
        scale: Sequence[str] = (),
        start_rank: int | None = None,
        **part: Unpack[Part],
    ) -> Table:
        """Say what the length of a step hangs on: from its end back along what released each point."""

    def sections(
        self,
        *,
        by: Literal["both", "hyperfunction", "hypersection"] = "both",
        **part: Unpack[Part],
    ) -> Table:
        """List the section calls of a SambaTune report by hyperfunction and hypersection, with mean
        arguments.
        """

    def ranks(
        self,
        *,
        group_by: Literal["", "host", "tp", "pp", "dp"] = "",
        worst: int = 0,
        first: Literal["", "ranks", "steps", "collectives", "imbalance", "heat"] = "",
        **part: Unpack[Part],
    ) -> Table:
        """List for each rank step time, compute, communication, idle and waiting time, and how often it came
        last.
        """

    def findings(self, *, baseline: AnalysisMethods | None = None, **part: Unpack[Part]) -> Table:
        """List what costs time: how much, where to see it, when its rule applies, and what usually helps."""

    def explain(self, *, question: str = "", **part: Unpack[Part]) -> Table:
        """Say in a few KB what costs most time and what can be trusted, each with the command that shows
        it.
        """

    def doctor(self, *, strict: bool = False, recount: bool = False, **part: Unpack[Part]) -> Table:
        """Check whether a trace can be trusted: what was not read, clocks, overlaps, what was lost."""

    def memory(
        self,
        *,
        first: Literal[
            "allocators", "peak", "kept", "steps", "stacks", "segments", "copies", "curve"
        ] = "allocators",
        limit: int | None = None,
        **part: Unpack[Part],
    ) -> Table:
        """Report the memory that was allocated: at the peak and at the end, by which ops, and the copies."""

    def compile(
        self,
        *,
        first: Literal["signs", "regions", "graphs", "steps", "code", "phases", "compilations"] = "signs",
        artefacts: str = "",
        **part: Unpack[Part],
    ) -> Table:
        """Say whether torch.compile was used and how that is known, what ran compiled, and what compiling
        took.
        """

    def summary(self, *, rows: int = 30, **part: Unpack[Part]) -> Table:
        """Summarise a trace: its metrics, kernels, ops, categories and steps, under names that do not
        change.
        """
