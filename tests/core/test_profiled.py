"""What the profiler does within an operator is its own time, not the operator's."""

from __future__ import annotations

from pathlib import Path

from tests.core.findings_traces import launched, op, trace_of
from tests.events import Event, complete
from tracelane.core.tables.findings.facts import SourceFacts
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.skew import RankPart


def overhead(ts: float, dur: float) -> Event:
    """A record of the profiler on the lane that Kineto gives it."""
    return complete(ts, dur, "Activity Buffer Request", "overhead", pid=-1, tid=0)


def facts_of(events: list[Event], folder: Path) -> SourceFacts:
    return SourceFacts(RankPart(Scope(trace_of(events, folder), source=0)))


def own_us(facts: SourceFacts, name: str) -> float:
    """Return the own time of the slices of a name, in µs."""
    host = facts.host
    return sum(facts.own_ns[[text == name for text in map(host.label, host.name)]].tolist()) / 1000


def test_the_innermost_operator_is_held_up(tmp_path: Path) -> None:
    """Of nested operators the one right around the profiler's record is shorter by it, no other."""
    events = [op(0, 1000, "outer"), op(100, 800, "inner"), op(150, 50, "child"), overhead(300, 500)]
    facts = facts_of([*events, *launched(950, 5, 960, 10)], tmp_path)
    assert [own_us(facts, name) for name in ("outer", "inner", "child")] == [195, 250, 50]


def test_a_record_beside_operators_holds_none_up(tmp_path: Path) -> None:
    """A record that reaches beyond an operator is not within it."""
    facts = facts_of([op(0, 100, "f"), overhead(90, 500), *launched(700, 5, 710, 10)], tmp_path)
    assert own_us(facts, "f") == 100


def test_of_several_threads_the_one_that_launches(tmp_path: Path) -> None:
    """Where two threads are around a record, it is that of the one that launches device work."""
    other = complete(0, 1000, "waits", "cpu_op", pid=1, tid=2)
    facts = facts_of([op(0, 1000, "works"), other, overhead(300, 500), *launched(900, 5, 910, 10)], tmp_path)
    assert (own_us(facts, "works"), own_us(facts, "waits")) == (495, 1000)


def test_the_host_does_not_work_meanwhile(tmp_path: Path) -> None:
    """The time that the host works to launch leaves out what the profiler did within an operator."""
    events = [op(0, 1000, "aten::mm"), overhead(100, 400), *launched(900, 50, 960, 5)]
    for at in range(3):
        events += [op(1100 + 50 * at, 40, "aten::mm"), *launched(1110 + 50 * at, 8, 1120 + 50 * at, 5)]
    said = {one.rule: one.text for one in findings(Scope(trace_of(events, tmp_path))).findings}
    assert "The host works 720 µs" in said["overhead-bound"]
