"""Lines of folded ranks say why nothing is done, and for whom a rank waits, as the lanes of its device do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.rank_files import straggler_files
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.device.states import IDLE
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.device_facts import stored_facts
from tracelane.tui.device_shares import device_facts
from tracelane.tui.draw.ranks import RANK_PARTS
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.runs import HATCH, Run
from tracelane.tui.draw.states import PeerWaits
from tracelane.tui.session import Viewport

US = 1000
AWAITED = PeerWaits(np.array([0, 100, 300]) * US, np.array([40, 140, 320]) * US, np.array([2, 2, 5]))


@pytest.mark.parametrize(
    ("start", "end", "cells", "text"),
    [
        (0, 40, 40, "waits for rank 2 · 40 µs"),
        (0, 40, 20, "waits for rank 2"),
        (0, 40, 10, "for rank 2"),
        (0, 40, 5, ""),
        (10, 20, 40, "waits for rank 2 · 40 µs"),
        (0, 150, 40, "waits for rank 2 · 80 µs"),
        (0, 400, 40, "waits for 2 ranks · 100 µs"),
        (0, 101, 40, "waits for rank 2 · 40 µs"),
        (50, 90, 40, ""),
    ],
)
def test_a_wait_says_for_whom(start: int, end: int, cells: int, text: str) -> None:
    """It names the rank and the whole time, as much as fits; what only begins there counts for the next."""
    assert AWAITED.text(start * US, end * US, cells) == text


def hatched(trace: Trace, view: Viewport, part: str) -> list[list[Run]]:
    """Return what is hatched with words on the line of each rank that shows a part."""
    reader = RowReader(trace)
    reader.know(device_facts(Scope(trace, clocks=trace.clocks)).states)
    lanes = [tuple(n for n in trace.device_lanes if trace.lanes[n].source == one) for one in range(2)]
    return [list(reader.busy(tuple(sorted(own)), view, trace.clocks, part).runs) for own in lanes]


def test_waits_are_named_on_lanes_and_lines(tmp_path: Path) -> None:
    """While rank 0 waits for rank 1, its line and its lane say so in the same cells, and rank 1's do not."""
    trace = open_trace(straggler_files(tmp_path / "run", 2, late=1), index_dir=tmp_path / "index")
    view = Viewport(trace.span[0], 1_000_000, 100)
    for part in ("", RANK_PARTS[1]):
        first, second = hatched(trace, view, part)
        assert [run.label for run in first if run.key == "collective"] == ["waits for rank 1 · 400 µs"]
        assert not [run for run in second if run.key == "collective"]
    reader = RowReader(trace)
    reader.know(device_facts(Scope(trace, clocks=trace.clocks)).states)
    lane = next(trace.lanes[n] for n in sorted(trace.device_lanes) if trace.lanes[n].source == 0)
    runs = reader.row(lane, 0, view, trace.clocks, "category").runs  # type: ignore[union-attr]
    own = [(run.left, run.right, run.label) for run in runs if run.flags & HATCH and run.key == "collective"]
    assert own == [(run.left, run.right, run.label) for run in first if run.key == "collective"]


@pytest.mark.slow
def test_the_hole_of_the_demo_has_its_cause(tmp_path: Path) -> None:
    """The time in which rank 0 reads its input are hatched on its line, with the words of its lane once
    there is room, also where all was stored before.
    """
    write_demo(tmp_path)
    trace = open_trace(
        [tmp_path / f"rank{rank}.pt.trace.json" for rank in (0, 1)], index_dir=tmp_path / "index"
    )
    (longest, *_), others = hatched(trace, first_session(trace, 100).viewport, "")
    assert longest.key == "sync" and longest.right - longest.left >= 4
    assert not [run for run in others if run.key == "sync" and run.left < longest.right < run.right]
    facts = stored_facts(trace, trace.clocks)
    assert facts is not None and facts.states.awaited.keys() == {0, 1}
    state = facts.states.of_devices[0]
    gap = int(np.argmax(np.where(state.states == IDLE, np.diff(state.edges), 0)))
    start, end = state.edges[gap : gap + 2].tolist()
    near = Viewport(start - (end - start) // 4, 2 * (end - start), 100)
    texts = [run.label for run in hatched(trace, near, RANK_PARTS[0])[0] if run.key == "sync"]
    assert texts[0].startswith("host late 153 ms · ") and "read_shard" in texts[0]
