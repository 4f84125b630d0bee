"""Searching and filtering: asked for in one language, found away from the screen, marked, walked, hidden."""

from __future__ import annotations

from dataclasses import replace

from rich.text import Text
from textual import work
from textual.worker import get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.base.ids import SliceId
from tracelane.core.base.units import format_count, format_ns
from tracelane.core.query.filter import parse, quoted
from tracelane.core.query.hits import Hit, Hits, matches
from tracelane.core.trace import Trace

from ..actions.refusal import Refusal
from ..config import Config
from ..draw.labels import fit_middle
from ..draw.overview import hit_cells
from ..lanes.canvas import LaneCanvas
from ..lanes.look import glyphs, look_of
from ..lanes.minimap import Minimap
from ..session import Session
from ..things import thing_by_id
from ..widgets.prompt import Prompt
from .base import Viewer

HINT = "nccl  'two words'  /regex/  cat:kernel  dur>1ms  lane:'stream 0'  arg.bytes>1e6  -word"
NOTE_CELLS = 24


class Searching(Viewer):
    """Commands that search and filter; what they found lasts until something else is asked for."""

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Hold what was found."""
        super().__init__(trace, session, config)
        self.hits: Hits | None = None  # of the session's search, None while it is not known
        self.left: Hits | None = None  # of the session's filter

    def do_search(self) -> None:
        """Ask what to search for."""
        self.main.query_one(Prompt).ask("search", "/", HINT)

    def search_for(self, text: str) -> None:
        """Search for what a text means; UsageError where it means nothing."""
        wanted = parse(text).text
        if wanted == self.session.search and self.hits is not None:
            self._say_found()
        self.go(replace(self.session, search=wanted))

    def filter_by(self, text: str) -> None:
        """Draw only what matches; all again where the text is empty."""
        self.go(replace(self.session, filter=parse(text).text if text else ""))

    def do_same_name(self) -> None:
        """Search for all slices of the selected one's name."""
        thing = self.selected
        if thing.slice is None:
            raise Refusal("only slices are searched for")
        self.search_for("name=" + quoted(self.trace.name(thing.row, thing.index)))

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
            raise Refusal("still searching")
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

    # -- finding --------------------------------------------------------------------------------------------

    def search_again(self) -> None:
        """Find anew what the session searches for and filters by."""
        session = self.session
        if not session.search:
            self.hits = None
        if not session.filter:
            self.left = None
        if session.search or session.filter:
            self._find(session)
        else:
            self.workers.cancel_group(self, "search")
        self._show_found()

    @work(thread=True, exclusive=True, group="search")
    def _find(self, session: Session) -> None:
        """Search away from the screen."""
        worker = get_current_worker()
        hits: list[Hits | None] = []
        try:
            for text in (session.filter, session.search):
                found = None
                if text:
                    found = matches(self.trace, parse(text), session.clocks, lambda: worker.is_cancelled)
                hits.append(found)
            left, hit = hits
            if hit is not None:
                hit = hit if left is None else hit.within(left)
                hit_cells(self.trace, hit, look_of(self.main.query_one(Minimap)).area)
        except Cancelled:
            return
        except (TracelaneError, OSError) as error:
            if not worker.is_cancelled:
                self.call_from_thread(self.say, f"not searched: {error}")
            return
        if not worker.is_cancelled:
            self.call_from_thread(self._have_found, session, hit, left)

    def _have_found(self, session: Session, hits: Hits | None, left: Hits | None) -> None:
        now = self.session
        if (session.search, session.filter, session.clocks) != (now.search, now.filter, now.clocks):
            return
        self.hits, self.left = hits, left
        self._show_found()
        self._say_found()

    def _say_found(self) -> None:
        hits, left = self.hits, self.left
        if hits is not None:
            some = f"{_slices(hits.count)} found, {format_ns(hits.total_ns)} together: n N walk them"
            self.say(some if hits.count else f"no slice matches {self.session.search}")
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
            what = fit_middle(session.filter, NOTE_CELLS, glyphs().ellipsis).rstrip()
            left = self.left
            count = (
                "…" if left is None else f"{format_count(left.of - left.count)} of {_slices(left.of)} hidden"
            )
            notes.append(Text(f"{what}: {count}", "bold yellow"))
        if session.search:
            what = fit_middle(session.search, NOTE_CELLS, glyphs().ellipsis).rstrip()
            hits = "…" if self.hits is None else format_count(self.hits.count)
            notes.append(Text(f"/{what}: {hits}", "bold"))
        return notes


def _slices(count: int) -> str:
    return f"{format_count(count)} slice{'' if count == 1 else 's'}"
