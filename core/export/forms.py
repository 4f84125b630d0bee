"""The forms in which tables leave: a writer for each, loaded when it writes, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

from ..base.errors import UsageError

if TYPE_CHECKING:
    from ..base.arrays import I64
    from ..tables.frame.table import Table, Tables

FORMS: Mapping[str, str] = {
    "json": "formats:json_form",
    "csv": "formats:csv_form",
    "md": "formats:markdown_form",
    "html": "formats:html_form",
}
"""Name -> "module:function" in this folder, which takes an Listing and yields text. What is added here is a
choice of --format of every command, and an ending of `:save table`.
"""


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


def emit(listing: Listing, form: str, own: Mapping[str, Writer] | None = None) -> Iterable[str]:
    """Return the text of tables in a form; `own` has the writers of what writes a form in its own way. Raises
    UsageError for a form that there is not.
    """
    if own and form in own:
        return own[form](listing)
    if form not in FORMS:
        raise UsageError(f"there is no form {form!r}; there are {', '.join({**FORMS, **(own or {})})}")
    module, _, name = FORMS[form].partition(":")
    writer: Writer = getattr(import_module(f"{__package__}.{module}"), name)
    return writer(listing)
