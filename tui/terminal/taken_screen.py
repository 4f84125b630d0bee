"""The terminal's other screen from the first picture to the viewer's own; and the picture of the last time.

A picture lies beside the index, one for each trace, with what it is a picture of: the terminal's size and
what says its colours, the settings, the view and the marks that are kept. Opened so again, the trace is on
the screen before anything that draws is loaded. It is drawn anew right after, and shown where it differs.
"""

from __future__ import annotations

import json
import os
import termios
import tty
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from tracelane.core.base.digest import blake2b
from tracelane.core.base.output import writes_unicode
from tracelane.core.base.private import (
    config_path,
    read_private,
    read_regular,
    read_sealed_json,
    write_sealed_json,
)
from tracelane.core.export.marks import MAX_BYTES, shelf_of
from tracelane.core.index.version import DERIVED

from ..session_log import SessionLog, default_log
from .guard import TerminalGuard

KEYBOARD, TERMINAL = 0, 2
"""The descriptors that Textual reads from and writes to."""
TAKE_SCREEN = "\x1b[?1049h\x1b[?25l"
GIVE_BACK_SCREEN = "\x1b[0m\x1b[?1049l\x1b[?25h"
NAME = "first-picture.json"
TELLING = ("TERM", "COLORTERM", "NO_COLOR", "TRACELANE_EIGHTHS", "TZ")
"""Variables of the environment that say how a picture looks."""
SSH = ("SSH_CONNECTION", "SSH_TTY")
"""Those that say so by being set: what they say is another for each connection."""
MAX_LENGTH = 1 << 20
"""Characters of a picture that is kept: three of 200x50 had 30,000 to 148,000."""


class TakenScreen:
    """The terminal's other screen with the first picture on it, until the viewer's driver takes it over."""

    def __init__(self, guard: TerminalGuard | None = None) -> None:
        self.guard = guard
        self.picture = ""  # empty: it is not taken

    def show(self, picture: str) -> None:
        """Take the screen and draw on it; the guard gives it back should this process be killed. Without a
        picture it is given back.
        """
        if not picture:
            self.give_back()
        if picture == self.picture:
            return
        is_taken, self.picture = bool(self.picture), picture
        if self.guard is not None and not is_taken:
            with suppress(termios.error):
                attributes = termios.tcgetattr(KEYBOARD)
                self.guard.hold(attributes, attributes[tty.LFLAG])
        _write(picture if is_taken else TAKE_SCREEN + picture)

    def take_over(self) -> bool:
        """Tell whether the screen is taken already, and leave it to the caller."""
        was_taken, self.picture = bool(self.picture), ""
        return was_taken

    def give_back(self) -> None:
        """Show what was on the terminal before, if nobody else has the screen."""
        if self.take_over():
            _write(GIVE_BACK_SCREEN)
            if self.guard is not None:
                self.guard.release()


def _write(text: str) -> None:
    left = memoryview(text.encode(errors="replace"))
    while left:
        left = left[os.write(TERMINAL, left) :]


class LastPicture(NamedTuple):
    """Where the picture of a trace is kept, and what one must be a picture of to be shown now."""

    path: Path
    subject: str

    def read(self) -> str:
        """Return the picture, empty where there is none of this subject."""
        try:
            subject, picture = read_sealed_json(self.path)
        except (OSError, ValueError, TypeError):
            return ""
        return picture if subject == self.subject and isinstance(picture, str) else ""

    def write(self, picture: str) -> None:
        """Keep a picture, or none, in place of the one before; a failure only costs time, the next time."""
        if len(picture) <= MAX_LENGTH:
            with suppress(OSError):
                write_sealed_json(self.path, (self.subject, picture))


def last_picture(
    fingerprint: Mapping[str, Any], folder: Path, is_fresh: bool, environment: Mapping[str, str]
) -> LastPicture | None:
    """Return where the first picture of a trace is kept, by its file's fingerprint and the folder of its
    index; None without a terminal. A fresh view is that of a trace of which no view is kept.
    """
    try:
        width, height = os.get_terminal_size(TERMINAL)
    except OSError:
        return None
    is_remote = any(map(environment.get, SSH))
    terminal = [width, height, writes_unicode(), is_remote, *map(environment.get, TELLING)]
    digest = blake2b(json.dumps(terminal).encode(), digest_size=16)
    marks, view = (shelf_of([fingerprint], folder.parent.parent, kind) for kind in ("marks", "view"))
    reads = ((read_regular, config_path()), (read_private, marks), (read_private, None if is_fresh else view))
    for read, path in reads:
        data = b""
        with suppress(OSError):
            data = b"" if path is None else read(path, MAX_BYTES)
        digest.update(b"%d:" % len(data) + data)
    return LastPicture(folder / DERIVED / NAME, digest.hexdigest())


class Host(NamedTuple):
    """Where the viewer logs, who gives the terminal back should the viewer not be able to, and the screen
    that is taken before the viewer draws.
    """

    log: SessionLog
    guard: TerminalGuard | None
    screen: TakenScreen


def unguarded_host() -> Host:
    """Return a host that logs errors alone, and guards nothing."""
    return Host(SessionLog(default=default_log()), None, TakenScreen())
