"""The options of all commands: one table, of which each command takes what it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from tracelane.core.base.errors import CacheError, UsageError
from tracelane.core.base.late_pattern import late_pattern
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.output import printed_to
from tracelane.core.export.forms import FORMS

from . import completing

if TYPE_CHECKING:
    from tracelane.core.read.source import TsUnit
    from tracelane.core.tables.frame.scope import Attribute


SECOND = 10**9
TIMES: Mapping[str, int] = {
    "ns": 1,
    "us": 1000,
    "µs": 1000,
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "h": 3600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
"""Units of times, in ns."""


def _short(value: object) -> str:
    """Return a value as typed, of a long one the beginning."""
    text = str(value)
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


class BoundedNumber(click.ParamType[float]):
    name = "number"

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        """Take numbers from `least` to `most`, both included."""
        self._least, self._most = least, most

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a usage error where it is none, too small or too large."""
        try:
            number = self._number(value)
            is_known = isfinite(number)
        except (ValueError, OverflowError):
            is_known = False
        if not is_known:
            self.fail(f"{_short(value)!r} is not a {self.name}", param, ctx)
        if self._least is not None and number < self._least:
            self.fail(f"{_short(value)} is less than {self._least:g}", param, ctx)
        if self._most is not None and number > self._most:
            self.fail(f"{_short(value)} is more than {self._most:g}", param, ctx)
        return number

    def _number(self, value: Any) -> float:
        return float(value)


class WholeNumber(BoundedNumber):
    name = "whole number"

    def __init__(self, least: int = 0, most: int = 10**18) -> None:
        """Take numbers from `least` to `most`, both included."""
        super().__init__(least, most)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Return what help says in place of the value."""
        return "N"

    def _number(self, value: Any) -> int:
        return whole_number(value) if isinstance(value, str) else int(value)


class Duration(BoundedNumber):
    """A time within bounds, in ns of a unit: a number counts in that unit, 100us, 2ms or 1.5s say theirs."""

    name = "time"
    _WITH_UNIT = late_pattern(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*([a-zµ]+)\s*")

    def __init__(
        self, unit_ns: int, least: float | None = None, most: float | None = None, *, bare: bool = True
    ) -> None:
        """Bounds and results count in the unit, which a number has to say unless it may stand `bare`."""
        super().__init__(least, most)
        self._unit_ns, self._bare = unit_ns, bare
        if not bare:
            self.name = "time with its unit, such as 30d"

    def _number(self, value: Any) -> float:
        match = self._WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
        if match is None or match[2] not in TIMES:
            number = float(value)
            if number and not self._bare:
                raise ValueError(f"{value} of what")
            return number
        return float(match[1]) * TIMES[match[2]] / self._unit_ns


class Size(click.ParamType[int]):
    """A size such as 500M or 20G, or none, in bytes."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; a usage error where it is no size."""
        from tracelane.core.index.cached import size_of

        size = value if isinstance(value, int) else size_of(str(value))
        if size is None:
            self.fail(f"{value!r} is no size: write 500M, 20G or none", param, ctx)
        return size


class AnyPath(click.Path):
    """A file, folder or URL that the command looks for itself: shells complete it by this type."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return it as it was typed."""
        return value


Completion: TypeAlias = Callable[[click.Context, click.Parameter, str], list[Any]]

STDIN = "-"
MAX_SHOWN_LENGTH = 40
"""Characters of a value that a message shows."""
WHICH = ("run", "capture", "rank", "wait")
"""Which of the captures that a path stands for."""
INDEX = ("captures", "ts_unit", "threads", "buffers", "index_dir", "cache_limit", "force")
"""Where indexes and captured graphs lie, and how indexes are built."""
WINDOW = ("begin", "end", "tz", "step", "step_name")
PART = (*WINDOW, "attribute", "skip_first", "lanes", "where")
"""Which part of the traces counts."""
LOGS = ("logs", "log_zone", "lag", "cards")
"""Which telemetry logs belong to the traces, and how their clocks and devices relate to them."""
FORM = ("form", "json", "columns", "colour", "no_pager", "out")
"""How tables are printed, and where to."""
HELD = ("names", "fail_above", "min_time")
"""Which metrics may not rise, and by how much."""
VERDICT = ("junit", "github")
"""What continuous integration is told."""
LISTED_ROWS, COMPARED_ROWS = 100, 15
"""Rows of a printed table of slices or of a query, and of a comparison, where --limit does not say."""
NEW_FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
PATH = AnyPath()
STEP = "step="
"""What a side begins its part with that is a step."""


def is_store_path(path: str) -> bool:
    """Tell whether a path or URL is a capture store; a file that is there is none."""
    if os.path.isfile(path) or path == STDIN:
        return False
    from tracelane.core.store.location import is_store

    return is_store(path)


