"""The jobs that docs/jobs.md promises, done on real traces with the keys that stand there."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual import events

from tests.corpus import CORPUS, needs
from tests.tui.driver import message, open_viewer, press_keys, screen_text, wait_until_idle
from tracelane.core.demo.trace import write_demo
from tracelane.core.logs.overlay import LogOptions, open_overlay
from tracelane.core.query.views import SliceId
from tracelane.core.tables.compare.compare import delta_key
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.draw.things import thing_by_id
from tracelane.tui.panels.table import TablePane
from tracelane.tui.session import GapId

JOBS = (Path(__file__).parent.parent.parent / "docs" / "jobs.md").read_text(encoding="utf-8")
NAMES = {"Space": "space", "Enter": "enter", "Esc": "escape", "/": "slash", ">": "greater_than_sign"}
MAX = {
    "Longest kernel": 5,
    "Why the device is idle before step 5": 4,
    "Compare step 4 with step 5": 5,
    "Table of the next step": 2,
    "Call tree of the next step": 2,
    "Power at a kernel": 5,
    "What launched a kernel": 5,
    "Find a name": 7,
}


def keys_of_job(job: str) -> list[str]:
    """Return the keys that the document names for a job, as they are pressed."""
    (line,) = [line for line in JOBS.splitlines() if line.startswith(f"- {job}: ")]
    said = line.removeprefix(f"- {job}: ").partition(" (")[0]
    return [NAMES.get(key, key) for key in re.findall(r"`([^`]+)`", said)]


@pytest.fixture(scope="module")
def a100(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Three steps of ResNet on one GPU: steps 4, 5 and 6."""
    path = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
    return open_trace(path, index_dir=tmp_path_factory.mktemp("a100"))


@asynccontextmanager
async def done(
    trace: Trace, job: str, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[TracelaneApp, str]]:
    """Do a job in a viewer just opened; give the App as it is then, and its screen."""
    async with open_viewer(trace, size) as (app, pilot):
        for key in keys_of_job(job):
            await press_keys(app, pilot, key)
        await press_keys(app, pilot, "Z")
        yield app, screen_text(app)


def test_every_job_is_tested_and_short() -> None:
    """Each line of the document is a job of this file, with no more keys than are allowed."""
    named = re.findall(r"^- ([^:]+): ", JOBS, flags=re.M)
    assert named == list(MAX)
    for job, most in MAX.items():
        assert 0 < len(keys_of_job(job)) <= most, job


@needs(CORPUS)
async def test_longest_kernel(a100: Trace) -> None:
    """The slice selected is the longest work that is no copy; details name launcher and arguments."""
    async with done(a100, "Longest kernel") as (app, text):
        thing = app.store.selected
        assert thing.end - thing.start == 5_993_392
        assert "ncclKernel_AllReduce_RING_LL_Sum_float" in text
        assert "launch cudaLaunc" in text and "arguments" in text and "In msg nelems" in text


@needs(CORPUS)
async def test_longest_then_the_next_longest(a100: Trace) -> None:
    """K again selects the next longest, and begins anew after something else was selected."""
    async with open_viewer(a100) as (app, pilot):
        lengths = []
        for key in ("K", "K", "K", "left", "K"):
            await press_keys(app, pilot, key)
            lengths.append(app.store.selected.end - app.store.selected.start)
        assert lengths[0] >= lengths[1] >= lengths[2] and lengths[4] == lengths[0]


@needs(CORPUS)
async def test_idle_before_a_step(a100: Trace) -> None:
    """The gap selected is the one of the device in which the step begins, with class and cause."""
    async with done(a100, "Why the device is idle before step 5") as (app, text):
        step = a100.steps[1]
        assert step.label == "5" and isinstance(app.session.selection, GapId)
        thing = thing_by_id(a100, app.session.clocks, app.session.selection)
        assert thing is not None and thing.start <= step.start < thing.end
        assert "class" in text and "ended by" in text and "launched by" in text


@pytest.mark.slow
async def test_idle_on_the_lane_that_works_most(tmp_path: Path) -> None:
    """With no lane chosen the gap is one of the kernels' stream, not of the copies' lane above it."""
    trace = open_trace(write_demo(tmp_path)[0], index_dir=tmp_path / "index")
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        await press_keys(app, pilot, "g", "4", "enter", "i")
        thing = app.store.selected
        assert thing.is_gap and thing.lane.title == "Stream 0"
        assert 153_425_000 <= thing.end - thing.start < 153_426_000  # as the guide says


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "selected"), [("Kb", "cudaLaunchKernelExC"), ("Kbo", "nccl"), ("KK", "nccl")]
)
async def test_keys_after_the_longest_kernel_wait_for_it(a100: Trace, keys: str, selected: str) -> None:
    """Keys pressed in one go act on what is still being looked for, in their order."""
    async with open_viewer(a100) as (app, pilot):
        for key in keys:
            app.post_message(events.Key(key, key))
        await wait_until_idle(app, pilot)
        thing = app.store.selected
        assert selected in a100.name(thing.row, thing.index)
        assert ("2. longest" in message(app)) == (keys == "KK")


