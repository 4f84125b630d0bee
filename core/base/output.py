"""The only way out: all printed and written text passes through here, which makes it harmless.

A test holds the other modules to it. Not text are cuts of traces and indexes, data that is read again; the
frames of the viewer are made harmless where they are drawn.
"""

from __future__ import annotations

import codecs
import errno
import io
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import TextIO, cast

from .errors import Cancelled
from .progress import CancelledCallback, never
from .safe_text import safe, safe_lines

MAX_CELLS = 10_000
"""No terminal has more columns or lines."""
ERASE = "\r\x1b[K"
_COLOURS = re.compile("(\x1b\\[[0-9;]*m)")


def writes_unicode(encoding: str | None = None) -> bool:
    """Tell whether an encoding (default: those of standard output and the locale) can write any character."""
    import locale

    names = [encoding] if encoding else [getattr(sys.stdout, "encoding", None), locale.getencoding()]
    try:
        return all(codecs.lookup(name).name in ("utf-8", "utf-8-sig") for name in names if name)
    except LookupError:
        return False


class ClosedOutput(io.TextIOBase):
    """Stands for a standard output that whoever started the process has closed: writing to it is an error."""

    encoding = "utf-8"

    def write(self, _: str, /) -> int:
        raise OSError(errno.EBADF, "standard output is closed: there is nowhere to print to")

    def writable(self) -> bool:
        return True


def keep_standard_streams() -> None:
    """Put something where standard streams are closed, so that neither a file that is opened takes their
    place nor does reading or printing end in an error of Python's own: input is empty, what is printed is an
    error of one line, what is said of errors is lost.
    """
    for descriptor in range(3):  # the lowest free one is taken first
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # is inherited by no process: pagers get their own
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        sys.stdout = cast(TextIO, ClosedOutput())
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def print_text(text: str, end: str = "\n", error: bool = False) -> None:
    _print(safe_lines(text) + end, error)


def print_fields(text: str) -> None:
    """Print lines of fields with tabs between them, as shells read them."""
    _print("\t".join(map(safe_lines, text.split("\t"))) + "\n", error=False)


def print_pieces(pieces: Iterable[str]) -> None:
    """Print a long text piece by piece to standard output, as they come."""
    if sys.stdout is None:
        return
    for piece in pieces:
        sys.stdout.write(safe_lines(piece))
    sys.stdout.flush()


def terminal_size(columns: int = 80, lines: int = 24) -> tuple[int, int]:
    """Return columns and lines of the terminal, else what COLUMNS and LINES say, else these: at most
    MAX_CELLS of each, as the variables may say anything.
    """
    import shutil

    size = shutil.get_terminal_size((columns, lines))
    return min(size.columns or columns, MAX_CELLS), min(size.lines or lines, MAX_CELLS)


def print_paged(text: str, is_coloured: bool = False, by_pages: bool = True) -> None:
    """Print a text, `by_pages` if it has more lines than the terminal and there are a pager and a keyboard.
    The pager is TRACELANE_PAGER, else PAGER, else `less`; "" or `cat`: none. Of a coloured one all that came
    from a trace was made harmless before (see print_coloured).
    """
    import subprocess

    is_long = text.count("\n") >= terminal_size()[1]
    has_person = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))
    pager = _pager() if by_pages and is_long and has_person else []
    if not pager:
        (print_coloured if is_coloured else print_text)(text)
        return
    harmless = _safe_between_colours(text) if is_coloured else safe_lines(text)
    environment = {**os.environ, "LESSSECURE": "1", "LESSCHARSET": "utf-8"}
    with subprocess.Popen(pager, stdin=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        with suppress(BrokenPipeError):  # left before the end
            process.stdin.write((harmless + "\n").encode())
            process.stdin.close()
        while process.poll() is None:
            with suppress(KeyboardInterrupt):  # is for the pager
                process.wait()


def _pager() -> list[str]:
    """Return the command of the pager that the environment names, empty for none."""
    from shutil import which

    named = os.environ.get("TRACELANE_PAGER", os.environ.get("PAGER", "less"))
    try:
        words = shlex.split(named)
    except ValueError:
        return []
    if not words or words[0] == "cat" or which(words[0]) is None:
        return []
    return [*words, "-SFRX"] if os.path.basename(words[0]) == "less" else words


def print_coloured(text: str, end: str = "\n") -> None:
    """Print lines whose only escapes are the colours that a drawing of ours gave them. What was drawn was
    made harmless before, so no colour in it comes from a trace.
    """
    _print(_safe_between_colours(text) + end, error=False)


def _safe_between_colours(text: str) -> str:
    parts = _COLOURS.split(text)
    parts[::2] = map(safe_lines, parts[::2])
    return "".join(parts)


def write_new_file(path: Path, pieces: Iterable[str], cancelled: CancelledCallback = never) -> None:
    """Write a text file that is not there yet, piece by piece; it has its name when it is whole. Raises
    OSError (FileExistsError), Cancelled.
    """
    with _new_file(path) as file:
        for piece in pieces:
            if cancelled():
                raise Cancelled
            file.write(safe_lines(piece))


@contextmanager
def _new_file(path: Path) -> Iterator[TextIO]:
    from .whole_file import publish, unfinished

    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with unfinished(path) as building:
        with building.open("w", encoding="utf-8", newline="\n") as file:
            yield file
        publish(building, path)


@contextmanager
def printed_to(path: Path) -> Iterator[TextIO]:
    """Let what is printed to standard output go to a file that is not there yet, which has its name when all
    is printed. Raises OSError.
    """
    with _new_file(path) as file, redirect_stdout(file):
        yield file


class StatusLine:
    """A line of a terminal that is written over; standard error unless a stream is given."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._has_text = False
        self.is_live = self._stream is not None and self._stream.isatty()
        """Whether there is a terminal to write over."""
        self.encoding = (getattr(self._stream, "encoding", None) or "ascii").lower()

    def show(self, text: str) -> None:
        """Replace the line by a text, cut to the width of the terminal."""
        columns, _ = terminal_size()
        self._stream.write(ERASE + safe(text)[: columns - 1])
        self._stream.flush()
        self._has_text = True

    def clear(self) -> None:
        if self._has_text:
            self._stream.write(ERASE)
            self._stream.flush()
            self._has_text = False


def _print(text: str, error: bool) -> None:
    stream = sys.stderr if error else sys.stdout
    if stream is None:  # closed by whoever started us
        return
    if error and sys.stdout is not None:
        with suppress(OSError):  # which is told where it was printed
            sys.stdout.flush()  # the two may be one file
    stream.write(text)
    stream.flush()
