"""Writing the slices that are on show, as `tracelane slices` prints them, away from the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError, UsageError
from tracelane.core.base.units import format_count
from tracelane.core.trace import Trace

from ..actions.refusal import Refusal
from ..jobs import background
from ..session import Session
from ..session_store import SessionStore
from ..stage import Stage
from .tables import scope_of

ENDS = (".csv", ".json")


class SliceSaver:
    """The command that writes slices."""

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store

    def save_slices(self, path: Path) -> None:
        """Write the slices of the range, else of all, that `:only` and `:filter` leave."""
        if path.suffix.lower() not in ENDS:
            raise UsageError("slices can be written to FILE.csv or FILE.json")
        if path.exists():
            raise Refusal(f"{path} is there already: give another name")
        self.app.say(f"writing slices to {path} …")
        self._write_slices(self.store.own_trace, self.store.session, path)

    @background("slices")
    def _write_slices(self, trace: Trace, session: Session, path: Path) -> None:
        """Find the slices and write them."""
        from tracelane.core.export.slices import SliceRows, write_rows
        from tracelane.core.query.filter import Filter, parse
        from tracelane.core.query.hits import matches

        worker = get_current_worker()
        pattern = parse(session.filter) if session.filter else Filter("", ())
        try:
            hits = matches(trace, pattern, session.clocks, lambda: worker.is_cancelled)
            scope = scope_of(trace, replace(session, filter=""), lambda: worker.is_cancelled)
            slices = SliceRows(trace, hits, scope.range, scope.lanes, scope.work)
            words = f"{scope.text}, filtered" if session.filter else scope.text
            write_rows(slices, path, words, lambda: worker.is_cancelled)
        except Cancelled:
            return
        except (TracelaneError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            if not worker.is_cancelled:
                self.app.call_from_thread(self.app.say, f"cannot write {path}: {reason}")
            return
        if not worker.is_cancelled:
            count = f"{format_count(len(slices))} slice{'' if len(slices) == 1 else 's'}"
            self.app.call_from_thread(self.app.say, f"saved {path.absolute()}: {count}")
