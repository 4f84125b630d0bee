"""How events are written that differ in a few places only: the text around these, proved by comparison.

A text that agrees with a template outside of its slots, and whose slots hold sound numbers, strings without
escapes, or other sound JSON, is sound JSON itself and has the same keys in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from ..columns import I64
from ..columns_block import KINDS
from ..lifted import Lifted
from .stretch import Wanted


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
    anchors: I64  # per slot, as a column: number of the key that ends before it
    behind: I64  # from there to the slot
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
    def wanted(self) -> tuple[Wanted, ...]:
        """The texts around the slots, to be compared."""
        return tuple(map(Wanted.of, self.runs))

    def narrowed(self, fixed: Mapping[int, bytes]) -> Template:
        """Return the template of those events that have these texts in some slots, given by their number."""
        runs = list(self.runs[:1])
        for number, following in enumerate(self.runs[1:]):
            if number in fixed:
                runs[-1] += fixed[number] + following
            else:
                runs.append(following)
        left = [number for number in range(len(self.slots)) if number not in fixed]
        return replace(
            self,
            runs=tuple(runs),
            slots=tuple(self.slots[number] for number in left),
            anchors=self.anchors[left],
            behind=self.behind[left],
            fixed=tuple(Fixed(self.slots[number], text) for number, text in fixed.items()),
        )
