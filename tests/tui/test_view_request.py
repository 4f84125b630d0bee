"""What the viewer shows next follows from what it was left for, and from nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.events import complete, open_events
from tracelane.core.base.errors import DamagedIndexError, UnreadableError, UsageError
from tracelane.core.trace import Trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.trace_options import TraceOptions
from tracelane.tui.cli.view_request import LeftView, ViewOptions, ViewRequest
from tracelane.tui.config import Config
from tracelane.tui.view_state import (
    Carried,
    GroupRanks,
    Next,
    OpenCapture,
    OpenRank,
    Reopen,
    ShowAgainst,
    carried,
)

OPTIONS = TraceOptions(traces=("run",))
THEME = "tracelane-light"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_events(tmp_path, [complete(1, 2)])


@pytest.fixture
def before(trace: Trace) -> Carried:
    return carried(trace, first_session(trace, 80), THEME)


def left(
    trace: Trace, following: Next | None, before: Carried | None = None, *, is_ready: bool = True
) -> LeftView:
    return LeftView(following=following, is_ready=is_ready, trace=trace, before=before, config=Config())


@pytest.mark.parametrize(
    ("following", "changes"),
    [
        (GroupRanks("tp"), {"grouping": "tp"}),
        (OpenCapture(2), {"options": replace(OPTIONS, capture="2")}),
        (ShowAgainst("other.json"), {"against": "other.json"}),
        (ShowAgainst(""), {"against": None}),
    ],
)
def test_something_else_begins_with_its_own_view(
    following: Next, changes: dict[str, Any], trace: Trace, before: Carried
) -> None:
    """Another grouping, capture or run changes that alone; neither the view nor what was said comes along."""
    request = ViewRequest(OPTIONS, before=before, notes=("said",), against="first.json")
    assert request.after(left(trace, following)) == request._replace(before=None, notes=(), **changes)


@pytest.mark.parametrize("following", [OpenRank(3), Reopen()])
def test_the_same_again_has_the_view_that_was_left(following: Next, trace: Trace, before: Carried) -> None:
    """After one rank of many, and when files have changed, view and colours are those that were left."""
    after = ViewRequest(OPTIONS).after(left(trace, following, before))
    assert after is not None and (after.before, after.theme) == (before, THEME)


def test_nothing_follows_where_the_user_quits(trace: Trace) -> None:
    """Without anything to open the loop ends."""
    assert ViewRequest(OPTIONS).after(left(trace, None)) is None


def test_what_nobody_saw_is_said_later(trace: Trace) -> None:
    """Notes wait for a trace that is shown whole."""
    request = ViewRequest(OPTIONS, notes=("said",))
    after = request.after(left(trace, ShowAgainst(""), is_ready=False))
    assert after is not None and after.notes == ("said",)


def test_an_index_is_rebuilt_once(trace: Trace, before: Carried, tmp_path: Path) -> None:
    """Damage is said and the index built anew; the same damage again ends the viewer with it."""
    damage = DamagedIndexError(tmp_path, "bytes")
    again = ViewRequest(OPTIONS).after(left(trace, Reopen(damage), before))
    assert again is not None and again.notes == (f"{damage}; it was rebuilt",)
    with pytest.raises(DamagedIndexError):
        again.after(left(trace, Reopen(damage), before))
    other = DamagedIndexError(tmp_path / "other", "bytes")
    assert again.after(left(trace, Reopen(other), before)) is not None


def test_files_are_looked_at_anew(trace: Trace, before: Carried, tmp_path: Path) -> None:
    """A file that was renamed when it was complete is opened by that name."""
    (tmp_path / "t.json.gz").write_bytes(b"")
    options = TraceOptions(traces=(str(tmp_path / "t.json.gz.tmp"),))
    after = ViewRequest(options).after(left(trace, Reopen(), before))
    assert after is not None and after.options.traces == (str(tmp_path / "t.json.gz"),)


@pytest.mark.parametrize(
    ("request_", "error", "less"),
    [
        (
            ViewRequest(OPTIONS, against="b"),
            UnreadableError("gone"),
            ViewRequest(OPTIONS, notes=("against b: gone",)),
        ),
        (
            ViewRequest(OPTIONS, grouping="tp"),
            UsageError("no file says so"),
            ViewRequest(OPTIONS, notes=("no file says so",)),
        ),
        (ViewRequest(OPTIONS, grouping="tp"), UnreadableError("gone"), None),
        (ViewRequest(OPTIONS), UnreadableError("gone"), None),
    ],
)
def test_what_cannot_be_opened_leaves_the_rest(
    request_: ViewRequest, error: UnreadableError | UsageError, less: ViewRequest | None
) -> None:
    """The first of two runs, and ranks by host, are shown where the other cannot be, and say why."""
    assert request_.without_what_failed(error) == less


@pytest.mark.parametrize(
    ("request_", "view"),
    [
        (ViewRequest(OPTIONS), "kept"),
        (ViewRequest(OPTIONS, is_fresh=True), "fresh"),
        (ViewRequest(OPTIONS, against="b", is_fresh=True), "asked for"),
        (ViewRequest(OPTIONS, marks="m.json"), "asked for"),
        (ViewRequest(OPTIONS, view_options=ViewOptions(search="mm")), "asked for"),
        (ViewRequest(replace(OPTIONS, logs=("smi.log",))), "asked for"),
    ],
)
def test_which_view_is_shown(request_: ViewRequest, view: str) -> None:
    """That of the last time, unless options, logs, marks or a second run say otherwise."""
    assert request_.view == view
