"""Moves of lanes: fold, expand, pin, hide, show again, those that are computed too; what colours tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tracelane.core.base.errors import UsageError
from tracelane.core.base.pattern import Pattern
from tracelane.core.logs.counters import MEMORY, QUEUE, WithCounters
from tracelane.core.query.args import promoted_argument
from tracelane.core.query.views import names_rank
from tracelane.core.trace import Lane, Trace

from ..draw.colour import BY_ARGUMENT
from ..draw.glyphs import fit_middle
from ..draw.lane_choice import PRESETS, PYTHON, only_lanes, preset_of, toggle_fold
from ..draw.layout import Layout, layout_of
from ..draw.line import Line, LineKind, alike, lane_key, process_key
from ..draw.ranks import has_map, rank_heads
from ..session import LaneKey, RowKey, Session
from .scene import Refusal, Scene
from .select import first_row
from .view import focus_line, focusable, in_view

WITHOUT_FRAMES = f"-cat:{PYTHON}"
"""The filter that leaves everything but Python frames."""


class HiddenThing(NamedTuple):
    """A line of the list of what is hidden: what it is called, and what of the session hides it."""

    title: str
    lanes: int
    kind: str  # lane, process, alike, only
    key: LaneKey | tuple[int, str] | str


def _focused_line(scene: Scene) -> tuple[Session, Line]:
    """Return the session with a focused row, on which keys act, the first in view without one, and its line;
    Refusal if there is none or it is out of sight.
    """
    session = scene.session
    if focus_line(scene.layout, session) is None:
        session = session._replace(focus=first_row(scene))
    y = focus_line(scene.layout, session)
    line = None if y is None else scene.layout.line(y)
    if line is None:
        raise Refusal("there are no lanes")
    return session, line


def fold(scene: Scene) -> Session:
    """Fold or open what the focused line stands for; a folded lane's process folds next."""
    session, line = _focused_line(scene)
    return line_folded(scene.trace, session, line.of_latest(scene.latest_ranks), scene.height)


def sort_ranks(scene: Scene) -> Session:
    """Order many ranks by how long the others wait for them, the latest first; or by their numbers again."""
    session = scene.session
    if session.rank_order:
        return session._replace(rank_order=(), scroll=0)
    if not has_map(scene.trace):
        raise Refusal("there are too few ranks to sort: the overview has them, latest first")
    if not scene.latest_ranks:
        raise Refusal("no rank is known to keep the others waiting")
    return session._replace(rank_order=tuple(scene.latest_ranks), scroll=0)


def line_folded(trace: Trace, session: Session, line: Line, height: int) -> Session:
    """Fold or open what a line stands for; the focus stays on a visible row."""
    return _in_sight(trace, toggle_fold(session, line, trace), height)


def expand(scene: Scene) -> Session:
    """Open the focused lane to its full depth, or back to the usual one."""
    session, line = _focused_line(scene)
    key = line.fold_key
    if line.kind is LineKind.QUIET:
        changed = session._replace(show_quiet=True)
    elif key is None:
        raise Refusal("nothing to expand here")
    elif key in session.unfolded:
        changed = session._replace(unfolded=session.unfolded - {key})
    else:
        changed = session._replace(folded=session.folded - {key}, unfolded=session.unfolded | {key})
        layout = scene.layout
        if not line.folded and _lines(layout_of(scene.trace, changed, layout)) == _lines(layout):
            raise Refusal("all of it is to be seen already")
    return _in_sight(scene.trace, changed, scene.height)


def _lines(layout: Layout) -> list[Line | None]:
    return [*layout.pinned, *map(layout.line, range(layout.height))]


def lane_change_text(command_id: str, scene: Scene, now: Session) -> str:
    """Return a text that says what a command did to the focused lane and how to undo it, "" for other
    commands.
    """
    before = scene.session
    opened = len(now.folded) < len(before.folded) or len(now.unfolded) > len(before.unfolded)
    changes = {
        "fold": "is open" if opened else "is folded",
        "fold-process": "is open" if opened else "is folded",
        "expand": "is open to its full depth" if opened else "is as deep as before",
        "pin": "is released" if len(now.pinned) < len(before.pinned) else "stays at the top",
        "hide": "is hidden",
        "hide-alike": "and lanes like it are hidden",
    }
    if command_id not in changes or before == now:
        return ""
    _, line = _focused_line(scene)
    line = line.of_latest(scene.latest_ranks)
    is_process = command_id == "fold-process" or line.kind is LineKind.RANKS
    what = line.process if is_process and line.process is not None else line.lane or line
    return f"{fit_middle(what.title, 50).rstrip()} {changes[command_id]}: {{back}} undoes it"


def fold_process(scene: Scene) -> Session:
    session, line = _focused_line(scene)
    if line.process is None:
        raise Refusal("no process is focused")
    is_folded = line.kind is LineKind.PROCESS and line.folded
    title = line._replace(kind=LineKind.PROCESS, lane=None, folded=is_folded)
    return line_folded(scene.trace, session, title, scene.height)


