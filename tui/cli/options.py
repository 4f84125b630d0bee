"""Options and arguments that several commands share."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from math import isnan
from pathlib import Path
from types import MappingProxyType
from typing import Any

import click

from tracelane.core.base.errors import CacheError, UsageError
from tracelane.core.base.output import printed_to

STDIN = "-"


def completed(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return what completes values in a shell: "files", "lanes", "steps", "metrics" or "limits"."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[Any]:
        from . import completion

        kinds: Mapping[str, Callable[[str], list[Any]]] = {
            "files": completion.complete_files,
            "lanes": completion.complete_lanes,
            "steps": completion.complete_steps,
            "metrics": completion.complete_metrics,
            "limits": completion.complete_limits,
        }
        return kinds[what](incomplete)

    return complete


def is_store_path(path: str) -> bool:
    """Tell whether a path or URL is a capture store; a file that is there is none."""
    if os.path.isfile(path) or path == STDIN:
        return False
    from tracelane.core.store.opened import is_store

    return is_store(path)


TRACES = click.argument(
    "traces", metavar="TRACE…", nargs=-1, required=True, shell_complete=completed("files")
)
TRACE = click.argument("trace", metavar="TRACE", shell_complete=completed("files"))


class ThreadsOption(click.Option):
    """`--threads`, with its former name, which help does not show."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return what help says of it."""
        record = super().get_help_record(ctx)
        return None if record is None else (record[0].replace(", --workers", ""), record[1])


class DecoderChoice(click.Choice[str]):
    """What `--decoder` may name; names of former decoders stand for the plain one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; a usage error where it is none."""
        return super().convert("python" if value in ("orjson", "ijson") else value, param, ctx)


class FormatChoice(click.Choice[str]):
    """What `--format` may name; "table" is the former name of "text"."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name; a usage error where it is none."""
        return super().convert("text" if value == "table" else value, param, ctx)


def format_option(*more: str) -> Callable[[Any], Any]:
    """Return the option that says how a table is printed, with further forms of one command."""
    return click.option(
        "--format",
        "form",
        type=FormatChoice(["text", "json", "csv", "md", "html", *more]),
        default="text",
        show_default=True,
        help="How to print it.",
    )


FORMAT = format_option()
THREADS = click.option(
    "--threads",
    "--workers",
    "threads",
    cls=ThreadsOption,
    type=click.IntRange(1, 64),
    help="Threads that read and build; as many as there are cores, up to 4.",
)
INDEX_DIR = click.option(
    "--index-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the index in this folder instead of the cache.",
)


class FiniteRange(click.FloatRange):
    """A number within bounds; "nan" is within none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; a usage error where it is none or too large."""
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number


class Size(click.ParamType[int]):
    """A size such as 500M or 20G, or none, in bytes."""

    name = "size"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the bytes; a usage error where it is no size."""
        from tracelane.core.index.quota import size_of

        size = value if isinstance(value, int) else size_of(str(value))
        if size is None:
            self.fail(f"{value!r} is no size: write 500M, 20G or none", param, ctx)
        return size


class TimeRange(FiniteRange):
    """A time within bounds, in ns of a unit: a number counts in that unit, 100us, 2ms or 1.5s say theirs."""

    _WITH_UNIT = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(ns|us|µs|ms|s|min|h)\s*")
    _NS: Mapping[str, int] = MappingProxyType(
        {
            "ns": 1,
            "us": 1000,
            "µs": 1000,
            "ms": 1_000_000,
            "s": 10**9,
            "min": 60 * 10**9,
            "h": 3600 * 10**9,
        }
    )

    def __init__(self, unit_ns: int, least: float | None = None, most: float | None = None) -> None:
        """Bounds and results count in the unit."""
        super().__init__(least, most)
        self._unit_ns = unit_ns

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number of units; a usage error where it is none or too large."""
        match = self._WITH_UNIT.fullmatch(value) if isinstance(value, str) else None
        if match is not None:
            value = float(match[1]) * self._NS[match[2]] / self._unit_ns
        return super().convert(value, param, ctx)


CACHE_LIMIT = click.option(
    "--cache-limit",
    type=Size(),
    metavar="SIZE",
    help="How much all indexes may take: 500M, 20G, none. Those opened longest ago are removed first.",
)
FORCE = click.option("--force", is_flag=True, help="Read the trace again even if it has an index.")


@contextmanager
def _printed_to(path: Path) -> Iterator[None]:
    """Print to a new file; nothing of it is left where the command fails."""
    if os.path.lexists(path):
        raise UsageError(f"{path} is there already: choose another name, or remove it")
    with ExitStack() as stack:
        try:
            stack.enter_context(printed_to(path))
        except OSError as error:
            raise CacheError(f"{path} cannot be written: {error.strerror or error}") from error
        try:
            yield
        except click.exceptions.Exit:
            raise  # a verdict, not a failure
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _print_to_file(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    if path is not None and not ctx.resilient_parsing:
        ctx.with_resource(_printed_to(path))


OUT = click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    expose_value=False,
    callback=_print_to_file,
    help="Write to this file, which must not exist yet, instead of printing.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
RUN = click.option("--run", metavar="NAME", help="Of several folders' captures, those of this folder.")
CAPTURE = click.option(
    "--capture",
    metavar="WHICH",
    help="Of several captures: a number (1 is the newest), a part of its time, or all. Else the newest.",
)
RANK = click.option("--rank", metavar="RANKS", help="Only these ranks' files: 0-3,7.")
DECODER = click.option(
    "--decoder",
    type=DecoderChoice(["native", "python"]),
    default="native",
    show_default=True,
    help="What reads events. Both give the same index; python is slow, and reads where native is missing.",
)


def with_index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of where indexes lie and how they are built, as one `index_options`."""

    @wraps(command)
    def with_value(
        index_dir: Path | None,
        decoder: str,
        threads: int | None,
        force: bool,
        cache_limit: int | None,
        **values: Any,
    ) -> None:
        from tracelane.core.index.options import IndexOptions

        command(**values, index_options=IndexOptions(index_dir, decoder, threads, force, cache_limit))

    wrapped: Callable[..., None] = with_value
    for option in (FORCE, CACHE_LIMIT, INDEX_DIR, THREADS, DECODER):
        wrapped = option(wrapped)
    return wrapped


def choice_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which of several files' captures is meant, as one `choice`."""

    @wraps(command)
    def with_choice(run: str | None, capture: str | None, rank: str | None, **values: Any) -> None:
        from tracelane.core.index.choice import Choice

        command(**values, choice=Choice(run or "", capture or "", rank or ""))

    wrapped: Callable[..., None] = with_choice
    for option in (RANK, CAPTURE, RUN):
        wrapped = option(wrapped)
    return wrapped
