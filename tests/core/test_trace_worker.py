"""Findings of large traces by a process of its own: the same answer, kept; or given up."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.findings_traces import call, launched, op, trace_of
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import Cancelled
from tracelane.core.index.version import DERIVED, MANIFEST
from tracelane.core.tables import worker
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame import cached
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.worker import findings_by_worker
from tracelane.core.trace import Trace, open_trace

pytestmark = pytest.mark.slow


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A device that waits for launches, and one piece of work that begins before its launch."""
    host = [op(366 * n, 366, f"aten::part{n}") for n in range(3)]
    events = [*launched(0, 5, 10, 90), *launched(480, 10, 470, 110), *launched(790, 5, 810, 500)]
    return trace_of([*host, *events, call(600, 180, "cudaDeviceSynchronize")], tmp_path)


@pytest.fixture
def large(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> Trace:
    """The same, taken for large."""
    monkeypatch.setattr(cached, "MIN_SLICES", 1)
    return trace


def _stored_files(folder: Path) -> list[Path]:
    return list(folder.rglob(f"{DERIVED}/*.json"))


def _refuse(*_: object, **__: object) -> Any:
    raise AssertionError("asked here")


def test_a_process_answers_the_same(trace: Trace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer is that of this process, which finds nothing itself; the next time it is read."""
    here = findings_by_worker(Scope(trace))
    assert here.findings
    for path in _stored_files(tmp_path):
        path.unlink()
    monkeypatch.setattr(cached, "MIN_SLICES", 1)
    monkeypatch.setattr(worker, "saved_findings", _refuse)
    for damage in ("{", '{"schema": 0}', "[]"):
        assert findings_by_worker(Scope(trace)) == here
        (path,) = _stored_files(tmp_path)
        assert path.name.startswith("findings-")
        path.write_text(damage, encoding="utf-8")
    assert findings_by_worker(Scope(trace)) == here
    monkeypatch.setattr(worker, "answers_of", _refuse)
    assert findings_by_worker(Scope(trace)) == here


def test_a_process_is_asked_about_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is held open of a trace's file is not sent along."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"traceEvents": launched(0, 5, 10, 90)}), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    expected = findings(Scope(trace))
    monkeypatch.setattr(cached, "MIN_SLICES", 1)
    monkeypatch.setattr(worker, "saved_findings", _refuse)
    assert trace.members[0].source is not None and findings_by_worker(Scope(trace)) == expected


def test_parts_are_answered_here(large: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A range, and other clocks than the trace opens with, start no process."""
    monkeypatch.setattr(worker, "answers_of", _refuse)
    for scope in (Scope(large, (0, 700_000)), Scope(large, clocks=Clocks().shifted((0, ""), 5))):
        assert findings_by_worker(scope) == findings(scope)


@pytest.mark.parametrize("executable", ["/nonexistent/python", "/bin/false"])
def test_without_a_process(executable: str, large: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where none can be started, or it fails at once, the answer is found here."""
    monkeypatch.setattr(sys, "executable", executable)
    assert findings_by_worker(Scope(large)) == findings(Scope(large))


def test_a_damaged_index(large: Trace) -> None:
    """What the process cannot open is told by it, and the answer is found here, in what is open already."""
    expected = findings(Scope(large))
    (large.indexes[0].folder / MANIFEST).write_text("{", encoding="utf-8")
    assert findings_by_worker(Scope(large)) == expected


def test_giving_up(large: Trace, tmp_path: Path) -> None:
    """A question that nobody waits for any more ends with its process, and keeps nothing."""
    with pytest.raises(Cancelled):
        findings_by_worker(Scope(large, cancelled=lambda: True))
    assert not _stored_files(tmp_path)
