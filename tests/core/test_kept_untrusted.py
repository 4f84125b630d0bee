"""What cannot be trusted of a large trace: kept beside its index, looked for again where that is unsound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_untrusted import open_ended, opened, program
from tracelane.core.base.private import read_sealed_json, write_sealed_json
from tracelane.core.tables.device import untrusted_periods
from tracelane.core.tables.device.untrusted import Untrusted
from tracelane.core.tables.device.untrusted_periods import periods_file, periods_of
from tracelane.core.trace import Trace, open_trace

Periods = list[dict[str, Any]]
EVENTS = {
    "lost on one of two devices": program(30, range(10, 16), devices=2),
    "lost twice": program(90, [*range(10, 20), *range(50, 60)]),
    "all lost": program(20, range(20)),
    "never ended": [*program(9), *open_ended(12)],
    "nothing": program(9),
}


@pytest.fixture(autouse=True)
def _are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all traces count as large."""
    monkeypatch.setattr("tracelane.core.tables.frame.cached.MIN_SLICES", 1)


def again(trace: Trace, folder: Path) -> Trace:
    """Return the same trace as another process opens it."""
    return open_trace(trace.sources[0].path, index_dir=folder / "index")


def periods_in(trace: Trace) -> tuple[Untrusted, ...]:
    return periods_of(trace, 0, trace.clocks)


@pytest.mark.parametrize("name", EVENTS)
def test_periods_are_looked_for_once(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opened again, a trace has the periods that it had, in all that is said of them."""
    trace = opened(tmp_path, EVENTS[name])
    before = periods_in(trace)
    assert bool(before) is (name != "nothing")
    monkeypatch.setattr(untrusted_periods, "LostCalls", None)
    assert periods_in(again(trace, tmp_path)) == before


def of_first(**changes: Any) -> Callable[[Periods], Any]:
    """Return what changes the first of the periods."""
    return lambda periods: [{**periods[0], **changes}, *periods[1:]]


WRONG: dict[str, Callable[[Periods], Any]] = {
    "nothing": lambda _: None,
    "no list": lambda periods: periods[0],
    "a list of numbers": lambda _: [3],
    "a field less": lambda periods: [{key: one for key, one in periods[0].items() if key != "lane"}],
    "no such trouble": of_first(trouble="worry"),
    "no start": of_first(start=None),
    "a text for a time": of_first(end="7"),
    "half a number": of_first(count=1.5),
    "yes for a number": of_first(fills=True),
    "one end of the calls": of_first(called=[1]),
    "no such device": of_first(device=2),
    "a device before the first": of_first(device=-1),
    "no such slice": of_first(position=10**9),
    "a slice before the first": of_first(position=-1),
    "no such lane": of_first(lane=10**6),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_sound_is_looked_for_again(name: str, tmp_path: Path) -> None:
    """Whatever stands in the file in place of periods, those of the trace are told, and kept anew."""
    trace = opened(tmp_path, EVENTS["lost on one of two devices"])
    before, path = periods_in(trace), periods_file(trace, 0, trace.clocks)
    assert path is not None
    sound = read_sealed_json(path)
    write_sealed_json(path, WRONG[name](sound))
    assert periods_in(again(trace, tmp_path)) == before and read_sealed_json(path) == sound


def test_very_many_periods_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave no file."""
    monkeypatch.setattr(untrusted_periods, "MAX_PERIODS", 1)
    trace = opened(tmp_path, EVENTS["lost twice"])
    path = periods_file(trace, 0, trace.clocks)
    assert len(periods_in(trace)) > 1 and path is not None and not path.exists()
