"""The command line that shows a colleague the same view."""

from __future__ import annotations

import shlex

from tracelane.core.base.errors import TracelaneError
from tracelane.core.trace import Trace

from .session import Session


def view_line(trace: Trace, session: Session) -> str:
    """Return `tracelane view …` with the files, the time and the lanes of a session; TracelaneError where the
    trace was read from standard input.
    """
    paths = [source.path for source in trace.sources if source.manifest.get("source")]
    if not paths or "-" in paths:
        raise TracelaneError("what was read from standard input cannot be opened again")
    seen = session.viewport
    words = ["tracelane", "view", *(path if not path.startswith("-") else f"./{path}" for path in paths)]
    words += ["--from", _stamp(seen.start), "--to", _stamp(seen.end)]
    if session.only:
        words += ["--lanes", session.only]
    if session.zone:
        words += ["--tz", session.zone]
    return shlex.join(words)


def _stamp(time: int) -> str:
    """Return a time as in the first file, µs; the line begins with no clock moved."""
    sign, time = ("-", -time) if time < 0 else ("", time)
    return f"@{sign}{time // 1000}.{time % 1000:03d}"
