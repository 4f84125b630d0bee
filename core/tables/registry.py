"""One row per analysis: from it come its command, JSON, panel, tab, palette entry, metrics and documentation.

To add one, write a function in a file of this folder that takes a Scope (and options by name) and returns
Tables, and add its row to OWN. Rows name functions as "module:function", so that this module loads none.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection

from ..base.installed import ADDED_ANALYSES, added
from .analysis import TABS as TABS
from .analysis import Analysis, Need, Option, TablePanel

STEP_ROWS = 100
"""The number of rows that PyTorch prints."""


TIME = "Where does the time go?"
ARTEFACTS = Option(
    "artefacts",
    "Files of the compiler: a folder or file; else those beside the trace.",
    metavar="PATH",
    check="compile.artefacts:check_path",
    path="(?P<path>.+)",
)
IDEAL = r"ideal:(?P<path>.*?)(?:@(?P<mhz>\d{1,6}(?:\.\d{1,6})?))?"
"""A column of ideal cycles: where the compiler wrote them, and the clock of the cores."""
OWN = (
    Analysis(
        "range",
        "host.range_table:analyse_range",
        "Table",
        "Sum up the slices of a range, or of the whole trace: by name and category, by lane, or by "
        "category.\n\n"
        "A slice that an edge of the range cuts counts with the part inside. JSON and CSV have times in ns.",
        (Option("by", "Rows.", "name", ("name", "lane", "category")),),
        tab="table",
        panels=(
            TablePanel(
                "table",
                "Name",
                "Sum up the slices of the range, or all, by name and category",
                "range",
                "no slices here",
                sort="self_ns",
            ),
            TablePanel(
                "lanes-busy",
                "Lane",
                "Say how busy each lane is in the range, or in the whole trace",
                "range",
                "no slices here",
                sort="busy_ns",
                options=(("by", "lane"),),
            ),
            TablePanel(
                "categories",
                "Category",
                "Sum up the slices of the range, or all, by category",
                "range",
                "no slices here",
                sort="self_ns",
                options=(("by", "category"),),
            ),
        ),
        metrics="host.range_table:range_metrics",
        metric_group="trace",
        group="Look",
        examples=(
            "tracelane range trace.json --from +100us --to +400us",
            "tracelane range trace.json --step 4 --json",
        ),
        doubts="host",
    ),
    Analysis(
        "tree",
        "host.tree:analyse_tree",
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
            TablePanel(
                "tree",
                "Top down",
                "Show which calls made which, from the outermost inwards",
                "tree",
                "no slices here",
                is_compared=False,
            ),
            TablePanel(
                "tree-callers",
                "Bottom up",
                "Show for each name from where it is called, its callers merged",
                "tree",
                "no slices here",
                options=(("bottom_up", True),),
                is_compared=False,
            ),
            TablePanel(
                "tree-threads",
                "By thread",
                "Show the call tree of each thread by itself",
                "tree",
                "no slices here",
                options=(("by", "thread"),),
                is_compared=False,
            ),
            TablePanel(
                "tree-launches",
                "By launch",
                "Show the device work below the calls that launched it",
                "tree",
                "no device work here",
                options=(("by", "launch"),),
                is_compared=False,
                needs=("devices",),
            ),
        ),
        rows=40,
        limits="lists",
        metric_group="tree",
        formats=(("folded", "host.tree:folded_lines"),),
        group="Look",
        examples=(
            "tracelane tree trace.json --step 4",
            "tracelane tree trace.json --format folded -o x.folded",
        ),
        doubts="host",
    ),
    Analysis(
        "ops",
        "host.ops:analyse_ops",
        "Ops",
        "Print what PyTorch's key_averages().table() prints, from the trace file alone.\n\n"
        "--sort takes PyTorch's sort keys, such as self_cpu_time_total. Without it text is sorted by "
        "self time (of the device, where there is one); JSON and CSV have PyTorch's own order.",
        (
            Option(
                "group_by",
                "Group ops also by input shapes, by N stack frames, by module, or by what runs them (ONNX "
                "Runtime's execution provider).",
                metavar="shape|stack:N|module|provider",
                check="host.op_sums:parse_grouping",
            ),
            Option("by", "One table for each step, one below the other.", choices=("step",)),
            Option(
                "no_frames",
                "Leave Python frames out, as PyTorch until 2.11 did. 2.14 hides their rows only.",
                default=False,
            ),
        ),
        tab="table",
        panels=(
            TablePanel(
                "ops",
                "Op",
                "Show PyTorch's table of ops (key_averages); again: by shape, by module",
                "ops",
                "no ops here",
                sort="self_cpu_ns",
                words="operators key_averages",
            ),
            TablePanel(
                "ops-shape",
                "Shape",
                "Show the table of ops by name and input shapes",
                "ops",
                "no ops here",
                sort="self_cpu_ns",
                options=(("group_by", "shape"),),
            ),
            TablePanel(
                "ops-module",
                "Module",
                "Show the table of ops by the nn.Module that called them",
                "ops",
                "no ops here",
                sort="self_cpu_ns",
                options=(("group_by", "module"),),
            ),
        ),
        rows=STEP_ROWS,
        sort="host.ops:sort_column",
        metrics="host.ops:op_metrics",
        metric_group="ops",
        group=TIME,
        examples=("tracelane ops trace.json --sort self_cpu_ns", "tracelane ops trace.json --by step"),
        doubts="host",
    ),
    Analysis(
        "steps",
        "steps.steps:analyse_steps",
        "Steps",
        "List the steps with their wall, busy and idle time, and say why these slices are steps.\n\n"
        "Below them: groups of steps (prefill, decode, batch size) with p50, p95, p99 and max.",
        (Option("groups", "Print only the groups: prefill, decode, batch size.", False),),
        tab="steps",
        panels=(
            TablePanel(
                "steps",
                "Steps",
                "Show how long each step took, and what for",
                "steps",
                "no steps here: :steps NAME takes slices of a name for steps",
                to_first=True,
                needs=("steps",),
            ),
        ),
        rows=STEP_ROWS,
        metrics="steps.steps:step_metrics",
        metric_group="step",
        group=TIME,
        examples=("tracelane steps trace.json", "tracelane steps trace.json --format csv"),
    ),
    Analysis(
        "breakdown",
        "device.breakdown:analyse_breakdown",
        "Time",
        "Divide the time of each device: busy and idle, compute, communication, copies, and what "
        "overlaps.\n\nKernel time runs from the first start to the last end; work that runs at the same time "
        "counts once.",
        tab="time",
        panels=(
            TablePanel(
                "time",
                "Time",
                "Show for each device how long it computed, copied, communicated, waited or was idle",
                "states",
                "no device work here",
                needs=("devices",),
            ),
        ),
        metrics="device.breakdown:breakdown_metrics",
        metric_group="device",
        group=TIME,
        examples=("tracelane breakdown trace.json", "tracelane breakdown trace.json --step 4"),
        doubts="device",
    ),
    Analysis(
        "kernels",
        "device.kernels:analyse_kernels",
        "Kernels",
        "List the device work by name: how often it ran, its total, mean, median and longest time.",
        (
            Option(
                "by",
                "What a row is. short: the shortest names that differ, also in JSON; kind: GEMM, "
                "attention, copy …; step, op, module, annotation: the innermost that launched the work.",
                "name",
                ("name", "short", "stream", "type", "kind", "step", "op", "module", "annotation"),
            ),
            Option(
                "group_by",
                "A row for each value of an argument.",
                metavar="arg:KEY",
                check="device.kernels:argument_key",
            ),
            Option(
                "column",
                "Add the sum and mean of an argument, with --runs its value; the cycles that an AIU counted "
                "by phase; or its ideal cycles from its compiler's log or Inductor's cache folder, for cores "
                "of 1100 MHz.",
                (),
                metavar="arg:KEY|cycles|ideal:PATH[@MHZ]",
                check="device.kernels:check_column",
                path=IDEAL,
            ),
            Option(
                "runs",
                "List the runs of the kernels whose name matches, and their histogram.",
                metavar="REGEX",
                check="device.kernels:check_pattern",
            ),
            Option("order", "Which runs first.", "slowest", ("slowest", "time")),
        ),
        tab="table",
        panels=(
            TablePanel(
                "kernels",
                "Kernel",
                "Show the device work of the range, or all, by name",
                "kernels",
                "no device work here",
                sort="total_ns",
                words="gpu device work",
                needs=("devices",),
            ),
        ),
        limits="both",
        metrics="device.kernels:kernel_metrics",
        metric_group="kernels",
        group=TIME,
        examples=("tracelane kernels trace.json", "tracelane kernels trace.json --step 4 --limit 5"),
    ),
    Analysis(
        "efficiency",
        "device.efficiency:analyse_efficiency",
        "Efficiency",
        "Say what operators achieve by name and shapes: FLOP/s, bytes/s, and their part of the peak."
        "\n\nFLOPs and bytes come from shapes, types and other inputs (record_shapes=True). Operators "
        "without a model are left out; the totals say how much time has one. --format svg draws them.",
        rows=40,
        metric_group="efficiency",
        formats=(("svg", "device.efficiency:plot_svg"),),
        group=TIME,
        examples=("tracelane efficiency trace.json", "tracelane efficiency trace.json --format svg -o x.svg"),
    ),
    Analysis(
        "source",
        "compile.compile:analyse_source",
        "Source",
        "Say which source lines, ops and FX nodes each compiled kernel was made of, and why graphs broke or "
        "were compiled again.\n\nIt reads what the compiler wrote: TORCH_TRACE logs and what tlparse makes "
        "of them, TORCH_COMPILE_DEBUG folders, TORCH_LOGS, output_code.py, spyre_provenance.json.",
        (ARTEFACTS,),
        others=12,
        metric_group="source",
        group=TIME,
        examples=("tracelane source trace.json", "tracelane source trace.json --artefacts /tmp/trace_logs"),
    ),
    Analysis(
        "idle",
        "device.idle:analyse_idle",
        "Idle",
        "Say how long each stream was idle and why; list the longest gaps and the launch that ended "
        "each.\n\nA gap is a host wait if the launch that ended it began after the earlier work was done.",
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
            TablePanel(
                "idle",
                "Idle",
                "Show why each stream was idle, and for how long",
                "streams",
                "no device work here",
                sort="idle_ns",
                needs=("devices",),
            ),
            TablePanel(
                "gaps",
                "Gaps that recur",
                "Show the gaps that recur, by what runs before and after them",
                "idle",
                "no gap between device work here",
                sort="idle_ns",
                options=(("recurring", True),),
                needs=("devices",),
            ),
        ),
        limits="lists",
        metrics="device.idle:idle_metrics",
        metric_group="idle",
        group=TIME,
        examples=("tracelane idle trace.json", "tracelane idle trace.json --json"),
        doubts="device",
    ),
    Analysis(
        "launches",
        "device.launches:analyse_launches",
        "Launches",
        "Say how long each launch call took, how long its work then waited, and how long the queues "
        "were.\n\nWork is matched to its launch by flow, else by correlation. It counts where it starts, "
        "with its whole time.",
        tab="time",
        panels=(
            TablePanel(
                "launches",
                "Launches",
                "Show how long launch calls took, and how long their work waited",
                "launches",
                "no launches of device work here",
                needs=("devices",),
            ),
        ),
        limits="lists",
        metrics="device.launches:launch_metrics",
        metric_group="launches",
        group=TIME,
        examples=("tracelane launches trace.json", "tracelane launches trace.json --sort call_ns"),
    ),
    Analysis(
        "critical_path",
        "path.critical_path:analyse_critical_path",
        "Critical path",
        "Say what the length of a step hangs on: from its end back along what released each point."
        "\n\nThe segments have neither holes nor overlap: together they are as long as the window, of a step "
        "to the end of the last work that it launched. --without and --scale say how long it would be if "
        "slices of a name took no time, or another one.",
        (
            Option("by", "Sum the path up.", choices=("name", "kind", "rank", "op")),
            Option(
                "without", "How long it would be if slices of this name took no time.", (), metavar="NAME"
            ),
            Option(
                "scale",
                "How long it would be if they took this many times as long.",
                (),
                metavar="NAME=0.5",
                check="path.critical_path:scale_of",
            ),
            Option(
                "start_rank",
                "Begin at the end of this rank, not at that of the last.",
                None,
                metavar="N",
                least=0,
            ),
        ),
        tab="time",
        panels=(
            TablePanel(
                "critical-path",
                "Path",
                "Show what the length of the step or range hangs on, by kind",
                "path",
                "no slices here",
                sort="duration_ns",
                options=(("by", "kind"),),
            ),
            TablePanel(
                "critical-segments",
                "Segments",
                "List what the length of the step or range hangs on, one after the other",
                "segments",
                "no slices here",
                is_compared=False,
            ),
        ),
        others=12,
        metric_group="critical_path",
        group=TIME,
        examples=(
            "tracelane critical-path trace.json --step 4",
            "tracelane critical-path trace.json --step 4 --by op",
        ),
    ),
    Analysis(
        "sections",
        "host.sections:analyse_sections",
        "Sections",
        "List the section calls of a SambaTune report by hyperfunction and hypersection, with mean "
        "arguments.\n\nA hyperfunction is a row of the report. A hypersection is the argument of that name, "
        "or the colour where there is none. Estimated and measured latency come first, then their ratio.",
        (Option("by", "Rows.", "both", ("both", "hyperfunction", "hypersection")),),
        tab="table",
        panels=(
            TablePanel(
                "sections",
                "Sections",
                "Show the hypersections of a SambaTune report",
                "sections",
                "no SambaTune report (…_chrome_tracing_report.json)",
                options=(("only_report", True),),
                needs=("report",),
            ),
        ),
        metric_group="sections",
        group=TIME,
        examples=("tracelane sections report.json", "tracelane sections report.json --json"),
    ),
    Analysis(
        "ranks",
        "ranks.rank_tables:analyse_ranks",
        "Ranks",
        "List for each rank step time, compute, communication, idle and waiting time, and how often it came "
        "last.\n\nFurther tables have the slowest rank of each step, and the collectives with how far apart "
        "their ranks began. Clocks are aligned by the collectives. JSON has the times of every rank in every "
        "collective, and each rank step by step.",
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
                "",
                ("ranks", "steps", "collectives", "imbalance", "heat"),
            ),
        ),
        tab="ranks",
        panels=(
            TablePanel(
                "ranks",
                "Ranks",
                "Show for each rank compute, communication, waiting and how often it came last",
                "ranks",
                "no ranks here",
            ),
            TablePanel(
                "collectives",
                "Collectives",
                "Show how far apart the ranks came to each collective, who was last, how much it moved",
                "collectives",
                "no collectives here",
                sort="spread_ns",
            ),
            TablePanel(
                "rank-steps",
                "Slowest by step",
                "Show which rank was slowest in each step",
                "steps",
                "no step here that several ranks have",
                needs=("ranks", "steps"),
            ),
            TablePanel(
                "rank-heat",
                "Ranks by steps",
                "Show the time of each rank in each step",
                "heat",
                "no step here that several ranks have",
                needs=("steps",),
            ),
        ),
        others=30,
        metric_group="ranks",
        group="Several ranks",
        examples=("tracelane ranks traces/", "tracelane ranks traces/ --json"),
    ),
    Analysis(
        "findings",
        "findings.forms:analyse_findings",
        "Findings",
        "List what costs time: how much, where to see it, when its rule applies, and what usually "
        "helps.\n\nFindings are listed costliest first, each followed by those that it explains. A stretch "
        "of time is claimed once. Rules for which the trace lacks the data are listed as not checked.",
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
        metric_group="findings",
        group=TIME,
        examples=("tracelane findings trace.json", "tracelane findings trace.json --json"),
    ),
    Analysis(
        "explain",
        "explain.questions:analyse_explain",
        "Explain",
        "Say in a few KB what costs most time and what can be trusted, each with the command that shows it."
        "\n\nWith --question it answers one of those below the causes, or one in words. In commands "
        "TRACE stands for what was opened.",
        (
            Option(
                "question",
                "What to answer, by name or in words.",
                metavar="TEXT",
                check="explain.questions:question_of",
            ),
        ),
        metric_group="explain",
        group=TIME,
        examples=(
            "tracelane explain trace.json --json",
            "tracelane explain trace.json --question kernel --json",
        ),
    ),
    Analysis(
        "doctor",
        "doctor.doctor:analyse_doctor",
        "Doctor",
        "Check whether a trace can be trusted: what was not read, clocks, overlaps, what was lost.\n\n"
        "Each row says what it distorts. The exit code is 0 if there is nothing, 1 from a warning on, "
        "and 2 if the trace is unreadable.\n\n"
        "--recount reads the files once more, through ijson, another parser of JSON, and compares phase, "
        "name, time and duration of every event with the index: exit code 1 for the first difference.",
        (
            Option("strict", "Exit with 1 also for notes.", False),
            Option("recount", "Compare every event with what another parser reads.", False),
        ),
        rows=100,
        metric_group="doctor",
        group="Files",
        examples=("tracelane doctor trace.json", "tracelane doctor trace.json --recount"),
        exit_code="doctor.doctor:doctor_exit_code",
        beforehand="doctor.doctor:said_before_recount",
    ),
    Analysis(
        "memory",
        "device.memory:analyse_memory",
        "Memory",
        "Report the memory that was allocated: at the peak and at the end, by which ops, and the "
        "copies.\n\nAllocations are in the trace if it was recorded with profile_memory=True.",
        (
            Option(
                "first",
                "The table to print first; csv holds only this one. curve: every record.",
                "allocators",
                ("allocators", "peak", "kept", "steps", "stacks", "segments", "copies", "curve"),
            ),
        ),
        tab="memory",
        panels=(
            TablePanel(
                "memory",
                "Memory",
                "Show how much each allocator had given out, at the peak and at the end",
                "allocators",
                "no allocation is recorded here: profile_memory=True records them",
                needs=("memory",),
            ),
            TablePanel(
                "memory-peak",
                "At the peak",
                "Show which ops held memory at the peak",
                "at_peak",
                "no allocation is recorded here: profile_memory=True records them",
                sort="bytes",
                needs=("memory",),
            ),
            TablePanel(
                "memory-steps",
                "By step",
                "Show what each step allocated and what of that was never released",
                "steps",
                "no allocation in a step here",
                needs=("memory", "steps"),
            ),
            TablePanel(
                "memory-stacks",
                "Stacks",
                "Show by which stacks memory was allocated that was held at the peak",
                "stacks",
                "no allocation is recorded here: profile_memory=True records them",
                sort="bytes",
                needs=("memory",),
            ),
            TablePanel(
                "memory-segments",
                "Segments",
                "Show the segments of a snapshot's memory: what is in use, what is free, in how many pieces",
                "segments",
                "no snapshot of PyTorch's memory here: _dump_snapshot writes one",
                sort="free_bytes",
                is_compared=False,
                needs=("segments",),
            ),
            TablePanel(
                "copies",
                "Copies",
                "Show the copies between host and device, by kind",
                "copies",
                "no copies here",
                sort="bytes",
                needs=("devices",),
            ),
        ),
        limits="lists",
        metrics="device.memory:memory_metrics",
        metric_group="memory",
        group=TIME,
        formats=(("folded", "device.memory_stacks:folded_bytes"),),
        examples=(
            "tracelane memory trace.json",
            "tracelane memory trace.json --format md",
            "tracelane memory snapshot.pickle --first segments",
            "tracelane memory snapshot.pickle --format folded -o peak.folded",
        ),
    ),
    Analysis(
        "compile",
        "compile.compile:analyse_compile",
        "Compile",
        "Say whether torch.compile was used and how that is known, what ran compiled, and what compiling "
        "took.\n\nRegions form a tree: a region inside another one is a graph break, or compilation is "
        "disabled there.",
        (
            Option(
                "first",
                "The table to print first; csv holds only this one.",
                "signs",
                ("signs", "regions", "graphs", "steps", "code", "phases", "compilations"),
            ),
            ARTEFACTS,
        ),
        tab="compile",
        panels=(
            TablePanel(
                "compile",
                "Compile",
                "Show the signs of torch.compile: compilations, recompilations, graph breaks",
                "signs",
                "no sign of torch.compile here",
                needs=("compile",),
            ),
            TablePanel(
                "compile-regions",
                "Regions",
                "Show the compiled regions, by their calls",
                "regions",
                "no compiled regions here",
                needs=("regions",),
            ),
            TablePanel(
                "compile-graphs",
                "Graphs",
                "Show the compiled graphs, by the time of their calls",
                "graphs",
                "no compiled graphs here",
                sort="total_ns",
                needs=("graphs",),
            ),
            TablePanel(
                "compile-steps",
                "By step",
                "Show for each step what was compiled in it",
                "steps",
                "nothing compiled and no steps here",
                needs=("compile",),
            ),
            TablePanel(
                "compile-code",
                "By code",
                "Show the device work of compiled code, by where it was generated",
                "code",
                "no device work here",
                sort="total_ns",
                needs=("devices",),
            ),
            TablePanel(
                "compile-phases",
                "Phases",
                "Show how long each phase of compilation took",
                "phases",
                "no compilation here",
                sort="self_ns",
                needs=("phases",),
            ),
        ),
        others=12,
        metrics="compile.compile:compile_metrics",
        metric_group="compile",
        group=TIME,
        examples=("tracelane compile trace.json", "tracelane compile trace.json --json"),
    ),
    Analysis(
        "summary",
        "compare.summary:analyse_summary",
        "Summary",
        "Summarise a trace: its metrics, kernels, ops, categories and steps, under names that do not "
        "change.\n\n`tracelane summary TRACE --json > baseline.json` saves what `tracelane diff "
        "baseline.json TRACE` compares.",
        (Option("rows", "The number of rows to keep of each table.", 30, least=1),),
        rows=1000,
        metric_group="summary",
        group="Compare, and CI",
        examples=("tracelane summary trace.json", "tracelane summary trace.json --json -o summary.json"),
        doubts="all",
    ),
)
"""In the order of help, documentation and metrics."""


def _added_rows() -> tuple[Analysis, ...]:
    """Return the rows of other packages; one without a name of its own is warned of and left out."""
    names, rows = {row.name for row in OWN}, list[Analysis]()
    for point, row in added(ADDED_ANALYSES).items():
        if isinstance(row, Analysis) and row.name not in names:
            names.add(row.name)
            rows.append(row)
        else:
            warnings.warn(f"{ADDED_ANALYSES}: {point} is no analysis with a name of its own", stacklevel=2)
    return tuple(rows)


ANALYSES = (*OWN, *_added_rows())
"""Those of this package, then those that other installed packages add."""
BY_NAME = {row.name: row for row in ANALYSES}
PANELS = {panel.name: (row, panel) for row in ANALYSES for panel in row.panels}


def panels_without(lacks: Collection[Need]) -> set[str]:
    """Return the panels that are empty in a trace that lacks something."""
    return {name for name, (_, panel) in PANELS.items() if not set(lacks).isdisjoint(panel.needs)}


def analyses_table() -> str:
    """Return all analyses as Markdown, for the docs."""
    keys = {tab.name: tab.key for tab in TABS}
    lines = ["| command | what it does | key: panels | metrics |", "|---|---|---|---|"]
    for row in ANALYSES:
        says = row.help.partition("\n")[0].rstrip(".")
        panels = ", ".join(panel.title for panel in row.panels)
        viewer = f"`{keys[row.tab]}`: {panels}" if row.tab else ""
        metrics = f"`{row.metric_group}.…`" if row.metrics else ""
        lines.append(f"| `{row.command}` | {says} | {viewer} | {metrics} |")
    return "\n".join(lines) + "\n"
