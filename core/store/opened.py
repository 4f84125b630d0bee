"""A store opened: its ranks as their summaries have them, aligned by their collectives and compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.arrays import I64
from ..base.errors import UnreadableError
from ..index.captures import ranks_text
from ..tables.peers.messages import Message, MessagesOf
from ..tables.peers.skew import Skew, notes_on_ranks, skew_of
from ..tables.ranks.rank_groups import MAX_RANKS, ProcessGroup, RankOrigin
from ..trace.alignment import NONE, Alignment, RankClock, aligned, wall_distances
from ..trace.collectives import DEVICE, Collectives, Matched, match, no_collectives
from ..trace.step_choice import Steps
from .groups import MAX_TIME, NOTHING, Columns, Shelf, joined_rows, read_shelf
from .location import (
    RecordName,
    StoreLocation,
    groups_in,
    read_store_manifest,
    records_in,
)

if TYPE_CHECKING:
    from ..tables.ranks.ranks import RankDevices, Ranks

MAX_NAMED = 8
"""Unreadable ranks that a note names one by one."""


class StoredRank(NamedTuple):
    """One rank of a store; its columns are read when they are asked for."""

    record: RecordName
    shelf: Shelf
    member: int  # its number on the shelf
    facts: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its trace's name, relative to where the traces lie."""
        return str(self.facts.get("name", ""))

    @property
    def rank(self) -> int | None:
        """Its rank, None where its trace does not tell one."""
        return self.record.rank

    @property
    def host(self) -> str:
        """The host it ran on, "" where that is not known."""
        return str(self.facts.get("host") or "")

    @property
    def title(self) -> str:
        return self.name if self.rank is None else f"rank {self.rank}"

    @property
    def unreadable(self) -> str:
        """Why its trace could not be read, "" where it was."""
        return str(self.facts.get("unreadable", ""))

    def number(self, key: str) -> int | None:
        """Return a fact that is a whole number, None where it is none."""
        value = self.facts.get(key)
        return value if type(value) is int and abs(value) < MAX_TIME else None

    @property
    def span(self) -> tuple[int, int]:
        """The time that its device line shows, lane time."""
        span = self.facts.get("span")
        if isinstance(span, list) and len(span) == 2 and all(type(each) is int for each in span):
            start, end = span
            if -MAX_TIME < start <= end < MAX_TIME:
                return start, end
        return 0, 0

    def table(self, name: str) -> Columns:
        """Return its rows of a table. Raises DamagedStoreError."""
        return self.shelf.table(name, self.member)

    @property
    def findings(self) -> Any:
        """Its findings, as JSON has them. Raises DamagedStoreError."""
        return self.shelf.text("findings", self.member)

    @property
    def origin(self) -> RankOrigin:
        groups = self.facts.get("groups")
        sound = (_process_group(group) for group in (groups if isinstance(groups, list) else []))
        known = tuple(group for group in sound if group is not None)
        return RankOrigin(self.rank or 0, self.host, str(self.facts.get("place", "")), known)

    @property
    def devices(self) -> RankDevices:
        from ..tables.ranks.ranks import RankDevices

        sums = self.facts.get("devices")
        known = {
            key: value
            for key, value in (sums.items() if isinstance(sums, dict) else ())
            if key in RankDevices.__dataclass_fields__ and type(value) is int and 0 <= value < MAX_TIME
        }
        return RankDevices(**known)

    def collectives(self) -> tuple[int, Collectives]:
        """Return how it shows collectives, and these. Raises DamagedStoreError."""
        rows, families = self.table("collectives"), self.table("families")
        family, names = rows["family"], tuple(zip(families["group"], families["name"]))
        is_known = not len(family) or 0 <= family.min() <= family.max() < len(names)
        if not is_known or len(set(names)) < len(names):
            raise self.shelf.damaged(f"the collectives of {self.title} do not agree with each other")
        sequenced = tuple(map(bool, families["sequenced"].tolist()))
        return self.number("level") or DEVICE, Collectives(
            rows["position"], rows["start"], rows["end"], names, family, rows["number"], sequenced
        )

    def messages(self, positions: I64) -> list[Message]:
        """Return what its collectives at these positions move. Raises DamagedStoreError."""
        rows, kinds = self.table("collectives"), self.table("messages")
        numbers = [kinds[key].tolist() for key in ("size", "group_size")]
        sizes, groups = ([None if value < 0 else value for value in column] for column in numbers)
        messages = [Message(*values) for values in zip(kinds["kind"], kinds["dtype"], sizes, groups)]
        of = dict(zip(rows["position"].tolist(), rows["message"].tolist()))
        if not all(0 <= number < len(messages) for number in of.values()):
            raise self.shelf.damaged(f"the collectives of {self.title} do not say what they move")
        return [messages[of[position]] for position in positions.tolist()]

    def steps(self, source: int, offset: int) -> Steps | None:
        """Return its steps in trace time, None where it has none. Raises DamagedStoreError."""
        rows = self.table("steps")
        if not rows["label"]:
            return None
        return Steps(
            source,
            str(self.facts.get("choice", "")),
            str(self.facts.get("reason", "")),
            rows["position"],
            rows["start"] + offset,
            rows["end"] + offset,
            tuple(rows["label"]),
            tuple(rows["group"]),
            np.zeros(len(rows["label"]), np.int64),
        )


