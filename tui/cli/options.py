"""Options and arguments that several commands share."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path
from typing import Any

import click

from tracelane.core.base.errors import CacheError, UsageError
from tracelane.core.base.output import printed_to
from tracelane.core.export.forms import FORMS

from .values import Size, WholeNumber

DEVICE_OFFSET = click.option(
    "--device-offset",
    "device_offsets",
    metavar="PID=TIME",
    multiple=True,
    help="Shift a device's times: 0=-250ms; PID=auto: by what its launches show; auto: all wrong clocks.",
)


STDIN = "-"


def completed(what: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """Return what completes values in a shell: "files", "lanes", "steps", "metrics", "terms" or "limits"."""

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[Any]:
        from . import completion

        kinds: Mapping[str, Callable[[str], list[Any]]] = {
            "files": completion.complete_files,
            "lanes": completion.complete_lanes,
            "steps": completion.complete_steps,
            "metrics": completion.complete_metrics,
            "terms": completion.complete_terms,
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


_AS_JSON = "tracelane.json"


def _chosen_form(ctx: click.Context, _: click.Parameter, form: str) -> str:
    return "json" if ctx.meta.get(_AS_JSON) else form


def _remember_json(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    ctx.meta[_AS_JSON] = is_given


def form_options(*more: str, json_help: str = "Print one JSON object.") -> Callable[[Any], Any]:
    """Return the options that say how tables are printed, as one `form`: --format, with further forms of one
    command, --json, and --out.
    """
    options = (
        click.option(
            "--format",
            "form",
            type=click.Choice(["text", *FORMS, *more]),
            default="text",
            show_default=True,
            callback=_chosen_form,
            help="How to print it.",
        ),
        click.option(
            "--json",
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_remember_json,
            help=json_help,
        ),
        OUT,
    )

    def with_forms(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return with_forms


SORT = click.option(
    "--sort", metavar="COLUMN", help="Sort by this column, greatest first; -COLUMN: smallest first."
)
THREADS = click.option(
    "--threads",
    type=WholeNumber(1, 64),
    help="Threads that read and build; as many as there are cores, up to 4.",
)
INDEX_DIR = click.option(
    "--index-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the index in this folder instead of the cache.",
)


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
FORM = form_options()
RUN = click.option("--run", metavar="NAME", help="Of several folders' captures, those of this folder.")
CAPTURE = click.option(
    "--capture",
    metavar="WHICH",
    help="Of several captures: a number (1 is the newest), a part of its time, or all. Else the newest.",
)
RANK = click.option("--rank", metavar="RANKS", help="Only these ranks' files: 0-3,7.")
WAIT = click.option("--wait", is_flag=True, help="Wait until the traces are complete, then open them.")


def with_index_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of where indexes lie and how they are built, as one `index_options`."""

    @wraps(command)
    def with_value(
        index_dir: Path | None,
        threads: int | None,
        force: bool,
        cache_limit: int | None,
        **values: Any,
    ) -> None:
        from tracelane.core.index.options import IndexOptions

        command(
            **values,
            index_options=IndexOptions(index_dir, threads=threads, force=force, cache_limit=cache_limit),
        )

    wrapped: Callable[..., None] = with_value
    for option in (FORCE, CACHE_LIMIT, INDEX_DIR, THREADS):
        wrapped = option(wrapped)
    return wrapped


def choice_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which of several files' captures is meant, as one `choice`, and
    with --wait its traces only when they are complete.
    """

    @wraps(command)
    def with_choice(
        run: str | None, capture: str | None, rank: str | None, wait: bool, **values: Any
    ) -> None:
        from tracelane.core.index.choice import Choice

        if wait:
            from .waiting import complete_traces

            values = complete_traces(values)
        command(**values, choice=Choice(run or "", capture or "", rank or ""))

    wrapped: Callable[..., None] = with_choice
    for option in (WAIT, RANK, CAPTURE, RUN):
        wrapped = option(wrapped)
    return wrapped