@needs(CORPUS)
@pytest.mark.slow
async def test_comparing_two_steps(a100: Trace) -> None:
    """B is the range and A the baseline; the largest change stands first, with an arrow."""
    async with done(a100, "Compare step 4 with step 5", (120, 40)) as (app, text):
        four, five = a100.steps[:2]
        assert app.session.baseline == (four.start, four.end) and app.session.range == (five.start, five.end)
        pane = app.main.query_one("#table", TablePane)
        table = pane.shown_table
        assert table is not None and table.scope.startswith("step 5") and "against step 4" in table.scope
        changes = [abs(int(table.value(row, delta_key("self_ns")) or 0)) for row in pane.table.order.tolist()]
        assert changes == sorted(changes, reverse=True) and changes[0] > 0
        assert "▲" in text and "▼" in text


@needs(CORPUS)
async def test_call_tree_of_a_step(a100: Trace) -> None:
    """What is drawn and listed is the step that was gone to."""
    async with done(a100, "Call tree of the next step") as (app, text):
        assert app.session.panel == "tree" and app.session.range is not None
        (step,) = [one for one in a100.steps if (one.start, one.end) == app.session.range]
        assert step.label == "5" and "ProfilerStep#*" in text


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("4", "needs two"),
        ("4 5 6", "3 were typed"),
        ("4 9", "there is no step 9: 4 to 6"),
        ("4 4", "nothing can differ"),
        ("range 5", "no range"),
        ("off", "nothing is compared"),
        ("4 soon", "soon"),
    ],
)
async def test_comparing_says_what_it_needs(a100: Trace, typed: str, said: str) -> None:
    """What is not two different stretches of time is refused in one line, and nothing changes."""
    async with open_viewer(a100) as (app, pilot):
        before = app.session
        await press_keys(app, pilot, "c", *typed, "enter")
        assert said in message(app)
        assert (app.session.range, app.session.baseline) == (before.range, before.baseline)


@needs(CORPUS)
async def test_a_step_gone_to_is_what_keys_mean(a100: Trace) -> None:
    """After > the range, the zoom, the table and A of a comparison are that step, whatever was before."""
    async with open_viewer(a100, (100, 40)) as (app, pilot):
        four, five = a100.steps[:2]
        for key in ("K", "home", "greater_than_sign", "f"):
            await pilot.press(key)
            await wait_until_idle(app, pilot)  # the longest work is looked for in the background
        view = app.session.viewport
        assert view.start <= four.start and four.end <= view.end and view.span < 2 * (four.end - four.start)
        await pilot.press("greater_than_sign", "r")
        assert app.session.range == (five.start, five.end)
        await press_keys(app, pilot, "escape", "less_than_sign", "c", "5", "enter")
        assert app.session.baseline == (four.start, four.end)


@needs(CORPUS)
@pytest.mark.slow
async def test_table_of_the_next_step(a100: Trace) -> None:
    """The table counts what lies in the step."""
    async with done(a100, "Table of the next step", (160, 40)) as (app, text):
        table = app.main.query_one("#kernels", TablePane).shown_table
        assert table is not None and table.scope.startswith("step ")
        assert "Name" in text and "Share" in text


@pytest.mark.slow
async def test_power_at_a_kernel(tmp_path: Path) -> None:
    """With a telemetry log over the trace the details of a kernel say what its device drew then."""
    trace = open_trace(write_demo(tmp_path)[0], index_dir=tmp_path / "index")
    overlay = open_overlay(trace, [tmp_path / "aiu-smi.log"], LogOptions())
    async with done(overlay, "Power at a kernel") as (app, text):
        thing = app.store.selected
        middle = (thing.start + thing.end) // 2
        readings = overlay.device_readings(thing.lane.process, middle, app.session.clocks)
        power = next(reading for reading in readings if reading.metric.column.name == "pwr")
        assert re.search(rf"pwr W\s+{power.value:g} in a sample", text)


@needs(CORPUS)
async def test_what_launched_a_kernel(a100: Trace) -> None:
    """The launch is selected."""
    async with done(a100, "What launched a kernel") as (app, _):
        thing = app.store.selected
        assert a100.name(thing.row, thing.index) == "cudaLaunchKernelExC"


@needs(CORPUS)
@pytest.mark.slow
async def test_finding_a_name(a100: Trace) -> None:
    """A hit is selected, told with its name, and long enough on the screen to be seen."""
    async with done(a100, "Find a name") as (app, _):
        thing, view = app.store.selected, app.session.viewport
        assert isinstance(app.session.selection, SliceId)
        assert "nccl" in a100.name(thing.row, thing.index).lower()
        assert thing.end - thing.start >= view.span // view.width
