"""A row has as much ink as slices take of its time: cell by cell, and against breakdown's figures."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import file, for_files
from tracelane.core.index.format import RowKind
from tracelane.core.query.filter import parse
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Lane, LaneRole, Trace, open_trace
from tracelane.core.trace.hit_search import matches
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.palette import Depth, Look, Palette
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.runs import BRACKET, HATCH, SliceRow
from tracelane.tui.draw.segments import slice_segments
from tracelane.tui.session import Viewport

TRACES = [
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_torch_compile_triton.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "gpu/hta_gpu_user_annotation.json.gz",
    *("cuda/gloo.pt.trace.json.gz", "cuda/inference.pt.trace.json.gz"),
]
WINDOWS = 6
ROWS = 12
WIDTH = 150


def shares(trace: Trace, lane: Lane, depth: int, view: Viewport) -> list[float]:
    """Return how much of each cell the row's slices cover, added up one by one; -1 where none lies."""
    index, row = trace.indexes[lane.source], trace.indexes[lane.source].rows[lane.rows[depth]]
    positions = np.arange(int(row["first"]), int(row["first"]) + int(row["count"]))
    starts = index.column("slices.start")[positions] + trace.clocks.offset(lane.source, lane.pid)
    ends = starts + index.duration(positions)
    if lane.role is LaneRole.DEVICE:
        besides = list(trace.besides_work(lane.source))
        is_work = ~np.isin(index.column("slices.category")[positions], besides)
        starts, ends = starts[is_work], ends[is_work]
    cells = []
    for left, right in zip(view.edges(), view.edges()[1:]):
        inside = np.minimum(ends, right) - np.maximum(starts, left)
        touches = (inside > 0) | ((starts == ends) & (starts >= left) & (starts < right))
        cells.append(float(inside[inside > 0].sum()) / (right - left) if touches.any() else -1.0)
    return cells


def ink(row: SliceRow, palette: Palette) -> list[float]:
    """Return how much of each cell is drawn: its height or width in eighths, or its brightness."""
    levels = {palette.blank: 0.0}
    brackets = {palette.style(run.key, Look.BRACKET) for run in row.runs}
    edges, bars = set(), set()
    for key in {run.key for run in row.runs}:
        for tier in (palette.inks(key), palette.fills(key)):
            levels |= {style: level / 8 for style, level in zip(tier[1:], palette.steps[1:])}
        edges.add(palette.style(key, Look.EDGE))
        bars.add(palette.style(key, Look.BAR))
    amounts = []
    for segment in slice_segments(row.runs, WIDTH, palette, UNICODE, has_bars=row.has_bars):
        style = segment.style
        assert style is not None
        for character in segment.text:
            if style in edges and character in UNICODE.lefts[1:]:
                amounts.append(1 - UNICODE.lefts.index(character) / 8)
            elif style in bars:
                glyphs = UNICODE.bars if character in UNICODE.bars else UNICODE.lefts
                amounts.append(glyphs.index(character) / 8)
            elif style in brackets or character in UNICODE.shades[1:4]:
                amounts.append(0.0)
            else:
                amounts.append(levels[style])
    return amounts


def rows_of(trace: Trace, chance: random.Random) -> Iterator[tuple[Lane, int]]:
    rows = [
        (lane, depth)
        for lane in trace.lanes
        for depth, number in enumerate(lane.rows)
        if trace.indexes[lane.source].rows[number]["kind"] == RowKind.SLICES
    ]
    yield from chance.sample(rows, min(ROWS, len(rows)))


def windows(trace: Trace, chance: random.Random) -> Iterator[Viewport]:
    start, end = trace.opening_span
    yield Viewport(start, end - start, WIDTH)
    for _ in range(WINDOWS):
        span = max(WIDTH, int((end - start) / 10 ** chance.uniform(0, 4)))
        yield Viewport(chance.randint(start, end - span), span, WIDTH)


@pytest.mark.slow
@for_files("path", TRACES)
@pytest.mark.parametrize("eighths", [True, False])
def test_every_cell_shows_its_share(path: str, eighths: bool, corpus_cache: Path) -> None:
    """No filled cell is drawn more than an eighth off its share, and none that holds a slice is blank."""
    trace, chance = open_trace(file(path), index_dir=corpus_cache), random.Random(path)
    palette, reader = Palette(Depth.TRUECOLOR), RowReader(trace, eighths)
    cells = 0
    for view in windows(trace, chance):
        for lane, depth in rows_of(trace, chance):
            row = reader.row(lane, depth, view, trace.clocks, "category")
            assert isinstance(row, SliceRow)
            unfilled = {cell for run in row.runs if run.flags & (BRACKET | HATCH) for cell in range(*run[:2])}
            for cell, (drawn, share) in enumerate(zip(ink(row, palette), shares(trace, lane, depth, view))):
                if cell in unfilled:
                    continue
                cells += share >= 0
                assert drawn == 0 if share < 0 else drawn > 0, (lane.title, depth, view, cell)
                assert abs(drawn - max(share, 0.0)) <= 0.126, (lane.title, depth, view, cell)
    assert cells


@for_files("path", TRACES)
def test_a_stream_has_as_much_ink_as_it_works(path: str, corpus_cache: Path) -> None:
    """The ink of a stream, annotations aside, is what breakdown says that it works, to an eighth a cell."""
    trace, chance = open_trace(file(path), index_dir=corpus_cache), random.Random(path)
    palette, reader = Palette(Depth.TRUECOLOR), RowReader(trace)
    reader.look_for(
        None,
        matches(
            trace, parse("-cat:gpu_user_annotation -cat:user_annotation -cat:python_function"), trace.clocks
        ),
    )
    streams = [lane for lane in trace.lanes if lane.slices and len(work_of(Scope(trace, lanes=[lane.index])))]
    assert streams
    for view in windows(trace, chance):
        for lane in streams:
            rows = [
                reader.row(lane, depth, view, trace.clocks, "category") for depth in range(len(lane.rows))
            ]
            drawn = [part for row in rows if isinstance(row, SliceRow) for part in ink(row, palette)]
            scope = Scope(trace, (view.start, view.end), lanes=[lane.index], clocks=trace.clocks)
            works = int(work_of(scope).dur.sum())
            assert abs(sum(drawn) - works * WIDTH / view.span) <= sum(one > 0 for one in drawn) / 8, (
                lane.title
            )
