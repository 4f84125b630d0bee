"""Steps in the viewer: those that are found, those of a name that was pointed at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tests.tui.driver import message, open_viewer, screen_text, wait_until_idle
from tracelane.core.tables.step_choice import find_steps
from tracelane.core.trace import Trace, open_trace
from tracelane.tui import steps as module
from tracelane.tui.clock import time_frame
from tracelane.tui.panels.table import TablePane
from tracelane.tui.steps import step_at, step_marks
from tracelane.tui.times import parse_span


@pytest.mark.slow
async def test_a_name_becomes_the_step(trace: Trace) -> None:
    """The selected op's name becomes the step: ruler, > and the table follow; again: as found."""
    async with open_viewer(trace, (160, 50)) as (app, pilot):
        await pilot.press("5")
        app.action_jump(0, 1)
        app.run_command("steps-by-name")
        assert app.session.steps == "aten::linear" and "4 steps" in message(app)
        op = app.store.selected
        app.store.show(replace(app.session, cursor=op.start, selection=None, range=None))
        await pilot.press(">", "r")
        start, end = app.session.range or (0, 0)
        assert (start - op.start, end - start) == (10_000_000, op.end - op.start)
        await pilot.press(">")
        assert app.session.range == (start + 10_000_000, end + 10_000_000)
        await pilot.press("escape", "escape")
        await wait_until_idle(app, pilot)
        table = app.main.query_one("#steps", TablePane).shown_table
        assert table is not None and "aten::linear" in table.notes[0] and len(table) == 4
        assert "step 1" in screen_text(app)
        app.action_jump(0, 11)
        app.run_command("steps-by-name")
        assert app.session.steps == "" and "as they are found" in message(app)
        await pilot.press(":", *"steps nothing", "enter")
        assert "no slice is called nothing" in message(app)
        await pilot.press(":", *"steps aten::t", "enter")
        assert app.session.steps == "aten::t"
        await pilot.press(":", *"steps", "enter")
        assert app.session.steps == ""


@needs_corpus
@pytest.mark.parametrize(
    "name", ["gpu/tl_vllm_decode_cudagraph_exec.json.gz", "gpu/hta_a100_resnet_ddp_nccl.json.gz"]
)
def test_what_is_found_is_what_is_typed(name: str, corpus_cache: Path) -> None:
    """The steps that the analyses find are those of the ruler, of `step:` and of `step:nth:`."""
    trace = open_trace(CORPUS / name, index_dir=corpus_cache)
    steps = find_steps(trace, 0)
    assert steps is not None
    marks = step_marks(trace, trace.clocks)
    assert [(mark.start, mark.end) for mark in marks] == list(zip(steps.starts.tolist(), steps.ends.tolist()))
    frame = time_frame(trace)
    for number in (0, -1):
        assert parse_span(f"step:nth:{number}", frame) == marks[number][1:]
    assert parse_span(f"step:{marks[0].label}", frame) == marks[0][1:]
    assert step_at(marks, marks[-1].start) == marks[-1] and step_at(marks, marks[-1].end) is None


def test_very_many_names_do_not_hold_up_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trace of very many names is not looked through before it is drawn, unless a name is given."""
    events = [complete(10 * i, 5, "step", "user_annotation") for i in range(3)]
    trace = Trace([index_of(events, tmp_path / "index")])
    assert len(step_marks(trace, trace.clocks)) == 3
    monkeypatch.setattr(module, "MANY_NAMES", 0)
    module._step_marks.cache_clear()
    assert not step_marks(trace, trace.clocks) and len(step_marks(trace, trace.clocks, "step")) == 3
