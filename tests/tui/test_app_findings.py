"""The findings in the viewer: a line on a new trace, the list, the evidence, the chosen one in full."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.findings_traces import call, launched, op, trace_of
from tests.core.test_findings import AIU, JAMIE
from tests.corpus import CORPUS, needs
from tests.events import complete
from tests.tui.driver import (
    message,
    open_viewer,
    press_keys,
    running,
    screen_text,
    wait_until,
    wait_until_idle,
)
from tests.waiting import PATIENCE_S
from tracelane.core.logs.overlay import LogOptions, open_overlay
from tracelane.core.tables.findings import forms, judge
from tracelane.core.tables.findings.finding import Finding, Findings
from tracelane.core.tables.frame import cached
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config
from tracelane.tui.panels.findings import FindingsPane, banner, finding_columns
from tracelane.tui.session import GapId
from tracelane.tui.widgets.table import VirtualTable
from tracelane.tui.widgets.text_pane import TextPane

SMALL, ROOMY = (80, 12), (140, 60)


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A device works 90 µs, waits 400 for a launch, works 110, waits 200 while the host waits, works 500."""
    host = [op(366 * n, 366, f"aten::part{n}") for n in range(3)]
    events = [*launched(0, 5, 10, 90), *launched(480, 10, 500, 110), *launched(790, 5, 810, 500)]
    return trace_of([*host, *events, call(600, 180, "cudaDeviceSynchronize")], tmp_path)


