"""The command line that shows a view again, and what a picture says of a search and a filter."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.events import complete, open_events
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.choice import Choice
from tracelane.core.logs.opening import open_overlay
from tracelane.core.logs.overlay import LogOptions
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.opened import TraceOptions
from tracelane.tui.cli.options import LOGS
from tracelane.tui.cli.view import view
from tracelane.tui.text.picture import plain_picture
from tracelane.tui.view_line import view_line


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("line")
    events = [complete(100 * n, 50, f"{'mm' if n % 2 else 'add'}{n}") for n in range(10)]
    return open_events(folder, events)


@pytest.mark.parametrize(
    ("search", "filter"),
    [
        ("mm", ""),
        ("", "cat:cpu_op 'a b'"),
        ("-mm dur>1ms", "-add"),
        ("--x", "/^-/"),
        ("'it''s'", "$HOME `x`"),
    ],
)
def test_search_and_filter_come_back(trace: Trace, search: str, filter: str) -> None:
    """The line's options, read as the shell and `view` read them, are the session's search and filter."""
    session = replace(first_session(trace, 80), search=search, filter=filter)
    words = shlex.split(view_line(trace, session))
    assert words[:2] == ["tracelane", "view"]
    params = view.make_context("view", words[2:]).params
    assert (params["search"] or "", params["where"] or "") == (search, filter)


def test_logs_come_back_with_their_devices(tmp_path: Path) -> None:
    """The line lays the log over the same devices by the same clock, though another would be proposed."""
    write_demo(tmp_path)
    trace = open_trace(tmp_path / "rank0.pt.trace.json", index_dir=tmp_path / "index")
    options = LogOptions("+02:00", 7207.5, {"1": "0"})
    overlay = open_overlay(trace, [tmp_path / "aiu-smi.log"], options)
    words = shlex.split(view_line(overlay, first_session(overlay, 80)))
    params = view.make_context("view", words[2:]).params
    given = TraceOptions(**{name: params[name] for name in LOGS})
    again = open_overlay(trace, given.logs, given.log_options)
    assert again.placed[0].proposal.device_of == overlay.placed[0].proposal.device_of
    assert again.placed[0].proposal.device_of["1"] == "0"
    assert again.placed[0].proposal.shift_ns == overlay.placed[0].proposal.shift_ns


def test_all_captures_come_back(tmp_path: Path) -> None:
    """Files of several captures that are open together are asked for together."""
    paths = []
    for capture, second in (("old", 1_600_000_000), ("new", 1_700_000_000)):
        for rank in (0, 1):
            paths.append(tmp_path / f"{capture}_rank{rank}.json")
            paths[-1].write_text(json.dumps({"traceEvents": [complete(1, 2, capture)]}))
            os.utime(paths[-1], (second, second))
    for choice in (Choice(capture="all"), Choice(capture="2")):
        trace = open_trace(tmp_path, choice=choice, index_dir=tmp_path / "index")
        words = shlex.split(view_line(trace, first_session(trace, 80)))
        params = view.make_context("view", words[2:]).params
        parsed = Choice(capture=params["capture"] or "")
        again = open_trace(params["traces"], choice=parsed, index_dir=tmp_path / "index")
        assert [source.path for source in again.sources] == [source.path for source in trace.sources]


def test_a_picture_tells_what_was_found_and_hidden(trace: Trace) -> None:
    """A line counts the hits and marks where they lie, another says what is hidden; it is no higher."""
    session = replace(first_session(trace, 80), search="mm", filter="dur>1us -mm1")
    lines = plain_picture(trace, session, (80, 12)).split("\n")
    assert len(lines) <= 12
    hit_line = next(line for line in lines if line.startswith("4 found"))
    assert len(re.findall("▾+|v+", hit_line.split("│")[-1])) == 4
    assert "dur>1us -mm1: 1 of 10 slices hidden" in lines
    assert "mm1" not in "".join(line for line in lines if "[" in line)
