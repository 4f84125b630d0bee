"""The commands that are no analyses, as data: what each says in help, and what it takes. What one does is the
function `run_NAME`, whose module is loaded when it runs: help and completion are there at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from tracelane.core.base.late_pattern import late_pattern
from tracelane.core.sql import TIMEOUT_S

from .completing import complete_limits
from .options import (
    COMPARED_ROWS,
    FOLDER,
    FORM,
    HELD,
    INDEX,
    LISTED_ROWS,
    LOGS,
    NEW_FILE,
    OPTIONS,
    PART,
    PATH,
    VERDICT,
    WHICH,
    WINDOW,
    Duration,
    WholeNumber,
    limit_option,
    out_option,
)

DEMO_FOLDER = "tracelane-demo"
CAPTURE_FOLDER = "tracelane-capture"
MS = 500
"""How long `capture` records unless it is told."""
COMMENT = late_pattern(r"--(\s|[^\n]*\n)")


class SqlCommand(click.Command):
    """Takes a query that begins with a comment for a query, not for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hand on the arguments; a comment ends a line or begins with a blank, as no option does."""
        return super().parse_args(ctx, [f"\n{one}" if COMMENT.match(one) else one for one in args])


def parameters(*chosen: str | click.Parameter) -> list[click.Parameter]:
    """Return what a command takes: files, then options of its own, then those of the table that are named.
    One of its own that has such a name stands in its place.
    """
    own = {str(one.name): one for one in chosen if not isinstance(one, str)}
    shared = [own.pop(one, OPTIONS[one]) for one in chosen if isinstance(one, str)]
    files = [one for one in shared if isinstance(one, click.Argument)]
    return [*files, *own.values(), *(one for one in shared if one not in files)]


class OwnCommand(NamedTuple):
    """A command that is no analysis; those of analyses have all this from the registry."""

    name: str
    help: str  # the first paragraph stands in lists
    group: str  # of the list of commands in help
    examples: tuple[str, ...]  # command lines that show what it is good for
    parameters: Callable[[], Sequence[click.Parameter]] = tuple  # made when the command is
    module: str = ""  # where its function is; else in that of its name


_FILES = ("trace", *FORM, *WHICH, *INDEX)
READING = (
    OwnCommand(
        "view",
        "Open traces in the viewer; several are shown together.\n\n"
        "`-` reads from standard input, a directory stands for the traces in it. --step is also taken "
        "as the range. Where stdout is no terminal one picture and a summary are printed instead; with "
        "--text, and on a terminal whose TERM is unset or dumb, plain lines.",
        "Look",
        ("tracelane trace.json", "tracelane rank*.json --smi smi.log"),
        lambda: parameters(
            *("traces", *WINDOW, "lanes", "where", *LOGS, "device_offsets", "colour", *WHICH, *INDEX),
            click.Option(
                ["--range", "span"], help="Take this as the range; or step:4, mark:NAME.", metavar="FROM..TO"
            ),
            click.Option(
                ["--baseline"], help="Compare the tables with this range or step.", metavar="FROM..TO"
            ),
            click.Option(
                ["--against"],
                help="Show this run below, step by step, with the changes.",
                metavar="TRACE",
                type=PATH,
            ),
            click.Option(
                ["--marks"],
                help="Add the marks that :save marks wrote to a file.",
                metavar="FILE",
                type=PATH,
            ),
            click.Option(
                ["--search"], help="Mark the slices that match, as a search does.", metavar="FILTER"
            ),
            click.Option(["--width"], help="Columns of the printed picture.", type=WholeNumber(20, 1000)),
            click.Option(["--height"], help="Lines of the printed picture.", type=WholeNumber(4, 1000)),
            click.Option(
                ["--text", "as_text"],
                help="Print the verdict and what takes most time as plain lines, in place of a picture.",
                is_flag=True,
            ),
            click.Option(["--fresh"], help="Start with a fresh view, not the saved one.", is_flag=True),
            click.Option(
                ["--log", "log_file"],
                help="Log the viewer's actions and errors to a file.",
                metavar="FILE",
                type=PATH,
            ),
            click.Option(
                ["--traces", "traces_of_store"],
                help="The folder of a store's traces.",
                metavar="WHERE",
                type=PATH,
                default="",
            ),
        ),
    ),
    OwnCommand(
        "index",
        "Read a trace and keep its index, so that it opens at once later.\n\n"
        "Of a folder, all captures are read, unless --capture chooses one.",
        "Files",
        ("tracelane index trace.json.gz", "tracelane index traces/ --threads 2"),
        lambda: parameters(*_FILES),
    ),
    OwnCommand(
        "collect",
        "Summarise each rank's trace into a store, which then opens as a trace does: `tracelane "
        "STORE`.\n\n"
        "Traces and store may be folders or URLs. Running it again reads only what the store lacks. "
        "The exit code is 1 if a trace could not be read; each is named.",
        "Several ranks",
        (
            "tracelane collect traces/ -o store",
            "srun tracelane collect traces/ -o store --shard $SLURM_PROCID/$SLURM_NTASKS",
        ),
        lambda: parameters(
            *("traces", *WHICH, *INDEX),
            click.Option(
                ["-o", "--out", "store"],
                help="The folder or URL to write to.",
                metavar="STORE",
                type=PATH,
                required=True,
            ),
            click.Option(["--shard"], help="Do the I-th (from 0) of N parts, for job arrays.", metavar="I/N"),
            click.Option(
                ["--cluster"],
                help="Use local:N processes, or a dask scheduler such as tcp://host:8786.",
                metavar="WHERE",
            ),
            click.Option(["--with-index"], help="Keep each rank's index in the store, too.", is_flag=True),
        ),
    ),
    OwnCommand(
        "capture",
        "Have PyTorch processes that run record now, all at the same time, and open what they write.\n\n"
        "PID… are processes of yours, or what started them (torchrun: all its ranks); without one it is all "
        "that ask within 6 s. They must run with KINETO_USE_DAEMON=1 in their environment: then PyTorch asks "
        "every 5 s. Recording begins after 15 s. Exit code 1 if one of them has not recorded; each "
        "is named, with the reason. Linux only; docs/capture.md says what containers need.",
        "While it runs",
        ("tracelane capture", "tracelane capture 4242 --steps 5 --with shapes --smi smi.log -o traces"),
        lambda: parameters(
            "logs",
            click.Argument(["pids"], metavar="[PID…]", nargs=-1, type=WholeNumber(1, 1 << 31)),
            click.Option(
                ["--ms"],
                help=f"How many milliseconds are recorded. [default: {MS}]",
                type=WholeNumber(1, 600_000),
            ),
            click.Option(
                ["--steps"],
                help="Record this number of steps of the optimizer instead.",
                type=WholeNumber(1, 10_000),
            ),
            click.Option(
                ["--from-step"],
                help="Begin with this step, the same of all ranks; else with the next one of each.",
                type=WholeNumber(1, 1 << 31),
            ),
            click.Option(
                ["--with", "details"],
                help="What to record besides times; may be given again.",
                type=click.Choice(["shapes", "memory", "stacks", "flops", "modules"]),
                multiple=True,
            ),
            click.Option(
                ["--timeout"],
                help="Give up a process that has written nothing for so long. [default: 60, of steps 600]",
                type=Duration(10**9, 1, 86_400),
                metavar="SECONDS",
            ),
            click.Option(
                ["-o", "--out", "folder"],
                help="The folder to write to, for you alone.",
                type=FOLDER,
                default=CAPTURE_FOLDER,
                show_default=True,
                metavar="DIR",
            ),
            click.Option(["--no-open"], help="Print the names of the files and stop.", is_flag=True),
        ),
    ),
    OwnCommand(
        "watch",
        "Say a line of each capture that becomes complete in a folder: steps, step time, busy share, what "
        "costs time.\n\n"
        "With --against it names what changed beyond noise, with --limits the limits that are broken "
        "(metrics as in `tracelane summary`). After -- it runs a program, whose output stays as it is: then "
        "the lines go to stderr, signals to the program, and the exit code is the program's, else 1 if a "
        "limit was broken. Without a program it goes on until Ctrl+C. Captures that are there already are "
        "passed over.",
        "While it runs",
        (
            "tracelane watch traces --against before.json",
            "tracelane watch traces --limits limits.toml -- torchrun train.py",
        ),
        lambda: parameters(
            *("step_name", *INDEX),
            click.Argument(["folder"], metavar="DIR", type=PATH),
            click.Argument(["command"], metavar="[-- COMMAND…]", nargs=-1, type=click.UNPROCESSED),
            click.Option(
                ["--against"],
                help="Earlier trace or summary to compare with; of several the median.",
                multiple=True,
                metavar="BASE",
                type=PATH,
            ),
            click.Option(
                ["--limits", "file"],
                help="Read limits from a TOML file: [max] and [min].",
                metavar="FILE",
                type=PATH,
            ),
            click.Option(
                ["--json", "as_json"], help="Print an object of JSON for each, a line each.", is_flag=True
            ),
            click.Option(["--from-start"], help="Begin with the captures that are there.", is_flag=True),
            click.Option(["--count"], help="End after this number of captures.", type=WholeNumber(1)),
        ),
    ),
    OwnCommand(
        "info",
        "Say what a trace holds: events by kind, flows, processes and lanes, and every problem met.\n\n"
        "Of a folder it describes all captures, unless --capture chooses one. `scanner` is what reads "
        "here: the native core or plain Python; both make the same index. JSON is an object per file, "
        "a line each.",
        "Look",
        ("tracelane info trace.json", "tracelane info trace.json --json"),
        lambda: parameters(*_FILES),
    ),
    OwnCommand(
        "chain",
        "Show what launched a kernel: annotation, op, launch, kernel, with the time between them.\n\n"
        "For an op or annotation, list the kernels that were launched under it. JSON is one list.",
        "Look",
        ("tracelane chain trace.json --name matmul", "tracelane chain trace.json --name matmul --json"),
        lambda: parameters(
            *("traces", *PART, "limit", *FORM, "device_offsets", *WHICH, *INDEX),
            click.Option(["--name"], help="Slices whose name matches.", required=True, metavar="REGEX"),
            click.Option(
                ["--at"],
                help="The slice at this time: +12.5ms, @µs or a whole number of ns as in the file, step:4.",
                metavar="TIME",
            ),
            click.Option(["--all", "every"], help="Every match, not only the first.", is_flag=True),
        ),
        module="slices",
    ),
    OwnCommand(
        "cut",
        "Write a window of a trace as a trace of its own: slices that overlap it, exactly as in the source.",
        "Files",
        (
            "tracelane cut trace.json --step 4 -o step4.json",
            "tracelane cut trace.json --from +1ms --to +2ms -o part.json.gz",
        ),
        lambda: parameters(
            *("trace", *WINDOW, "lanes", "out", "device_offsets", *WHICH, *INDEX),
            out_option("The file to write; packed if it ends in .gz."),
        ),
        module="export",
    ),
    OwnCommand(
        "slices",
        "List slices in order of time: all of them, or those that match a filter and overlap a range.\n\n"
        "--sort duration or --sort self lists the longest first.\n\n"
        "A filter's terms must all hold: words, 'quoted text' and /regex/ for names; name=, cat:, "
        "lane:; dur>1ms and self>1ms; arg.KEY>1, =, : (contains); -term for its opposite. Times are "
        "ns as in the file.",
        "Look",
        (
            "tracelane slices trace.json --where 'dur>1ms'",
            "tracelane slices trace.json --step 4 --format csv -o step4.csv",
        ),
        lambda: parameters(
            *("traces", *PART, "sort", "limit", *FORM, "device_offsets", *WHICH, *INDEX),
            limit_option(LISTED_ROWS),
        ),
    ),
    OwnCommand(
        "telemetry",
        "Report what telemetry logs hold, how their clocks fit a trace, and the trace's own counters.\n\n"
        "Without --smi it reads the aiu-smi logs beside the trace. With --by step: power, energy, "
        "busy time and temperature of each step; with --step, or --from and --to: of that range, or "
        "of its steps. With --by kernel: the energy by name of the kernels and copies that ran for "
        "many sampling intervals in all. --sort, --limit and CSV are for the table of steps, kernels "
        "or the range, else for the trace's counters, else for the logs.",
        "Look",
        (
            "tracelane telemetry trace.json --smi smi.log",
            "tracelane telemetry trace.json --smi smi.log --by step --json",
        ),
        lambda: parameters(
            *("traces", *LOGS, *WINDOW, "sort", "limit", *FORM, *WHICH, *INDEX),
            click.Option(
                ["--by"],
                help="Add means, greatest values and energy per step, or the energy by name of kernels.",
                type=click.Choice(["step", "kernel"]),
            ),
        ),
        module="info",
    ),
    OwnCommand(
        "sql",
        "Answer a SELECT over the views slices, ops, kernels, launches, flows, counters, steps and "
        "args('key').\n\n"
        "arg(id, 'key') is an argument of one event, as a value. Times are whole ns, columns are "
        "listed in docs/sql.md. A query only reads the trace: no files, no settings, no network. "
        "DuckDB (pip install duckdb) reads the index as it is; SQLite gets a copy of the columns that "
        "the query names.",
        "Look",
        (
            'tracelane sql trace.json "select name, sum(dur) from slices group by 1 order by 2 desc limit 5"',
            "tracelane sql trace.json --file query.sql --format csv",
        ),
        lambda: parameters(
            *("trace", "step_name", "limit", *FORM, *WHICH, *INDEX),
            limit_option(LISTED_ROWS),
            click.Argument(["query"], required=False),
            click.Option(
                ["--file"],
                help="Read the query from this file; -: from stdin.",
                type=click.Path(path_type=Path),
            ),
            click.Option(
                ["--engine"],
                help="The engine; auto: DuckDB if installed, else SQLite.",
                type=click.Choice(["auto", "duckdb", "sqlite"]),
                default="auto",
                show_default=True,
            ),
            click.Option(
                ["--timeout"],
                help="Time limit of the query; 0: none.",
                type=Duration(10**9, 0, 1e9),
                default=TIMEOUT_S,
                show_default=True,
                metavar="SECONDS",
            ),
        ),
        module="slices",
    ),
)
MAKING = (
    OwnCommand(
        "report",
        "Write what a performance issue needs: environment, iterations, steps, device time, findings, "
        "tables.\n\n"
        "It has a picture of the iteration of median length, a summary of the aiu-smi logs (those "
        "beside the trace, or --smi), and a list of what you should add by hand. Without --out and "
        "--bundle it is printed. With --baseline exit code 3 where one of both lacks what the other has.",
        "Where does the time go?",
        ("tracelane report trace.json -o report.md", "tracelane report trace.json --bundle report.zip"),
        lambda: parameters(
            *("traces", *PART, "out", *LOGS, "device_offsets", *WHICH, *INDEX),
            out_option("Write the report to this file.", required=False),
            click.Option(
                ["--bundle"],
                help="Write a zip file: the report, a cut of one iteration, the summary, the logs' lines.",
                type=NEW_FILE,
            ),
            click.Option(
                ["--baseline"],
                help="An earlier trace, or its summary, to compare with.",
                metavar="A",
                type=PATH,
            ),
            click.Option(
                ["--redact"], help="Hide hosts, users, addresses and the folders of paths.", is_flag=True
            ),
        ),
    ),
    OwnCommand(
        "export",
        "Write a trace, or a part of it, for other programs; the name of the file says for which.\n\n"
        ".pftrace: Perfetto, with tracks, flows, counters and arguments. .speedscope.json: "
        "speedscope, a profile per lane. .folded: stacks for flamegraph.pl. .sqlite: the views of "
        "`tracelane sql` as tables. .parquet: the slices (needs pyarrow or duckdb). .html: a page "
        "with pictures and tables. .json.gz, .json: the trace's own events, byte by byte.",
        "Files",
        (
            "tracelane export trace.json -o trace.pftrace",
            "tracelane export trace.json --from step:4 --to step:5 -o part.speedscope.json",
        ),
        lambda: parameters(
            *("traces", *PART, "out", "device_offsets", *WHICH, *INDEX),
            out_option("The file to write; its ending sets the format."),
        ),
    ),
    OwnCommand(
        "diff",
        "Say what changed from A to B: metrics, steps, categories, ops, modules and kernels, the "
        "worst first.\n\n"
        "--fail-above checks the time of kernels (without copies and memsets), or what --metric "
        "names. A rise within the noise does not fail; the noise is that of the steps, or of three or "
        "more earlier runs (A A A B). Where nothing repeats, only the share decides.\n\n"
        "A side is a trace, a step of it (A:step=4, A:step=nth:-1), a range (A:+10ms..+20ms), or a "
        "file that `tracelane summary --json` wrote. Names are compared without generated hashes and "
        "step numbers. --run, --capture, --rank and --step-name are for all sides. Exit code 3: a side "
        "lacks what the other has (lost work, a cut file), so they cannot be compared.",
        "Compare, and CI",
        ("tracelane diff before.json after.json", "tracelane diff before.json after.json --fail-above 3%"),
        lambda: parameters(
            *("sides", *HELD, "limit", *FORM, "where", "attribute", "step_name", *VERDICT, *WHICH, *INDEX),
            limit_option(COMPARED_ROWS),
            click.Option(
                ["--tree", "as_tree"],
                help="Compare the trees of annotations, modules and ops, the worst first.",
                is_flag=True,
            ),
        ),
        module="comparisons",
    ),
    OwnCommand(
        "check",
        "Check a trace against limits and earlier runs: exit code 0 if all hold, 1 if not, 2 if "
        "unreadable, 3 if a side lacks what the other has (lost work, a cut file, a device).\n\n"
        "`tracelane summary TRACE` lists the metrics. Values take units: 250ms, 1.5GiB, 80%. A limit "
        "fails if the trace lacks its metric. With --baseline, --fail-above 5% fails where the time "
        "of kernels (or what --metric names) rose by more than that, and by more than its noise: that "
        "of three and more baselines, else of the steps.",
        "Compare, and CI",
        (
            "tracelane check trace.json --max step.length.median=250ms",
            "tracelane check trace.json --baseline before.json --fail-above 5% --junit result.xml",
        ),
        lambda: parameters(
            *("traces", *PART, *HELD, *FORM, *VERDICT, "device_offsets", *WHICH, *INDEX),
            *(
                click.Option(
                    names,
                    help=text,
                    metavar="METRIC=VALUE",
                    multiple=True,
                    shell_complete=complete_limits,
                )
                for names, text in (
                    (["--max", "most"], "Fail if it is more: kernels.calls=400."),
                    (["--min", "least"], "Fail if it is less: device.busy_share=80%."),
                )
            ),
            click.Option(
                ["--limits", "file"],
                help="Read limits from a TOML file: [max] and [min].",
                metavar="FILE",
                type=PATH,
            ),
            click.Option(
                ["--baseline", "baselines"],
                help="Earlier trace or summary for --fail-above; of several the median.",
                multiple=True,
                metavar="A",
                type=PATH,
            ),
        ),
        module="comparisons",
    ),
    OwnCommand(
        "history",
        "Show metrics over many summaries, as a table and a plot: each against the median of those "
        "before it.\n\n"
        "DIR is a folder of files that `tracelane summary TRACE --json` wrote; you can also name "
        "files. They are ordered by name, with numbers by value. From the fourth run on it says "
        "whether a change is more than noise. Without --metric it is the first of kernels.time, "
        "step.length.median, ops.self_cpu that exists. --limit has only the last runs; all count for "
        "the noise. A run that lacks what others have (lost work, a cut file) is held against none of "
        "them; exit code 3 if the last one is.",
        "Compare, and CI",
        ("tracelane history summaries/", "tracelane history summaries/ --metric kernels.time"),
        lambda: parameters(
            *("names", "limit", *FORM),
            click.Argument(["paths"], metavar="DIR…", nargs=-1, required=True, type=PATH),
            click.Option(["--by-time"], help="Order files by time, not by name.", is_flag=True),
        ),
        module="comparisons",
    ),
    OwnCommand(
        "cache",
        "List or clear the indexes kept of traces opened before.",
        "Files",
        ("tracelane cache list", "tracelane cache clear --older-than 30d"),
        module="index",
    ),
    OwnCommand(
        "demo",
        "Write a small AIU trace of two ranks, and the aiu-smi log of their cards, and open it.\n\n"
        "Three training steps of a transformer; the files are the same, byte for byte, everywhere.",
        "Files",
        ("tracelane demo", "tracelane demo --out demo"),
        lambda: parameters(
            click.Option(
                ["--out"],
                help="The folder to write to.",
                type=FOLDER,
                default=DEMO_FOLDER,
                show_default=True,
            ),
            click.Option(["--no-open"], help="Write the files and stop.", is_flag=True),
        ),
        module="export",
    ),
    OwnCommand(
        "completion",
        "Print a script with which a shell completes commands, options, files, lanes, steps and metrics.\n\n"
        "Lanes and steps are those of the first trace before them on the line, once it has an index.",
        "Files",
        (
            'eval "$(tracelane completion bash)"',
            "tracelane completion fish > ~/.config/fish/completions/tracelane.fish",
        ),
        lambda: parameters(click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))),
    ),
)
COMMANDS = {row.name: row for row in (*READING, *MAKING)}
"""Those before and those behind the analyses in lists."""
CACHE_AGE = click.Option(
    ["--older-than"],
    help="Only those not opened for this long: 12h, 30d, 2w.",
    type=Duration(10**9, 0, bare=False),
    metavar="AGE",
)


def command_named(name: str) -> click.Command:
    row = COMMANDS[name]
    run = f"{row.module or name}:run_{name}"
    if name == "cache":
        return command_of(name, (), run, click.Group, commands=_of_cache(), invoke_without_command=True)
    return command_of(name, row.parameters(), run, SqlCommand if name == "sql" else click.Command)


def command_of(
    name: str,
    params: Sequence[click.Parameter],
    run: Callable[..., None] | str,
    kind: type[click.Command] = click.Command,
    **texts: Any,
) -> click.Command:
    """Return a command that runs a function, or one that "module:function" names here: it gets what options
    of the table say as one value, `options`, and its own by name.
    """

    def callback(**values: Any) -> None:
        from .trace_options import TraceOptions

        fields = TraceOptions.__dataclass_fields__.keys() & values.keys()
        if fields:
            options = TraceOptions(**{field: values.pop(field) for field in fields})
            values["options"] = options.complete() if options.wait else options
        if isinstance(run, str):
            module, _, name = run.partition(":")
            getattr(import_module(f".{module}", __package__), name)(**values)
        else:
            run(**values)

    return kind(name, params=[*params], callback=callback, **texts)


def _of_cache() -> dict[str, click.Command]:
    text = "List the indexes: size, {}last opened, folder, trace; and which were removed lately."
    listing = command_of(
        "list", parameters(*FORM), "index:run_list", help=text.format("when "), short_help=text.format("")
    )
    clearing = command_of(
        "clear",
        [CACHE_AGE],
        "index:run_clear",
        help="Remove the indexes; those in use stay until they are closed.",
    )
    return {"list": listing, "clear": clearing}
