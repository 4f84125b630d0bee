"""What a recording lacks that a comparison needs: two runs whose recordings do not tell the same are not held
against each other, and the loss of one side is no gain.

A *lack* is what the reader or `untrusted` knows to be missing: calls without their work, work without usable
times, events that could not be read, a file that is cut off, none at all. Each says what it takes away: what
is told of devices, of the host, or all. A metric needs one of these by its name (`needs_of`).

A lack that both sides have in the same degree takes nothing from a comparison: a copy of a trace that is
cut off, or runs whose profiler never records one kind of work. So does what a range or step does not touch.
Of lost work only that counts which `doctor` warns about: a profiler that is stopped loses what still runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from ...base.arrays import AnyArray, distinct, sum_of
from ...base.units import count_of, format_count
from ..device.untrusted import TROUBLES, LostCalls, damage, holds_events
from ..frame.frame_columns import work_of
from ..frame.scope import Scope

Need: TypeAlias = Literal["device", "host", "all"]
"""What is told of devices, of the host, or everything."""
ALIKE = 0.02
"""Two sides lack the same where the shares that they lack differ by no more; of files that are cut off where
so do the numbers of their events."""
MIN_UNREAD = 0.001
"""A smaller share of unreadable events changes no sum by what could be taken for a gain."""
CANNOT: Final = "cannot be compared"
"""What is said in place of a verdict."""
OF_DEVICES = ("kernel", "kernels", "device", "launches", "idle", "memory")
OF_ALL = ("trace",)
OF_STEPS_OF_DEVICES = ("cadence", "ahead", "device_busy", "idle", "comm", "copy")
OF_DEVICE = ("self_device", "device")
"""Metrics, by their group and by the second or last part of their name, that need what devices tell."""


class Lack(NamedTuple):
    """What a recording lacks: `missing` of `total` events, calls or pieces of work, as a predicate."""

    trouble: str
    need: Need
    missing: int
    total: int
    text: str  # "48 of 48 launches have no device work"

    @property
    def share(self) -> float:
        return self.missing / self.total if self.total else 1.0

    def takes(self, need: Need) -> bool:
        """Tell whether it takes away what a metric needs."""
        return need in (self.need, "all") or self.need == "all"

    def is_alike(self, other: Lack) -> bool:
        """Tell whether another side lacks the same, in the same degree."""
        if self.trouble != other.trouble or abs(self.share - other.share) > ALIKE:
            return False
        return self.trouble != "truncated" or abs(self.total - other.total) <= ALIKE * max(self.total, 1)


class Recorded(NamedTuple):
    """What a side's recording holds and lacks, as far as comparisons need it."""

    lacks: tuple[Lack, ...] = ()
    devices: int | None = None  # that have work in the files; None where that is not known


def needs_of(metric: str) -> Need:
    """Return what a metric needs, by its name."""
    group, _, rest = metric.partition(".")
    if group in OF_ALL:
        return "all"
    if group in OF_DEVICES or rest.rpartition(".")[2] in OF_DEVICE:
        return "device"
    if group == "step" and rest.partition(".")[0] in OF_STEPS_OF_DEVICES:
        return "device"
    return "host"


class Loss(NamedTuple):
    """What one file lacks: `missing` of `total`."""

    trouble: str
    need: Need
    missing: int
    total: int


def recorded(scope: Scope) -> Recorded:
    """Return what the recording of a scope's sources holds and lacks."""
    losses = [loss for source in scope.sources for loss in losses_of(scope, source)]
    return recorded_in(losses, len(scope.sources), working_devices(scope))


def working_devices(scope: Scope) -> int:
    """Return how many devices have work in the files of a scope."""
    whole = replace(scope, range=None, work=None, where=None, lanes=None)
    return len(distinct(work_of(whole).device_row))


def recorded_in(losses: Iterable[Loss], files: int, devices: int | None) -> Recorded:
    """Return what a recording of some files holds and lacks, by what each of them lacks."""
    counts: dict[tuple[str, Need], tuple[int, int]] = {}
    for trouble, need, missing, total in losses:
        before, of = counts.get((trouble, need), (0, 0))
        counts[trouble, need] = before + missing, of + total
    lacks = tuple(
        Lack(trouble, need, missing, total, _text(trouble, missing, total, files))
        for (trouble, need), (missing, total) in counts.items()
        if trouble != "unreadable" or missing > MIN_UNREAD * total
    )
    return Recorded(lacks, devices)


