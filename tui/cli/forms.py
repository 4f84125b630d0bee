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


def arranged(table: Table, sort: str | None, limit: int | None) -> Table:
    """Return a table sorted by a column and cut to so many rows; UsageError where it has no such column."""
    from tracelane.core.base.errors import UsageError

    if sort:
        try:
            table = table.sort(sort.removeprefix("-"), not sort.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None
    return table if limit is None else table.head(limit)
