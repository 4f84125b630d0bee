"""Searching and filtering: asked for in one language, found away from the screen, marked, walked, hidden."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from rich.text import Text
from textual.worker import Worker, get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.base.ids import SliceId
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.query.filter import parse
from tracelane.core.query.hits import Found, Hit, Hits, find
from tracelane.core.trace import Trace

from ..actions import lanes
from ..actions.refusal import Refusal
from ..config import Config
from ..draw.labels import fit_middle
from ..draw.only import ask_titles
from ..draw.overview import hit_cells
from ..lanes.canvas import LaneCanvas
from ..lanes.look import glyphs, look_of
from ..lanes.minimap import Minimap
from ..session import Session
from ..things import thing_by_id
from ..widgets.prompt import Prompt
from .background import background
from .base import Viewer

HINT = "nccl  'two words'  /regex/  cat:kernel  dur>1ms  lane:'stream 0'  arg.bytes>1e6  -word"
NOTE_CELLS = 24


ByTitles: TypeAlias = Callable[[Trace, Session, str, int], Session]
"""A move for lanes whose titles match a text, given the lines there are for lanes."""


class Searching(Viewer):
    """Commands that search and filter; what they found lasts until something else is asked for."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Hold what was found."""
        super().__init__(trace, session, config)
        self.asks_titles = False  # whether an expression is being looked for in the titles of lanes
        self.hits: Hits | None = None  # of the session's search, None while it is not known
        self.looked_through: float | None = None  # share of the trace while a search goes on
        self.stopped_at: float | None = None  # that share when it was stopped

    def do_search(self) -> None:
        """Ask what to search for."""
        self.main.query_one(Prompt).ask("search", "/", HINT)

    def search_for(self, text: str) -> None:
        """Search for what a text means; UsageError where it means nothing."""
        wanted = parse(text).text
        if wanted == self.session.search and self.stopped_at is not None:
            self.search_again()
        elif wanted == self.session.search and self.hits is not None:
            self._say_found()
        self.go(replace(self.session, search=wanted))

    def filter_by(self, text: str) -> None:
        """Draw only what matches; all again where the text is empty."""
        self.go(replace(self.session, filter=parse(text).text if text else ""))

    def do_next_hit(self) -> None:
        """Go to the next hit in order of time."""
        self._walk_hits(1)

    def do_previous_hit(self) -> None:
        """Go to the hit before in order of time."""
        self._walk_hits(-1)

    def _walk_hits(self, direction: int) -> None:
        if not self.session.search:
            raise Refusal("nothing is searched for: / asks what")
        hits = self.hits
        if hits is None:
            stopped = self.stopped_at is not None
            raise Refusal("stopped before anything was found" if stopped else "still searching")
        if not hits.count:
            raise Refusal(f"no slice matches {self.session.search}")
        step = hits.next if direction > 0 else hits.previous
        identity = self.session.selection
        thing = None if identity is None else thing_by_id(self.trace, self.session.clocks, identity)
        if thing is not None and isinstance(identity, SliceId):
            first = int(self.trace.indexes[identity.source].rows[thing.row.number]["first"])
            found = step(thing.start, identity.source, first + thing.index)
        else:
            found = step(self.session.cursor)
        if found is None:
            which = "last" if direction > 0 else "first"
            raise Refusal(f"the {which} of {format_count(hits.count)} hits")
        self._show_hit(found, hits)

    def _show_hit(self, hit: Hit, hits: Hits) -> None:
        index = self.trace.indexes[hit.source]
        identity = SliceId(hit.source, int(index.column("slices.ordinal")[hit.position]))
        thing = thing_by_id(self.trace, self.session.clocks, identity)
        if thing is None:
            raise Refusal("that slice is not in this trace")
        self.session = replace(self.session, cursor=thing.start)
        self.select(thing)
        self.say(f"hit {format_count(hit.rank)} of {format_count(hits.count)}")

    # -- titles ---------------------------------------------------------------------------------------------

    def move_by_titles(self, move: ByTitles, text: str) -> None:
        """Do what asks lanes for their titles; away from the screen where the expression may take long."""
        if text and lanes.lane_pattern(text).may_take_long:
            self.asks_titles = True
            self.say("looking at the titles: Esc stops")
            self._ask_titles(self.trace, move, text)
        else:
            self.go(move(self.trace, self.session, text, self.lane_lines))

    @background("titles")
    def _ask_titles(self, trace: Trace, move: ByTitles, text: str) -> None:
        worker = get_current_worker()
        trouble: TracelaneError | None = None
        try:
            ask_titles(trace, lanes.lane_pattern(text), lambda: worker.is_cancelled)
        except Cancelled:
            return
        except TracelaneError as error:
            trouble = error
        self.call_from_thread(self._titles_asked, move, text, trouble)

    def _titles_asked(self, move: ByTitles, text: str, trouble: TracelaneError | None) -> None:
        if not self.asks_titles:  # stopped while this was on its way
            return
        self.asks_titles = False
        self.say("")
        try:
            if trouble is not None:
                raise trouble
            self.go(move(self.trace, self.session, text, self.lane_lines))
        except (Refusal, TracelaneError) as refusal:
            self.say(str(refusal))

    def stop_titles(self) -> bool:
        """Stop asking lanes for their titles; tell whether that was going on."""
        if not self.asks_titles:
            return False
        self.asks_titles = False
        self.workers.cancel_group(self, "titles")
        self.say("stopped")
        return True

    # -- finding --------------------------------------------------------------------------------------------

    def search_again(self) -> None:
        """Find anew what the session searches for and filters by."""
        session = self.session
        self.looked_through = self.stopped_at = None
        if self.hits is not None and self.hits.filter.text != session.search:
            self.hits = None
        if self.left is not None and self.left.filter.text != session.filter:
            self.left = self.whole_left = None
        if session.search or session.filter:
            self.looked_through = 0.0
            self._search(session)
            if any(parse(text).may_take_long for text in (session.search, session.filter) if text):
                self.say("searching: Esc stops")
        else:
            self.workers.cancel_group(self, "search")
        self._show_found()

    @background("search")
    def _search(self, session: Session) -> None:
        """Search away from the screen."""
        worker = get_current_worker()
        window = session.viewport.start, session.viewport.end
        left: Hits | None = None
        parts = bool(session.filter) + bool(session.search)
        try:
            if session.filter:
                for found in self._searching(session.filter, session, window, worker):
                    left = found.hits
                    self._tell_found(worker, session, None, left, found.share / parts)
            if session.search:
                for found in self._searching(session.search, session, window, worker):
                    hits = found.hits if left is None else found.hits.within(left)
                    hit_cells(self.trace, hits, look_of(self.main.query_one(Minimap)).area)
                    self._tell_found(worker, session, hits, left, (found.share + parts - 1) / parts)
        except Cancelled:
            return
        except (TracelaneError, OSError) as error:
            if not worker.is_cancelled:
                self.call_from_thread(self._not_found, error)

    def _searching(
        self, text: str, session: Session, window: tuple[int, int], worker: Worker[None]
    ) -> Iterator[Found]:
        return find(self.trace, parse(text), session.clocks, window, lambda: worker.is_cancelled)

    def _tell_found(
        self, worker: Worker[None], session: Session, hits: Hits | None, left: Hits | None, share: float
    ) -> None:
        if worker.is_cancelled:
            raise Cancelled
        self.call_from_thread(self._have_found, session, hits, left, share)

    def _have_found(self, session: Session, hits: Hits | None, left: Hits | None, share: float) -> None:
        now = self.session
        if (session.search, session.filter, session.clocks) != (now.search, now.filter, now.clocks):
            return
        if self.looked_through is None:  # stopped while this was on its way
            return
        told = self.looked_through > 0
        self.hits, self.left = hits, left
        self.whole_left = left if hits is not None or share >= 1 else None
        self.looked_through = share if share < 1 else None
        self._show_found()
        if self.looked_through is None:
            self._say_found()
        elif not told:
            self.say("looking through the file: Esc stops")

    def _not_found(self, error: Exception) -> None:
        self.looked_through, self.stopped_at = None, 0.0
        self._show_found()
        self.say(f"not searched: {error}")

    def stop_search(self) -> bool:
        """Stop a search that is going on and keep what it has found; tell whether there was one."""
        if self.looked_through is None:
            return False
        self.workers.cancel_group(self, "search")
        self.stopped_at, self.looked_through = self.looked_through, None
        self._show_found()
        self.say("stopped: Esc again ends the search" if self.session.search else "stopped")
        return True

    def _say_found(self) -> None:
        hits, left = self.hits, self.left
        if hits is not None:
            some = f"{_slices(hits.count)} found, {format_ns(hits.total_ns)} together: n N walk them, z lists"
            some = some if hits.count else f"no slice matches {self.session.search}"
            self.say(f"{some} ({hits.remark})" if hits.remark else some)
        elif left is not None and not left.count:
            self.say(f"no slice matches {self.session.filter}: :filter alone shows all again")

    def _show_found(self) -> None:
        if self.composed:
            self.main.query_one(LaneCanvas).look_for(self.hits, self.left)
            self.main.query_one(Minimap).mark(self.hits)
            self.found_changed()

    def found_changed(self) -> None:
        """Bring up to date what tells of hits beside the timeline."""

    def search_notes(self) -> list[Text]:
        """Return what the header says of the search and of how much a filter hides."""
        notes = []
        session = self.session
        if session.filter:
            what = fit_middle(safe(session.filter), NOTE_CELLS, glyphs().ellipsis).rstrip()
            left = self.left
            count = (
                "…" if left is None else f"{format_count(left.of - left.count)} of {_slices(left.of)} hidden"
            )
            notes.append(Text(f"{what}: {count}{'' if session.search else self._progress}", "bold yellow"))
        if session.search:
            what = fit_middle(safe(session.search), NOTE_CELLS, glyphs().ellipsis).rstrip()
            hits = "…" if self.hits is None else format_count(self.hits.count)
            notes.append(Text(f"/{what}: {hits}{self._progress}", "bold"))
        return notes

    @property
    def _progress(self) -> str:
        if self.stopped_at is not None:
            return f" in {self.stopped_at:.0%}, stopped"
        return "" if not self.looked_through else f" in {self.looked_through:.0%}"


def _slices(count: int) -> str:
    return f"{format_count(count)} slice{'' if count == 1 else 's'}"