def losses_of(scope: Scope, source: int) -> list[Loss]:
    """Return what a source of a scope lacks. Raises Cancelled."""
    scope.check()
    return [Loss(*one) for one in _lacks_of_source(scope, source)]


UNOPENED: Final = "unopened"
"""The trouble of a file that could not be read at all."""


def _lacks_of_source(scope: Scope, source: int) -> Iterable[tuple[str, Need, int, int]]:
    """Yield (trouble, what it takes away, how many, of how many) of a source."""
    report = scope.trace.indexes[source].read_report
    events = int(report["events"])
    unread = sum(int(report[term]) for term in ("unreadable", "without_time", "not_objects"))
    if not holds_events(scope.trace.indexes[source]):
        yield "empty", "all", 1, 1
        return
    if damage(scope.trace.indexes[source]):
        yield "truncated", "all", events, events
    if unread:
        yield "unreadable", "all", unread, events
    lost = LostCalls(scope, source)
    if len(lost.lost) and not lost.are_few():
        count, total = _in_range(scope, source, lost.lost), _in_range(scope, source, lost.calls.positions)
        if count:
            yield "lost", "device", count, total
    positions, *_ = lost.work
    for trouble, bad in (("zero", lost.untimed), ("collapsed", positions[lost.collapsed])):
        if len(bad):
            yield trouble, "device", len(bad), len(positions)
    if cut := sum_of(one.end - one.start for one in lost.cut_out()):
        yield (
            "cut",
            "device",
            cut,
            scope.trace.span_at(scope.clocks)[1] - scope.trace.span_at(scope.clocks)[0],
        )
    if count := sum(one.count for one in lost.open_ended()):
        yield "open-ended", "host", count, events


def _in_range(scope: Scope, source: int, positions: AnyArray) -> int:
    """Return how many of some slices begin in a scope's range."""
    if scope.range is None:
        return len(positions)
    starts = scope.starts(source, positions)
    return int(np.count_nonzero((starts >= scope.range[0]) & (starts < scope.range[1])))


def _text(trouble: str, count: int, total: int, files: int) -> str:
    """Return what a recording of some files lacks, as the predicate of a sentence about it."""
    whole = files == 1
    if trouble == "empty":
        return "holds no events" if whole else f"holds no events in {format_count(count)} of {files} files"
    if trouble == UNOPENED:
        return f"lacks {format_count(count)} of {files} files, which could not be read"
    words = {**LACK_WORDS, "unreadable": ("event cannot be read", "events cannot be read")}
    if trouble in ("truncated", "cut"):  # of a file as a whole
        return words[trouble][0]
    return f"{format_count(count)} of {count_of(total, *words[trouble])}"


LACK_WORDS: Mapping[str, tuple[str, str]] = {str(each): kind.lack for each, kind in TROUBLES.items()}


class Side(NamedTuple):
    """One side of a comparison: what sentences call it, and what was recorded."""

    title: str
    recorded: Recorded


def side_of(scope: Scope, title: str) -> Side:
    """Return a scope as a side of a comparison."""
    return Side(title, recorded(scope))


def reasons_of(earlier: Sequence[Side], now: Side) -> Mapping[Need, str]:
    """Return by need why what needs it cannot be compared; nothing where it can.

    Each earlier side is held against the one now: the first reason is told.
    """
    needs: tuple[Need, ...] = ("device", "host", "all")
    reasons: dict[Need, str] = {}
    for need in needs:
        for past in earlier:
            if reason := _reason(need, past, now):
                reasons[need] = reason
                break
    return reasons


def _reason(need: Need, past: Side, now: Side) -> str:
    """Return what one side lacks and the other does not."""
    sides: tuple[tuple[Side, Side], ...] = ((now, past), (past, now))
    for one, other in sides:
        texts = [
            lack.text
            for lack in one.recorded.lacks
            if lack.takes(need) and not any(lack.is_alike(theirs) for theirs in other.recorded.lacks)
        ]
        if texts:
            return _said_of(one.title, texts)
    counts = past.recorded.devices, now.recorded.devices
    if need != "host" and None not in counts and counts[0] != counts[1]:
        before, after = (count_of(count, "device") if count else "no device" for count in counts)
        return f"{past.title} has work of {before}, {now.title} of {after}"
    return ""


def _said_of(title: str, texts: Sequence[str]) -> str:
    """Return what a side lacks as a sentence: "b.json: 48 of 48 launches have no device work"."""
    return (
        f"{title} {texts[0]}"
        if texts[0].startswith(("is ", "holds ", "lacks "))
        else f"{title}: {'; '.join(texts)}"
    )