def pin(scene: Scene) -> Session:
    """Pin the focused lane, or release it."""
    session, line = _focused_line(scene)
    key = lane_key(_one_lane(line))
    pinned = tuple(other for other in session.pinned if other != key)
    if pinned == session.pinned:
        pinned = (*pinned, key)
    return _in_sight(scene.trace, session._replace(pinned=pinned), scene.height)


def next_preset(trace: Trace, session: Session) -> Session:
    """Go to the next preset that shows other lanes than the current one."""
    names = list(PRESETS)
    at = names.index(preset_of(session))
    before = _order(trace, session)
    for name in (*names[at + 1 :], *names[:at]):
        changed = session._replace(preset=name, scroll=0)
        if (order := _order(trace, changed)) and order != before:
            return changed
    raise Refusal("there are no lanes to choose from")


def _order(trace: Trace, session: Session) -> list[Line | None]:
    layout = Layout(trace, session._replace(folded=frozenset(), only=""))
    return [
        line for line in map(layout.line, range(layout.height)) if line and line.kind is not LineKind.NOTE
    ]


def toggle_frames(trace: Trace, session: Session) -> Session:
    """Filter Python frames out, or show them again."""
    terms = session.filter.split()
    if WITHOUT_FRAMES in terms:
        terms.remove(WITHOUT_FRAMES)
    elif not any(PYTHON in trace.categories(source) for source in range(trace.source_count)):
        raise Refusal("there are no Python frames in this trace")
    else:
        terms.append(WITHOUT_FRAMES)
    return session._replace(filter=" ".join(terms))


def hide(scene: Scene) -> Session:
    """Hide the focused lane; on a folded process or quiet threads, all of them."""
    session, line = _focused_line(scene)
    if line.lane is not None:
        hidden = session._replace(hidden_lanes=session.hidden_lanes | {lane_key(line.lane)})
    elif line.kind is LineKind.QUIET:
        keys = {lane_key(scene.trace.lanes[number]) for number in line.members}
        hidden = session._replace(hidden_lanes=session.hidden_lanes | keys)
    elif line.kind is LineKind.RANKS:
        keys_of_ranks = {process_key(rank) for rank in line.ranks}
        hidden = session._replace(hidden_processes=session.hidden_processes | keys_of_ranks)
    elif line.process is not None:
        hidden = session._replace(hidden_processes=session.hidden_processes | {process_key(line.process)})
    else:
        raise Refusal("nothing to hide here")
    hidden = hidden._replace(focus=_neighbour(scene.layout, session), selection=None)
    return _in_sight(scene.trace, hidden, scene.height)


def hide_alike(scene: Scene) -> Session:
    """Hide all lanes whose title is that of the focused one, digits aside."""
    session, line = _focused_line(scene)
    name = alike(_one_lane(line).title)
    after = _neighbour(scene.layout, session, unlike=name)
    hidden = session._replace(hidden_alike=(*session.hidden_alike, name), focus=after, selection=None)
    return _in_sight(scene.trace, hidden, scene.height)


def lane_pattern(text: str) -> Pattern:
    """Return the pattern for titles of lanes; UsageError where it is no regular expression."""
    pattern = Pattern(text, ignore_case=True)
    pattern.check(repr(text))
    return pattern


def only(trace: Trace, session: Session, pattern: str, height: int) -> Session:
    """Show only lanes whose own, process's or rank's title matches; an empty pattern shows all again."""
    if pattern:
        lane_pattern(pattern)
        if not only_lanes(trace, pattern):
            raise Refusal(f"no lane matches {pattern}")
    return _in_sight(trace, session._replace(only=pattern, scroll=0), height)


def hide_matching(trace: Trace, session: Session, pattern: str, height: int) -> Session:
    """Hide the lanes whose title matches, and the ranks whose title does."""
    titles = lane_pattern(pattern)
    hits = titles.matches_in([lane.title for lane in trace.lanes])
    keys = {lane_key(lane) for lane, hit in zip(trace.lanes, hits) if hit}
    heads = rank_heads(trace).values()
    ranks = {process_key(head) for head in heads if names_rank(titles, head.title)}
    if not keys and not ranks:
        raise Refusal(f"no lane matches {pattern}")
    if len(keys) == len(trace.lanes) or (ranks and len(ranks) == len(heads)):
        raise Refusal("that would hide every lane")
    hidden = session._replace(
        hidden_lanes=session.hidden_lanes | keys, hidden_processes=session.hidden_processes | ranks
    )
    return _in_sight(trace, hidden, height)


def show_all(trace: Trace, session: Session, height: int) -> Session:
    """Show everything that was hidden."""
    everything = session._replace(
        hidden_lanes=frozenset(),
        hidden_processes=frozenset(),
        hidden_alike=(),
        only="",
        show_quiet=True,
    )
    return _in_sight(trace, everything, height)


