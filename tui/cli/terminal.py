"""What stdin and stdout are, and how the keyboard comes back after a trace was read from stdin."""

from __future__ import annotations

import os
import sys

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


def wants_colour() -> bool:
    """Tell whether printed text may be coloured."""
    return can_draw() and not os.environ.get("NO_COLOR")
