"""The entry: which command is meant, and what every way to fail looks like to a person.

`tracelane PATH…` is `tracelane view PATH…`: a path is never taken for a command unless it is spelled like
one, and then `./info` or `view info` opens it.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TextIO, cast

import click

from tracelane.core.base.errors import Cancelled, DamagedIndexError, TracelaneError
from tracelane.core.base.output import keep_standard_streams, print_text
from tracelane.core.base.safe_text import safe
from tracelane.core.base.threads import is_working

from .commands import COMMANDS, MAKING, READING, command_named
from .help import by_question, first_sentence, help_text, with_help

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

HELP = (
    "Show profiler traces of any size in the terminal.\n\n"
    "`tracelane TRACE…` opens traces, as `tracelane view TRACE…` does; alone it lists what there is to open. "
    "A file that is called like a command opens as ./info."
)
NEAR = 0.7
"""Likeness, from 0 to 1, from which on a word is taken for a misspelt command."""
MIN_BEGUN = 3
"""Letters of a command from which on they are taken for all of it."""

EXIT_FAILED = 1
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130
EXIT_PIPE = 141
DEBUG = "TRACELANE_DEBUG"
NUMPY_HINT = (
    "numpy is missing. Where the image brings one (IBM Z, Power) make the environment with "
    "`python3 -m venv --system-site-packages`; elsewhere `pip install numpy`."
)
MEMORY_HINT = "there is not enough memory: close other programs, take a smaller part, or a machine with more"


class CommandGroup(click.Group):
    """The commands, each made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands in the order of help."""
        return list(command_names())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `view` before a trace, for running and for completing."""
        return super().parse_args(ctx, with_command(args) if args else args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete commands, else a path, which click does not: a trace may stand in place of a command."""
        from click.shell_completion import CompletionItem

        items = super().shell_complete(ctx, incomplete)
        return items or [CompletionItem(incomplete, type="file")]  # bash cannot complete both

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if not is_command(cmd_name):
            return None
        if cmd_name in COMMANDS:
            return with_help(cmd_name, command_named(cmd_name))
        from tracelane.core.tables.registry import BY_NAME

        from .analysis import analysis_command

        return with_help(cmd_name, analysis_command(BY_NAME[cmd_name.replace("-", "_")]))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by the question that they answer, each with the first sentence of its help."""
        for title, names in by_question(self.list_commands(ctx)).items():
            with formatter.section(title):
                formatter.write_dl([(name, first_sentence(help_text(name))) for name in names])


def command_names() -> tuple[str, ...]:
    """Return the names of all commands in the order of help."""
    from tracelane.core.tables.registry import BY_NAME

    analyses = (row.command for row in BY_NAME.values())
    return (*(row.name for row in READING), *analyses, *(row.name for row in MAKING))


def is_command(word: str) -> bool:
    """Tell whether a word is a command; the analyses are only looked up for what is no path."""
    return word in COMMANDS or (word.replace("-", "_").isidentifier() and word in command_names())


def _version(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if is_given and not ctx.resilient_parsing:
        from .help import version_text

        print_text(version_text())
        ctx.exit()


@click.command(cls=CommandGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version)
def tracelane() -> None:
    """Stand for what comes before a command: each is one of its own."""


def misspelt(arguments: Sequence[str]) -> str:
    """Return the command that a first word was probably meant to be, "" where it may well be a path."""
    word = arguments[0] if arguments else ""
    is_path = set(word) & set("/.*?[") or os.path.lexists(word)
    if not word or word.startswith("-") or is_path or is_command(word) or asks_for_help(arguments):
        return ""
    if word in ("help", "version"):
        return f"--{word}"
    from difflib import get_close_matches

    names = command_names()
    begun = [name for name in names if len(word) >= MIN_BEGUN and name.startswith(word.lower())]
    near = begun or get_close_matches(word.lower(), names, 1, NEAR)
    return near[0] if near else ""


def asks_for_help(arguments: Sequence[str]) -> bool:
    """Tell whether arguments are `help`, alone or with a command, and no file of that name."""
    is_named = list(arguments[:1]) == ["help"] and not os.path.lexists("help")
    return is_named and all(map(is_command, arguments[1:2]))


def with_command(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `view` before them unless they begin with a command, --help or --version."""
    if arguments and (arguments[0] in ("-h", "--help", "--version") or is_command(arguments[0])):
        return list(arguments)
    if asks_for_help(arguments):
        return [*arguments[1:], "--help"]
    return ["view", *arguments]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; every failure is one line on stderr. Without arguments
    it is the program's own; then work that heeds no interrupt ends with it.
    """
    is_program = arguments is None
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    keep_standard_streams()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing needs the threads that numpy would start
    atexit.register(_leave_garbage)
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace")  # what the locale cannot write comes out as `?` and ends nothing
    code = 0
    try:
        code = _run_healing(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go(sys.stdout)
        code = EXIT_PIPE
    except OSError as error:  # the disk is full: what is still to be written would fail once more at the end
        _let_go(sys.stdout)
        code = code or _fail(error.strerror or str(error), EXIT_FAILED)
    if is_program and is_working():
        _end_at_once(code)
    return code


def _leave_garbage() -> None:
    """Have nothing collected of what ends with the process: to look for it takes 30 ms. DuckDB's bindings
    would complain on stderr of what is left.
    """
    if "_duckdb" not in sys.modules:
        gc.freeze()


def _end_at_once(code: int) -> NoReturn:
    """End the process as Python does, but without taking apart what threads still use: libraries would say
    that they leak, or crash.
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, OSError, ValueError):  # closed, or nobody reads it
            stream.flush()
    os._exit(code)


class _Noticing:
    """A stream that remembers whether anything was written to it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.is_used = False

    def write(self, text: str) -> int:
        self.is_used = True
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _run_healing(arguments: list[str]) -> int:
    """Run a command; where it meets a damaged index, discard that and run it again.

    The second time the index is rebuilt. A command that has printed something is not run again.
    """
    stdout = sys.stdout
    noticing = _Noticing(stdout)
    sys.stdout = cast(TextIO, noticing)
    try:
        return _run(arguments)
    except DamagedIndexError as error:
        from tracelane.core.index.cache import discard

        if error.folder is None or not discard(error.folder):
            return _fail(f"{error}; name another folder with --index-dir", error.exit_code)
        if noticing.is_used or "-" in arguments:  # what came through a pipe is gone
            return _fail(f"{error}; it was removed: run the command again", error.exit_code)
        print_text(f"tracelane: {safe(str(error))}; it is rebuilt", error=True)
        try:
            return _run(arguments)
        except DamagedIndexError as again:
            return _fail(str(again), again.exit_code)
    finally:
        sys.stdout = stdout


def _run(arguments: list[str]) -> int:
    """Run a command and return its exit code; raises DamagedIndexError, BrokenPipeError."""
    try:
        if instruction := os.environ.get("_TRACELANE_COMPLETE"):
            from .completion import answer_shell

            return answer_shell(instruction, tracelane, asks_for_help)
        if not arguments:
            from .pick import pick

            return pick()
        if meaning := misspelt(arguments):
            question = (
                f"no file and no command is called {arguments[0]!r}: did you mean `tracelane {meaning}`?"
            )
            return _fail(question, EXIT_USAGE)
        # Not tracelane.main(): it has its own answers to Ctrl+C and to a reader that goes away.
        with tracelane.make_context("tracelane", arguments) as context:
            tracelane.invoke(context)
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.UsageError as error:
        lines = io.StringIO()
        error.show(lines)  # how the command is used, and what was wrong
        print_text(lines.getvalue(), end="", error=True)
        return EXIT_USAGE
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_FAILED)
    except (KeyboardInterrupt, click.Abort, Cancelled):
        return EXIT_INTERRUPTED
    except (BrokenPipeError, DamagedIndexError):
        raise
    except TracelaneError as error:
        return _fail(str(error), error.exit_code)
    except ImportError as error:
        if (error.name or "").split(".")[0] == "numpy" or "numpy" in str(error):
            return _fail(NUMPY_HINT, EXIT_FAILED)
        return _unexpected(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _fail(f"{where}{error.strerror or error}", EXIT_FAILED)
    except MemoryError:
        return _fail(MEMORY_HINT, EXIT_FAILED)
    except Exception as error:
        return _unexpected(error)


def _unexpected(error: Exception) -> int:
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return _fail(f"this should not have happened: {what} ({DEBUG}=1 shows where)", EXIT_FAILED)


def _fail(message: str, code: int) -> int:
    """Say what went wrong in one line; with TRACELANE_DEBUG=1 also where."""
    if os.environ.get(DEBUG, "0") not in ("", "0"):
        import traceback

        print_text(traceback.format_exc(), end="", error=True)
    print_text(f"tracelane: {safe(' '.join(message.split()))}", error=True)
    return code


def _let_go(stream: TextIO) -> None:
    """Point a stream whose reader is gone at nothing, so that closing it stays quiet."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):
        pass
