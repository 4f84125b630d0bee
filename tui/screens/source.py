"""A source file that a slice names: looked for on this machine, shown to be read only, at the line named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_bytes

from ..widgets.table import ColumnView, VirtualTable
from .answer import AnswerScreen

TAB = 4
NUMBER_CELLS = 6


class SourceScreen(AnswerScreen[None]):
    """Shows the lines of a file in the panel's place, the cursor on the one named."""

    DEFAULT_CSS = """
    SourceScreen > Vertical {
        width: 100%; height: 60%; max-height: 16; border: round $primary; background: $surface; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,V", "dismiss", "Close", show=False)]

    def __init__(self, path: Path, lines: Sequence[str], line: int) -> None:
        """Show these lines of a file, the cursor on a line counted from 1."""
        super().__init__()
        self._path = path
        self._lines = lines
        self._line = line

    def compose(self) -> ComposeResult:
        with Vertical() as frame:
            frame.border_title = safe(f"{self._path}:{self._line}").replace("[", r"\[")
            frame.border_subtitle = "Esc closes"
            yield VirtualTable(empty="an empty file")

    def on_mount(self) -> None:
        columns = [
            ColumnView("Line", NUMBER_CELLS, lambda row: str(row + 1), right=True),
            ColumnView("", 0, lambda row: self._lines[row].expandtabs(TAB)),
        ]
        for table in self.query(VirtualTable):
            table.show(columns, len(self._lines))
        self.call_after_refresh(self._go)

    def _go(self) -> None:
        for table in self.query(VirtualTable):
            table.cursor = len(self._lines) - 1
            # From below: some lines before it are seen too.
            table.cursor = max(0, self._line - 1 - table.size.height // 3)
            table.cursor = self._line - 1
            table.focus()


MAX_BYTES = 8 << 20
"""Larger files are not shown."""
MAX_TEXT = 1 << 16
"""Characters of an argument that are looked through."""
MAX_LINES = 200

_PATTERNS: Final = (
    re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)'),  # a traceback
    re.compile(r"(?P<path>[^;\n\"'()]+\.[A-Za-z]\w*)\((?P<line>\d+)\)"),  # file.py(14): function
    re.compile(r"(?P<path>[^;\n\"'():]+\.[A-Za-z]\w*):(?P<line>\d+)"),  # file.py:14
)
_FILE = re.compile(r"[^\n\0]*[/\\][^\n\0]*\.[A-Za-z]\w*|[\w.-]+\.py")
"""An argument that is a path as a whole."""


class SourceLine(NamedTuple):
    """A line of a source file, counted from 1, as a trace names it."""

    path: str
    line: int


def source_lines_in(texts: Iterable[str]) -> list[SourceLine]:
    """Return the lines that these texts name, in order, each once."""
    lines: dict[SourceLine, None] = {}
    for whole in texts:
        text = whole[:MAX_TEXT]
        for pattern in _PATTERNS:
            for match in pattern.finditer(text):
                lines[SourceLine(match["path"].strip(), whole_number(match["line"][:9]))] = None
        if not lines and len(text) < 4096 and _FILE.fullmatch(text.strip()):
            lines[SourceLine(text.strip(), 1)] = None
        if len(lines) >= MAX_LINES:
            break
    return list(lines)[:MAX_LINES]


def texts_in(arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts among arguments, and those in lists of them."""
    texts: list[str] = []
    for value in arguments.values():
        values: Sequence[Any] = value if isinstance(value, list) else (value,)
        texts.extend(entry for entry in values[:MAX_LINES] if isinstance(entry, str))
    return texts


def existing(lines: Iterable[SourceLine], folders: Sequence[Path]) -> tuple[Path, int] | None:
    """Return the first line whose file is there, relative ones looked for in these folders."""
    for line in lines:
        for folder in folders:
            path = folder / line.path
            try:
                if path.is_file():
                    return path, line.line
            except (OSError, ValueError):
                continue
    return None


def lines_of(path: Path) -> list[str]:
    """Return the lines of a source file; UnreadableError says in one line why they cannot be shown."""
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise UnreadableError(f"{path} is too large to show: {format_bytes(size)}")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    if b"\0" in data:
        raise UnreadableError(f"{path} is no text")
    return data.decode("utf-8", "replace").splitlines() or [""]
