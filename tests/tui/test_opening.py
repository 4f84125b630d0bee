"""What opens folded: host lanes give way until an accelerator's lanes are on the first screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui.fake_trace import LaneSpec, fake_trace
from tracelane.core.trace import Trace
from tracelane.tui.draw.layout import Layout, toggle_fold
from tracelane.tui.draw.opening import DEVICE_LINES, LEAST_HOST_ROWS, with_devices_in_view
from tracelane.tui.session import FOLD_ROWS, Session, Viewport

SESSION = Session(Viewport(0, 1_000_000, 100), 0)
LABELS = ("CPU", "AIU 0")


def device_y(trace: Trace, session: Session) -> int:
    """The line of the device process's title."""
    found = Layout(trace, session).y_of_process(trace.processes[1])
    assert found is not None
    return found


@pytest.mark.parametrize("threads", [1, 2, 3, 40])
@pytest.mark.parametrize("rows", [1, 4, 5, 9, 60])
@pytest.mark.parametrize("height", [8, 16, 17, 18, 40, 200])
def test_device_lanes_are_on_the_first_screen(threads: int, rows: int, height: int) -> None:
    """The device's first lines are in view, and host lanes are no less deep than that needs."""
    trace = fake_trace(
        [LaneSpec(f"t{i}", rows=rows) for i in range(threads)],
        [LaneSpec("stream 0", rows=2), LaneSpec("stream 1", rows=30)],
        labels=LABELS,
    )
    session = with_devices_in_view(trace, SESSION, height)
    assert device_y(trace, session) + DEVICE_LINES < height
    depth = session.host_rows
    assert depth == 0 or LEAST_HOST_ROWS <= depth <= FOLD_ROWS
    if depth < FOLD_ROWS:
        deeper = replace(session, host_rows=depth + 1 if depth else LEAST_HOST_ROWS)
        assert device_y(trace, deeper) + DEVICE_LINES >= height


def test_without_devices_nothing_gives_way() -> None:
    """Host lanes alone open as deep as ever."""
    trace = fake_trace([LaneSpec("main", rows=20)], [LaneSpec("worker", rows=20)])
    assert with_devices_in_view(trace, SESSION, 10) == SESSION


def test_what_was_opened_stays_open() -> None:
    """A host process or lane that was opened by hand does not give way."""
    trace = fake_trace([LaneSpec(f"t{i}", rows=9) for i in range(9)], [LaneSpec("stream 0")], labels=LABELS)
    session = with_devices_in_view(trace, SESSION, 12)
    line = Layout(trace, session).line(0)
    assert line is not None and line.folded and session.host_rows == 0
    opened = toggle_fold(session, line, trace)
    assert Layout(trace, opened).height > 9 * 9
    again = Layout(trace, opened).line(0)
    assert again is not None and not again.folded
    assert Layout(trace, toggle_fold(opened, again, trace)).height == Layout(trace, session).height


def test_the_profilers_own_notes_open_folded() -> None:
    """What is no process is one line, and opens and folds as any other."""
    trace = fake_trace([LaneSpec("main")], [LaneSpec("PyTorch Profiler", rows=2)])
    notes = replace(trace.processes[1], pid='"Spans"', name="", title="Spans")
    trace.processes = (trace.processes[0], notes)
    line = Layout(trace, SESSION).line(2)
    assert line is not None and line.folded and line.title == "Spans"
    opened = toggle_fold(SESSION, line, trace)
    assert Layout(trace, opened).height == 2 + 3
    title = Layout(trace, opened).line(2)
    assert title is not None and Layout(trace, toggle_fold(opened, title, trace)).height == 2 + 1
