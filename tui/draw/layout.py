"""Which lines the lane area has: processes, lanes, rows, folds; positions by prefix sums, lines on demand."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tracelane.core.base.units import count_of
from tracelane.core.index.format import LaneKind
from tracelane.core.trace import Lane, LaneRole, Process, Trace
from tracelane.core.trace.lane_order import host_threads, profilers_lanes, quiet_lanes

from ..session import LaneKey, RowKey, Session
from ..steps import pair_of
from .lane_choice import (
    FoldedFrames,
    folded_frames,
    is_left_out,
    is_outside,
    lanes_in_order,
    only_lanes,
    ordered,
    rows_at_work,
    rows_shown,
)
from .line import Half, Line, LineKind, alike, has_overlaps, holders, lane_key, process_key
from .ranks import (
    RANK_PARTS,
    Group,
    Halves,
    by_rank,
    has_map,
    map_halves,
    map_title,
    opens_folded,
    rank_heads,
)

if TYPE_CHECKING:
    from tracelane.core.query.hits import Hits

FOLD_LANES = 50
"""Processes of more lanes than this open folded to one line."""
PINNED_LINES = 12
"""Rows that pinned lanes may take above the others."""
MIN_SAYING = 3
"""Lane areas with fewer lines do not say what is below them."""
MIN_TITLED = 5
"""Lane areas with fewer lines do not keep the title of a process that has scrolled away."""
PINNED_FROM = 4
"""Lane areas with fewer lines show no pinned ones."""

DELTA = "Δ"
_BELOW_TITLES = (LineKind.ROW, LineKind.LANE, LineKind.QUIET)


class _Block(NamedTuple):
    """Consecutive lines that belong together; `lane` is the lane's number, -1 if none."""

    kind: LineKind
    height: int
    process: Process | None = None
    lane: int = -1
    folded: bool = False
    more: int = 0
    text: str = ""
    members: tuple[int, ...] = ()
    depths: Sequence[int] = ()  # of a lane's lines but "+n rows", ascending; twice of a row of two
    halves: Halves = ()  # the ranks of a line of the map
    frames: tuple[FoldedFrames, ...] = ()  # depths that one line stands for, which draws one of them

    def frames_at(self, depth: int) -> FoldedFrames | None:
        return next((frames for frames in self.frames if depth in frames.depths), None)


_ProcessLanes: TypeAlias = tuple[Process, list[int], list[int]]
"""A process, its lanes that are shown, and those that are quiet."""


