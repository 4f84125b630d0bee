"""What a command prints: its tables in each form that there is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_paged, print_pieces, print_text
from tracelane.core.export.forms import Listing, Writer, emit

from .options import remembered
from .terminal import table_style

if TYPE_CHECKING:
    from tracelane.core.tables.table import Table


@dataclass(frozen=True, eq=False)
class Printout(Listing):
    """What a command prints, with what its text needs beside."""

    rows: int | None = None  # of the first table where the limit does not say
    other_rows: int | None = None
    sort: str = ""  # the column that stays where others give way
    empty: str = "nothing in it"
    lead: str = ""  # what the tables come to, said before them

    @property
    def most(self) -> int | None:
        """How many rows of the first table are printed as text."""
        return self.limit or self.rows


def print_output(printout: Printout, form: str, **own: Writer) -> None:
    """Print tables in a form; `own` has the writers of what the command writes in its own way, or alone."""
    printout = replace(printout, say=partial(print_text, error=True))
    pieces = emit(printout, form, {"text": lambda _: _text(printout), **own})
    if form == "text":
        if text := "".join(pieces):
            print_paged(text, form not in own and table_style().is_coloured, not remembered("no_pager"))
    else:
        print_pieces(pieces)


def _text(printout: Printout) -> Iterable[str]:
    from tracelane.tui.text.table import table_text  # brings rich, which other forms do without

    style, limit = table_style(), printout.most
    first, *others = printout.drawn
    yield f"{printout.lead}\n\n" if printout.lead else ""
    yield table_text(first, style, printout.order, limit, sort=printout.sort, empty=printout.empty)
    for table in others:
        yield "\n\n" + table_text(table, style, limit=printout.other_rows)


def column_key(table: Table, name: str) -> str:
    """Return the key of the column that a person names: by its key, with or without its unit, or by its
    heading; the name itself where there is none. A "-" before it stays.
    """
    sign, lowered = ("-", name[1:].lower()) if name.startswith("-") else ("", name.lower())
    keys = [column.key for column in table.columns]
    names = [*((key.lower(), key) for key in keys), *((key.rpartition("_")[0], key) for key in keys)]
    names += [(column.heading.lower(), column.key) for column in table.columns]
    return sign + next((key for text, key in names if text == lowered), name.removeprefix("-"))


def arranged(table: Table, sort: str | None, limit: int | None) -> Table:
    """Return a table sorted by a column and cut to so many rows; UsageError where it has no such column."""
    if sort:
        sort = column_key(table, sort)
        try:
            table = table.sort(sort.removeprefix("-"), not sort.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None
    return table if limit is None else table.head(limit)
