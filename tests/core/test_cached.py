"""Tables kept beside the index: as they were made, of the whole trace only, and never out of date."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from tests.events import complete, index_of
from tracelane.core.base.errors import TracelaneError
from tracelane.core.index.version import DERIVED
from tracelane.core.tables.frame import cached
from tracelane.core.tables.frame.cached import cached_step_spans, cached_table
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.ops import ops
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.tables.steps.steps import steps
from tracelane.core.trace import Trace
from tracelane.core.trace.step_spans import StepSpans, step_spans
from tracelane.tui.steps import step_marks


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """Two steps with an op each, large enough to be kept."""
    monkeypatch.setattr(cached, "MIN_SLICES", 4)
    events = [complete(100 * n, 90, f"ProfilerStep#{n}", cat="user_annotation") for n in (1, 2)]
    events += [complete(100 * n + 5, 10 * n, "aten::mm") for n in (1, 2)]
    return Trace([index_of(events, tmp_path / "index")])


def _files(trace: Trace) -> list[Path]:
    return sorted((trace.indexes[0].folder / DERIVED).glob("*.json"))


def _refuse(*_: object) -> Table:
    raise AssertionError("counted again")


@pytest.mark.parametrize(("name", "make"), [("ops", ops), ("steps", steps)])
def test_the_same_again(name: str, make: object, trace: Trace) -> None:
    """A table read back is the one that was made: columns with their types, jumps, totals, notes, keys."""
    scope = Scope(trace)
    first = make(scope)  # type: ignore[operator]
    again = cached_table(scope, name, _refuse)
    assert again.columns == first.columns
    assert (again.totals, again.notes, again.keys, again.scope) == (
        first.totals,
        first.notes,
        first.keys,
        first.scope,
    )
    assert list(again.rows()) == list(first.rows())
    for key, column in first.data.items():
        assert getattr(again.data[key], "dtype", None) == getattr(column, "dtype", None)
    assert np.array_equal(np.asarray(again.positions), np.asarray(first.positions))
    assert np.array_equal(np.asarray(again.sources), np.asarray(first.sources))


def test_nothing_is_kept_of_some_files(trace: Trace) -> None:
    """While more files of a trace are coming, no analysis leaves a result: it would be that of some alone."""
    some = Trace(trace.indexes, trace.members, missing=frozenset({1}))
    for of, is_kept in ((some, False), (trace, True)):
        for row in ANALYSES:
            with suppress(TracelaneError):  # what this trace cannot be asked
                list(row.run(Scope(of)))
        step_marks(of, of.clocks)
        assert bool(_files(trace)) is is_kept


def test_parts_are_not_kept(trace: Trace) -> None:
    """What speaks of a part of the trace, or of other clocks, is counted each time."""
    ops(Scope(trace, (0, 150_000)))
    ops(Scope(trace, lanes=(0,)))
    ops(Scope(trace, clocks=trace.clocks.shifted((0, ""), 5)))
    steps(Scope(trace, steps="aten::mm"))
    assert _files(trace) == []
    ops(Scope(trace))
    assert len(_files(trace)) == 1


def test_damage_and_other_code(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file, or one of other code, is no table: it is counted anew and kept again."""
    expected = list(ops(Scope(trace)).rows())
    (path,) = _files(trace)
    for damage in ("", "{", '{"schema": "ops"}'):
        path.write_text(damage, encoding="utf-8")
        assert list(ops(Scope(trace)).rows()) == expected
        assert path.stat().st_size > 100
    monkeypatch.setattr(cached, "code_hash", lambda: "other")
    ops(Scope(trace))
    assert len(_files(trace)) == 2


@pytest.mark.parametrize("marked", [True, False])
def test_steps(marked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps read back are those that were found, or none; under other clocks they are found anew."""
    events = [complete(100 * n, 90, f"ProfilerStep#{n}" if marked else f"{n}") for n in (3, 1, 2)]
    trace = Trace([index_of(events, tmp_path / "index")])
    spans = step_spans(trace, trace.clocks)
    for _ in range(2):
        again = cached_step_spans(trace, trace.clocks)
        assert _spans(again) == _spans(spans)
        (path,) = _files(trace)
        monkeypatch.setattr(cached, "step_spans", _refuse)
    monkeypatch.undo()
    path.write_text('{"labels": 1}', encoding="utf-8")
    shifted = cached_step_spans(trace, trace.clocks.shifted((0, ""), 5))
    assert len(_files(trace)) == 1
    assert _spans(cached_step_spans(trace, trace.clocks)) == _spans(spans)
    if marked:
        assert _spans(spans) == [("1", 100_000, 190_000), ("2", 200_000, 290_000), ("3", 300_000, 390_000)]
        assert _spans(shifted) == [(label, start + 5, end + 5) for label, start, end in _spans(spans)]
    else:
        assert spans is None and shifted is None


def _spans(spans: StepSpans | None) -> list[tuple[str, int, int]]:
    return [] if spans is None else list(zip(spans.labels, spans.starts.tolist(), spans.ends.tolist()))


def test_nowhere_to_keep(trace: Trace) -> None:
    """Where nothing can be written the table is made all the same."""
    (trace.indexes[0].folder / DERIVED).write_text("no folder", encoding="utf-8")
    assert len(ops(Scope(trace))) == 2
