"""The commands, as data: what each takes. What one says in help, and does, is the function `run_NAME`, whose
module is loaded when it runs: help and completion are there at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from tracelane.core.sql import TIMEOUT_S

from .completing import complete_files, complete_limits
from .options import (
    COMPARED_ROWS,
    FORM,
    HELD,
    INDEX,
    LISTED_ROWS,
    LOGS,
    NEW_FILE,
    OPTIONS,
    PART,
    VERDICT,
    WHICH,
    WINDOW,
    Duration,
    WholeNumber,
    completed,
    limit_option,
    out_option,
)

DEMO_FOLDER = "tracelane-demo"
COMMENT = re.compile(r"--(\s|[^\n]*\n)")


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


_FILES = ("trace", *FORM, *WHICH, *INDEX)
READING: Mapping[str, Sequence[click.Parameter]] = {
    "view": parameters(
        *("traces", *WINDOW, "lanes", "where", *LOGS, "device_offsets", "colour", *WHICH, *INDEX),
        click.Option(
            ["--range", "span"], help="Take this as the range; or step:4, mark:NAME.", metavar="FROM..TO"
        ),
        click.Option(["--baseline"], help="Compare the tables with this range or step.", metavar="FROM..TO"),
        click.Option(
            ["--against"], help="Show this run below, step by step, with the changes.", metavar="TRACE"
        ),
        click.Option(["--marks"], help="Add the marks that :save marks wrote to a file.", metavar="FILE"),
        click.Option(["--search"], help="Mark the slices that match, as / does.", metavar="FILTER"),
        click.Option(["--width"], help="Columns of the printed picture.", type=WholeNumber(20, 1000)),
        click.Option(["--height"], help="Lines of the printed picture.", type=WholeNumber(4, 1000)),
        click.Option(["--fresh"], help="Start with a fresh view, not the saved one.", is_flag=True),
        click.Option(
            ["--log", "log_file"], help="Log the viewer's actions and errors to a file.", metavar="FILE"
        ),
        click.Option(
            ["--traces", "traces_of_store"],
            help="The folder of a store's traces.",
            metavar="WHERE",
            default="",
        ),
    ),
    "index": parameters(*_FILES),
    "collect": parameters(
        *("traces", *WHICH, *INDEX),
        click.Option(
            ["-o", "--out", "store"], help="The folder or URL to write to.", metavar="STORE", required=True
        ),
        click.Option(["--shard"], help="Do the I-th (from 0) of N parts, for job arrays.", metavar="I/N"),
        click.Option(
            ["--cluster"],
            help="Use local:N processes, or a dask scheduler such as tcp://host:8786.",
            metavar="WHERE",
        ),
        click.Option(["--with-index"], help="Keep each rank's index in the store, too.", is_flag=True),
    ),
    "info": parameters(*_FILES),
    "telemetry": parameters(
        *("traces", *LOGS, *WINDOW, "sort", "limit", *FORM, *WHICH, *INDEX),
        click.Option(
            ["--by"],
            help="Add means, greatest values and energy per step, or the energy by name of kernels.",
            type=click.Choice(["step", "kernel"]),
        ),
    ),
    "chain": parameters(
        *("traces", *PART, "limit", *FORM, "device_offsets", *WHICH, *INDEX),
        click.Option(["--name"], help="Slices whose name matches.", required=True, metavar="REGEX"),
        click.Option(
            ["--at"],
            help="The slice at this time: +12.5ms, @µs or a whole number of ns as in the file, step:4.",
            metavar="TIME",
        ),
        click.Option(["--all", "every"], help="Every match, not only the first.", is_flag=True),
    ),
    "cut": parameters(
        *("trace", *WINDOW, "lanes", "out", "device_offsets", *WHICH, *INDEX),
        out_option("The file to write; packed if it ends in .gz."),
    ),
    "slices": parameters(
        *("traces", *PART, "sort", "limit", *FORM, "device_offsets", *WHICH, *INDEX),
        limit_option(LISTED_ROWS),
    ),
    "sql": parameters(
        *("trace", "step_name", "limit", *FORM, *WHICH, *INDEX),
        limit_option(LISTED_ROWS),
        click.Argument(["query"], required=False),
        click.Option(
            ["--file"], help="Read the query from this file; -: from stdin.", type=click.Path(path_type=Path)
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
}
MAKING: Mapping[str, Sequence[click.Parameter]] = {
    "report": parameters(
        *("traces", *PART, "out", *LOGS, "device_offsets", *WHICH, *INDEX),
        out_option("Write the report to this file.", required=False),
        click.Option(
            ["--bundle"],
            help="Write a zip file: the report, a cut of one iteration, the summary, the logs' lines.",
            type=NEW_FILE,
        ),
        click.Option(["--baseline"], help="An earlier trace, or its summary, to compare with.", metavar="A"),
        click.Option(
            ["--redact"], help="Hide hosts, users, addresses and the folders of paths.", is_flag=True
        ),
    ),
    "export": parameters(
        *("traces", *PART, "out", "device_offsets", *WHICH, *INDEX),
        out_option("The file to write; its ending sets the format."),
    ),
    "diff": parameters(
        *("sides", *HELD, "limit", *FORM, "where", "attribute", "step_name", *VERDICT, *WHICH, *INDEX),
        limit_option(COMPARED_ROWS),
        click.Option(
            ["--tree", "as_tree"],
            help="Compare the trees of annotations, modules and ops, the worst first.",
            is_flag=True,
        ),
    ),
    "check": parameters(
        *("traces", *PART, *HELD, *FORM, *VERDICT, "device_offsets", *WHICH, *INDEX),
        *(
            click.Option(
                names,
                help=text,
                metavar="METRIC=VALUE",
                multiple=True,
                shell_complete=completed(complete_limits),
            )
            for names, text in (
                (["--max", "most"], "Fail if it is more: kernels.calls=400."),
                (["--min", "least"], "Fail if it is less: device.busy_share=80%."),
            )
        ),
        click.Option(
            ["--limits", "file"], help="Read limits from a TOML file: [max] and [min].", metavar="FILE"
        ),
        click.Option(
            ["--baseline", "baselines"],
            help="Earlier trace or summary for --fail-above; of several the median.",
            multiple=True,
            metavar="A",
        ),
    ),
    "history": parameters(
        *("names", "limit", *FORM),
        click.Argument(
            ["paths"], metavar="DIR…", nargs=-1, required=True, shell_complete=completed(complete_files)
        ),
        click.Option(["--by-time"], help="Order files by time, not by name.", is_flag=True),
    ),
    "cache": (),
    "demo": parameters(
        click.Option(
            ["--out"],
            help="The folder to write to.",
            type=click.Path(path_type=Path, file_okay=False),
            default=DEMO_FOLDER,
            show_default=True,
        ),
        click.Option(["--no-open"], help="Write the files and stop.", is_flag=True),
    ),
    "completion": parameters(click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish", "man"]))),
}
COMMANDS = {**READING, **MAKING}
"""Those before and those behind the analyses in lists."""
HOMES: Mapping[str, Sequence[str]] = {
    "comparisons": ("diff", "check", "history"),
    "info": ("info", "telemetry"),
    "slices": ("slices", "chain", "sql"),
    "index": ("index", "cache"),
    "export": ("export", "cut", "demo"),
}
"""Modules of several commands; that of any other has its name."""
CACHE_AGE = click.Option(
    ["--older-than"],
    help="Only those not opened for this long: 12h, 30d, 2w.",
    type=Duration(10**9, 0),
    metavar="AGE",
)


def home_of(name: str) -> str:
    """Return the module of one of these commands."""
    return next((home for home, names in HOMES.items() if name in names), name)


def command_named(name: str) -> click.Command:
    run = f"{home_of(name)}:run_{name}"
    if name == "cache":
        return command_of(name, (), run, click.Group, commands=_of_cache(), invoke_without_command=True)
    return command_of(name, COMMANDS[name], run, SqlCommand if name == "sql" else click.Command)


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
        from .opened import TraceOptions

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
