"""Marks: set at the cursor or the range, listed, jumped to; and the view kept for the next time."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.export.marks import (
    Mark,
    marks_json,
    moved,
    nearest_mark,
    read_marks,
    read_named_marks,
    shelf,
    write_marks,
    write_object,
)

from ..actions import view
from ..actions.refusal import Refusal
from ..clock import stamps_of
from ..command_line import file_named
from ..screens.pick import PickScreen
from ..session_store import SessionStore
from ..stage import Stage
from ..terminal.driver import TerminalDriver
from ..view_state import session_json
from ..widgets.prompt import Prompt
from ..widgets.table import ColumnView
from .controller import Commands, Controller, Verbs


class MarkController(Controller):
    """Commands of marks."""

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Read the trace's marks."""
        super().__init__(app, store)
        self.read()

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "mark": self.do_mark,
            "mark-text": self.do_mark_text,
            "unmark": self.do_unmark,
            "marks-import": self.do_marks_import,
            "marks": self.do_marks,
        }

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {"mark": self.mark, "marks": self.add_marks}

    def read(self) -> None:
        """Read the marks of the trace."""
        self.marks: tuple[Mark, ...] = ()
        self._marks_trouble = ""
        self._marked_last: Mark | None = None
        path = shelf(self.store.trace, "marks")
        try:
            self.marks = () if path is None else read_marks(path)
        except TracelaneError as error:
            self._marks_trouble = str(error)  # a file that is not understood is never written over

    @property
    def marks_seen(self) -> tuple[Mark, ...]:
        """The marks in trace time under the session's clocks."""
        return moved(self.marks, self.store.session.clocks.offset(0))

    @property
    def measured_from(self) -> Mark | None:
        """The mark from which the cursor's distance is counted, in trace time: the one set last, else the
        nearest.
        """
        marks = self.marks_seen
        if self._marked_last in self.marks:
            return marks[self.marks.index(self._marked_last)]
        return nearest_mark(marks, self.store.session.cursor)

    def do_mark(self) -> None:
        """Mark the range, else the cursor."""
        self.mark("")

    def do_mark_text(self) -> None:
        """Ask for a text and mark the range, else the cursor."""
        self.app.main.query_one(Prompt).ask("mark", "mark ", "what is here")

    def mark(self, text: str) -> None:
        """Mark the range, else the cursor, with a text."""
        start, end = self.store.session.range or (self.store.session.cursor, self.store.session.cursor)
        offset = self.store.session.clocks.offset(0)
        self._marked_last = Mark(start - offset, end - offset, text)
        self._keep((*self.marks, self._marked_last))
        self.app.say(f"marked {self._stamp(start)}: {{marks}} lists the marks")

    def do_unmark(self) -> None:
        """Remove the mark nearest to the cursor, if it is in view."""
        session = self.store.session
        near = min(self.marks_seen, key=lambda mark: abs(mark.start - session.cursor), default=None)
        if near is None or not session.viewport.start <= near.start < session.viewport.end:
            raise Refusal("no mark in view")
        gone = self.marks_seen.index(near)
        self._keep((*self.marks[:gone], *self.marks[gone + 1 :]))
        self.app.say(f"the mark at {self._stamp(near.start)} is gone")

    def do_marks_import(self) -> None:
        """Ask for a file of marks."""
        self.app.main.query_one(Prompt).ask("marks", "marks from ", "a file written by :save marks")

    def add_marks(self, name: str) -> None:
        """Add the marks of a file to those of the trace."""
        path = file_named(name)
        if not path.is_file():
            raise Refusal(f"{path} is no file")
        more = set(read_named_marks(path)) - set(self.marks)
        self._keep((*self.marks, *more))
        self.app.say(
            f"{format_count(len(more))} new mark{'s' if len(more) != 1 else ''} from {path}: {{marks}} lists"
        )

    def marks_text(self) -> str:
        """Return all marks as the text of a file; Refusal where there are none."""
        if not self.marks:
            raise Refusal("no marks: {mark} marks the cursor or the range")
        return marks_json(self.marks, [source.path for source in self.store.trace.sources])

    def _keep(self, marks: tuple[Mark, ...]) -> None:
        if self._marks_trouble:
            raise Refusal(self._marks_trouble)
        path = shelf(self.store.trace, "marks")
        if path is not None:
            write_marks(path, marks, [source.path for source in self.store.trace.sources])
        self.marks = tuple(sorted(marks))
        self.app.redraw()

    def do_marks(self) -> None:
        """List the marks; choosing one goes there."""
        if not self.marks:
            raise Refusal("no marks: {mark} marks the cursor or the range")
        marks = self.marks_seen
        columns = [
            ColumnView("Mark", 0, lambda row: marks[row].text or "(no text)"),
            ColumnView("At", 22, lambda row: self._stamp(marks[row].start), right=True),
            ColumnView("Length", 12, lambda row: _length(marks[row]), right=True),
        ]

        def chosen(row: int | None) -> None:
            if row is not None:
                self.go_to_mark(marks[row])

        self.app.push_screen(PickScreen("Marks", columns, len(marks), hint="Enter goes there"), chosen)

    def go_to_mark(self, mark: Mark) -> None:
        """Put the cursor on a mark; of a range make it the range and fit it."""
        if mark.end > mark.start:
            session = view.zoomed_to(self.store.trace, self.store.session, mark.start, mark.end)
            self.store.go(replace(session, range=(mark.start, mark.end), anchor=None))
        else:
            self.store.go(view.go_to(self.store.trace, self.store.session, mark.start))

    def _stamp(self, time: int) -> str:
        return stamps_of(self.store.trace, self.store.session).relative(time)

    # -- the view -------------------------------------------------------------------------------------------

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
