"""What is loud on the first screen is work: ink of devices' lanes over the whole corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from rich.color import Color
from rich.segment import Segment

from tests.corpus import CORPUS, files, for_files, needs, traces
from tracelane.core.base.colours import CNAMES, FAMILIES, RGB, contrast, luminance
from tracelane.core.tables.device.device_state import looked_at
from tracelane.core.tables.device.states import COMPUTE, COPY, IDLE, MOVING, UNSPLIT, WAITING, DeviceState
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.work_device import WorkDevice
from tracelane.core.trace import LaneRole, Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.device_shares import gaps_of_lanes, states_over_all
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import Line, LineKind, process_key
from tracelane.tui.draw.line_context import LineContext, title_cells
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.opening import with_devices_in_view
from tracelane.tui.draw.overview import minimap_lines
from tracelane.tui.draw.palette import Depth, Look, Palette
from tracelane.tui.draw.ranks import RANK_PARTS
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.runs import HATCH, BusyRow, SliceRow
from tracelane.tui.draw.states import DrawnStates, state_row
from tracelane.tui.fitting import fit_to_screen
from tracelane.tui.session import Viewport

SIZE = (120, 40)
WORK = {"kernel", "memcpy", "memset", "collective"}
MIN_WORK = 0.8
HATCHES = UNICODE.shades[1:4]


FOLDERS = (
    "gpu",
    "aiu",
    "aiu/spyre_torch_profiler",
    "verdicts",
    "cases/verdicts",
    "cases/cheat",
    "cases/adversarial",
)


def groups() -> list[list[Path]]:
    """Return every trace of PyTorch's, of the corpus and of the cases; the ranks of one run together."""
    singles = traces(*(f"{folder}/*.json*" for folder in FOLDERS))
    ranks = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
    own = [files(f"cpu/torch_{release}_rank*.pt.trace.json.gz") for release in ("2.1", "2.13", "2.14")]
    return [*([path] for path in singles), *own, *([sorted(ranks.glob("*"))] if ranks.is_dir() else [])]


def cells(segments: list[Segment], titles: int) -> Iterator[tuple[str, Segment]]:
    """Yield the characters of a line's time area, each with its segment."""
    text = [(character, segment) for segment in segments for character in segment.text]
    yield from text[titles:]


def colour_of(colour: Color | None) -> RGB:
    assert colour is not None
    triplet = colour.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def ink_of(character: str, segment: Segment, surface: RGB) -> float:
    """Return luminance times area of what is filled in one cell, against the surface; text has no area."""

    def weight(colour: Color | None) -> float:
        return 0.0 if colour is None else abs(luminance(colour_of(colour)) - luminance(surface))

    style = segment.style
    assert style is not None
    share = 0.0
    for blocks in (UNICODE.bars, UNICODE.lefts):
        if character in blocks:
            share = blocks.index(character) / 8
    return share * weight(style.color) + (1 - share) * weight(style.bgcolor)


def device_lines(
    trace: Trace, reader: RowReader, look: LineContext
) -> Iterator[tuple[Line, list[str], list[Segment]]]:
    """Yield the first screen's lines of devices' work: line, colour key of each cell, segments."""
    session = fit_to_screen(trace, first_session(trace, SIZE[0]), *SIZE, has_marks=False).session
    layout = Layout(trace, session)
    for line in layout.lines(0, layout.height):
        numbers = line.members or (() if line.lane is None else (line.lane.index,))
        lanes = [trace.lanes[number] for number in numbers]
        if line.kind is LineKind.MORE or not lanes or any(lane.role is not LaneRole.DEVICE for lane in lanes):
            continue
        if not any(len(work_of(Scope(trace, lanes=[number], clocks=trace.clocks))) for number in numbers):
            continue
        if line.kind is LineKind.ROW and line.lane is not None:
            row = reader.row(line.lane, line.depth, session.viewport, session.clocks, session.colour_by)
        else:
            row = reader.busy(tuple(numbers), session.viewport, session.clocks)
        keys = [""] * look.area
        if isinstance(row, SliceRow):
            for run in row.runs:
                keys[run.left : run.right] = [run.key] * (run.right - run.left)
        elif isinstance(row, BusyRow):
            keys = list(row.keys)
        yield line, keys, line_segments(line, reader, session, look)


