"""Copying and saving: the panel's table, the picture of the screen, slices, marks, a range as a trace."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from tracelane.core.base.arrays import I64
from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import write_new_file
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_bytes
from tracelane.core.export.cut import cut_scope
from tracelane.core.export.formats import as_markdown
from tracelane.core.export.forms import FORMS, emit
from tracelane.core.export.listing import Listing
from tracelane.core.export.marks import marks_json
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table, Tables
from tracelane.core.tables.registry import PANELS

from ..actions.ranges import scope_of
from ..actions.scene import Refusal
from ..command_line import file_named
from ..device_facts import KnownFacts
from ..lanes.canvas import LaneCanvas
from ..lanes.strips import Verdict
from ..panels.panel import NO_TABLES
from ..panels.table import TablePane
from ..stage import Controller, does
from ..text.picture import plain_picture
from .marks import NO_MARKS

PICTURES: Final = (".svg", ".html", ".txt")
SLICE_FORMATS: Final = (".csv", ".json")


class SaveController(Controller):
    @does("copy-table")
    def do_copy_table(self) -> None:
        table, order = self._table_on_show()
        text = as_markdown(table, order)
        if not self.app.copied(text):
            self.app.say(
                f"{format_bytes(len(text))} are more than terminals copy; :save table FILE.md writes them"
            )
            return
        self.app.say(f"copied {len(table):,} rows of {table.title} as Markdown, where the terminal allows it")

    @does("save", typed=True)
    def save(self, text: str) -> None:
        """Write what `picture FILE`, `table FILE`, `slices FILE` or `marks FILE` asks for; of a file alone
        the ending says whether it is the picture or the table. UsageError tells how to ask.
        """
        what, _, name = text.strip().partition(" ")
        if what not in ("picture", "table", "slices", "marks"):
            ending = Path(text.strip()).suffix.lower()
            is_table = ending not in PICTURES and ending.removeprefix(".") in FORMS
            what, name = "table" if is_table else "picture", text.strip() if ending else ""
        if not name.strip():
            raise UsageError(
                "save FILE.svg|.html|.txt (the picture), FILE.csv|.json|.md (the table), "
                "slices FILE.csv|.json or marks FILE"
            )
        path = file_named(name.strip())
        if what == "table":
            self._save_table(path)
        elif what == "slices":
            self._save_slices(path)
        elif what == "marks":
            self.app.say(save_new_file(path, self._marks_text()))
        elif path.suffix.lower() not in PICTURES:
            raise UsageError("a picture can be written to FILE.svg, FILE.html or FILE.txt")
        else:
            # The line that was typed is still on the screen: it has to be gone first.
            self.app.call_after_refresh(self._save_picture, path)

    def _marks_text(self) -> str:
        marks, sources = self.store.now.marks, self.store.trace.sources
        if not marks:
            raise Refusal(NO_MARKS)
        return marks_json(marks, [source.path for source in sources])

    def _save_table(self, path: Path) -> None:
        form = path.suffix.lower().removeprefix(".")
        if form not in FORMS:
            raise UsageError(f"a table can be written to {', '.join(f'FILE.{name}' for name in FORMS)}")
        table, order = self._table_on_show()
        panel = PANELS.get(self.store.session.panel)
        command = self.store.session.panel if panel is None else panel[0].name
        self.app.say(save_new_file(path, "".join(emit(Listing(command, Tables.of(table), order), form))))

    def _save_picture(self, path: Path) -> None:
        if path.suffix.lower() == ".svg":
            text = self.app.export_screenshot(title=self._title())
        elif path.suffix.lower() == ".html":
            text = self.app.screen_page(self._title())
        else:
            canvas = self.app.main.query_one(LaneCanvas)
            cells = (
                canvas.size.width,
                self.app.size.height,
            )  # lanes have the room that a panel takes on the screen
            trace, session = self.store.trace, self.store.session
            verdict = self.app.main.query_one(Verdict).facts
            said = None if verdict is None else verdict._replace(offer="")  # nobody presses a key in a file
            known = KnownFacts(canvas.states, canvas.ranks, verdict=said)
            text = plain_picture(trace, session, cells, canvas.reader, known)
            text += "\n"
        try:
            self.app.say(save_new_file(path, text))
        except Refusal as refusal:
            self.app.say(str(refusal))

    def _title(self) -> str:
        return safe(Path(self.store.trace.sources[0].path).name)

    def _table_on_show(self) -> tuple[Table, I64]:
        """Return the panel's table and its rows as sorted; Refusal where the panel shows none."""
        name = self.store.session.panel
        if name not in NO_TABLES:
            pane = self.app.main.query_one(f"#{name}", TablePane)
            if pane.shown_table is not None and len(pane.shown_table) == pane.table.row_count:
                return pane.shown_table, pane.table.order
        raise Refusal("the panel shows no table: {panel-table} shows one")

    # -- slices and ranges, away from the screen ------------------------------------------------------------

    def _save_slices(self, path: Path) -> None:
        """Write the slices of the range, else of all, that `:only` and `:filter` leave."""
        if path.suffix.lower() not in SLICE_FORMATS:
            raise UsageError("slices can be written to FILE.csv or FILE.json")
        if path.exists():
            raise Refusal(f"{path} is there already: give another name")
        self.app.say(f"writing slices to {path} …")
        trace, session = self.store.own_trace, self.store.session

        def count(cancelled: CancelledCallback) -> int:
            from tracelane.core.export.slices import SliceRows, write_rows

            slices = SliceRows(scope_of(trace, session, cancelled))
            write_rows(slices, path)
            return len(slices)

        def failed(error: Exception) -> None:
            self.app.say(f"cannot write {path}: {_reason(error)}")

        self.app.jobs.ask("slices", count, partial(self._say_saved, path), failed)

    def _say_saved(self, path: Path, slices: int) -> None:
        self.app.say(f"saved {path.absolute()}: {count_of(slices, 'slice')}")

    @does("cut", typed=True)
    def cut_to(self, name: str) -> None:
        """Write what lies in the range to a file; Refusal where there is no range, or the file is there."""
        if not name:
            raise UsageError("cut FILE.json or FILE.json.gz: the range is written there")
        window = self.store.session.range
        if window is None:
            raise Refusal("no range to cut: {range} begins one, {range-selection} takes the selection's time")
        path = file_named(name)
        if path.exists():
            raise Refusal(f"{path} is there already: give another name")
        source = self._source_to_cut()
        self.app.say(f"cutting to {path} …")
        trace, clocks = self.store.trace, self.store.session.clocks

        def count(cancelled: CancelledCallback) -> int:
            scope = Scope(trace, window, clocks=clocks, source=source, cancelled=cancelled)
            return cut_scope(scope, path).slices

        self.app.jobs.ask("cut", count, partial(self._say_saved, path))

    def _source_to_cut(self) -> int:
        """Return the source of the focused lane, else the only one; Refusal where that is not known."""
        focus = self.store.session.focus
        files = [source.number for source in self.store.trace.sources if source.is_file]
        if focus is not None and focus.lane.source in files:
            return focus.lane.source
        if len(files) != 1:
            raise Refusal("several files are open: go to a lane of the one to cut")
        return files[0]


def save_new_file(path: Path, text: str) -> str:
    """Write a new file and return what to say; Refusal says in one line why it was not written."""
    try:
        write_new_file(path, [text])
    except FileExistsError:
        raise Refusal(f"{path} is there already: give another name") from None
    except (OSError, ValueError) as error:
        raise Refusal(f"cannot write {path}: {_reason(error)}") from None
    return f"saved {path.absolute()}"


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
