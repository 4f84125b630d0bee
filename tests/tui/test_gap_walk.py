"""`i` and `I` on a device's lane: the gaps of its work, the same that `tracelane idle` counts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import CASES, CORPUS, needs_cases, needs_corpus
from tests.tui.driver import open_viewer, screen_text, wait_until_idle
from tracelane.core.tables.frame import Frame
from tracelane.core.tables.frame_columns import GAP_CLASSES, gap_rows
from tracelane.core.tables.gap import gap_of, work_gaps
from tracelane.core.tables.idle import idle
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import RowKind, Trace, open_trace
from tracelane.core.trace.devices import devices
from tracelane.tui.actions import gaps
from tracelane.tui.actions.refusal import Refusal
from tracelane.tui.actions.scene import Scene
from tracelane.tui.actions.view import first_session, view_of
from tracelane.tui.clock import stamps_of
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import lane_key
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.panels.gap import gap_fields
from tracelane.tui.session import GapId, RowKey, Session

MOST = 120
"""Gaps of a lane that are walked; the longest traces have thousands."""

A100 = "gpu/hta_a100_resnet_ddp_nccl.json.gz"
TRACES = (
    A100,
    "gpu/hta_gpu_user_annotation.json.gz",
    "gpu/hta_mtia_inference_rank0.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "aiu/spyre_torch_profiler/decode_bmm__upstream-main__adnan-cdx-spyre-dev-pf_2294891.1781947844789580072.pt.trace.json",
    "aiu/sample_flex_3062_job_4.json",
    "multirank/dlrm_8gpu_ranks0-3",
)


def scene_on(trace: Trace, row: RowKey, start: int) -> Scene:
    """Return the viewer's state with a row in focus, zoomed in so far that every gap is a cell wide."""
    session = first_session(trace, 200)
    session = replace(session, focus=row, cursor=start, clocks=trace.clocks)
    session = replace(session, viewport=view_of(start, start + 200, 200))
    layout = Layout(trace, session)
    return Scene(trace, session, layout, 40)


def walked(trace: Trace, scene: Scene) -> list[Session]:
    """Return the sessions at each gap, from the first on."""
    sessions: list[Session] = []
    while len(sessions) < MOST:
        try:
            session = gaps.next_one(scene)
        except Refusal:
            break
        sessions.append(session)
        scene = replace(scene, session=replace(session, viewport=scene.session.viewport))
    return sessions


def gaps_by_end(work: Frame) -> dict[GapId, tuple[int, int, str]]:
    """Return by the gap's identity its start, end and class, of all that `idle` counts."""
    rows = {}
    for part in gap_rows(work).by("source"):
        ordinals = part.index.column("slices.ordinal")[part.position].tolist()
        columns = (ordinals, part.reach.tolist(), part.start.tolist(), part.gap_class.tolist())
        for ordinal, start, end, kind in zip(*columns):
            rows[GapId(part.source_number, ordinal)] = (start, end, GAP_CLASSES[kind])
    return rows


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", TRACES)
def test_the_gaps_walked_are_those_of_idle(name: str, corpus_cache: Path) -> None:
    """Every gap that `i` selects is one of `idle`, of its length and class; all lanes together have all of
    them where the trace is small, and `I` finds the longest.
    """
    trace = open_trace(CORPUS / name, index_dir=corpus_cache)
    expected = gaps_by_end(idle(Scope(trace, clocks=trace.clocks)))
    assert expected
    met: set[GapId] = set()
    complete = True
    for number in sorted({lane for device in devices(trace) for lane in device.lanes}):
        lane = trace.lanes[number]
        rows = [row for row in trace.rows(lane) if row.kind is RowKind.SLICES]
        key = RowKey(lane_key(lane), rows[-1].depth)
        start = lane.start + trace.clocks.offset(lane.source, lane.pid) - 1
        scene = scene_on(trace, key, start)
        sessions = walked(trace, scene)
        complete &= len(sessions) < MOST
        for session in sessions:
            assert isinstance(session.selection, GapId)
            thing = thing_by_id(trace, session.clocks, session.selection)
            assert thing is not None
            gap = gap_of(trace, thing.row, thing.index, session.clocks)
            assert gap is not None
            assert (thing.start, thing.end) == (gap.start, gap.end)
            assert expected[session.selection] == (gap.start, gap.end, gap.kind)
            met.add(session.selection)
        if sessions:
            longest = gaps.select_longest_gap(scene).selection
            of_work = work_gaps(trace, lane.index, trace.clocks)
            assert isinstance(longest, GapId) and of_work is not None
            start, end, _ = expected[longest]
            assert end - start == max((of_work.ends - of_work.starts).tolist())
    assert met and met <= expected.keys()
    if complete:
        assert met == expected.keys()
    trace.close()


@needs_corpus
async def test_the_longest_gap_says_what_idle_says(corpus_cache: Path) -> None:
    """The longest gap of the A100's compute stream is 15.998 ms long, ended by a copy that came late."""
    trace = open_trace(CORPUS / A100, index_dir=corpus_cache)
    lane = next(lane for lane in trace.lanes if lane.tid == "7" and lane.process.labels.startswith("GPU"))
    async with open_viewer(trace, (140, 50)) as (app, pilot):
        row = trace.rows(lane)[-1]
        app.action_jump(row.source, trace.ordinal(row, 0))
        await pilot.press("I")
        await wait_until_idle(app, pilot)
        text = screen_text(app)
        fields = gap_fields(trace, stamps_of(trace, app.session), app.store.selected)
    for part in ("gap of 15.998 ms", "host wait: the host was late", "cudaMemcpyAsync"):
        assert part in text, part
    labels = [field.label for field in fields]
    assert labels[:4] == ["length", "class", "ended by", "launched by"] and labels[-1] == "before it"


@needs_cases
def test_an_annotation_on_a_device_is_no_work(tmp_path: Path) -> None:
    """Below an annotation that spans kernels with gaps, the gaps are those between the kernels."""
    trace = open_trace([CASES / "adversarial" / "gpu_ann.json"], index_dir=tmp_path)
    expected = gaps_by_end(idle(Scope(trace)))
    (device,) = devices(trace)
    (number,) = device.lanes
    key = RowKey(lane_key(trace.lanes[number]), 0)
    sessions = walked(trace, scene_on(trace, key, trace.lanes[number].start - 1))
    assert {session.selection for session in sessions} == expected.keys()
    trace.close()
