"""Copying and saving: the table of the panel, the picture of the screen, slices and marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tracelane.core.base.arrays import I64
from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import write_new_file
from tracelane.core.base.safe_text import safe
from tracelane.core.export.formats import as_csv, as_json, as_markdown
from tracelane.core.tables.registry import PANELS
from tracelane.core.tables.table import Table, Tables

from ..actions.refusal import Refusal
from ..command_line import file_named
from ..lanes.canvas import LaneCanvas
from ..panels.panel import NO_TABLES
from ..panels.table import TablePane
from ..session_store import SessionStore
from ..stage import Stage
from ..text.picture import plain_picture
from .marks import MarkController
from .saving_slices import SliceSaver

FORMATS: Final = (".csv", ".json", ".md")
PICTURES: Final = (".svg", ".txt")
LINES_AROUND = 3
"""The most lines of minimap and ruler in a plain picture."""


class SaveController:
    """Commands that copy the view or write it to a file."""

    def __init__(
        self, app: Stage, store: SessionStore, slice_saver: SliceSaver, marking: MarkController
    ) -> None:
        """Work on a store, and say what was written."""
        self.app = app
        self.store = store
        self.slice_saver = slice_saver
        self.marking = marking

    def commands(self) -> Mapping[str, Callable[[], object]]:
        """Return what carries out each of its commands."""
        return {
            "copy-table": self.do_copy_table,
        }

    def verbs(self) -> Mapping[str, Callable[[str], object]]:
        """Return what carries out those with an argument."""
        return {"save": self.save}

    def do_copy_table(self) -> None:
        """Copy the table on show as Markdown."""
        table, order = self._table_on_show()
        self.app.copy_to_clipboard(as_markdown(table, order))
        self.app.say(f"copied {len(table):,} rows of {table.title} as Markdown, where the terminal allows it")

    def save(self, text: str) -> None:
        """Write what `picture FILE`, `table FILE`, `slices FILE` or `marks FILE` asks for; UsageError tells
        how to ask.
        """
        what, _, name = text.partition(" ")
        if what not in ("picture", "table", "slices", "marks") or not name.strip():
            raise UsageError(
                "save picture FILE.svg|.txt, table FILE.csv|.json|.md, slices FILE.csv|.json or marks FILE"
            )
        path = file_named(name.strip())
        if what == "table":
            self._save_table(path)
        elif what == "slices":
            self.slice_saver.save_slices(path)
        elif what == "marks":
            self.app.say(save_new_file(path, self.marking.marks_text()))
        elif path.suffix.lower() not in PICTURES:
            raise UsageError("a picture can be written to FILE.svg or FILE.txt")
        else:
            # The line that was typed is still on the screen: it has to be gone first.
            self.app.call_after_refresh(self._save_picture, path)

    def _save_table(self, path: Path) -> None:
        suffix = path.suffix.lower()
        if suffix not in FORMATS:
            raise UsageError("a table can be written to FILE.csv, FILE.json or FILE.md")
        table, order = self._table_on_show()
        if suffix == ".json":
            panel = PANELS.get(self.store.session.panel)
            command = self.store.session.panel if panel is None else panel[0].name
            text = as_json(Tables.of(table), command, order)
        else:
            text = as_csv(table, order) if suffix == ".csv" else as_markdown(table, order)
        self.app.say(save_new_file(path, text))

    def _save_picture(self, path: Path) -> None:
        if path.suffix.lower() == ".svg":
            text = self.app.export_screenshot(title=safe(Path(self.store.trace.sources[0].path).name))
        else:
            canvas = self.app.main.query_one(LaneCanvas)
            size = canvas.size
            height = size.height + LINES_AROUND
            cells = (size.width, height)
            text = plain_picture(self.store.trace, self.store.session, cells, canvas.reader) + "\n"
        try:
            self.app.say(save_new_file(path, text))
        except Refusal as refusal:
            self.app.say(str(refusal))

    def _table_on_show(self) -> tuple[Table, I64]:
        """Return the panel's table and its rows as sorted; Refusal where the panel shows none."""
        name = self.store.session.panel
        if name not in NO_TABLES:
            pane = self.app.main.query_one(f"#{name}", TablePane)
            if pane.shown_table is not None and len(pane.shown_table) == pane.table.row_count:
                return pane.shown_table, pane.table.order
        raise Refusal("the panel shows no table: t, z, 3 and 5 to 9 show one")


def save_new_file(path: Path, text: str) -> str:
    """Write a new file and return what to say; Refusal says in one line why it was not written."""
    try:
        write_new_file(path, [text])
    except FileExistsError:
        raise Refusal(f"{path} is there already: give another name") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Refusal(f"cannot write {path}: {reason}") from None
    return f"saved {path.absolute()}"
