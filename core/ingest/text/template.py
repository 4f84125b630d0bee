"""How events are written that differ in a few places only: the text around these, proved by comparison.

A text that agrees with a template outside of its slots, and whose slots hold sound numbers, strings without
escapes, or other sound JSON, is sound JSON itself and has the same keys in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

import numpy as np

from ..columns import I64
from ..columns_block import KINDS
from ..lifted import Lifted
from .stretch import Mask, Stretch, Wanted


class Form(Enum):
    """What may stand in a slot, and how it is read."""

    TIME = "ts or dur"
    INTEGER = "a plain integer"
    FLOAT = "a number"
    NUMBER = "a number that is only proved to be one"
    TEXT = "the inside of a string"
    VALUE = "any JSON value"


@dataclass(frozen=True)
class Slot:
    """A place where events differ; `key` of an argument is prefixed."""

    key: str
    form: Form
    lifted: Lifted | None = None


@dataclass(frozen=True)
class Fixed:
    """A place that could differ but has the same text in all events of a template."""

    slot: Slot
    text: bytes


@dataclass(frozen=True)
class Template:
    """The texts around the slots, one more than there are slots, and what is the same in all events."""

    runs: tuple[bytes, ...]
    slots: tuple[Slot, ...]
    anchors: I64  # per run: number of its first quote in the event; -1 in a last run without quotes
    offsets: I64  # of that quote in the run
    phase: str
    category: str | None
    flags: int
    arguments: frozenset[str]
    fixed: tuple[Fixed, ...] = ()

    @property
    def kind(self) -> int:
        """TIMED or FLOW."""
        return KINDS[ord(self.phase)]

    @cached_property
    def _wanted(self) -> tuple[Wanted, ...]:
        return tuple(map(Wanted.of, self.runs))

    def matching(self, stretch: Stretch, events: I64) -> tuple[Mask, I64, I64]:
        """Tell which events are written like this outside of their slots, and return where each slot of
        these begins and ends: two matrices with a row per slot.
        """
        lengths = np.array([len(run) for run in self.runs])
        kept = np.flatnonzero(stretch.stands(self._wanted[0], stretch.begins[events]))
        own = events[kept]
        quotes = np.minimum(stretch.first[own] + self.anchors[:, None], len(stretch.quotes) - 1)
        starts = stretch.quotes[quotes] - self.offsets[:, None]
        last = stretch.ends[own] - lengths[-1]
        if self.anchors[-1] < 0:
            starts[-1] = last
        same = starts[0] == stretch.begins[own]
        same &= starts[-1] == last
        for number in range(1, len(self.runs)):
            same &= stretch.stands(self._wanted[number], starts[number])
            if 2 * np.count_nonzero(same) < len(same):  # others need not be looked at any further
                kept, starts, same = kept[same], starts[:, same], same[same]
        if not same.all():
            kept, starts = kept[same], starts[:, same]
        alike = np.zeros(len(events), np.bool_)
        alike[kept] = True
        return alike, starts[:-1] + lengths[:-1, None], starts[1:]

    def narrowed(self, fixed: Mapping[int, bytes]) -> Template:
        """Return the template of those events that have these texts in some slots, given by their number."""
        runs, anchors, offsets, slots = [self.runs[0]], [self.anchors[0]], [self.offsets[0]], []
        for number, slot in enumerate(self.slots):
            following = self.runs[number + 1]
            if number in fixed:
                runs[-1] += fixed[number] + following
            else:
                slots.append(slot)
                runs.append(following)
                anchors.append(self.anchors[number + 1])
                offsets.append(self.offsets[number + 1])
        return replace(
            self,
            runs=tuple(runs),
            slots=tuple(slots),
            anchors=np.array(anchors),
            offsets=np.array(offsets),
            fixed=tuple(Fixed(self.slots[number], text) for number, text in fixed.items()),
        )
