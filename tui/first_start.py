"""What is said when the viewer is started for the first time."""

from __future__ import annotations

from .session_log import default_log

THREE_KEYS = (
    "Three keys to begin with: w zooms in (s out), Enter shows what lies at the cursor, ? lists all keys"
)


def first_start_notes() -> tuple[str, ...]:
    """Return what is said, once for each user: a file in the user's state folder remembers it.

    Where no file can be written nothing is said, as it would be said every time.
    """
    log = default_log()
    if log is None:
        return ()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.with_name("started").touch(exist_ok=False)
    except OSError:
        return ()
    return (THREE_KEYS,)
