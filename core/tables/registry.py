"""One row per analysis: from it come its command, JSON, panel, tab, palette entry, metrics and documentation.

To add one, write a function in a file of this folder that takes a Scope (and options by name) and returns
Tables, and add its row to ANALYSES. Rows name functions as "module:function", so that this module loads none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .scope import Scope
    from .table import Tables

NO_WORK = "no device work here"
NO_CALLS = "no slices here"
NO_MEMORY = "no allocation is recorded here: profile_memory=True records them"
STEP_ROWS = 100
"""As many as PyTorch prints."""


@dataclass(frozen=True)
class Option:
    """An argument of an analysis: `group_by` is --group-by on the command line."""

    name: str
    help: str
    default: str | int | float | bool | tuple[str, ...] | None = ""
    choices: tuple[str, ...] = ()
    metavar: str = ""
    least: float | None = None  # the least value of a number
    check: str = ""  # "module:function" that refuses wrong values before a trace is read
    is_side: bool = False  # names a trace, a part of one or a summary's file; the function gets its Summary


@dataclass(frozen=True)
class TablePanel:
    """A tab of the viewer that shows one table of an analysis."""

    name: str
    title: str
    table: str
    empty: str  # said where there are no rows
    sort: str = ""  # the column by which it is sorted at first, greatest first
    options: tuple[tuple[str, Any], ...] = ()  # that the analysis is called with
    to_first: bool = False  # all rows are compared with the first row of the baseline
    is_compared: bool = True  # whether it can be compared with a baseline


@dataclass(frozen=True)
class Tab:
    """The key of the viewer behind which panels of one or more analyses lie; again: the next of them."""

    name: str  # of its command: panel-NAME
    key: str
    short: str  # where there is little room
    title: str
    help: str
    words: str = ""  # further words that the palette finds it by


@dataclass(frozen=True)
class Analysis:
    """One row: `function` takes a Scope and the options and returns Tables.

    The name is a command, a key of the JSON and a Python method: ValueError where Python cannot have it.
    """

    name: str
    function: str
    title: str
    help: str  # the first sentence stands in lists
    options: tuple[Option, ...] = ()
    tab: str = ""  # behind which its panels lie
    panels: tuple[TablePanel, ...] = ()
    rows: int = 30  # of the first table in text, where --limit does not say
    others: int | None = None  # of each other table in text
    limits: Literal["rows", "lists", "both"] = "rows"
    """What --limit is for: rows of the first table, or lists that the function (it takes `limit`) cuts."""
    sort: str = ""  # returns the column that a --sort means, refuses others before a trace is read
    metrics: str = ""  # returns the metrics of its group
    metric_group: str = ""  # what their names begin with
    formats: tuple[tuple[str, str], ...] = ()
    """Further forms of --format: a name, and what yields the text of Tables in pieces."""
    exit_code: str = ""  # returns the command's exit code, of the tables; else 0

    def __post_init__(self) -> None:
        """Refuse a name that Python cannot have."""
        if not self.name.isidentifier():
            raise ValueError(f"{self.name!r} is no Python name: join the words of an analysis by _")

    def run(self, scope: Scope, **options: Any) -> Tables:
        """Return the tables of a scope. Raises Cancelled, and UsageError for options without a meaning."""
        if scope.trace.answers is not None:
            return scope.trace.answers.tables(self.name, options)
        tables: Tables = loaded(self.function)(scope, **options)
        return tables


def loaded(path: str) -> Callable[..., Any]:
    """Return the function that "module:function" names, `module` in this package."""
    module, _, name = path.partition(":")
    function: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), name)
    return function


TABS = (
    Tab(
        "tree",
        "3",
        "Tree",
        "Call tree, flame",
        "Show which calls lie in which, drawn and as a table; again: from the bottom, by thread, by launch",
        "flame graph icicle call tree stack callers left-heavy sandwich profile",
    ),
    Tab(
        "table",
        "t",
        "Tab",
        "Table",
        "Show what took time in the range, or all, by name; again: by lane",
    ),
    Tab("steps", "5", "Step", "Steps", "Show the steps: how long each took, and what for"),
    Tab("time", "6", "Time", "Device time", "Show the devices' time; again: idle, gaps, launches"),
    Tab("memory", "7", "Mem", "Memory", "Show the allocators; again: their peaks; again: copies"),
    Tab("compile", "8", "Comp", "Compile", "Show torch.compile; again: regions, graphs, phases"),
    Tab("ranks", "9", "Rank", "Ranks", "Show the ranks; again: their collectives, the slowest by step"),
)
ANALYSES = (
    Analysis(
        "range",
        "range_table:analyse_range",
        "Table",
        "Sum up the slices of a range, or of the whole trace: by name and category, by lane, or by "
        "category.\n\n"
        "A slice that an edge of the range cuts counts with the part inside. JSON and CSV have times in ns.",
        (Option("by", "Rows.", "name", ("name", "lane", "category")),),
        tab="table",
        panels=(
            TablePanel("table", "Name", "range", "no slices here", "self_ns"),
            TablePanel("lanes-busy", "Lane", "range", "no slices here", "busy_ns", (("by", "lane"),)),
            TablePanel("categories", "Category", "range", "no slices here", "self_ns", (("by", "category"),)),
        ),
        metrics="range_table:range_metrics",
        metric_group="trace",
    ),
    Analysis(
        "tree",
        "tree:analyse_tree",
        "Tree",
        "Show the call tree: total time, own time and number of calls of each path of names."
        "\n\nThe tree is of all threads together, of each thread, or of device time by what launched it. "
        "Annotations on a device's lanes are left out; --by launch has the work below the host's own. "
        "speedscope and flamegraph.pl open what --format folded writes.",
        (
            Option(
                "by",
                "What the roots are: all threads together, each thread, or what launched device work.",
                "all",
                ("all", "thread", "launch"),
            ),
            Option("bottom_up", "Start with each name, with its callers below it.", False),
        ),
        tab="tree",
        panels=(
            TablePanel("tree", "Top down", "tree", NO_CALLS, is_compared=False),
            TablePanel(
                "tree-callers", "Bottom up", "tree", NO_CALLS, "", (("bottom_up", True),), is_compared=False
            ),
            TablePanel(
                "tree-threads", "By thread", "tree", NO_CALLS, "", (("by", "thread"),), is_compared=False
            ),
            TablePanel(
                "tree-launches", "By launch", "tree", NO_WORK, "", (("by", "launch"),), is_compared=False
            ),
        ),
        rows=40,
        limits="lists",
        formats=(("folded", "tree:folded_lines"),),
    ),
    Analysis(
        "ops",
        "ops:analyse_ops",
        "Ops",
        "Print what PyTorch's key_averages().table() prints, from the trace file alone.\n\n"
        "--sort takes PyTorch's sort keys, such as self_cpu_time_total. Without it text is sorted by "
        "self time (of the device, where there is one); JSON and CSV have PyTorch's own order.",
        (
            Option(
                "group_by",
                "Group ops also by input shapes, by N stack frames, or by module.",
                metavar="shape|stack:N|module",
                check="op_groups:parse_grouping",
            ),
            Option("by", "One table for each step, one below the other.", choices=("step",)),
        ),
        tab="table",
        panels=(
            TablePanel("ops", "Op", "ops", "no ops here", "self_cpu_ns"),
            TablePanel("ops-shape", "Shape", "ops", "no ops here", "self_cpu_ns", (("group_by", "shape"),)),
            TablePanel(
                "ops-module", "Module", "ops", "no ops here", "self_cpu_ns", (("group_by", "module"),)
            ),
        ),
        rows=STEP_ROWS,
        sort="ops:sort_column",
        metrics="ops:op_metrics",
        metric_group="ops",
    ),
    Analysis(
        "steps",
        "steps:analyse_steps",
        "Steps",
        "List the steps with their wall, busy and idle time, and say why these slices are steps.\n\n"
        "Below them: groups of steps (prefill, decode, batch size) with p50, p95, p99 and max.",
        (Option("groups", "Print only the groups: prefill, decode, batch size.", False),),
        tab="steps",
        panels=(
            TablePanel(
                "steps",
                "Steps",
                "steps",
                "no steps here: :steps NAME takes slices of a name for steps",
                to_first=True,
            ),
        ),
        rows=STEP_ROWS,
        metrics="steps:step_metrics",
        metric_group="step",
    ),
    Analysis(
        "breakdown",
        "breakdown:analyse_breakdown",
        "Time",
        "Divide the time of each device: busy and idle, compute, communication, copies, and what "
        "overlaps.\n\n"
        "Kernel time runs from the first start to the last end; work that runs at the same time "
        "counts once.",
        tab="time",
        panels=(TablePanel("time", "Time", "devices", NO_WORK),),
        metrics="breakdown:breakdown_metrics",
        metric_group="device",
    ),
    Analysis(
        "kernels",
        "kernels:analyse_kernels",
        "Kernels",
        "List the device work by name: how often it ran, its total, mean, median and longest time.",
        (
            Option(
                "by",
                "What a row is. short: the shortest names that differ, also in JSON; kind: GEMM, "
                "attention, copy …; step: the step that launched the work.",
                "name",
                ("name", "short", "stream", "type", "kind", "step"),
            ),
            Option(
                "group_by",
                "A row for each value of an argument.",
                metavar="arg:KEY",
                check="kernels:argument_key",
            ),
            Option(
                "column",
                "Add the sum and mean of an argument; with --runs, its value.",
                (),
                metavar="arg:KEY",
                check="kernels:argument_key",
            ),
            Option(
                "runs",
                "List the runs of the kernels whose name matches, and their histogram.",
                metavar="REGEX",
                check="kernels:check_pattern",
            ),
            Option("order", "Which runs first.", "slowest", ("slowest", "time")),
        ),
        tab="table",
        panels=(TablePanel("kernels", "Kernel", "kernels", NO_WORK, "total_ns"),),
        limits="both",
        metrics="kernels:kernel_metrics",
        metric_group="kernels",
    ),
    Analysis(
        "idle",
        "idle:analyse_idle",
        "Idle",
        "Say how long each stream was idle and why; list the longest gaps and the launch that ended "
        "each.\n\n"
        "A gap is a host wait if the launch that ended it began after the earlier work was done.",
        (
            Option(
                "kernel_wait",
                "A gap that the host did not cause is a kernel wait if it is shorter than this.",
                30.0,
                metavar="µs",
                least=0,
            ),
            Option("recurring", "Group the gaps by the names before and after them.", False),
        ),
        tab="time",
        panels=(
            TablePanel("idle", "Idle", "streams", NO_WORK, "idle_ns"),
            TablePanel(
                "gaps",
                "Gaps that recur",
                "idle",
                "no gap between device work here",
                "idle_ns",
                (("recurring", True),),
            ),
        ),
        limits="lists",
        metrics="idle:idle_metrics",
        metric_group="idle",
    ),
    Analysis(
        "launches",
        "launches:analyse_launches",
        "Launches",
        "Say how long each launch call took, how long its work then waited, and how long the queues "
        "were.\n\n"
        "Work is matched to its launch by flow, else by correlation. It counts where it starts, with "
        "its whole time.",
        tab="time",
        panels=(TablePanel("launches", "Launches", "launches", "no launches of device work here"),),
        limits="lists",
        metrics="launches:launch_metrics",
        metric_group="launches",
    ),
    Analysis(
        "sections",
        "sections:analyse_sections",
        "Sections",
        "List the section calls of a SambaTune report by hyperfunction and hypersection, with mean "
        "arguments.\n\n"
        "A hyperfunction is a row of the report. A hypersection is the argument of that name, or the "
        "colour where there is none. Estimated and measured latency come first, then their ratio.",
        (Option("by", "Rows.", "both", ("both", "hyperfunction", "hypersection")),),
        tab="table",
        panels=(
            TablePanel(
                "sections",
                "Sections",
                "sections",
                "no SambaTune report (…_chrome_tracing_report.json)",
                options=(("only_report", True),),
            ),
        ),
    ),
    Analysis(
        "ranks",
        "rank_tables:analyse_ranks",
        "Ranks",
        "List for each rank step time, compute, communication, idle and waiting time, and how often "
        "it came last."
        "\n\nFurther tables have the slowest rank of each step, and the collectives with how far apart "
        "their ranks began. Clocks "
        "are aligned by the collectives. JSON has the times of every rank in every collective, and each rank "
        "step by step.",
        (
            Option(
                "group_by",
                "Sum the ranks up by host, or by the groups of the parallel layout that the files name.",
                choices=("host", "tp", "pp", "dp"),
            ),
            Option("worst", "Only the N ranks that the others wait for most.", 0, metavar="N", least=1),
            Option(
                "first",
                "The table to print first; csv holds only this one. imbalance: each rank step by step; heat: "
                "the same as a map.",
                choices=("ranks", "steps", "collectives", "imbalance", "heat"),
            ),
        ),
        tab="ranks",
        panels=(
            TablePanel("ranks", "Ranks", "ranks", "no ranks here"),
            TablePanel("collectives", "Collectives", "collectives", "no collectives here", "spread_ns"),
            TablePanel("rank-steps", "Slowest by step", "steps", "no step here that several ranks have"),
            TablePanel("rank-heat", "Ranks by steps", "heat", "no step here that several ranks have"),
        ),
        others=30,
    ),
    Analysis(
        "findings",
        "findings.table:analyse_findings",
        "Findings",
        "List what costs time: how much, where to see it, when its rule applies, and what usually "
        "helps.\n\n"
        "Findings are ranked by the time that each claims. Claims overlap, so they are never added "
        "up. Rules for which the trace lacks the data are listed as not checked.",
        (
            Option(
                "baseline",
                "Also compare with this run: whether compiling made the steps slower.",
                None,
                metavar="TRACE",
                is_side=True,
            ),
        ),
        rows=100,
    ),
    Analysis(
        "doctor",
        "doctor.doctor:analyse_doctor",
        "Doctor",
        "Check whether a trace can be trusted: what was not read, clocks, overlaps, what was lost.\n\n"
        "Each row says what it distorts. The exit code is 0 if there is nothing, 1 from a warning on, "
        "and 2 if the trace is unreadable.",
        (Option("strict", "Exit with 1 also for notes.", False),),
        rows=100,
        exit_code="doctor.doctor:doctor_exit_code",
    ),
    Analysis(
        "memory",
        "memory:analyse_memory",
        "Memory",
        "Report the memory that was allocated: at the peak and at the end, by which ops, and the "
        "copies.\n\n"
        "Allocations are in the trace if it was recorded with profile_memory=True.",
        (
            Option(
                "first",
                "The table to print first; csv holds only this one. curve: every record.",
                "allocators",
                ("allocators", "peak", "kept", "copies", "curve"),
            ),
        ),
        tab="memory",
        panels=(
            TablePanel("memory", "Memory", "allocators", NO_MEMORY),
            TablePanel("memory-peak", "At the peak", "at_peak", NO_MEMORY, "bytes"),
            TablePanel("copies", "Copies", "copies", "no copies here", "bytes"),
        ),
        limits="lists",
        metrics="memory:memory_metrics",
        metric_group="memory",
    ),
    Analysis(
        "compile",
        "compile:analyse_compile",
        "Compile",
        "Say whether torch.compile was used and how that is known, what ran compiled, and what "
        "compiling took.\n\n"
        "Regions form a tree: a region inside another one is a graph break, or compilation is "
        "disabled there.",
        (
            Option(
                "first",
                "The table to print first; csv holds only this one.",
                "signs",
                ("signs", "regions", "graphs", "steps", "code", "phases", "compilations"),
            ),
        ),
        tab="compile",
        panels=(
            TablePanel("compile", "Compile", "signs", "no sign of torch.compile here"),
            TablePanel("compile-regions", "Regions", "regions", "no compiled regions here"),
            TablePanel("compile-graphs", "Graphs", "graphs", "no compiled graphs here", "total_ns"),
            TablePanel("compile-steps", "By step", "steps", "nothing compiled and no steps here"),
            TablePanel("compile-code", "By code", "code", NO_WORK, "total_ns"),
            TablePanel("compile-phases", "Phases", "phases", "no compilation here", "self_ns"),
        ),
        others=12,
        metrics="compile:compile_metrics",
        metric_group="compile",
    ),
    Analysis(
        "summary",
        "summary:analyse_summary",
        "Summary",
        "Summarise a trace: its metrics, kernels, ops, categories and steps, under names that do not "
        "change.\n\n"
        "`tracelane summary TRACE --json > baseline.json` saves what `tracelane diff baseline.json "
        "TRACE` compares.",
        (Option("rows", "The number of rows to keep of each table.", 30, least=1),),
        rows=1000,
    ),
)
"""In the order of help, documentation and metrics."""
BY_NAME = {row.name: row for row in ANALYSES}
PANELS = {panel.name: (row, panel) for row in ANALYSES for panel in row.panels}


def analyses_table() -> str:
    """Return all analyses as Markdown, for the docs."""
    keys = {tab.name: tab.key for tab in TABS}
    lines = ["| command | what it does | key: panels | metrics |", "|---|---|---|---|"]
    for row in ANALYSES:
        says = row.help.partition("\n")[0].rstrip(".")
        panels = ", ".join(panel.title for panel in row.panels)
        viewer = f"`{keys[row.tab]}`: {panels}" if row.tab else ""
        metrics = f"`{row.metric_group}.…`" if row.metrics else ""
        lines.append(f"| `{row.name}` | {says} | {viewer} | {metrics} |")
    return "\n".join(lines) + "\n"
