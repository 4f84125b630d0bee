"""What a frame may cost, in what no machine changes: rows asked for, numpy calls, segments, bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path
from statistics import mean

import pytest

from benchmarks.made_trace import write_made_trace
from tests.corpus import CORPUS, LATER, absent, file, is_beside, needs
from tests.tui.walk import SIZE, Frame, keys_of, modal_costs, walk
from tracelane.core.demo.trace import write_demo
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.draw.glyphs import eighths
from tracelane.tui.draw.rows import KEPT_RUNS, RowReader
from tracelane.tui.draw.runs import SliceRow
from tracelane.tui.session import Viewport

pytestmark = pytest.mark.slow

REAL = "gpu/hta_a100_resnet_ddp_nccl.json.gz"
MEAN_DRAWN = 40_000
"""Bytes of the walk over a real trace, in 256 colours, as they are drawn."""
MEAN_SENT = 5_000
"""The same as they are sent: without what is on the screen already."""
MAX_DRAWN = 130_000
MAX_SENT = 40_000
MAX_SEGMENTS = SIZE[0] * SIZE[1] // 2
"""A frame whose every second cell has another colour than the one before."""
MAX_NUMPY_CALLS = 6_000
TIMES_LARGER = 50
TIMES_DEARER = 2

GROWING: list[tuple[str, Callable[[Frame], float]]] = [
    ("rows", lambda frame: frame.rows),
    ("numpy calls", lambda frame: frame.numpy_calls),
    ("bytes", lambda frame: frame.drawn),
]


@pytest.fixture(autouse=True)
def _over_ssh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 256 colours at the other end of a line."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 1 192.0.2.2 22")
    monkeypatch.delenv("TRACELANE_EIGHTHS", raising=False)


def trace_of_copies(tmp_path: Path, copies: int) -> Trace:
    path = write_made_trace(tmp_path / f"{copies}.json", copies=copies)
    return open_trace(path, index_dir=tmp_path / "index")


def assert_within_budgets(frames: list[Frame]) -> None:
    for frame in frames:
        assert frame.rows <= SIZE[1], frame
        assert frame.numpy_calls <= MAX_NUMPY_CALLS, frame
        assert frame.segments <= MAX_SEGMENTS, frame
        assert frame.drawn <= MAX_DRAWN, frame
        assert frame.size <= MAX_SENT, frame


async def test_frames_of_a_larger_trace_cost_no_more(tmp_path: Path) -> None:
    """The same walk over fifty times the slices asks, computes and writes at most twice as much a frame."""
    small, large = trace_of_copies(tmp_path, 1), trace_of_copies(tmp_path, TIMES_LARGER)
    slices = [trace.sources[0].read_report["slices"] for trace in (small, large)]
    assert slices[1] > TIMES_LARGER * slices[0] * 0.99
    costs = [await walk(trace, keys_of(trace, fine=False)) for trace in (small, large)]
    for frames in costs:
        assert_within_budgets(frames)
    for name, cost in GROWING:
        few, many = (mean(map(cost, frames)) for frames in costs)
        assert 0 < many <= TIMES_DEARER * few, name


def test_drawn_rows_are_bounded_by_what_is_in_them(tmp_path: Path) -> None:
    """However dense rows are, at however many sizes, no more runs stay than KEPT_RUNS."""
    trace = trace_of_copies(tmp_path, 1)
    reader = RowReader(trace)
    start, end = trace.span
    drawn = 0
    for width in range(200, 1200, 3):
        for lane in trace.lanes:
            row = reader.row(lane, 0, Viewport(start, end - start, width), trace.clocks, "category")
            drawn += len(row.runs) if isinstance(row, SliceRow) else 0
    held = sum(len(row.runs) for row in reader._rows.values() if isinstance(row, SliceRow))
    assert KEPT_RUNS / 2 < held <= KEPT_RUNS < drawn


MANY = 1 << 30


@needs(CORPUS)
async def test_bytes_over_a_slow_line(corpus_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In 256 colours the walk draws at most 40 KB a frame over SSH and sends 5; eighths cost more."""
    trace = open_trace(CORPUS / REAL, index_dir=corpus_cache)
    keys = keys_of(trace, fine=False)
    frames = await walk(trace, keys)
    assert_within_budgets(frames)
    assert mean(frame.drawn for frame in frames) <= MEAN_DRAWN
    assert mean(frame.size for frame in frames) <= MEAN_SENT
    monkeypatch.setenv("TRACELANE_EIGHTHS", "1")
    finer = await walk(trace, keys, counting=False)
    assert sum(frame.size for frame in finer) > sum(frame.size for frame in frames)


