"""Searching and filtering: both use one language, run in the background, and mark, walk or hide slices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from textual.timer import Timer

from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.base.progress import CancelledCallback
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_count, format_ns
from tracelane.core.query.filter import parse
from tracelane.core.query.hits import Hit, Hits
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace
from tracelane.core.trace.hit_search import find

from ..actions import lanes, select, view
from ..actions.scene import Refusal
from ..draw.glyphs import fit_middle
from ..draw.header import WARNING, HeaderPiece
from ..draw.lane_choice import ask_titles
from ..draw.layout import layout_of
from ..draw.overview import hit_cells, overview_of
from ..draw.things import thing_by_id
from ..lanes.canvas import LaneCanvas
from ..lanes.look import glyphs, look_of
from ..lanes.strips import Minimap
from ..session import Session
from ..session_store import SearchState
from ..stage import Controller, Stage, does, hears
from ..widgets.prompt import Prompt

HINT = "nccl  'two words'  /regex/  cat:kernel  dur>1ms  lane:'stream 0'  arg.bytes>1e6  -word"
FIELDS = ("name=", "cat:", "lane:", "dur>", "self>", "arg.")
NOTE_CELLS = 24
TYPING_S = 0.15
"""Seconds without a key after which the typed text is searched for."""
CONTEXT = 8
"""A hit narrower than a cell is zoomed to so that it takes one part in so many of the view."""


ByTitles: TypeAlias = Callable[[Trace, Session, str, int], Session]
"""A move for lanes whose titles match a text, given the lines there are for lanes."""


class SearchController(Controller):
    """Commands that search and filter; what they found lasts until something else is asked for."""

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        self.asks_titles = False  # whether an expression is being looked for in the titles of lanes
        self._before: Session | None = None  # what was seen before a line was opened
        self._typing: Timer | None = None
        self._shows_first = False  # whether the first hit is to be brought into view
        self._waiting_walk: tuple[int, Session] | None = None  # by how many hits to go once they are known

    @does("search")
    def do_search(self) -> None:
        """Ask what to search for; what is typed is searched for at once."""
        self._before = self.store.session
        categories = [f"cat:{name}" for name in self.store.trace.drawn_categories if name and " " not in name]
        self.app.main.query_one(Prompt).ask("search", "/", HINT, [*FIELDS, *categories])

    @hears(Prompt.Typed, "search")
    def typed(self, message: Prompt.Typed) -> None:
        """Search for what stands in the line, once the keys are at rest."""
        if self._typing is not None:
            self._typing.stop()
        self._typing = self.app.set_timer(TYPING_S, partial(self._preview, message.text))

    def _preview(self, text: str) -> None:
        """Show what would be found, without a place in the history."""
        if self._before is None or not self.app.composed:
            return
        try:
            query = parse(text).text if text else ""
        except TracelaneError:
            return  # half a term: it is not typed to its end
        if query != self.store.session.search:
            self._shows_first = bool(query)
            # What the letters before led to stays until it is known where these lead: all is drawn once.
            self.store.show((self.store.session if query else self._before)._replace(search=query))

    @hears(Prompt.Left)
    def give_up(self, _: Prompt.Left | None = None) -> None:
        """Go back to what was seen before the line was opened."""
        before, self._before = self._before, None
        if self._typing is not None:
            self._typing.stop()
        if before is not None and self.store.session != before:
            self._shows_first = False
            self.store.show(before)

    @does("search", typed=True)
    def search_for(self, text: str) -> None:
        """Search for what a text means; UsageError where it means nothing."""
        try:
            search = parse(text).text
        except TracelaneError:
            self.give_up()  # what was typed before it meant nothing may be searched for already
            raise
        before, self._before = self._before, None
        if self._typing is not None:
            self._typing.stop()
        if before is not None and search == self.store.session.search:
            # It was found while it was typed: only the place in the history is missing.
            self.store.go(self.store.session, before=before)
            if self._state.hits is not None:
                self._show_first(self._state.hits)
            self._say_found()
            return
        self._shows_first = True
        if search == self.store.session.search and self._state.stopped_at is not None:
            self.search_again()
        elif search == self.store.session.search and self._state.hits is not None:
            self._say_found()
        self.store.go(self.store.session._replace(search=search))

    @does("filter", typed=True)
    def filter_by(self, text: str) -> None:
        self.store.go(self.store.session._replace(filter=parse(text).text if text else ""))

    @does("next-hit", 1)
    @does("previous-hit", -1)
    def _walk_hits(self, direction: int) -> None:
        if not self.store.session.search:
            raise Refusal("no search yet: {search} starts one")
        hits = self._state.hits
        if hits is None:
            if self._state.stopped_at is not None:
                raise Refusal("stopped before anything was found")
            self._waiting_walk = direction, self.store.session
            self.app.say("still searching")
            return
        if not hits.count:
            raise Refusal(f"no slice matches {self.store.session.search}")
        onward, back = (hits.next, hits.previous) if direction > 0 else (hits.previous, hits.next)
        identity = self.store.session.selection
        thing = self.store.scene.selected
        if thing is not None and isinstance(identity, SliceId):
            position = self.store.trace.position(thing.row, thing.index)
            origin: tuple[int, ...] = thing.start, identity.source, position
        else:
            origin = (self.store.session.cursor,)
        hit = onward(*origin)
        if hit is None:
            which, end = ("last", hits.count) if direction > 0 else ("first", 1)
            hit = back(*origin)
            if hit is None or hit.rank != end:  # else beyond the last: no hit is selected, and there is one
                many = f"the {which} of {format_count(hits.count)} hits"
                raise Refusal(many if hits.count > 1 else "the only hit")
        self._show_hit(hit, hits)

    def _show_hit(self, hit: Hit, hits: Hits) -> None:
        identity = self.store.trace.slice_id_of(hit.source, hit.position)
        thing = thing_by_id(self.store.trace, self.store.session.clocks, identity)
        if thing is None:
            raise Refusal("that slice is not in this trace")
        session = self.store.session._replace(cursor=thing.start, panel="details")
        length = thing.end - thing.start
        if length * session.viewport.width < session.viewport.span:  # under a cell: too small to be seen
            margin = max(1, length) * (CONTEXT - 1) // 2
            session = view.zoomed_to(self.store.trace, session, thing.start - margin, thing.end + margin)
        self.store.show(session._replace(cursor=thing.start))
        self.store.select(thing)
        name = safe(self.store.trace.label(thing.row, thing.index))
        self.app.say(
            f"hit {format_count(hit.rank)} of {format_count(hits.count)}: {name}, {format_ns(length)}, "
            f"{safe(thing.lane.title)}"
        )

    def _show_first(self, hits: Hits) -> None:
        """Bring the first hit of the view, else the first after it, else the first of all, into view; nothing
        unfolds while the search is typed.
        """
        trace, session = self.store.trace, self.store.session
        if self._before is not None:
            session = self._before._replace(search=session.search)
        hit = hits.next(session.viewport.start) or hits.next(trace.span_at(session.clocks)[0])
        thing = None
        if hit is not None:
            thing = thing_by_id(trace, session.clocks, trace.slice_id_of(hit.source, hit.position))
        if thing is None:
            self.store.show(session)
            return
        if not session.viewport.start <= thing.start < session.viewport.end:
            session = view.go_to(trace, session, thing.start)
        if self._before is None:
            session = select.unhidden(trace, session, thing)
        session = session._replace(focus=thing.key)
        layout = layout_of(trace, session, self.store.layout_now)
        self.store.show(view.in_view(session, layout, self.store.now.lane_lines))

    # -- titles ---------------------------------------------------------------------------------------------

    @does("only", lanes.only, typed=True)
    @does("hide", lanes.hide_matching, typed=True)
    def move_by_titles(self, move: ByTitles, text: str) -> None:
        """Do what asks lanes for their titles; away from the screen where the expression may take long."""
        if text and lanes.lane_pattern(text).may_take_long:
            self.asks_titles = True
            self.app.say("looking at the titles: {close} stops")
            trace, pattern = self.store.trace, lanes.lane_pattern(text)

            def ask(cancelled: CancelledCallback) -> None:
                ask_titles(trace, pattern, cancelled)

            have = partial(self._titles_asked, move, text)
            self.app.jobs.ask("titles", ask, have, have)
        else:
            self.store.go(move(self.store.trace, self.store.session, text, self.store.now.lane_lines))

    def _titles_asked(self, move: ByTitles, text: str, trouble: Exception | None) -> None:
        if not self.asks_titles:  # stopped while this was on its way
            return
        self.asks_titles = False
        self.app.say("")
        try:
            if trouble is not None:
                raise trouble
            self.store.go(move(self.store.trace, self.store.session, text, self.store.now.lane_lines))
        except (Refusal, TracelaneError) as refusal:
            self.app.say(str(refusal))

    def stop_titles(self) -> None:
        self.asks_titles = False
        self.app.jobs.cancel("titles")
        self.app.say("stopped")

    # -- finding --------------------------------------------------------------------------------------------

    def search_again(self) -> None:
        session, state = self.store.session, self._state
        if state.hits is not None and state.hits.filter.text != session.search:
            state = state._replace(hits=None)
        if state.left is not None and state.left.filter.text != session.filter:
            state = state._replace(left=None, whole_left=None)
        begun = 0.0 if session.search or session.filter else None
        self._know(state._replace(looked_through=begun, stopped_at=None))
        if begun is not None:
            search = partial(self._search, self.store.trace, session)
            self.app.jobs.ask("search", search, lambda _: None, self._not_found)
            if any(parse(text).may_take_long for text in (session.search, session.filter) if text):
                self.app.say("searching: {close} stops")
        else:
            self.app.jobs.cancel("search")

    @property
    def _state(self) -> SearchState:
        return self.store.now.search

    def _know(self, state: SearchState) -> None:
        self.store.dispatch(replace(self.store.now, search=state))

    def _search(self, trace: Trace, session: Session, cancelled: CancelledCallback) -> None:
        """Search away from the screen: first what the filter leaves, then in that."""
        window = session.viewport.start, session.viewport.end
        texts = [text for text in (session.filter, session.search) if text]
        left: Hits | None = None
        for number, text in enumerate(texts):
            is_filter = number == 0 and bool(session.filter)
            for progress in find(trace, parse(text), session.clocks, window, cancelled):
                hits: Hits | None = None
                if is_filter:
                    left = progress.hits
                else:
                    hits = progress.hits if left is None else progress.hits.within(left)
                    width = look_of(self.app.main.query_one(Minimap)).area
                    hit_cells(hits, overview_of(trace, session, width).edges)
                    _ = hits.summed  # counted here, not while keys wait
                if cancelled():
                    raise Cancelled
                share = (progress.share + number) / len(texts)
                self.app.tell(self._have_found, session, hits, left, share)

    def _have_found(self, session: Session, hits: Hits | None, left: Hits | None, share: float) -> None:
        now = self.store.session
        if (session.search, session.filter, session.clocks) != (now.search, now.filter, now.clocks):
            return
        if self._state.looked_through is None:  # stopped while this was on its way
            return
        has_said = self._state.looked_through > 0
        whole = left if hits is not None or share >= 1 else None
        self._know(SearchState(hits, left, whole, share if share < 1 else None))
        if share >= 1:
            waiting, self._waiting_walk = self._waiting_walk, None
            if waiting is not None and waiting[1] == now and hits is not None and hits.count:
                self._shows_first = False
                self.app.attempt(partial(self._walk_hits, waiting[0]))
                return
            if self._shows_first and hits is not None:
                self._shows_first = False
                self._show_first(hits)
            self._say_found()
        elif not has_said:
            self.app.say("looking through the file: {close} stops")

    def _not_found(self, error: Exception) -> None:
        self._know(self._state._replace(looked_through=None, stopped_at=0.0))
        self.app.say(f"not searched: {error}")

    def stop_search(self) -> None:
        """Stop the search that is going on and keep what it has found."""
        self.app.jobs.cancel("search")
        self._know(self._state._replace(looked_through=None, stopped_at=self._state.looked_through))
        self.app.say("stopped: {close} again ends the search" if self.store.session.search else "stopped")

    def _say_found(self) -> None:
        hits, left = self._state.hits, self._state.left
        if hits is not None:
            walk = "{next-hit} {previous-hit} walk, {hits} lists"
            some = f"{hits.summed}: {walk}" if hits.count else f"no slice matches {self.store.session.search}"
            self.app.say(f"{some} ({hits.remark})" if hits.remark else some)
        elif left is not None and not left.count:
            self.app.say(f"no slice matches {self.store.session.filter}: {{filter}} alone shows all again")

    def show_hits(self) -> None:
        """Mark the hits in the lanes and in the overview of them."""
        state = self._state
        is_typed = self._before is not None and state.looked_through == 0.0
        if not is_typed or state.hits is not None:  # else the hits before stay until others are known
            self.app.main.query_one(LaneCanvas).look_for(state.hits, state.left)
            self.app.main.query_one(Minimap).mark(state.hits)

    def header_notes(self) -> list[HeaderPiece]:
        """Return what the header says of the search and of how much a filter hides."""
        notes = []
        session = self.store.session
        if session.filter:
            what = fit_middle(safe(session.filter), NOTE_CELLS, glyphs().ellipsis).rstrip()
            left = self._state.left
            count = "…"
            if left is not None:
                count = f"{format_count(left.of - left.count)} of {count_of(left.of, 'slice')} hidden"
            notes.append(HeaderPiece(f"{what}: {count}{'' if session.search else self._progress}", WARNING))
        if session.search:
            what = fit_middle(safe(session.search), NOTE_CELLS, glyphs().ellipsis).rstrip()
            hits = "…" if self._state.hits is None else format_count(self._state.hits.count)
            notes.append(HeaderPiece(f"/{what}: {hits}{self._progress}", "bold"))
        return notes

    @property
    def _progress(self) -> str:
        if self._state.stopped_at is not None:
            return f" in {self._state.stopped_at:.0%}, stopped"
        return "" if not self._state.looked_through else f" in {self._state.looked_through:.0%}"
