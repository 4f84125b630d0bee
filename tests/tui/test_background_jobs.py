"""A job in the background shows what went wrong in it, unless nobody waits for it any more."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from tests.tui.driver import message, open_viewer, wait_until, wait_until_idle
from tests.tui.small_file import small_file
from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.trace import open_trace

BUG = "this should not have happened: ValueError: odd numbers"


@pytest.mark.slow
@pytest.mark.usefixtures("errors_are_shown")
@pytest.mark.parametrize(
    ("error", "cancelled", "text"),
    [
        (TracelaneError("the file went away"), False, "the file went away"),
        (TracelaneError("the file went away"), True, ""),
        (OSError(28, "No space left on device"), False, "No space left on device"),
        (OSError(28, "No space left on device"), True, ""),
        (Cancelled(), False, ""),
        (Cancelled(), True, ""),
        (ValueError("odd numbers"), False, BUG),
        (ValueError("odd numbers"), True, BUG),
    ],
)
async def test_errors_of_a_job(error: Exception, cancelled: bool, text: str, tmp_path: Path) -> None:
    """Bad input and a disk's refusal are shown while somebody waits; a bug is always."""
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    begun, may_fail = Event(), Event()

    def job() -> None:
        begun.set()
        assert may_fail.wait(30)
        raise error

    async with open_viewer(trace) as (app, pilot):
        app.say("")
        app.jobs.start(job, "test")
        await wait_until(pilot, begun.is_set)
        if cancelled:
            app.jobs.cancel("test")
        may_fail.set()
        if text:  # a cancelled job counts as done before its thread is
            await wait_until(pilot, lambda: text in message(app), text)
        else:
            await wait_until_idle(app, pilot)
            assert not message(app)