STACKS = Path(__file__).parents[1] / "samples" / "cuda" / "stacks.pt.trace.json.gz"
RANKS = "multirank/dlrm_8gpu_ranks0-3"
ON_LANES = {"right": 500, "down": 500, "question_mark": 4000, "escape": 4500, "slash": 1000, "a": 4000}
"""The most bytes of a move, of help, of its end, which draws lanes and overview anew, and of the first letter
of a search: all of those lanes turn grey that do not match.
"""
LEAVING = {"quit", "close-or-quit", "close", "suspend", "stop-indexing", "reload"}
MODALS = {"help", "palette", "messages", "hidden", "marks", "copy-view"}
"""Screens that every trace has, beside those that depend on what is selected."""
MAX_OF_MODAL = 4500


MANY_MODALS = ("gpu/tl_h100_qwen_infer.json.gz", str(STACKS))
FIRST_SCREENS = (REAL, RANKS, "demo", "aiu/sample_flex_3062_job_4.json", *MANY_MODALS)
"""Traces by what their lanes hold: few colours, folded ranks, long stacks; most modals open in the last."""


def first_screens(tried: Collection[str], paths: Collection[str] = FIRST_SCREENS) -> list[object]:
    """Return traces as parameters: those that are not `tried` for later."""
    there = [path for path in paths if path == "demo" or not absent(path)]
    real = {path for path in there if path != "demo" and is_beside(path)}
    return [
        pytest.param(
            path, marks=(*(() if path in tried else LATER), *((pytest.mark.real,) if path in real else ()))
        )
        for path in there
    ]


def open_first_screen(path: str, folder: Path) -> Trace:
    if path == "demo":
        return open_trace(write_demo(folder / "demo")[:2], index_dir=folder)
    paths = sorted((file(path)).glob("*")) if path == RANKS else [file(path)]
    return open_trace(paths, index_dir=folder)


@pytest.mark.parametrize("path", first_screens(FIRST_SCREENS))
async def test_small_changes_are_small(
    path: str, corpus_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 120x40 in true colours a move takes at most 0.5 KB, help and the first letter of a search 4 KB, its
    end 4.5.
    """
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TRACELANE_EIGHTHS", "1")
    trace = open_first_screen(path, corpus_cache)
    sizes = dict.fromkeys(ON_LANES, MANY)
    for _ in range(3):  # findings may come in with any frame, and are no part of what a key costs
        for frame in await walk(trace, list(ON_LANES), counting=False, size=(120, 40)):
            sizes[frame.key] = min(sizes[frame.key], frame.size)
        if all(0 < sizes[key] <= most for key, most in ON_LANES.items()):
            return
    pytest.fail(str(sizes))


@pytest.mark.parametrize("path", first_screens(MANY_MODALS, (RANKS, *MANY_MODALS)))
async def test_every_modal_is_small(path: str, corpus_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever opens a screen over the lanes takes at most 4.5 KB to open it, and as much to close it."""
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TRACELANE_EIGHTHS", "1")
    trace = open_first_screen(path, corpus_cache)
    for _ in range(3):  # now and then a viewer dims what is behind, for all of its run: why is not known
        costs = await modal_costs(trace, ["forward", "mark", "hide"], LEAVING, size=(120, 40))
        assert set(costs) >= MODALS
        large = {name: sizes for name, sizes in costs.items() if max(sizes) > MAX_OF_MODAL}
        if not large:
            return
    pytest.fail(str(large))


async def test_what_is_painted_is_counted(tmp_path: Path) -> None:
    """The counts are no zeros: a walk asks for rows, calls numpy, and writes what it paints."""
    trace = trace_of_copies(tmp_path, 1)
    frames = await walk(trace, ["w", "d"])
    assert [frame.key for frame in frames] == ["w", "d"]
    for frame in frames:
        assert min(frame.rows, frame.numpy_calls, frame.segments, frame.size) > 0


@pytest.mark.parametrize(
    ("environ", "wish", "drawn"),
    [
        ({}, None, True),
        ({"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}, None, False),
        ({"SSH_TTY": "/dev/pts/3"}, None, False),
        ({"SSH_TTY": "/dev/pts/3"}, True, True),
        ({}, False, False),
        ({"SSH_TTY": "/dev/pts/3", "TRACELANE_EIGHTHS": "1"}, False, True),
        ({"TRACELANE_EIGHTHS": "0"}, True, False),
    ],
)
def test_when_edges_are_drawn_in_eighths(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], wish: bool | None, drawn: bool
) -> None:
    """Not over SSH unless the settings ask for them; the environment has the last word."""
    for name in ("SSH_CONNECTION", "SSH_TTY", "TRACELANE_EIGHTHS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert eighths(wish, os.environ) is drawn
