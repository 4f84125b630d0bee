"""Tables of the commands that are no analyses, in the forms of --format that are the same for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracelane.core.base.output import print_pieces, print_text
from tracelane.core.base.safe_text import safe

if TYPE_CHECKING:
    from tracelane.core.tables.table import Table


def print_tables(form: str, heading: str, tables: Sequence[Table]) -> None:
    """Print tables as Markdown or a page of HTML, or the first one as CSV."""
    from tracelane.core.export.formats import as_csv, as_markdown, html_pieces

    first = tables[0]
    if form == "csv":
        print_text(as_csv(first), end="")
        for note in first.notes:
            print_text(safe(note), error=True)  # CSV has no place for it
    elif form == "md":
        print_text("\n".join(as_markdown(table) for table in tables), end="")
    else:
        print_pieces(html_pieces(heading, tables))


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
    from tracelane.core.base.errors import UsageError

    if sort:
        sort = column_key(table, sort)
        try:
            table = table.sort(sort.removeprefix("-"), not sort.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None
    return table if limit is None else table.head(limit)
