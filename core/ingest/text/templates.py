"""All templates that have been learned, and which events of a stretch are written like which."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

import numpy as np
import orjson

from ..columns import I64
from .cells import Cells, cells_of
from .learning import template_of
from .spellings import is_spelled
from .stretch import Stretch
from .template import Form, Slot, Template
from .values import TEXTS, float_of

LEAST = 64
"""Fewer events that are written alike cost less by the decoder."""
MOST_TEMPLATES = 64
"""With the same number of keys: each is compared with all of their events."""
MOST_NARROW = 8
"""Of templates that are alike but for what is the same in all their events."""
SAMPLE = 64
"""So many events tell what is the same in all."""
ATTEMPTS = 4
"""So many kinds of events are learned at once of those with the same number of keys."""
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")


class Templates:
    """Templates by the number of keys in their events."""

    def __init__(self) -> None:
        """Begin without any."""
        self._templates: dict[int, list[Template]] = {}
        self._narrow: Counter[tuple[bytes, ...]] = Counter()  # by their common shape

    def parted(self, stretch: Stretch) -> Iterator[Cells]:
        """Yield the events of each template, with what stands in their slots."""
        counts = stretch.counts if stretch.escaped is None else np.where(stretch.escaped, 0, stretch.counts)
        small = counts.max() < 1 << 16  # two bytes are sorted by counting
        order = np.argsort(counts.astype(np.uint16) if small else counts, kind="stable")
        ordered = counts[order]
        edges = np.flatnonzero(np.diff(ordered, prepend=-1))
        for a, b in zip(edges.tolist(), [*edges[1:].tolist(), len(ordered)]):
            keys = int(ordered[a])
            if keys and b - a >= LEAST:
                yield from self._matched(stretch, keys, order[a:b])

    def _matched(self, stretch: Stretch, keys: int, events: I64) -> Iterator[Cells]:
        templates = self._templates.setdefault(keys, [])
        number = attempts = before = 0
        while len(events) >= LEAST:
            if number == len(templates):
                if number == MOST_TEMPLATES or attempts == ATTEMPTS:
                    return
                sample = int(events[attempts * len(events) // ATTEMPTS])
                attempts += 1
                new = self._learned(stretch, sample, events)
                if new is None:
                    continue
                templates.append(new)
            cells = cells_of(stretch, templates[number], events)
            found = len(cells.events)
            if number and found > before:  # what is met most often is to be looked for first
                templates[number - 1 : number + 1] = templates[number], templates[number - 1]
            number, before = number + 1, found
            if found:
                yield cells
            if len(events) - found < LEAST:
                return
            events = _without(events, cells.events)

    def _learned(self, stretch: Stretch, sample: int, events: I64) -> Template | None:
        """Return the template of one event; None where its like are left to the decoder."""
        text = stretch.text[stretch.begins[sample] : stretch.ends[sample]]
        orjson.loads(text)  # a stretch with an unsound event is read otherwise
        new = template_of(text)
        return None if new is None else self._narrowed(stretch, new, events)

    def _narrowed(self, stretch: Stretch, template: Template, events: I64) -> Template:
        """Return a template for events alike that also have the same text in some of their slots, if they
        often have: fewer slots are less work.
        """
        shape = template.runs
        if self._narrow[shape] >= MOST_NARROW:
            return template
        self._narrow[shape] += 1
        cells = cells_of(stretch, template, events[:: max(1, len(events) // SAMPLE)])
        fixed = {}
        if len(cells.events) >= SAMPLE // 4:
            for number, (slot, spans) in enumerate(zip(template.slots, cells.spans)):
                if slot.form is Form.TIME:
                    continue
                texts = set(map(spans.text, range(len(spans))))
                if len(texts) == 1 and _is_sound(slot, text := texts.pop()):
                    fixed[number] = text
        return template.narrowed(fixed)


def _without(events: I64, others: I64) -> I64:
    """Return the events that are not among others; both ascending."""
    left = np.ones(len(events), np.bool_)
    left[np.searchsorted(events, others)] = False
    return events[left]


def _is_sound(slot: Slot, text: bytes) -> bool:
    """Tell whether a text in a slot can be taken as the same in all events."""
    if slot.form in TEXTS:
        return is_spelled(text, slot.form is Form.TEXT)
    number = float_of(text)
    return math.isfinite(number) and (slot.form is not Form.INTEGER or bool(_INTEGER.fullmatch(text)))
