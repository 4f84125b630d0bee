"""What stands in the slots of events that are written alike, and the same slots of many such groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, repeat

import numpy as np

from ..columns import I64, AnyArray
from .spans import Spans, words_needed
from .stretch import Mask, Stretch, Words, by_word
from .template import Slot, Template


@dataclass(frozen=True)
class Cells:
    """Events that agree with a template outside of its slots, and the texts in these."""

    template: Template
    events: I64  # of the stretch, ascending
    spans: tuple[Spans, ...]  # a slot each

    def only(self, chosen: Mask) -> Cells:
        """Return what some of the events hold."""
        return Cells(self.template, self.events[chosen], tuple(span.only(chosen) for span in self.spans))

    def fixed(self, key: str) -> bytes | None:
        """Return the text under a key that is the same in all events, if there is one."""
        return next((fixed.text for fixed in self.template.fixed if fixed.slot.key == key), None)

    def text(self, key: str, event: int) -> bytes | None:
        """Return the text under a key in one of the events; None where they have none."""
        for slot, spans in zip(self.template.slots, self.spans):
            if slot.key == key:
                return spans.text(event)
        return self.fixed(key)


@dataclass(frozen=True)
class Joined:
    """The texts in some slots of many groups of cells, one behind the other: a call of numpy costs what
    hundreds of texts do.
    """

    slots: tuple[tuple[int, Slot], ...]  # number of its group, slot
    edges: I64  # where each begins, and the end
    spans: Spans

    @classmethod
    def of(cls, groups: Sequence[Cells], wanted: Callable[[Slot], bool]) -> Joined | None:
        """Join all slots of a kind; None where there is none."""
        found = [
            (number, slot, spans)
            for number, cells in enumerate(groups)
            for slot, spans in zip(cells.template.slots, cells.spans)
            if wanted(slot)
        ]
        if not found:
            return None
        edges = np.cumsum([0, *(len(spans) for _, _, spans in found)])
        slots = tuple((number, slot) for number, slot, _ in found)
        return cls(slots, edges, Spans.joined([spans for _, _, spans in found]))

    def each(self, values: AnyArray) -> Iterator[tuple[int, Slot, AnyArray]]:
        """Yield the group, the slot and its share of one value per text."""
        for (number, slot), (low, high) in zip(self.slots, pairwise(self.edges.tolist())):
            yield number, slot, values[low:high]

    def slot(self, place: int) -> Slot:
        """Return the slot in which a text stands."""
        return self.slots[int(np.searchsorted(self.edges, place, "right")) - 1][1]

    def told(self, tell: Callable[[Slot], np.uint64]) -> Words:
        """Return what is told of each text's slot."""
        return np.repeat(np.array([tell(slot) for _, slot in self.slots]), np.diff(self.edges))


def cells_of(stretch: Stretch, template: Template, events: I64) -> Cells:
    """Return those of some events, ascending, with as many keys as the template, that are written like it.

    What stands before a slot is compared, and what stands in it taken, in one go: to take bytes from a place
    costs about as much for eight as for sixty-four.
    """
    runs = template.wanted
    keys = stretch.keys.take(stretch.first[events] + template.anchors[0])
    fit = keys - stretch.begins[events] == runs[0].length - template.behind[0]
    if not fit.all():  # most of those that are not alike, at little cost
        events = events[fit]
    if not len(events):
        return Cells(template, events, ())
    starts, ends = _bounds(stretch, template, events)
    lengths = ends - starts
    alike = np.asarray((lengths >= 0).all(axis=0))
    needed = lengths.max(axis=1).tolist()
    texts: list[Words] = []
    for slot, run in enumerate(runs[:-1]):
        count = run.count + words_needed(needed[slot])
        words = _taken(stretch, starts[slot] - run.size, count, alike)
        alike &= run.is_in(by_word(words[:, : run.count]))
        texts.append(by_word(words[:, run.count :]))
        if 4 * np.count_nonzero(alike) < 3 * len(events):  # others need not be looked at any further
            events, starts, lengths = events[alike], starts[:, alike], lengths[:, alike]
            texts = [text[:, alike] for text in texts]
            alike = np.ones(len(events), np.bool_)
            if not len(events):
                return Cells(template, events, ())
    words = _taken(stretch, stretch.ends[events] - runs[-1].size, runs[-1].count, alike)
    alike &= runs[-1].is_in(by_word(words))
    cells = Cells(template, events, tuple(map(Spans, repeat(stretch), starts, lengths, texts)))
    return cells if alike.all() else cells.only(alike)


def _bounds(stretch: Stretch, template: Template, events: I64) -> tuple[I64, I64]:
    """Return where each slot begins and ends if events are written like a template: a row per slot."""
    runs = np.array([run.length for run in template.wanted])[:, None]
    starts = stretch.keys.take(stretch.first[events] + template.anchors)
    starts += template.behind
    ends = np.empty_like(starts)
    np.subtract(starts[1:], runs[1:-1], out=ends[:-1])
    np.subtract(stretch.ends[events], runs[-1], out=ends[-1])
    return starts, ends


def _taken(stretch: Stretch, places: I64, count: int, alike: Mask) -> Words:
    """Return so many words from each of some ascending places on; places beyond the text are not alike."""
    most = len(stretch.text) - 8 * count
    if places[0] < 0 or places[-1] > most:
        alike &= (places >= 0) & (places <= most)
        places = np.clip(places, 0, most)
    return stretch.taken(places, count)
