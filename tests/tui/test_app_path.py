"""The critical path in the viewer: a line above the lanes, a walk along it, what details say of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.tables.critical_path import critical_path
from tracelane.core.tables.selection import Selection
from tracelane.core.trace import open_trace
from tracelane.tui.draw.path_line import DrawnPath
from tracelane.tui.lanes.path import PathStrip


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_path_is_shown_and_walked(size: tuple[int, int], corpus_cache: Path) -> None:
    """shift+→ finds it and goes along it; details say what released each segment; :critical removes it."""
    trace = open_trace(CORPUS / "gpu" / "hta_cuda_event_sync.json.gz", index_dir=corpus_cache)
    path = critical_path(Selection(step=100).scope(trace))
    async with open_viewer(trace, size) as (app, pilot):

        async def press(key: str) -> None:
            await pilot.press(key)
            await wait_until_idle(app, pilot)

        await press("shift+right")
        assert message(app).startswith("critical path 3.154 ms: host 74.6 %")
        assert "path step 100" in screen_text(app)
        walked = []
        while True:
            await press("shift+right")
            if "of 44" not in message(app):
                break
            number = int(message(app).split()[0]) - 1
            assert path.segments.starts[number] <= app.session.cursor < path.segments.ends[number]
            walked.append(message(app))
        assert message(app) == "the critical path ends here"
        assert "36 of 44: kernel 36 µs, released by its launch" in walked
        await press("shift+left")
        assert app.session.cursor < int(path.segments.starts[-1])
        assert "critical path" in screen_text(app)
        strip = app.main.query_one(PathStrip)
        await pilot.click(PathStrip, offset=(strip.size.width - 1, 0))
        await wait_until_idle(app, pilot)
        app.run_command("critical")
        await wait_until_idle(app, pilot)
        assert "path step" not in screen_text(app) and not strip.display


@needs_corpus
async def test_the_path_follows_the_steps(corpus_cache: Path) -> None:
    """Another step that is gone to has its path; a range that is drawn keeps the one on show."""
    trace = open_trace(CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz", index_dir=corpus_cache)
    async with open_viewer(trace) as (app, pilot):
        for key, title in (("shift+right", "path step 4"), (">", "path step 5"), ("w", "path step 5")):
            await pilot.press(key)
            await wait_until_idle(app, pilot)
            assert title in screen_text(app)


@needs_corpus
def test_cells_show_what_takes_most_of_them(corpus_cache: Path) -> None:
    """Of each cell the kind with most time, by brute force; runs neither overlap nor leave the path."""
    trace = open_trace(CORPUS / "gpu" / "tl_h100_qwen_infer.json.gz", index_dir=corpus_cache)
    path = critical_path(Selection(step=6).scope(trace))
    drawn, one = DrawnPath(trace, "path", path, path.names), path.segments
    low, high = int(one.starts[0]), int(one.ends[-1])
    for start, stop in (
        (low, high),
        (low - 5_000_000, low + 9_000_000),
        (low + 20_000_000, low + 20_090_000),
    ):
        edges = np.linspace(start, stop, 61).astype(np.int64)
        runs = drawn.runs(edges)
        assert all(run.right <= after.left for run, after in pairwise(runs))
        keys = {cell: run.key for run in runs for cell in range(run.left, run.right)}
        for cell, (left, right) in enumerate(zip(edges.tolist(), edges[1:].tolist())):
            times = np.maximum(0, np.minimum(one.ends, right) - np.maximum(one.starts, left))
            assert (cell in keys) == bool(times.any())
            kernels = int(times[one.kinds == 4].sum())
            if 2 * kernels > right - left:
                assert keys[cell] == "kernel"
