"""What a command prints: its tables in each form that there is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_paged, print_pieces, print_text, terminal_size
from tracelane.core.export.forms import emit
from tracelane.core.export.listing import Listing, Writer

from .options import remembered
from .streams import has_colours

if TYPE_CHECKING:
    from tracelane.core.base.arrays import I64
    from tracelane.core.tables.frame.table import Table
    from tracelane.tui.text.table import TableStyle

DEFAULT_WIDTH = 160
"""Columns of a table where nothing says how wide the terminal is."""
UNCUT = 1 << 30


def terminal_width() -> int:
    """Return how wide drawings and wrapped text are: the terminal, COLUMNS, else DEFAULT_WIDTH."""
    if _has_width():
        return terminal_size(DEFAULT_WIDTH)[0]
    return DEFAULT_WIDTH


def _has_width() -> bool:
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal()


def table_style() -> TableStyle:
    """Return how tables are printed: as wide as the terminal and with colours as `has_colours` says.

    Into a pipe or file no text is cut, unless COLUMNS says how wide it is, and there are the columns for
    which DEFAULT_WIDTH has room; --columns all: all of them, everywhere.
    """
    from tracelane.tui.text.table import TableStyle

    room = UNCUT if remembered("columns") == "all" else terminal_width()
    return TableStyle(room, has_colours(sys.stdout.isatty()), _has_width())


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


def as_text(table: Table, order: I64 | None = None, limit: int | None = None, sort: str = "") -> str:
    """Return a table as a part of a text: without colours."""
    from tracelane.tui.text.table import table_text

    return table_text(table, table_style().plain, order, limit, sort=sort)


def column_key(table: Table, name: str) -> str:
    """Return the key of the column that a person names: by its key, with or without its unit, or by its
    heading; the name itself where there is none. A "-" before it stays.
    """
    sign, lowered = ("-", name[1:].lower()) if name.startswith("-") else ("", name.lower())
    keys = [column.key for column in table.columns]
    names = [*((key.lower(), key) for key in keys), *((key.rpartition("_")[0], key) for key in keys)]
    names += [(column.heading.lower(), column.key) for column in table.columns]
    return sign + next((key for text, key in names if text == lowered), name.removeprefix("-"))


def order_by(table: Table, key: str) -> I64 | None:
    """Return the row numbers sorted by a column, None without one; UsageError where it has no such column."""
    if not key:
        return None
    try:
        return table.order(key.removeprefix("-"), not key.startswith("-"))
    except KeyError as error:
        raise UsageError(f"--sort: {error.args[0]}") from None


def arranged(table: Table, sort: str | None, limit: int | None) -> Table:
    """Return a table sorted by the column that a person names, and cut to so many rows."""
    order = order_by(table, column_key(table, sort) if sort else "")
    table = table if order is None else table.take(order)
    return table if limit is None else table.head(limit)
