"""What the commands about devices share: options, opening, the order of rows, printing in four forms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import json_text

from .opened import Opened, with_options
from .scoped import FORMAT, terminal_width

if TYPE_CHECKING:
    from tracelane.core.ingest.columns import I64
    from tracelane.core.tables.table import Table

TABLE_ROWS = 30
"""Rows of a printed table where --limit does not say."""

SORT = click.option(
    "--sort", metavar="COLUMN", help="Sort by this column, greatest first; -COLUMN: smallest first."
)
LIMIT = click.option("--limit", type=click.IntRange(1), help=f"Rows; of a table {TABLE_ROWS}, else all.")


@dataclass(frozen=True)
class Request(Opened):
    """What the shared options said."""

    sort: str | None
    limit: int | None
    form: str

    def order(self, table: Table, usual: str = "") -> I64 | None:
        """Return the rows in the order asked for, else by the usual column, else None: the table's own."""
        key = (self.sort or usual).strip()
        if not key:
            return None
        try:
            return table.order(key.removeprefix("-"), not key.startswith("-"))
        except KeyError as error:
            raise UsageError(f"--sort: {error.args[0]}") from None

    def show(
        self,
        tables: Sequence[Table],
        told: Callable[[], dict[str, Any]] | None = None,
        usual: str = "",
        limited: bool = False,
    ) -> None:
        """Print the tables; csv has the first alone, json the object told, else the first table.

        Order (the usual one where none is asked for) and limit are for the first table; others come whole.
        The object stands in its own order, and `limited` tells whether it keeps to the limit: what it does
        not heed is said on stderr.
        """
        from tracelane.core.export import formats
        from tracelane.tui.text.table import table_text

        first, *others = tables
        order = self.order(first, usual)
        if self.form == "table":
            width, limit = terminal_width(), self.limit or TABLE_ROWS
            texts = [table_text(first, width, order, limit)]
            texts += [table_text(table, width) for table in others if len(table)]
            print_text("\n\n".join(texts))
        elif self.form == "md":
            texts = [formats.as_markdown(first, order, self.limit)]
            texts += [formats.as_markdown(table) for table in others if len(table)]
            print_text("\n".join(texts), end="")
        elif self.form == "csv":
            print_text(formats.as_csv(first, order, self.limit), end="")
        elif told is not None:
            if self.sort:
                print_text("--sort is for tables: JSON stands in its own order", error=True)
            if self.limit and not limited:
                print_text("--limit is for tables: JSON has all of it", error=True)
            print_text(json_text(told(), indent=1))
        else:
            print_text(formats.as_json(first, order, self.limit), end="")


def request_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the shared options; it gets them as one `request`, its own ones as they are."""
    return with_options(command, Request, "request", (FORMAT, LIMIT, SORT))