@pytest.mark.slow
async def test_a_process_finds_those_of_a_large_trace(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large trace they come from a process of its own; the line is the same."""
    monkeypatch.setattr(cached, "MIN_SLICES", 1)
    monkeypatch.setattr(judge, "findings", None)
    async with open_viewer(trace, SMALL) as (app, _):
        assert " GPU 0 waits 600 µs for " in screen_text(app)


async def test_where_the_device_is_the_limit_its_kernels_are_shown(tmp_path: Path) -> None:
    """The first line names the kernel that takes most, and its key lists kernels."""
    events = [event for at in range(20) for event in launched(100 * at, 5, 100 * at + 10, 98)]
    trace = trace_of([op(0, 40, "aten::mm"), *events], tmp_path)
    async with open_viewer(trace, (120, 30)) as (app, pilot):
        assert " GPU 0 is busy in 97.6 %" in screen_text(app) and "Enter: kernels" in screen_text(app)
        await press_keys(app, pilot, "enter")
        assert app.session.panel == "kernels" and app.session.selection is None


async def test_a_roomy_panel_lists_the_others(tmp_path: Path) -> None:
    """With room, the panel lists what else costs time; the first line says what costs most."""
    events = [event for at in range(40) for event in launched(100 * at, 5, 100 * at + 10, 2)]
    trace = trace_of([op(0, 3950, "aten::slow"), *events], tmp_path)
    async with open_viewer(trace, ROOMY) as (app, _):
        text = screen_text(app)
        assert text.index("The host works 3.95 ms") < text.index("Also costs time")
        assert "Kernels shorter than their launch" in text


@pytest.mark.slow
@pytest.mark.parametrize(("key", "keys"), [("2", "Enter: evidence"), ("t", "← → sort · Enter: the longest")])
async def test_a_panel_tells_where_the_arrows_are(trace: Trace, key: str, keys: str) -> None:
    """Only while the arrows are in a panel it says what they do there, else how they get there."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        await press_keys(app, pilot, key)
        for hint, other in (
            (keys, "whole trace  Tab"),
            ("Tab: arrows here", keys),
            (keys, "whole trace  Tab"),
        ):
            text = screen_text(app)
            assert hint in text and other not in text
            await press_keys(app, pilot, "tab")


async def test_the_list_and_its_evidence(trace: Trace) -> None:
    """2 lists them, Enter goes to the first piece of evidence, again to the next; 2 again: what was read."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        await press_keys(app, pilot, "2")
        pane = app.main.query_one(FindingsPane)
        assert pane.finding is not None and pane.finding.rule == "launch-gaps"
        await pilot.press("enter")
        await pilot.pause()
        view, first = app.session.viewport, pane.finding.evidence[0]
        assert (first.start, first.end) == (100_000, 500_000) and app.session.cursor == first.start
        assert view.start <= first.start and first.end <= view.end and view.span < 4 * 400_000
        assert isinstance(app.session.selection, GapId) and message(app).startswith(
            "1 of 3: longest wait, 400 µs"
        )
        await pilot.press("enter", "enter")
        await pilot.pause()
        last = pane.finding.evidence[2]
        assert app.session.selection == last.slice and message(app).startswith(
            "3 of 3: the launch that ended"
        )
        await pilot.press("enter")
        assert message(app).startswith("1 of 3")
        await pilot.press("2")
        assert app.session.panel == "problems"


async def test_enter_shows_the_first_place_of_the_first_finding(trace: Trace) -> None:
    """Before anything else was looked at, Enter goes to the first finding's place, selects it and opens its
    details, again its next; after any move Enter selects what lies at the cursor, as ever.
    """
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        assert "Enter shows it" in screen_text(app)
        await press_keys(app, pilot, "enter")
        first = app.session.selection
        assert isinstance(first, GapId) and app.session.panel == "details"
        assert "host wait: the host was late" in screen_text(app) and "Enter: next place" in screen_text(app)
        await press_keys(app, pilot, "enter", "enter")
        assert app.session.selection != first and message(app).startswith("3 of 3")
        await press_keys(app, pilot, "enter")  # all places were shown: on to the next finding
        assert ", 1 of " in message(app) and not message(app).startswith("1 of 3")
        await press_keys(app, pilot, "d")
        assert "Enter: next place" not in screen_text(app) and "Enter shows it" not in screen_text(app)
        await press_keys(app, pilot, "escape", "escape", "enter")
        assert "of 3" not in message(app)


async def test_in_full(trace: Trace) -> None:
    """Maximised, the finding under the cursor stands below the list with threshold, source and help; Enter
    gives the lanes their room back.
    """
    async with open_viewer(trace, (100, 40)) as (app, pilot):
        await press_keys(app, pilot, "2", "Z")
        text = " ".join(screen_text(app).split())
        assert "reported when the time in which no device works" in text
        assert "from: Holistic Trace Analysis" in text
        assert "helps: Launch ahead of the device" in text
        await pilot.press("down")
        await pilot.pause()
        pane = app.main.query_one(FindingsPane)
        assert pane.finding is not None and pane.finding.title in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert not app.maximised and app.focused is pane.table


async def test_small_panel_has_the_list_only(trace: Trace) -> None:
    """Where there is little room the list has it all."""
    async with open_viewer(trace, (80, 16)) as (app, pilot):
        await press_keys(app, pilot, "2")
        assert app.main.query_one("#findings-text", TextPane).size.height == 0
        assert "600 µs" in screen_text(app)


async def test_a_range_is_judged_by_itself(trace: Trace) -> None:
    """With a range the panel speaks of it; without it, of the whole trace again."""
    async with open_viewer(trace, (120, 40)) as (app, pilot):
        await press_keys(app, pilot, "2")
        app.store.show(app.session._replace(range=(500_000, 610_000)))
        await wait_until_idle(app, pilot)
        pane = app.main.query_one(FindingsPane)
        assert pane.findings is not None and pane.findings.scope.startswith("range +500 µs")
        assert "launch-gaps" not in [finding.rule for finding in pane.findings.findings]
        app.store.show(app.session._replace(range=None))
        await wait_until_idle(app, pilot)
        assert pane.findings.scope == "whole trace"


async def test_looked_for_away_from_the_screen(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules run in another thread while keys are taken; kept findings are there without any running."""
    threads: list[threading.Thread] = []
    going, wait = threading.Event(), threading.Event()

    def slow(facts: object, limits: object) -> None:
        threads.append(threading.current_thread())
        going.set()
        wait.wait(PATIENCE_S)

    waiting = {name: replace(judge.RULES[name], judge=slow) for name in ("device-bound", "sync")}
    monkeypatch.setattr(judge, "RULES", {**judge.RULES, **waiting})
    app = TracelaneApp(trace, config=Config())
    async with running(app, SMALL) as pilot:
        await wait_until(pilot, going.is_set)
        before = app.session.viewport
        await pilot.press("w")
        assert app.session.viewport != before and "2: " not in screen_text(app)
        wait.set()
        await wait_until_idle(app, pilot)
        assert " waits 600 µs for " in screen_text(app)
    assert threads and threading.main_thread() not in threads
    threads.clear()
    async with open_viewer(trace, SMALL) as (app, pilot):
        assert not threads and " waits 600 µs for " in screen_text(app)


async def test_closing_stops_the_search(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer that closes while rules run is not held up and finds no widgets missing."""
    wait = threading.Event()

    def slow(facts: object, limits: object) -> None:
        wait.wait(PATIENCE_S)

    waiting = replace(judge.RULES["device-bound"], judge=slow)
    monkeypatch.setattr(judge, "RULES", {**judge.RULES, "device-bound": waiting})
    app = TracelaneApp(trace, config=Config())
    async with running(app, SMALL):
        app.exit()
        wait.set()
    assert app.return_code == 0


def test_banner(trace: Trace) -> None:
    """No loss, no line; no line is longer than there is room."""
    report = forms.saved_findings(Scope(trace))
    for width in (10, 40, 200):
        for lines in (1, 3, 30):
            text = banner(report, width, lines, "2")
            assert text is not None
            assert all(line.cell_len <= width for line in text.split("\n"))
            assert len(text.split("\n")) <= lines
    assert banner(replace(report, findings=()), 80, 1, "2") is None


@needs(CORPUS)
async def test_logs_are_no_part_of_it(corpus_cache: Path) -> None:
    """With a log over the trace, and its clock moved, the findings stay those of the trace."""
    own = open_trace(CORPUS / AIU / JAMIE, index_dir=corpus_cache)
    log = CORPUS / "aiu_smi" / "PAIR1_jamie_mlp_upstream_utc_1s.txt"
    overlay = open_overlay(own, [str(log)], LogOptions("UTC"))
    async with open_viewer(overlay, SMALL) as (app, pilot):
        await pilot.press("escape")  # the log's notice lies over the banner
        await wait_until_idle(app, pilot)
        assert " The host waits 461 ms for copies in " in screen_text(app)
        clocks = app.session.clocks.shifted((len(own.indexes), ""), 10**9)
        app.store.show(app.session._replace(clocks=clocks, panel="findings"))
        await wait_until_idle(app, pilot)
        pane = app.main.query_one(FindingsPane)
        assert pane.findings is not None and pane.findings == forms.saved_findings(Scope(own))


async def test_nothing_to_find(tmp_path: Path) -> None:
    """A trace that holds nothing but the mark of a step has no line, and its list says so."""
    step = complete(0, 5, "ProfilerStep#1", "user_annotation")
    async with open_viewer(trace_of([step], tmp_path), SMALL) as (app, pilot):
        assert "Nothing stands out" in screen_text(app)
        await press_keys(app, pilot, "2")
        assert app.main.query_one("#findings-rows", VirtualTable).row_count == 0
        assert "No findings" in screen_text(app)


@needs(CORPUS)
@pytest.mark.slow
async def test_a_window_without_work_is_a_gap(corpus_cache: Path) -> None:
    """Where all streams idle Enter selects the shortest gap that holds the window: details say the cause."""
    path = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
    async with open_viewer(open_trace(path, index_dir=corpus_cache), ROOMY) as (app, pilot):
        await pilot.press("enter")
        await wait_until_idle(app, pilot)
        assert message(app).startswith("1 of 3: longest idle gap, 15.718 ms")
        assert isinstance(app.session.selection, GapId)
        text = screen_text(app)
        assert "gap of 15.998 ms" in text and "host wait: the host was late" in text


def test_no_cost_is_cut() -> None:
    """Costs of minutes and thousands of steps have the room that they take."""
    finding = Finding("x", "X", "text", (), 179_100_000_000, 0.1, "loss", "", "", "", 3411, 3411, (0,))
    columns = finding_columns(Findings("whole trace", (finding,), ()))[:3]
    assert [column.text(0) for column in columns] == ["2 min 59.1 s", "10%", "3411/3411"]
    assert all(len(column.text(0)) <= column.width for column in columns)