class CaptureStore:
    """The ranks of a store, by rank; what cannot be read of it is named in the notes."""

    def __init__(
        self, location: StoreLocation, ranks: Sequence[StoredRank], notes: Sequence[str], traces: str
    ) -> None:
        """Hold what was read; `traces`: where the traces lie, relative to the store."""
        self.location = location
        self.ranks = tuple(rank for rank in ranks if not rank.unreadable)
        self.unreadable = tuple(rank for rank in ranks if rank.unreadable)
        self.traces = traces
        self._notes = tuple(notes)

    @property
    def title(self) -> str:
        return self.location.title

    @property
    def scope(self) -> str:
        return (
            f"all {len(self.ranks):,} ranks of the store"
            if len(self.ranks) != 1
            else "the only rank of the store"
        )

    @property
    def missing(self) -> tuple[int, ...]:
        """The ranks that are not there though others speak of them, or that leave holes."""
        numbers = [rank.rank for rank in self.ranks if rank.rank is not None]
        if not numbers:
            return ()
        world = max((rank.number("world") or 0 for rank in self.ranks), default=0)
        count = max(min(world, MAX_RANKS), max(numbers) + 1)
        return tuple(sorted(set(range(count)) - set(numbers))) if count <= MAX_RANKS else ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes below the tables: which ranks are not in the store, and why."""
        notes = list(self._notes)
        for rank in self.unreadable[:MAX_NAMED]:
            notes.append(f"{rank.name} could not be read when it was collected: {rank.unreadable}")
        if len(self.unreadable) > MAX_NAMED:
            notes.append(f"{len(self.unreadable) - MAX_NAMED:,} more could not be read")
        left_out = [rank for rank in self.ranks if rank.facts.get("left_out")]
        if left_out:
            notes.append(
                f"of {len(left_out):,} ranks the store has no room for all: the smallest are left out"
            )
        return tuple(notes)

    def table(self, name: str) -> tuple[I64, Columns]:
        """Return the rows of all ranks in a table, and of each the place of its rank in `ranks`.

        Raises DamagedStoreError.
        """
        rows = [rank.table(name) for rank in self.ranks]
        counts = [len(next(iter(each.values()))) for each in rows]
        return np.repeat(np.arange(len(rows)), counts), joined_rows(rows or [NOTHING[name]])

    @cached_property
    def alignment(self) -> Alignment:
        """How the clocks of the ranks relate; sources are places in `ranks`."""
        own = tuple(number for number, rank in enumerate(self.ranks) if rank.rank is not None)
        if len(own) < 2:
            return NONE
        bases = wall_distances([self.ranks[number].number("base_ns") for number in own])
        collectives = [self.ranks[number].collectives() for number in own]
        return aligned(
            own, bases, lambda level: [each if of == level else no_collectives() for of, each in collectives]
        )

    @cached_property
    def offsets(self) -> I64:
        """What is added to the lane times of each rank."""
        offsets = np.zeros(len(self.ranks), np.int64)
        for number, clock in zip(self.alignment.ranks, self.alignment.rank_clocks):
            offsets[number] = clock.offset_ns
        return offsets

    @cached_property
    def origin(self) -> int:
        """Where trace time begins: the first start of any rank."""
        starts = [
            (rank.number("origin_ns") or 0) + int(offset) for rank, offset in zip(self.ranks, self.offsets)
        ]
        return min(starts, default=0)

    @cached_property
    def skew(self) -> Skew:
        """How far apart the ranks come to their collectives."""
        return self._skew(self.alignment.matched or Matched.nothing(len(self.alignment.ranks)))

    def _skew(self, matched: Matched, least: int = 2) -> Skew:
        alignment = self.alignment
        moved = np.array([clock.correction_ns for clock in alignment.rank_clocks], np.int64)
        inside = np.ones(len(matched.who), np.bool_)
        return skew_of(alignment.ranks, matched, moved[matched.who.rank], inside, None, least)

    @property
    def _attended(self) -> tuple[Skew, MessagesOf]:
        """All collectives, those of one rank too, and what they moved."""
        alignment = self.alignment
        if alignment.ranks:
            pairs = zip(alignment.collectives, alignment.rank_clocks)
            return self._skew(match([one.moved(clock.base_ns) for one, clock in pairs], 1), 1), self._messages
        if len(self.ranks) != 1:
            return self.skew, self._messages
        matched = match([self.ranks[0].collectives()[1]], 1)
        unmoved = np.zeros(len(matched.who), np.int64)
        return skew_of((0,), matched, unmoved, unmoved == 0, None, 1), self._messages

    def _messages(self, number: int, positions: I64) -> list[Message]:
        return self.ranks[number].messages(positions)

    @property
    def rank_notes(self) -> tuple[str, ...]:
        """What `compared` notes, without comparing."""
        return notes_on_ranks(self.alignment.text, self.missing, len(self._comparable), self.skew)

    @property
    def _comparable(self) -> list[int]:
        """The places of the ranks that are held against each other."""
        return [
            number
            for number, rank in enumerate(self.ranks)
            if rank.rank is not None or not self.alignment.ranks
        ]

    @cached_property
    def compared(self) -> Ranks:
        from ..tables.ranks.ranks import RankTimes, compared_ranks  # with much that a picture does without

        clocks = dict(zip(self.alignment.ranks, self.alignment.rank_clocks))
        facts = [
            RankTimes(
                source=number,
                rank=number if rank.rank is None else rank.rank,
                title=rank.title,
                host=rank.host,
                path=rank.name,
                clock=clocks.get(number, RankClock(0, 0)),
                own_steps=rank.steps(number, int(self.offsets[number])),
                **vars(rank.devices),
            )
            for number in self._comparable
            for rank in (self.ranks[number],)
        ]
        return compared_ranks(
            self.scope, facts, self.skew, self.missing, self.alignment.text, lambda: self._attended
        )


def open_store(path: str) -> CaptureStore:
    """Open a store. Raises UnreadableError where it is none, or nothing in it can be read."""
    location = StoreLocation(path)
    try:
        manifest = read_store_manifest(location)
    except FileNotFoundError:
        raise UnreadableError(f"{location.title}: is no capture store") from None
    records = dict.fromkeys(records_in(location))
    notes: list[str] = []
    ranks: dict[RecordName, StoredRank] = {}
    for is_alone in (False, True):  # what no group holds is read by itself
        files = [one for one in records if one not in ranks] if is_alone else groups_in(location)
        for each in location.each(partial(_ranks_in, location), files):
            if isinstance(each, str):
                notes.append(each)
                continue
            for rank in each:
                if rank.record in records:
                    ranks.setdefault(rank.record, rank)
    if not ranks:
        raise UnreadableError(notes[0] if notes else f"{location.title}: the store holds no rank yet")
    ordered = sorted(ranks.values(), key=lambda rank: (rank.rank is None, rank.rank or 0, rank.name))
    once, twice = _once_each(ordered)
    notes += [f"{rank.title} is there twice: {rank.name} is left out" for rank in twice[:MAX_NAMED]]
    numbers = sorted(rank.rank for rank in once if rank.rank is not None and rank.unreadable)
    if numbers:
        notes.append(f"not read: rank{'s' if len(numbers) > 1 else ''} {ranks_text(numbers)}")
    return CaptureStore(location, once, notes, str(manifest.get("traces", "")))


def _ranks_in(location: StoreLocation, file: RecordName | str) -> list[StoredRank] | str:
    """Return the ranks of a file of summaries, or what must be said where it cannot be read."""
    try:
        shelf = read_shelf(location, file)
        facts = [shelf.text("facts", number) for number in range(len(shelf.members))]
        if not all(isinstance(each, dict) for each in facts):
            raise shelf.damaged("the facts of a rank are none")
    except FileNotFoundError:
        return []  # written anew a moment ago
    except UnreadableError as error:
        return f"{error}; what it holds is left out"
    return [StoredRank(*each) for each in zip(shelf.members, repeat(shelf), count(), facts)]


def _once_each(ranks: Iterable[StoredRank]) -> tuple[list[StoredRank], list[StoredRank]]:
    """Return (each rank once, the readable one first; the others)."""
    once: dict[object, StoredRank] = {}
    twice = []
    for rank in ranks:
        key: object = rank.rank if rank.rank is not None else rank.record
        known = once.setdefault(key, rank)
        if known is rank:
            continue
        is_better = bool(known.unreadable) and not rank.unreadable
        once[key] = rank if is_better else known
        twice.append(known if is_better else rank)
    return list(once.values()), twice


def _process_group(value: object) -> ProcessGroup | None:
    """Return a process group as a summary has it: [name, description, [[first, end, stride], …]]."""
    if not isinstance(value, list) or len(value) != 3 or not isinstance(value[2], list):
        return None
    runs = []
    for run in value[2]:
        sound = isinstance(run, list) and len(run) == 3 and all(type(number) is int for number in run)
        if not sound or not (0 <= run[0] < run[1] <= MAX_RANKS and 0 < run[2] <= MAX_RANKS):
            return None
        runs.append(range(*run))
    if sum(map(len, runs)) > MAX_RANKS:
        return None
    return ProcessGroup(str(value[0]), str(value[1]), tuple(runs))
