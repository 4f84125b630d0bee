"""What a command says, in whatever form it leaves, and who writes a form of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from ..base.arrays import I64
    from ..tables.frame.table import Table, Tables


@dataclass(frozen=True, eq=False)
class Listing:
    """What a command says: its tables, the first of them in this order and to this length."""

    command: str
    tables: Tables
    order: I64 | None = None
    limit: int | None = None
    say: Callable[[str], object] = str  # tells people a note for which a form has no place

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the answer, and those of its first table."""
        return tuple(dict.fromkeys((*self.tables.notes, *self.tables.main.notes)))

    @property
    def drawn(self) -> list[Table]:
        """The tables that people read: the first of them, and of the others those that have rows."""
        first, *others = (table.as_read for table in self.tables if table.is_drawn)
        return [first, *filter(len, others)]


Writer: TypeAlias = Callable[[Listing], Iterable[str]]