class Layout:
    """The lines of a trace in a session. Making one is O(lanes); a line or a position is O(log lanes)."""

    def __init__(self, trace: Trace, session: Session, left: Hits | None = None) -> None:
        """Lay out the lanes, without rows that a filter empties; keeps nothing but block heights and sums."""
        self.trace = trace
        self.left = left
        self.made_for = _facts(session)
        self._blocks: list[_Block] = []
        self._heads: list[int] = []  # of each block: that of its process's title, -1 where there is none
        self._block_of_lane: dict[int, int] = {}
        self._lane_of_key: dict[LaneKey, int] | None = None
        self.empty_lanes = 0
        self.empty_processes = 0
        self.hidden_lanes = 0
        self.own_lanes = 0
        self.quiet_lanes = 0
        self.ranks_in_map = 0
        self._in_map: list[tuple[Process, list[int]]] | None = None
        """The ranks that share lines, each with its lanes; None where each has lines of its own."""
        if session.map_lines and left is None and not session.only and has_map(trace):
            self._in_map = []
        self._fill(session)
        self._tops = [0, *accumulate(block.height for block in self._blocks)]
        self.pinned: tuple[Line, ...] = self._pinned(session)

    @property
    def height(self) -> int:
        return self._tops[-1]

    def line(self, y: int) -> Line | None:
        """Return line `y` (0 = first), None beyond the last."""
        if not 0 <= y < self.height:
            return None
        number = bisect_right(self._tops, y) - 1
        return self._line(self._blocks[number], y - self._tops[number])

    def lines(self, top: int, count: int) -> list[Line]:
        """Return up to `count` lines from `top` on."""
        first, last = max(0, top), min(self.height, top + count)
        if first >= last:
            return []
        lines: list[Line] = []
        number = bisect_right(self._tops, first) - 1
        while first < last:
            block, block_top = self._blocks[number], self._tops[number]
            for offset in range(first - block_top, min(block.height, last - block_top)):
                lines.append(self._line(block, offset))
            number += 1
            first = self._tops[number]
        return lines

    def y_of(self, key: RowKey) -> int | None:
        """Return the line that shows a row, the nearest drawn one if it is folded away; None if hidden."""
        number = self.lane_number(key.lane)
        if number is None or number not in self._block_of_lane:
            return None
        number_of_block = self._block_of_lane[number]
        block = self._blocks[number_of_block]
        if block.lane < 0:
            return self._tops[number_of_block]
        frames = block.frames_at(key.depth)
        row = bisect_left(block.depths, key.depth if frames is None else frames.drawn)
        return self._tops[number_of_block] + min(row, block.height - 1)

    def lane_number(self, key: LaneKey) -> int | None:
        """Return the number of the lane that a key names, None if the trace has none."""
        if self._lane_of_key is None:
            self._lane_of_key = {lane_key(lane): number for number, lane in enumerate(self.trace.lanes)}
        return self._lane_of_key.get(key)

    def pinned_height(self, height: int) -> int:
        """Return how many lines of a lane area of this height the pinned lanes take, their rule included."""
        if not self.pinned or height < PINNED_FROM:
            return 0
        return min(len(self.pinned), height // 2)

    def scrolled(self, scroll: int, height: int) -> int:
        """Return the scroll position kept within the lines for a lane area of this height."""
        return max(0, min(scroll, self.height - (height - self.pinned_height(height))))

    def line_at(self, y: int, scroll: int, height: int) -> Line | None:
        """Return the line that a lane area of this height shows at its line `y`."""
        return self.visible(scroll, height)[y] if 0 <= y < height else None

    def visible(self, scroll: int, height: int) -> list[Line | None]:
        """Return the lines that a lane area of this height shows; None below the last.

        Where there are more, the last one says how many lanes; the title of a process that has scrolled
        away stays on the first one, and a row that has scrolled to the top has its lane's title.
        """
        above = self.pinned_height(height)
        lines: list[Line | None] = [*self.pinned[: above - 1], self.pinned[-1]] if above else []
        first = self.scrolled(scroll, height)
        lines.extend(self.lines(first, height - above))
        if (title := self.title_above(scroll, height)) is not None:
            lines[above] = title
            above += 1
        top = lines[above] if len(lines) > above else None
        if top is not None and top.lane is not None and not top.title:
            is_series = top.lane.kind == LaneKind.COUNTER  # then each row has a name of its own
            lines[above] = top if is_series else top._replace(title=top.lane.title)
        if self.says_more(scroll, height):
            room = height - self.pinned_height(height)
            lines[-1] = Line(LineKind.NOTE, self._below(first + room - 1))
        lines.extend([None] * (height - len(lines)))
        return lines

    def says_more(self, scroll: int, height: int) -> bool:
        room = height - self.pinned_height(height)
        return height >= MIN_SAYING and self.scrolled(scroll, height) + room < self.height

    def title_above(self, scroll: int, height: int) -> Line | None:
        """Return the title of the process that a lane area begins within: it takes the place of the first
        line. None where that line is a title itself, or the last of its process.
        """
        first, room = self.scrolled(scroll, height), height - self.pinned_height(height)
        if room < MIN_TITLED or first >= self.height:
            return None
        number = bisect_right(self._tops, first) - 1
        head = self._heads[number]
        is_last = first + 1 == self._tops[number + 1] and head not in self._heads[number + 1 : number + 2]
        is_title = head == number and first == self._tops[number]
        return None if head == -1 or is_title or is_last else self._line(self._blocks[head], 0)

    def _below(self, y: int) -> str:
        """Return what there is from a line on: lanes, or where it is one lane's, rows."""
        number = bisect_right(self._tops, y) - 1
        rest = self._blocks[number if y == self._tops[number] else number + 1 :]
        lanes = sum(max(1, len(block.members)) for block in rest if block.lane >= 0 or block.members)
        rows = sum(line.half is not Half.LOWER for line in self.lines(y, self.height - y)) if not lanes else 0
        text = count_of(lanes, "more lane") if lanes else count_of(max(1, rows), "more row")
        return f"{text} below"

    def thumb(self, scroll: int, height: int) -> range:
        """Return which lines of a lane area a scrollbar's thumb takes; none where all lines are seen."""
        above = self.pinned_height(height)
        room = height - above
        if self.height <= room or room < 2:
            return range(0)
        length = max(1, room * room // self.height)
        offset = self.scrolled(scroll, height) * (room - length) // (self.height - room)
        return range(above + offset, above + offset + length)

    # -- making ---------------------------------------------------------------------------------------------

    def _fill(self, session: Session) -> None:
        lanes = self.trace.lanes
        is_whole = session.show_quiet or session.only
        quiet = frozenset() if is_whole else quiet_lanes(self.trace)
        own = frozenset() if is_whole else profilers_lanes(self.trace)
        left = only_lanes(self.trace, session.only) if session.only else None
        pair = pair_of(self.trace)
        for rank, processes in self._groups():
            if rank is None:
                self._add_map(session)
            if pair is not None and rank is not None and rank.source == pair.first:
                self._add(_Block(LineKind.DELTA, 1, text=f"{DELTA} B - A"))
            if rank is not None and rank.source in self.trace.missing:
                if self._in_map is not None and rank.source in rank_heads(self.trace):
                    self._in_map.append((rank, []))
                else:
                    self._add(_Block(LineKind.MISSING, 1, rank))
                continue
            content: list[_ProcessLanes] = []
            for process in ordered(self.trace, processes, session):
                self.empty_lanes += process.empty
                if not len(process.lanes):
                    self.empty_processes += 1
                    continue
                if holders(self.trace, process) & session.hidden_processes:
                    self.hidden_lanes += len(process.lanes)
                    continue
                drawn: list[int] = []
                silent: list[int] = []
                for number in lanes_in_order(self.trace, process, session):
                    lane = lanes[number]
                    if number in own:
                        self.own_lanes += 1
                    elif (left is not None and number not in left) or self._is_hidden(number, lane, session):
                        self.hidden_lanes += 1
                    elif number in quiet:
                        silent.append(number)
                    else:
                        drawn.append(number)
                if drawn or silent:
                    content.append((process, drawn, silent))
            if rank is None or not content or not self._add_rank(rank, content, session):
                self._add_processes(content, session)
        self._add_map(session)
        self._add_note()

    def _groups(self) -> Iterator[Group]:
        """Yield ranks and their processes; where they share lines those that belong to no rank last."""
        groups = by_rank(self.trace)
        yield from groups if self._in_map is None else sorted(groups, key=lambda group: group[0] is None)

    def _add_map(self, session: Session) -> None:
        """Add the lines that folded ranks share, below those that are open."""
        if not self._in_map:
            return
        turn = {source: at for at, source in enumerate(session.rank_order)}
        lanes = {rank.source: numbers for rank, numbers in self._in_map}
        ranks = sorted((rank for rank, _ in self._in_map), key=lambda rank: turn.get(rank.source, len(turn)))
        self.ranks_in_map = len(ranks)
        for halves in map_halves(ranks, session.map_lines, session.map_lines if turn else 0):
            members = tuple(number for half in halves for rank in half for number in lanes[rank.source])
            self._block_of_lane.update(dict.fromkeys(members, len(self._blocks)))
            self._add(_Block(LineKind.RANKS, 1, halves[0][0], folded=True, members=members, halves=halves))
        self._in_map = []

    def _add_rank(self, rank: Process, content: Sequence[_ProcessLanes], session: Session) -> bool:
        key = process_key(rank)
        unasked = not session.only and key not in session.unfolded and opens_folded(self.trace)
        folded = key in session.folded or unasked
        members = [number for _, lanes, silent in content for number in (*lanes, *silent)]
        # What an accelerator does tells the ranks apart; their hosts are always busy.
        devices = [number for number in members if self.trace.lanes[number].role is LaneRole.DEVICE]
        if folded and self._in_map is not None:
            self._in_map.append((rank, [*devices, *(number for number in members if number not in devices)]))
            return True
        if folded:
            for number in members:
                self._block_of_lane[number] = len(self._blocks)
        text = f"{len(members):,} lanes" if folded and len(members) > 1 else ""
        is_split = folded and self.left is None and bool(devices)
        self._add(
            _Block(
                LineKind.PROCESS,
                session.rank_lines if is_split else 1,
                rank,
                folded=folded,
                text=text,
                members=tuple(devices or members) if folded else (),
            )
        )
        return folded

    def _add_processes(self, content: Sequence[_ProcessLanes], session: Session) -> None:
        lanes, pattern = self.trace.lanes, session.only or None
        for process, drawn, silent in content:
            key = process_key(process)
            folded = key in session.folded or (
                key not in session.unfolded
                and pattern is None
                and self._opens_folded(process, (*drawn, *silent), session)
            )
            count = len(drawn) + len(silent)
            header = _Block(
                LineKind.PROCESS, 1, process, folded=folded, members=tuple(drawn if folded else ())
            )
            self._add(header._replace(text=f"{count:,} lanes" if folded and count > 1 else ""))
            if folded:
                for number in (*drawn, *silent):
                    self._block_of_lane[number] = len(self._blocks) - 1
                continue
            for number in drawn:
                self._add_lane(number, lanes[number], process, session)
            if silent:
                self.quiet_lanes += len(silent)
                for number in silent:
                    self._block_of_lane[number] = len(self._blocks)
                self._add(_Block(LineKind.QUIET, 1, process, members=tuple(silent)))

    def _opens_folded(self, process: Process, lanes: Sequence[int], session: Session) -> bool:
        if process.aside or len(lanes) > FOLD_LANES:
            return True
        return not session.host_rows and not any(
            self.trace.lanes[number].role is LaneRole.DEVICE for number in lanes
        )

    def _is_hidden(self, number: int, lane: Lane, session: Session) -> bool:
        if session.hidden_lanes and lane_key(lane) in session.hidden_lanes:
            return True
        if session.hidden_alike and alike(lane.title) in session.hidden_alike:
            return True
        return is_left_out(self.trace, number, session) or (
            self.left is not None and bool(lane.slices) and not len(self._depths(lane))
        )

    def _add(self, block: _Block) -> None:
        below = self._heads[-1] if self._heads and block.kind in _BELOW_TITLES else -1
        self._heads.append(len(self._blocks) if block.kind is LineKind.PROCESS else below)
        self._blocks.append(block)

    def _add_lane(self, number: int, lane: Lane, process: Process, session: Session) -> None:
        rows = len(lane.rows)
        self._block_of_lane[number] = len(self._blocks)
        key = lane_key(lane)
        is_open = key in session.unfolded
        depths = self._depths(lane)
        outside = rows > 1 and is_outside(lane, self.trace) and not is_open
        if key in session.folded or outside:
            self._add(_Block(LineKind.LANE, 1, process, number, folded=True, depths=(0,)))
            return
        is_whole = is_open or self.left is not None
        frames = () if is_whole else folded_frames(self.trace, lane)
        if frames:
            away = {depth for one in frames for depth in one.depths if depth != one.drawn}
            depths = tuple(depth for depth in depths if depth not in away)
        most = len(depths) if is_open else rows_shown(lane, session, len(depths))
        more = max(0, len(depths) - most)
        drawn = self._twice_at_work(lane, depths[:most], session)
        height = max(1, len(drawn) + bool(more))
        depths = (*drawn, *depths[most:]) if more else drawn
        self._add(_Block(LineKind.ROW, height, process, number, more=more, depths=depths, frames=frames))

    def _twice_at_work(self, lane: Lane, depths: Sequence[int], session: Session) -> Sequence[int]:
        """Return depths, those twice in which a device works where its rows have two lines."""
        if session.device_lines == 1 or lane.role is not LaneRole.DEVICE:
            return depths
        at_work = rows_at_work(self.trace, lane.index)
        return [depth for depth in depths for _ in range(1 + at_work[depth])]

    def _depths(self, lane: Lane) -> Sequence[int]:
        if self.left is None or not self.left.covers(lane.source) or not lane.slices:
            return range(len(lane.rows))
        return self.left.depths(lane)

    def _add_note(self) -> None:
        parts = []
        if self.empty_lanes or self.empty_processes:
            what = [count_of(self.empty_lanes, "empty lane")] if self.empty_lanes else []
            if self.empty_processes:
                what.append(count_of(self.empty_processes, "empty process", "empty processes"))
            parts.append(" and ".join(what) + " not shown")
        if self.own_lanes:
            parts.append(count_of(self.own_lanes, "lane") + " of the profiler not shown")
        if self.hidden_lanes:
            parts.append(count_of(self.hidden_lanes, "lane") + " hidden")
        if parts:
            self._add(_Block(LineKind.NOTE, 1, text=" · ".join(parts)))

    def _line(self, block: _Block, offset: int) -> Line:
        if block.kind is LineKind.PROCESS and block.process is not None:
            title = block.process.title + (f" · {block.text}" if block.text else "")
            part = RANK_PARTS[offset] if block.height > 1 else ""
            return Line(
                block.kind, title, block.process, folded=block.folded, members=block.members, part=part
            )
        if block.kind is LineKind.RANKS:
            return Line(
                block.kind,
                map_title(self.trace, block.halves),
                block.process,
                folded=True,
                members=block.members,
                halves=block.halves,
            )
        if block.kind is LineKind.QUIET:
            of_host = block.process is not None and bool(host_threads(self.trace, block.process))
            text = count_of(len(block.members), "host thread" if of_host else "quiet thread")
            return Line(block.kind, text, block.process, folded=True, members=block.members)
        if block.lane < 0:
            return Line(block.kind, block.text, block.process)
        lane = self.trace.lanes[block.lane]
        if block.kind is LineKind.LANE:
            return Line(block.kind, lane.title, block.process, lane, 0, folded=True)
        if block.more and offset == block.height - 1:
            more = f"+{count_of(block.more, 'row')}"
            first = block.depths[offset]
            return Line(LineKind.MORE, more, block.process, lane, first, folded=True)
        depth = block.depths[offset] if block.depths else 0
        title = lane.title if offset == 0 else ""
        folded = block.frames_at(depth)
        frames = range(0) if folded is None else folded.depths
        overlap, half = has_overlaps(lane, depth), _half(block.depths, offset)
        return Line(
            LineKind.ROW, title, block.process, lane, depth, overlap=overlap, frames=frames, half=half
        )

    def _pinned(self, session: Session) -> tuple[Line, ...]:
        pinned: list[Line] = []
        for key in session.pinned:
            number = self.lane_number(key)
            if number is None:
                continue
            lane = self.trace.lanes[number]
            for depth in range(min(len(lane.rows), PINNED_LINES - len(pinned))):
                title = f"{lane.title} · {lane.process.title}" if depth == 0 else ""
                overlap = has_overlaps(lane, depth)
                pinned.append(
                    Line(LineKind.ROW, title, lane.process, lane, depth, overlap=overlap, pinned=True)
                )
        return (*pinned, Line(LineKind.RULE, "")) if pinned else ()


def _half(depths: Sequence[int], at: int) -> Half:
    """Return which lines of its row a line is; the other one is beside it."""
    if at + 1 < len(depths) and depths[at + 1] == depths[at]:
        return Half.UPPER
    return Half.LOWER if at and depths[at - 1] == depths[at] else Half.WHOLE


def layout_of(
    trace: Trace, session: Session, known: Layout | None = None, left: Hits | None = None
) -> Layout:
    """Return the layout of a trace in a session, of which a filter leaves some slices; `known` itself if it
    still holds.

    Moving, zooming, selecting and scrolling do not change a layout.
    """
    if left is not None and left.filter.text != session.filter:
        left = None
    if (
        known is not None
        and known.trace is trace
        and known.left is left
        and known.made_for == _facts(session)
    ):
        return known
    return Layout(trace, session, left)


def _facts(session: Session) -> tuple[object, ...]:
    return (
        session.folded,
        session.unfolded,
        session.pinned,
        session.hidden_lanes,
        session.hidden_processes,
        session.hidden_alike,
        session.only,
        session.show_quiet,
        session.host_rows,
        session.device_rows,
        session.device_lines,
        session.rank_lines,
        session.map_lines,
        session.rank_order,
        session.preset,
        session.devices_first,
    )