def hidden_things(trace: Trace, session: Session) -> list[HiddenThing]:
    """Return what is hidden and by what, in display order."""
    things: list[HiddenThing] = []
    if session.only:
        things.append(HiddenThing(f"everything but {session.only}", 0, "only", session.only))
    for process in trace.processes:
        key = process_key(process)
        if key in session.hidden_processes:
            things.append(HiddenThing(process.title, len(process.lanes), "process", key))
    for source, rank in rank_heads(trace).items():
        key = process_key(rank)
        if key in session.hidden_processes:
            count = sum(len(process.lanes) for process in trace.processes if process.source == source)
            things.append(HiddenThing(rank.title, count, "process", key))
    for name in session.hidden_alike:
        count = sum(alike(lane.title) == name for lane in trace.lanes)
        things.append(HiddenThing(name, count, "alike", name))
    if session.hidden_lanes:
        for lane in trace.lanes:
            if lane_key(lane) in session.hidden_lanes:
                title = f"{lane.title} · {lane.process.title}"
                things.append(HiddenThing(title, 1, "lane", lane_key(lane)))
    return things


def shown_again(trace: Trace, session: Session, things: Sequence[HiddenThing], height: int) -> Session:
    for thing in things:
        if thing.kind == "only":
            session = session._replace(only="")
        elif isinstance(thing.key, LaneKey):
            session = session._replace(hidden_lanes=session.hidden_lanes - {thing.key})
        elif isinstance(thing.key, tuple):
            session = session._replace(hidden_processes=session.hidden_processes - {thing.key})
        else:
            left = tuple(name for name in session.hidden_alike if name != thing.key)
            session = session._replace(hidden_alike=left)
    return _in_sight(trace, session, height)


def _one_lane(line: Line) -> Lane:
    if line.lane is None:
        raise Refusal("this line is several lanes: {fold} opens it")
    return line.lane


def _neighbour(layout: Layout, session: Session, unlike: str = "") -> RowKey | None:
    """Return the nearest row below the focused one, else above it, in a lane not called `unlike`."""
    y = focus_line(layout, session)
    if y is None or session.focus is None:
        return None
    own = layout.line(y)
    own_lane = None if own is None else own.lane
    for direction in (1, -1):
        at = y + direction
        while (line := layout.line(at)) is not None:
            key, lane = focusable(line, layout), line.lane
            goes = lane is not None and (lane == own_lane or (unlike and alike(lane.title) == unlike))
            if key is not None and not goes:
                return key
            at += direction
    return None


def _in_sight(trace: Trace, session: Session, height: int) -> Session:
    """Return the session scrolled so that its focus is visible in the new layout."""
    layout = Layout(trace, session)
    scroll = layout.scrolled(session.scroll, height)
    if scroll != session.scroll:
        session = session._replace(scroll=scroll)
    return in_view(session, layout, height)


USUAL = "category"
MAX_SLICES = 500_000
"""Beyond so many slices reading an argument of all that is in sight takes too long for a picture."""


def colouring(trace: Trace, text: str) -> str:
    """Return what a text asks colours to tell: category, name or arg:KEY; UsageError for anything else."""
    meaning = text.removeprefix("by ").strip() or USUAL
    if meaning in (USUAL, "name"):
        return meaning
    key = meaning.removeprefix(BY_ARGUMENT)
    if not meaning.startswith(BY_ARGUMENT) or not key:
        raise UsageError(f"colours can be by category, name or arg:KEY, not {meaning!r}")
    if promoted_argument(key) is None and sum(lane.slices for lane in trace.lanes) > MAX_SLICES:
        raise UsageError(f"{key} is only in the file, and the trace is too large to read it for colours")
    return meaning


NO_LANES = {
    MEMORY: "Nothing to add: no [memory] records (profile_memory=True), or the file's counters have them",
    QUEUE: "The trace links no device work to a launch",
}


def computed_lanes(trace: Trace, kind: str) -> list[LaneKey]:
    base = trace.below_logs
    if not isinstance(base, WithCounters):
        return []
    return [
        lane_key(lane)
        for process in trace.processes
        if process.source == base.counter_source
        for lane in trace.lanes[process.lanes.start : process.lanes.stop]
        if base.computed.counters[lane.number].kind == kind
    ]


def toggle_computed_lanes(trace: Trace, session: Session, kind: str) -> Session:
    """Hide the computed lanes of a kind, or show them where they are hidden."""
    lanes = frozenset(computed_lanes(trace, kind))
    hidden = session.hidden_lanes
    processes = {(lane.source, lane.pid) for lane in lanes}
    if lanes <= hidden or processes & session.hidden_processes:
        left = session.hidden_processes - processes
        return session._replace(hidden_lanes=hidden - lanes, hidden_processes=left)
    return session._replace(hidden_lanes=hidden | lanes)