def split_side(text: str) -> tuple[str, str]:
    """Return (path, part): the part is what stands behind the first colon before which there is a file."""
    from tracelane.core.read.urls import is_url

    if is_url(text):
        path, _, part = text.rpartition(":")
        return (path, part) if is_url(path) and (part.startswith(STEP) or ".." in part) else (text, "")
    if Path(text).exists():
        return text, ""
    at = text.find(":")
    while at >= 0:
        if Path(text[:at]).exists():
            return text[:at], text[at + 1 :]
        at = text.find(":", at + 1)
    return text, ""


def remembered(name: str) -> Any:
    """Return what an option said that commands do not take as a value, None outside of a command."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(f"tracelane.{name}")


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    ctx.meta[f"tracelane.{param.name}"] = value


def _check_zone(_: click.Context, __: click.Parameter, zone: str | None) -> str | None:
    if zone:
        from tracelane.tui.times import zone_of

        zone_of(zone)
    return zone


@contextmanager
def _printed_to(path: Path) -> Iterator[None]:
    """Print to a new file; nothing of it is left where the command fails."""
    check_new(path)
    verdict: click.exceptions.Exit | None = None
    try:
        with printed_to(path):
            try:
                yield
            except click.exceptions.Exit as error:  # a verdict, not a failure
                verdict = error
    except OSError as error:
        raise CacheError(f"{path} cannot be written: {error.strerror or error}") from error
    if verdict is not None:
        raise verdict


def check_new(path: Path) -> None:
    """Raise UsageError where there is a file of that name already."""
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already: choose another name, or remove it")


def _print_to_file(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None and not ctx.resilient_parsing:
        ctx.with_resource(_printed_to(path))


def form_option(*more: str) -> click.Option:
    """Return --format, with further forms that one command has."""
    return click.Option(
        ["--format", "form"],
        type=click.Choice(["text", *FORMS, *more]),
        default="text",
        show_default=True,
        callback=lambda ctx, _, form: "json" if ctx.meta.get("tracelane.json") else form,
        help="How to print it.",
    )


def limit_option(rows: int | None = None) -> click.Option:
    """Return --limit of a table that is printed with so many rows where it does not say."""
    return click.Option(["--limit"], help=_limit_text(rows), type=WholeNumber(1))


def _limit_text(rows: int | None = None) -> str:
    printed = "" if rows is None else f"; a printed table has {rows}"
    return f"The number of rows{printed}."


def out_option(text: str, required: bool = True) -> click.Option:
    """Return --out of a command that writes files of its own."""
    return click.Option(["-o", "--out"], help=text, required=required, type=NEW_FILE)


def _paths(metavar: str, **details: Any) -> click.Argument:
    return click.Argument(["traces"], metavar=metavar, required=True, type=PATH, **details)


def _option(
    name: str, metavar: str, text: str, complete: Completion | None = None, default: Any = None, **more: Any
) -> Any:
    """Return a field of Options with its option, whose values are completed from `complete`."""
    if complete is not None:
        more["shell_complete"] = complete
    if default:
        more["default"] = default
    more |= {"metavar": metavar or None, "help": text}
    value = () if more.get("multiple") else default
    return field(default=value, metadata={"name": name, "more": more})


def _aside(names: Sequence[str], text: str, **details: Any) -> click.Option:
    """Return an option that `remembered` tells."""
    return click.Option(names, help=text, expose_value=False, **{"callback": _remember, **details})


@dataclass(frozen=True)
class Options:
    """What options say; of those that a command does not take, that nothing was said."""

    traces: tuple[str, ...] = ()
    begin: str | None = _option("--from", "TIME", "From here: +12.5ms, @µs, 09:28:06.1 or step:4.")
    end: str | None = _option("--to", "TIME", "Up to here; of a step, up to its end.")
    tz: str | None = _option(
        "--tz", "ZONE", "Zone of wall times: Europe/Zurich, +02:00, UTC; else local.", callback=_check_zone
    )
    step: str | None = _option(
        "--step", "N", "This step only; nth:K: the K-th, nth:-1 the last.", completing.complete_steps
    )
    step_name: str | None = _option(
        "--step-name", "NAME", "Use the slices of this name as steps, whatever its numbers."
    )
    attribute: Attribute = _option(  # noqa: RUF009 - a field
        "--attribute",
        "",
        "The step of device work: the one that launched it, or the one it ran in.",
        default="launch",
        type=click.Choice(["launch", "window"]),
        show_default=True,
    )
    skip_first: int | None = _option(
        "--skip-first", "N", "Leave out the first N steps, and what comes before them.", type=WholeNumber(0)
    )
    lanes: str | None = _option(
        "--lanes", "REGEX", "Only lanes whose title matches.", completing.complete_lanes
    )
    where: str | None = _option(
        "--where",
        "FILTER",
        "Only slices that match: nccl cat:kernel dur>1ms lane:'stream 0'.",
        completing.complete_terms,
    )
    logs: tuple[str, ...] = _option(
        "--smi",
        "LOG",
        "An aiu-smi log (text or CSV), or any CSV with a header and times; may be given again.",
        multiple=True,
        type=PATH,
    )
    log_zone: str | None = _option(
        "--smi-tz",
        "ZONE",
        "Time zone of the logs' stamps: Europe/Zurich, -04:00, UTC, local. Else the one that fits.",
    )
    lag: float | None = _option(
        "--smi-offset",
        "TIME",
        "How far the logs' clock is ahead of the trace's: 1.5s, 250ms. Else the closest fit.",
        type=Duration(10**9, -(10**9), 10**9),
    )
    cards: tuple[str, ...] = _option(
        "--smi-device", "ID=PID", "The process of a log's device; may be given again.", multiple=True
    )
    names: tuple[str, ...] = _option(
        "--metric",
        "METRIC",
        "The metric to check or list, such as step.length.median; may be given again.",
        completing.complete_metrics,
        multiple=True,
    )
    fail_above: str | None = _option(
        "--fail-above", "SHARE", "Exit with 1 if a metric rose by more than this: 5%."
    )
    min_time: str = _option("--min-time", "TIME", "Ignore changes of times below this: 100us.", default="0")
    junit: str | None = _option(
        "--junit", "FILE", "Write the results as JUnit XML, one test per limit.", type=PATH
    )
    github: bool = _option(
        "--github",
        "",
        "Print failures as annotations of a GitHub workflow, on standard error.",
        default=False,
        is_flag=True,
    )
    sort: str | None = _option(
        "--sort",
        "COLUMN",
        "Sort by this column, greatest first; -COLUMN: smallest first.",
        completing.complete_columns,
    )
    limit: int | None = _option("--limit", "", _limit_text(), type=WholeNumber(1))
    form: str = "text"
    device_offsets: tuple[str, ...] = _option(
        "--device-offset",
        "PID=TIME",
        "Shift a device's times: 0=-250ms; PID=auto: by what its launches show; auto: all wrong clocks.",
        multiple=True,
    )
    run: str | None = _option("--run", "NAME", "Of several folders' captures, those of this folder.")
    capture: str | None = _option(
        "--capture",
        "WHICH",
        "Of several captures: a number (1 is the newest), a part of its time, or all. Else the newest.",
    )
    rank: str | None = _option("--rank", "RANKS", "Only these ranks' files: 0-3,7.")
    wait: bool = _option(
        "--wait", "", "Wait until the traces are complete, then open them.", default=False, is_flag=True
    )
    captures: Path | None = _option(  # noqa: RUF009 - a field
        "--captures",
        "DIR",
        "Traces of captured graphs, whose ops own what is replayed. Else capture_traces/ beside it.",
        type=FOLDER,
    )
    ts_unit: TsUnit = _option(  # noqa: RUF009 - a field
        "--ts-unit",
        "UNIT",
        "What ts and dur of JSON count: us, as the format has it; some writers have ns, or ticks of 100 ns.",
        default="us",
        type=click.Choice(["us", "ns", "100ns"]),
    )
    threads: int | None = _option(
        "--threads",
        "",
        "Threads that read and build; as many as there are cores, up to 4.",
        type=WholeNumber(1, 64),
    )
    buffers: int | None = _option(
        "--buffers",
        "SIZE",
        "Memory to index a trace in, 128M by default, besides what reading takes; a file has the rest.",
        type=Size(),
    )
    index_dir: Path | None = _option(  # noqa: RUF009 - a field
        "--index-dir", "", "Keep the index in this folder instead of the cache.", type=FOLDER
    )
    cache_limit: int | None = _option(
        "--cache-limit",
        "SIZE",
        "Space for all indexes: 500M, 20G, none. Those opened longest ago are removed first.",
        type=Size(),
    )
    force: bool = _option(
        "--force", "", "Read the trace again even if it has an index.", default=False, is_flag=True
    )


_PRINTED = (
    _aside(["--json"], "The same as --format json.", is_flag=True, is_eager=True),
    _aside(
        ["--columns"],
        "chief: as many as fit in 160 characters, unless on a terminal.",
        type=click.Choice(["chief", "all"]),
        default="chief",
        show_default=True,
    ),
    _aside(
        ["--color", "colour"],
        "Whether text has colours; auto: on a terminal.",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
    ),
    _aside(["--no-pager"], "Print long text at once, not by pages.", is_flag=True),
    _aside(
        ["-o", "--out"],
        "Write to this file, which must not exist yet, instead of printing.",
        type=NEW_FILE,
        callback=_print_to_file,
    ),
)
OPTIONS: Mapping[str, click.Parameter] = {
    "traces": _paths("TRACE…", nargs=-1),
    "trace": _paths("TRACE", callback=lambda _, __, path: (path,)),
    "sides": _paths("A… B", nargs=-1),
    "form": form_option(),
    **{
        one.name: click.Option([one.metadata["name"], one.name], **one.metadata["more"])
        for one in fields(Options)
        if one.metadata
    },
    **{str(option.name): option for option in _PRINTED},
}
"""Name -> argument or option; what commands get as a value is a field of that name in Options."""
