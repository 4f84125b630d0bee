"""What stdin and stdout are: a keyboard, a terminal that can be drawn on, one that shows colours."""

from __future__ import annotations

import os
import sys

from .options import remembered

KEYBOARD = "/dev/tty"


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
