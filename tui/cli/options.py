"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import isnan
from pathlib import Path
from typing import Any

import click

STDIN = "-"

TRACES = click.argument("traces", metavar="TRACE…", nargs=-1, required=True)
TRACE = click.argument("trace", metavar="TRACE")


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


CACHE_LIMIT = click.option(
    "--cache-limit",
    type=Size(),
    metavar="SIZE",
    help="All indexes may take so much: 500M, 20G, none. Those opened longest ago make room for new ones.",
)
FORCE = click.option("--force", is_flag=True, help="Read the trace again even if its index is there.")
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
    help="What reads events; both give the same index, python slowly. It reads where native is missing, too.",
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
