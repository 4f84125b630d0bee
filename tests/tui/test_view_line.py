"""The command line that shows a view again, and what a picture says of a search and a filter."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace

import pytest

from tests.events import complete
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.view import view
from tracelane.tui.text.picture import plain_picture
from tracelane.tui.view_line import view_line


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("line")
    events = [complete(100 * n, 50, f"{'mm' if n % 2 else 'add'}{n}") for n in range(10)]
    (folder / "t.json").write_text(json.dumps({"traceEvents": events}))
    return open_trace(folder / "t.json", index_dir=folder / "index", workers=1)


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


def test_a_picture_tells_what_was_found_and_hidden(trace: Trace) -> None:
    """A line counts the hits and marks where they lie, another says what is hidden; it is no higher."""
    session = replace(first_session(trace, 80), search="mm", filter="dur>1us -mm1")
    lines = plain_picture(trace, session, 80, 12).split("\n")
    assert len(lines) <= 12
    found = next(line for line in lines if line.startswith("4 found"))
    assert len(re.findall("▾+|v+", found.split("│")[-1])) == 4
    assert "dur>1us -mm1: 1 of 10 slices hidden" in lines
    assert "mm1" not in "".join(line for line in lines if "[" in line)
