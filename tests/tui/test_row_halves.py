"""A row in which a device works may have two lines: they show what one shows, at twice the height."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.corpus import file, for_files
from tracelane.core.index.format import RowKind
from tracelane.core.trace import LaneRole, Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.draw.lane_choice import rows_at_work
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import Half
from tracelane.tui.draw.runs import BRACKET, FULL, HATCH, WHOLE, Run, lower_half, upper_half
from tracelane.tui.fitting import fit_to_screen


def run(levels: bytes, flags: int = 0, label: str = "gemm") -> Run:
    return Run(0, max(1, len(levels)), "kernel", label, 3, 2, flags, levels=levels)


def test_both_lines_are_twice_as_high_as_one() -> None:
    """Of each level the two lines have twice the eighths, the lower one first; what it is called stands in
    the upper one, and which slice it is is known in both.
    """
    whole = run(bytes(range(FULL + 1)))
    upper, lower = upper_half(whole), lower_half(whole)
    assert lower is not None
    for level, above, below in zip(whole.levels, upper.levels, lower.levels, strict=True):
        assert above + below == 2 * level and (not above or below == FULL)
    assert (upper.label, lower.label) == ("gemm", "") and upper.at == lower.at == whole.at


@pytest.mark.parametrize(("flags", "has_lower"), [(WHOLE, True), (HATCH, True), (BRACKET, False)])
def test_annotations_take_one_line(flags: int, has_lower: bool) -> None:
    """What covers its cells, and what is hatched, fills both lines; an annotation has the upper one."""
    assert upper_half(run(b"", flags)) == run(b"", flags)
    assert lower_half(run(b"", flags)) == (run(b"", flags, "") if has_lower else None)


def tall_lines(trace: Trace, size: tuple[int, int]) -> dict[LaneRole, list[Half]]:
    """Return the lines of rows on the first screen, by what their lane is."""
    fit = fit_to_screen(trace, first_session(trace, size[0]), *size, has_marks=False)
    lines = Layout(trace, fit.session).visible(0, fit.lanes)
    known = [line for line in lines if line is not None and line.lane is not None]
    return {role: [line.half for line in known if line.lane and line.lane.role is role] for role in LaneRole}


@pytest.mark.slow
@for_files(
    "path",
    [
        *("cuda/inference.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
        *("gpu/hta_a100_resnet_ddp_nccl.json.gz", "gpu/tl_h100_qwen_infer.json.gz"),
        *("verdicts/gh200_transformer_shapes.json.gz", "verdicts/rtx4090_llama_tp2.json.gz"),
    ],
)
def test_a_device_beside_a_deep_host_has_two_lines_a_row(path: str, corpus_cache: Path) -> None:
    """On a usual screen each row of work of a device has two lines where the host's rows are more; rows of
    annotations, and the host's, have one. Without room for it a row has one line.
    """
    with closing(open_trace(file(path), index_dir=corpus_cache)) as trace:
        roomy, low = (tall_lines(trace, size) for size in ((120, 40), (80, 12)))
        lanes = [lane for lane in trace.lanes if lane.role is LaneRole.DEVICE and lane.slices]
        at_work = sum(sum(rows_at_work(trace, lane.index)) for lane in lanes)
    assert roomy[LaneRole.DEVICE].count(Half.LOWER) == roomy[LaneRole.DEVICE].count(Half.UPPER) == at_work
    assert set(roomy[LaneRole.HOST]) == {Half.WHOLE}
    assert set(low[LaneRole.DEVICE]) <= {Half.WHOLE}


@for_files(
    "path",
    [
        *("cuda/inference.pt.trace.json.gz", "gpu/hta_a100_resnet_ddp_nccl.json.gz"),
        "multirank/dlrm_8gpu_ranks0-3/worker0_step_12.1694128201545.pt.trace.json.gz",
    ],
)
def test_no_thread_that_launches_gives_way(path: str, corpus_cache: Path) -> None:
    """On a low screen the two threads that launch most keep their first three rows in sight: a second line of
    a device is worth less.
    """
    with closing(open_trace(file(path), index_dir=corpus_cache)) as trace:
        fit = fit_to_screen(trace, first_session(trace, 80), 80, 24, has_marks=False)
        lines = [line for line in Layout(trace, fit.session).visible(0, fit.lanes) if line is not None]
        threads = trace.launching_lanes
        for lane in (trace.lanes[number] for number in sorted(threads, key=threads.__getitem__)[-2:]):
            rows = sum(line.lane is lane for line in lines)
            assert rows >= min(3, lane.depth), lane.title


@for_files("path", ["cuda/stacks.pt.trace.json.gz", "cuda/inference.pt.trace.json.gz"])
def test_rows_at_work(path: str, corpus_cache: Path) -> None:
    """A row is one of work where slices that are neither annotations nor waits take a twentieth of the time
    that opens.
    """
    answers = set()
    with closing(open_trace(file(path), index_dir=corpus_cache)) as trace:
        start, end = trace.opening_span
        for lane in (lane for lane in trace.lanes if lane.role is LaneRole.DEVICE):
            besides = {trace.categories(lane.source)[number] for number in trace.besides_work(lane.source)}
            for depth, works in enumerate(rows_at_work(trace, lane.index)):
                row = trace.row(lane, depth)
                count = row.count if row.kind is RowKind.SLICES else 0
                first = trace.position(row, 0) if count else 0
                slices = trace.slices(lane.source, range(first, first + count))
                bounds = [trace.bounds(row, at) for at in range(count)]
                ns = sum(
                    high - low for one, (low, high) in zip(slices.categories, bounds) if one not in besides
                )
                assert works == (20 * ns >= end - start > 0)
                answers.add(works)
    assert True in answers
