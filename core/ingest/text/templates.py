"""All templates that have been learned, and which events of a stretch are written like which."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

import numpy as np
import orjson

from ..columns import I64
from .learning import template_of
from .spellings import is_spelled
from .stretch import Stretch
from .template import Form, Slot, Template
from .values import TEXTS, float_of

LEAST = 64
"""Fewer events that are written alike cost less by the decoder."""
MOST_TEMPLATES = 64
"""With the same number of quotes: each is compared with all of their events."""
MOST_NARROW = 8
"""Of templates that are alike but for what is the same in all their events."""
SAMPLE = 64
"""So many events tell what is the same in all."""
ATTEMPTS = 4
"""So many kinds of events are learned at once of those with the same number of quotes."""
_INTEGER = re.compile(rb"0|-?[1-9][0-9]{0,17}")

Group: TypeAlias = tuple[Template, I64, I64, I64]
"""A template, its events, where their slots begin and where they end: a row per slot."""


class Templates:
    """Templates by the number of quotes in their events."""

    def __init__(self) -> None:
        """Begin without any."""
        self._templates: dict[int, list[Template]] = {}
        self._narrow: Counter[tuple[bytes, ...]] = Counter()  # by their common shape

    def parted(self, stretch: Stretch) -> Iterator[Group]:
        """Yield the events of each template, with where their slots begin and end."""
        counts = stretch.counts if stretch.escaped is None else np.where(stretch.escaped, 0, stretch.counts)
        small = counts.max() < 1 << 16  # two bytes are sorted by counting
        order = np.argsort(counts.astype(np.uint16) if small else counts, kind="stable")
        ordered = counts[order]
        edges = np.flatnonzero(np.diff(ordered, prepend=-1))
        for a, b in zip(edges.tolist(), [*edges[1:].tolist(), len(ordered)]):
            quotes = int(ordered[a])
            if quotes and b - a >= LEAST:
                yield from self._matched(stretch, quotes, order[a:b])

    def _matched(self, stretch: Stretch, quotes: int, events: I64) -> Iterator[Group]:
        templates = self._templates.setdefault(quotes, [])
        for template in templates:
            alike, starts, ends = template.matching(stretch, events)
            if starts.shape[1]:
                yield template, events[alike], starts, ends
                events = events[~alike]
            if len(events) < LEAST:
                return
        for _ in range(ATTEMPTS):
            if len(templates) >= MOST_TEMPLATES:
                return
            sample = int(events[0])
            text = stretch.text[stretch.begins[sample] : stretch.ends[sample]]
            orjson.loads(text)  # a stretch with an unsound event is read otherwise
            new = template_of(text)
            if new is None:
                events = events[1:]
            else:
                new = self._narrowed(stretch, new, events)
                templates.append(new)
                alike, starts, ends = new.matching(stretch, events)
                yield new, events[alike], starts, ends
                events = events[~alike]
            if len(events) < LEAST:
                return

    def _narrowed(self, stretch: Stretch, template: Template, events: I64) -> Template:
        """Return a template for events alike that also have the same text in some of their slots, if they
        often have: fewer slots are less work.
        """
        shape = template.runs
        if self._narrow[shape] >= MOST_NARROW:
            return template
        self._narrow[shape] += 1
        sample = events[:: max(1, len(events) // SAMPLE)]
        _, starts, ends = template.matching(stretch, sample)
        fixed = {}
        for row, slot in enumerate(template.slots):
            if slot.form is not Form.TIME and starts.shape[1] >= SAMPLE // 4:
                texts = {stretch.text[a:b] for a, b in zip(starts[row].tolist(), ends[row].tolist())}
                if len(texts) == 1 and _is_sound(slot, text := texts.pop()):
                    fixed[row] = text
        return template.narrowed(fixed)


def _is_sound(slot: Slot, text: bytes) -> bool:
    """Tell whether a text in a slot can be taken as the same in all events."""
    if slot.form in TEXTS:
        return is_spelled(text, slot.form is Form.TEXT)
    number = float_of(text)
    return math.isfinite(number) and (slot.form is not Form.INTEGER or bool(_INTEGER.fullmatch(text)))