def ink_by_key(trace: Trace, palette: Palette) -> Counter[str]:
    look = LineContext(palette, UNICODE, title_cells(SIZE[0]), SIZE[0] - title_cells(SIZE[0]))
    surface = colour_of(palette.blank.bgcolor)
    ink: Counter[str] = Counter()
    for _, keys, segments in device_lines(trace, RowReader(trace), look):
        for (character, segment), key in zip(cells(segments, look.titles), keys):
            ink["hatch" if character in HATCHES else key] += ink_of(character, segment, surface)
    return ink


@pytest.mark.slow
@pytest.mark.parametrize("dark", [True, False])
@for_files("paths", groups())
def test_ink_is_work(paths: list[Path], dark: bool, corpus_cache: Path) -> None:
    """Kernels, copies and collectives have at least 80 % of the ink of devices' lanes that hold any."""
    trace = open_trace(paths, index_dir=corpus_cache)
    for palette in (Palette(Depth.TRUECOLOR, dark), Palette(Depth.EIGHT_BIT, dark)):
        ink = ink_by_key(trace, palette)
        work = sum(amount for key, amount in ink.items() if key in WORK)
        assert work >= MIN_WORK * sum(ink.values()), ink


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT])
def test_a_hatch_has_a_quarter_of_a_kernels_ink(depth: Depth, dark: bool) -> None:
    """Waiting weighs at most a quarter of work: the glyph covers a quarter, of a colour no stronger."""
    palette = Palette(depth, dark)
    kernel = abs(luminance(palette.ground("kernel", 8)) - luminance(palette.surface))
    for key in ("collective", "sync", "kernel", "memcpy", "quiet"):
        colour = palette.style(key, Look.FAINT).color
        assert colour is not None
        hatch = abs(luminance(colour_of(colour)) - luminance(palette.surface)) / 4
        assert hatch <= kernel / 4, key


@pytest.mark.parametrize("dark", [True, False])
@pytest.mark.parametrize("depth", [Depth.TRUECOLOR, Depth.EIGHT_BIT, Depth.STANDARD])
def test_brackets_can_be_read(depth: Depth, dark: bool) -> None:
    """Names of annotations have a contrast of at least 4.5, and no ground of their own."""
    palette = Palette(depth, dark)
    for key in (*FAMILIES, *(f"={name}" for name in CNAMES), "~3"):
        style = palette.style(key, Look.BRACKET)
        assert style.color is not None and style.bgcolor == palette.blank.bgcolor
        assert contrast(colour_of(style.color), palette.surface) >= 4.5, key


