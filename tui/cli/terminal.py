"""What stdin and stdout are: how wide and coloured text is, and whether the viewer can be drawn."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

from .options import remembered

if TYPE_CHECKING:
    from tracelane.tui.text.table import TableStyle

KEYBOARD = "/dev/tty"
DEFAULT_WIDTH = 160
"""Columns of a table where nothing says how wide the terminal is."""
UNCUT = 1 << 30


def can_draw() -> bool:
    """Tell whether stdout is a terminal that moves its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb")


def take_keyboard() -> bool:
    """Make sure that descriptor 0 is the keyboard, reopening it if need be; False where there is none."""
    if os.isatty(0):
        return True
    try:
        keyboard = os.open(KEYBOARD, os.O_RDWR)
    except OSError:
        return False
    os.dup2(keyboard, 0)
    os.close(keyboard)
    return True


def terminal_width() -> int:
    """Return how wide drawings and wrapped text are: the terminal, COLUMNS, else DEFAULT_WIDTH."""
    if _has_width():
        return shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns
    return DEFAULT_WIDTH


def _has_width() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def table_style() -> TableStyle:
    """Return how tables are printed: as wide as the terminal and with colours as `has_colours` says.

    Into a pipe or file no text is cut, unless COLUMNS says how wide it is, and there are the columns for
    which DEFAULT_WIDTH has room; --columns all: all of them, everywhere.
    """
    from tracelane.tui.text.table import TableStyle

    room = UNCUT if remembered("columns") == "all" else terminal_width()
    return TableStyle(room, has_colours(sys.stdout.isatty()), _has_width())


def has_colours(is_terminal: bool) -> bool:
    """Tell whether text has colours: where a terminal is no dumb one, unless --color or the environment says
    so or not. NO_COLOR comes first (no-color.org), then FORCE_COLOR and CLICOLOR_FORCE, then CLICOLOR=0.
    """
    if (chosen := remembered("colour") or "auto") != "auto":
        return bool(chosen == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if any(os.environ.get(name, "0") not in ("", "0") for name in ("FORCE_COLOR", "CLICOLOR_FORCE")):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb" and os.environ.get("CLICOLOR") != "0"
