"""Source files that a slice names, in its name or its arguments, and that are on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tracelane.core.base.errors import UnreadableError
from tracelane.core.base.units import format_bytes

LARGEST = 8 << 20
"""Larger files are not shown."""
MOST_TEXT = 1 << 16
"""Characters of an argument that are looked through."""
MOST_LINES = 200

_PATTERNS: Final = (
    re.compile(r'File "(?P<path>[^"\n]+)", line (?P<line>\d+)'),  # a traceback
    re.compile(r"(?P<path>[^;\n\"'()]+\.[A-Za-z]\w*)\((?P<line>\d+)\)"),  # file.py(14): function
    re.compile(r"(?P<path>[^;\n\"'():]+\.[A-Za-z]\w*):(?P<line>\d+)"),  # file.py:14
)
_FILE = re.compile(r"[^\n\0]*[/\\][^\n\0]*\.[A-Za-z]\w*|[\w.-]+\.py")
"""An argument that is a path as a whole."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file, counted from 1, as a trace names it."""

    path: str
    line: int


def source_lines_in(texts: Iterable[str]) -> list[SourceLine]:
    """Return the lines that these texts name, in order, each once."""
    lines: dict[SourceLine, None] = {}
    for whole in texts:
        text = whole[:MOST_TEXT]
        for pattern in _PATTERNS:
            for match in pattern.finditer(text):
                lines[SourceLine(match["path"].strip(), int(match["line"][:9]))] = None
        if not lines and len(text) < 4096 and _FILE.fullmatch(text.strip()):
            lines[SourceLine(text.strip(), 1)] = None
        if len(lines) >= MOST_LINES:
            break
    return list(lines)[:MOST_LINES]


def texts_in(arguments: Mapping[str, Any]) -> list[str]:
    """Return the texts among arguments, and those in lists of them."""
    texts: list[str] = []
    for value in arguments.values():
        values: Sequence[Any] = value if isinstance(value, list) else (value,)
        texts.extend(entry for entry in values[:MOST_LINES] if isinstance(entry, str))
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
        if size > LARGEST:
            raise UnreadableError(f"{path} is too large to show: {format_bytes(size)}")
        data = path.read_bytes()
    except OSError as error:
        raise UnreadableError(f"cannot read {path}: {error.strerror}") from None
    if b"\0" in data:
        raise UnreadableError(f"{path} is no text")
    return data.decode("utf-8", "replace").splitlines() or [""]