@needs(CORPUS)
@pytest.mark.slow
def test_ranks_that_wait_are_hatched(corpus_cache: Path) -> None:
    """In the line of a rank, in its streams and in the minimap a cell is hatched where the core says that its
    devices wait for a peer for most of what they do; the rank that the others wait for hardly ever waits.
    """
    trace = open_trace(groups()[-1], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    states = states_over_all(scope)
    assert states is not None and len(states) == 4
    drawn = DrawnStates.of(scope.clocks, states)
    reader = RowReader(trace)
    reader.know(drawn)
    session = first_session(trace, SIZE[0])
    edges = np.array(session.viewport.edges())
    waiting: dict[int | None, int] = {}
    for state in states:
        row = reader.busy(state.device.device.lanes, session.viewport, session.clocks)
        ns = state.in_cells(edges)
        busy = ns[[COMPUTE, MOVING, UNSPLIT, COPY]].sum(axis=0)
        assert row.hatched == tuple((ns[WAITING] > busy).tolist())
        assert [level >= 0 for level in row.levels] == (busy > 0).tolist()
        assert int(ns.sum()) == int(edges[-1] - edges[0])
        waiting[state.device.rank] = sum(row.hatched)
        parts = [
            reader.busy(state.device.device.lanes, session.viewport, session.clocks, part)
            for part in RANK_PARTS
        ]
        assert [level >= 0 for level in parts[0].levels] == (ns[COMPUTE] > 0).tolist()
        assert all(waits for waits, all_in_one in zip(parts[1].hatched, row.hatched) if all_in_one)
        moves = [level >= 0 for level in parts[1].levels]
        assert all(moves[cell] for cell in np.flatnonzero(ns[MOVING] + ns[UNSPLIT]))
        assert not any(parts[0].hatched) and not any(parts[2].hatched)
        lanes = [trace.lanes[number] for number in state.device.device.lanes]
        rows = [
            reader.row(lane, depth, session.viewport, session.clocks, "category")
            for lane in lanes
            for depth in range(lane.depth)
        ]
        runs = [run for row in rows if isinstance(row, SliceRow) for run in row.runs if run.flags & HATCH]
        assert {cell for run in runs for cell in range(run.left, run.right)} >= {
            cell for cell, waits in enumerate(row.hatched) if waits
        }
    opened = with_devices_in_view(trace, session, 13)
    assert Layout(trace, opened).height == 4 * len(RANK_PARTS) + 1
    assert with_devices_in_view(trace, session, 12).rank_lines == 1
    first = Layout(trace, opened).line(0)
    assert first is not None and first.process is not None
    open_rank = opened._replace(unfolded=frozenset({process_key(first.process)}))
    titles = [line for line in Layout(trace, open_rank).lines(0, 99) if line.kind is LineKind.PROCESS]
    assert sum(line.process == first.process for line in titles) == 1  # an open rank has one title
    assert waiting[2] < 2 and waiting[1] > waiting[3] > waiting[0] > 5
    look = LineContext(Palette(), UNICODE, 20, session.viewport.width)
    (line,) = minimap_lines(trace, session, look, states=drawn)
    text = "".join(segment.text for segment in line)[20:]
    row = state_row(states, edges)
    assert [character == UNICODE.shades[1] for character in text] == list(row.hatched)


def test_states_in_cells_add_up() -> None:
    """Cells hold each ns once, however edges lie to states; a part of the time has the same states."""
    edges, states = np.array([10, 20, 35, 60, 100]), np.array([COMPUTE, IDLE, WAITING, COMPUTE], np.uint8)
    state = DeviceState(cast(WorkDevice, None), edges, states, np.zeros(4, np.uint8), 0)
    cells = np.array([0, 10, 15, 15, 36, 59, 100, 130])
    ns = state.in_cells(cells)
    assert ns.sum(axis=0).tolist() == [0, 5, 0, 21, 23, 41, 0]
    assert ns[COMPUTE].tolist() == [0, 5, 0, 5, 0, 40, 0] and ns[WAITING].tolist() == [0, 0, 0, 1, 23, 1, 0]
    part = state.within(15, 50)
    assert part.edges.tolist() == [15, 20, 35, 50] and part.states.tolist() == [COMPUTE, IDLE, WAITING]
    assert state.within(0, 1000).edges.tolist() == edges.tolist()


@needs(CORPUS)
def test_nothing_says_nothing(corpus_cache: Path) -> None:
    """The profiler's own lanes are counted, not listed, until quiet lanes are asked for; a thread of the host
    under a device's process is folded, and none is under a trace that has no others.
    """
    trace = open_trace(CORPUS / "gpu" / "tl_h100_qwen_infer.json.gz", index_dir=corpus_cache)
    session = first_session(trace, SIZE[0])
    for is_whole in (False, True):
        layout = Layout(trace, session._replace(show_quiet=is_whole))
        titles = [line.title for line in layout.lines(0, layout.height)]
        assert ("Spans" in titles) == ("thread 0 (python3)" in titles) == is_whole
        assert ("1 host thread" in titles) == (not is_whole)
        assert any("3 lanes of the profiler not shown" in title for title in titles) == (not is_whole)
    layout, look = Layout(trace, session), LineContext(Palette(), UNICODE, 20, session.viewport.width)
    (line,) = (line for line in layout.lines(0, layout.height) if line.kind is LineKind.QUIET)
    drawn = {character for character, _ in cells(line_segments(line, RowReader(trace), session, look), 20)}
    assert drawn == {" ", UNICODE.bars[1]}


@needs(CORPUS)
def test_a_folded_line_is_no_bar_of_annotations(corpus_cache: Path) -> None:
    """The line of a folded thread shows what its annotations hold, and those alone as a line without area."""
    trace = open_trace(CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz", index_dir=corpus_cache)
    session, palette = first_session(trace, SIZE[0]), Palette()
    look = LineContext(palette, UNICODE, 20, session.viewport.width)
    (lane,) = (lane for lane in trace.lanes if lane.title == "thread 2910249 (pt_main_thread)")
    line = Line(LineKind.LANE, lane.title, lane.process, lane, 0, folded=True)
    keys = {palette.style(key, Look.FAINT): key for key in ("cpu_op", "runtime", "overhead", "memory")}
    keys |= {palette.style("annotation", Look.BRACKET): "annotation", palette.blank: ""}
    drawn = [
        (character, keys.get(segment.style or palette.blank))
        for character, segment in cells(line_segments(line, RowReader(trace), session, look), 20)
    ]
    assert {character for character, key in drawn if key == "annotation"} == {UNICODE.filler}
    assert 20 < sum(key == "cpu_op" for _, key in drawn) < sum(key == "annotation" for _, key in drawn) * 2


@needs(CORPUS)
def test_gaps_say_why_where_they_are(corpus_cache: Path) -> None:
    """A gap of at least 12 cells is hatched with its cause on the row of the slice that ends it, over nothing
    that is drawn; gaps of a stream in which another one works are not.
    """
    trace = open_trace(CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz", index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    states = states_over_all(scope)
    assert states is not None
    gaps = gaps_of_lanes(scope, states)
    reader, plain = RowReader(trace), RowReader(trace)
    reader.know(replace(DrawnStates.of(scope.clocks, states), gaps=gaps))
    plain.know(DrawnStates.of(scope.clocks, states))
    start, texts = trace.opening_span[0], []
    view = Viewport(start + 25_000_000, 47_000_000, 100)
    for lane in (trace.lanes[number] for number in states[0].device.device.lanes):
        known = gaps[lane.index]
        idle = states[0].idle_between(known.starts, known.ends)
        assert (2 * idle > known.ends - known.starts).all()
        for depth in range(lane.depth):
            with_gaps, without = (
                one.row(lane, depth, view, trace.clocks, "category") for one in (reader, plain)
            )
            assert isinstance(with_gaps, SliceRow) and isinstance(without, SliceRow)
            more = [run for run in with_gaps.runs if run not in without.runs]
            assert len(with_gaps.runs) == len(without.runs) + len(more)
            assert all(run.right - run.left >= 12 and run.flags == HATCH for run in more)
            ends = [edge for run in with_gaps.runs for edge in (run.left, run.right)]
            assert ends == sorted(ends)
            texts += [run.label for run in more]
    assert any(text.startswith("host late 16 ms · ") for text in texts)
    assert "host late" in texts


@needs(CORPUS)
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("tl_vllm_decode_cudagraph_exec", "unexplained 8.37 ms"),
        ("hta_a100_resnet_ddp_nccl", "host late 6.09 ms"),
    ],
)
def test_time_before_the_first_work_says_why(path: str, text: str, corpus_cache: Path) -> None:
    """On the lane of a device's first work, and on no other, a gap from where the time looked at begins ends
    with that work.
    """
    trace = open_trace(CORPUS / "gpu" / f"{path}.json.gz", index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    states = states_over_all(scope)
    assert states is not None
    low, first = looked_at(scope)[0], int(work_of(scope).start.min())
    begun = [one for one in gaps_of_lanes(scope, states).values() if len(one.starts) and one.starts[0] == low]
    assert [(int(one.ends[0]), one.text(0, len(text))) for one in begun] == [(first, text)]
    assert trace.indexes[0].start(int(begun[0].after[0])) == first
