"""Marks: set at the cursor or the range, listed, jumped to; and the view kept for the next time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.units import count_of, format_ns
from tracelane.core.export.marks import Mark, read_marks, read_named_marks, shelf, write_marks, write_object

from ..actions import ranges
from ..actions.scene import Refusal
from ..command_line import file_named
from ..stage import Controller, Stage, does, hears
from ..terminal.driver import TerminalDriver
from ..times import stamps_of
from ..view_state import session_json
from ..widgets.prompt import Prompt
from ..widgets.table import ColumnView

NO_MARKS = "no marks: {mark} marks the cursor or the range"


class MarkController(Controller):
    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self.read()

    def read(self) -> None:
        self._trouble = ""
        marks: tuple[Mark, ...] = ()
        path = shelf(self.store.trace, "marks")
        try:
            marks = () if path is None else read_marks(path)
        except TracelaneError as error:
            self._trouble = str(error)  # a file that is not understood is never written over
        self.store.dispatch(replace(self.store.now, marks=marks, marked_last=None))

    @does("mark")
    def do_mark(self) -> None:
        self.mark("")

    @does("mark-text")
    def do_mark_text(self) -> None:
        self.app.main.query_one(Prompt).ask("mark", "mark ", "what is here")

    @does("mark", typed=True)
    def mark(self, text: str) -> None:
        start, end = self.store.session.range or (self.store.session.cursor, self.store.session.cursor)
        offset = self.store.session.clocks.offset(0)
        mark = Mark(start - offset, end - offset, text)
        self._keep((*self.store.now.marks, mark), mark)
        self.app.say(f"marked {self._stamp(start)}: {{marks}} lists the marks")

    @does("unmark")
    def do_unmark(self) -> None:
        session = self.store.session
        near = min(self.store.marks_seen, key=lambda mark: abs(mark.start - session.cursor), default=None)
        if near is None or not session.viewport.start <= near.start < session.viewport.end:
            raise Refusal("no mark in view")
        gone = self.store.marks_seen.index(near)
        marks = self.store.now.marks
        self._keep((*marks[:gone], *marks[gone + 1 :]))
        self.app.say(f"the mark at {self._stamp(near.start)} is gone")

    @does("marks-import")
    def do_marks_import(self) -> None:
        self.app.main.query_one(Prompt).ask("marks", "marks from ", "a file written by :save marks")

    @does("marks", typed=True)
    def add_marks(self, name: str) -> None:
        path = file_named(name)
        if not path.is_file():
            raise Refusal(f"{path} is no file")
        marks = self.store.now.marks
        more = set(read_named_marks(path)) - set(marks)
        self._keep((*marks, *more))
        self.app.say(f"{count_of(len(more), 'new mark')} from {path}: {{marks}} lists")

    def _keep(self, marks: tuple[Mark, ...], last: Mark | None = None) -> None:
        if self._trouble:
            raise Refusal(self._trouble)
        path = shelf(self.store.trace, "marks")
        if path is not None:
            write_marks(path, marks, [source.path for source in self.store.trace.sources])
        now = self.store.now
        self.store.dispatch(replace(now, marks=tuple(sorted(marks)), marked_last=last or now.marked_last))

    @does("marks")
    def do_marks(self) -> None:
        marks = self.store.marks_seen
        if not marks:
            raise Refusal(NO_MARKS)
        columns = [
            ColumnView("Mark", 0, lambda row: marks[row].text or "(no text)"),
            ColumnView("At", 22, lambda row: self._stamp(marks[row].start), right=True),
            ColumnView("Length", 12, lambda row: _length(marks[row]), right=True),
        ]

        def chosen(row: int) -> None:
            start, end = marks[row].start, marks[row].end
            self.store.go(ranges.gone_to(self.store.trace, self.store.session, start, end))

        self.app.offer_rows("Marks", columns, len(marks), "Enter goes there", chosen)

    def _stamp(self, time: int) -> str:
        return stamps_of(self.store.trace, self.store.session).relative(time)

    # -- the view -------------------------------------------------------------------------------------------

    @hears(TerminalDriver.Ended)
    def end(self, message: TerminalDriver.Ended) -> None:
        self.save_view()
        self.app.exit(return_code=message.code)

    def save_view(self) -> None:
        """Keep the view for the next time; where it cannot be kept, nothing is lost but that."""
        path = shelf(self.store.trace, "view")
        if path is not None and self.app.is_filled:
            with suppress(TracelaneError):
                write_object(path, session_json(self.store.session))


def _length(mark: Mark) -> str:
    return format_ns(mark.end - mark.start) if mark.end > mark.start else ""
