"""Collectives: which slices they are, which of them are the same on several ranks, and who takes part in
which, stored sparsely: memory and time grow with the entries that exist, not with ranks times collectives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..base.arrays import I64, AnyArray, added_up, concatenated_ranges, distinct
from ..base.held import held_by_name
from ..base.kineto import (
    COLLECTIVE_CALL,
    COLLECTIVE_KERNEL,
    COLLECTIVE_STEP,
    COMMUNICATION,
    KERNEL_CATEGORIES,
)
from ..index.flex import is_flex, sync_groups
from ..index.format import NONE
from ..index.producers import whole_collectives
from ..index.store import Index
from ..query.groups import dense
from ..query.lookup import category_mask, lanes_of, promoted_of

NOTHING = np.iinfo(np.int64).min
"""The time of a rank that takes no part in a collective."""
MAX_SHIFT = 16
"""The most collectives by which one rank's capture may begin earlier than the other's."""
ALIKE = 2.0
"""Shifts that scatter by at most this many times the least are equally good: then the one that moves the
clock least is taken.
"""
SCATTER_NS = 1000

_AIU = re.compile(r"^aiuCommsColl([A-Za-z]+?)(?:\d*)$", re.IGNORECASE)
_HCOLL = re.compile(r"hcoll[_: ]*([a-z_]+)?", re.IGNORECASE)
_ANY = re.compile(
    r"(all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|barrier|cross_device_reduce)",
    re.IGNORECASE,
)
_WORDS = {
    "allreduce": "all_reduce",
    "crossdevicereduce": "all_reduce",
    "allgather": "all_gather",
    "allgatherbase": "all_gather",
    "reducescatter": "reduce_scatter",
    "reducescatterbase": "reduce_scatter",
    "alltoall": "all_to_all",
    "alltoallv": "all_to_all",
    "alltoallbase": "all_to_all",
    "sendrecv": "send_recv",
    "generic": "collective",
}
MEETING = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "collective"})
"""Kinds of collectives that no rank can end before the last rank has come: all end at the same moment."""
MESSAGES = frozenset({"send_recv", "send", "recv"})
"""Kinds of what two ranks do, or all to all: NCCL's kernels have one name for both."""
DEVICE, AIU, HOST = range(3)
"""Where a trace shows collectives, the best first: as device work, as calls of the AIU's runtime, as calls of
a library of the host.
"""


@dataclass(frozen=True, eq=False)
class Collectives:
    """The collectives of one source in order of start, columns of equal length; lane time in ns."""

    positions: I64
    starts: I64
    ends: I64
    families: tuple[tuple[str, str], ...]  # (process group, name)
    family: I64  # place in families
    number: I64  # its sequence number where the trace has them, else which of its family it is
    sequenced: tuple[bool, ...]  # by family: whether numbers come from the trace

    def __len__(self) -> int:
        return len(self.positions)

    def moved(self, by: int) -> Collectives:
        """Return the same so many ns later."""
        return replace(self, starts=self.starts + by, ends=self.ends + by)


@dataclass(frozen=True, eq=False)
class Matched:
    """The collectives that enough ranks share, and when each of these was in them."""

    families: tuple[tuple[str, str], ...]
    family: I64  # of each collective
    number: I64
    who: Attendance
    starts: I64  # of each entry of `who`, lane time
    ends: I64
    positions: I64

    def __len__(self) -> int:
        return len(self.family)

    @classmethod
    def nothing(cls, ranks: int) -> Matched:
        """Return the value for ranks that share no collective."""
        none = np.empty(0, np.int64)
        return cls((), none, none, Attendance(0, ranks, none, none), none, none, none)

    @cached_property
    def meeting(self) -> AnyArray:
        """Of each collective: whether it ends at one moment everywhere."""
        meets = np.array([name in MEETING for _, name in self.families], np.bool_)
        return meets[self.family] if len(self) else np.zeros(0, np.bool_)


def collectives_of(index: Index) -> tuple[int, Collectives]:
    """Return at which level (DEVICE, AIU or HOST) a source shows its collectives, and the collectives."""
    for level in (DEVICE, AIU, HOST):
        collectives = collectives_at(index, level)
        if len(collectives):
            break
    return level, collectives


def collectives_at(index: Index, level: int, own: Callable[[I64], AnyArray] | None = None) -> Collectives:
    """Return the collectives that show in one way; of one rank of several in the file those of its `own`
    slices (positions -> booleans).
    """
    if is_flex(index):
        return flex_collectives(index, own) if level == DEVICE else no_collectives()
    categories = index.column("slices.category")
    is_kernel = category_mask(index, KERNEL_CATEGORIES)
    is_candidate = {
        DEVICE: is_kernel,
        AIU: ~is_kernel,
        HOST: category_mask(index, ("user_annotation", "cpu_op")),
    }[level]
    positions = np.flatnonzero(is_candidate[categories] if len(is_candidate) else []).astype(np.int64)
    if level == DEVICE and len(whole := whole_collectives(index)):
        positions = whole
    if own is not None:
        positions = positions[own(positions)]
    names = index.column("slices.name")[positions]
    which, numbers = dense(names)
    names_of = [_name(index.string(number), level) for number in numbers.tolist()]
    is_collective = (
        np.array([bool(name) for name in names_of], np.bool_)[which] if len(which) else np.zeros(0, np.bool_)
    )
    positions, which = positions[is_collective], which[is_collective]
    ends = index.column("slices.start")[positions].astype(np.int64) + index.duration(positions)
    if level == DEVICE:
        rows, ends = _whole(index, positions, ends)
        positions, which = positions[rows], which[rows]
    words, word = _words(index, names_of, which, positions)
    group = promoted_of(index, "collective_group", positions)
    sequence = promoted_of(index, "collective_sequence", positions, NOTHING)
    starts = index.column("slices.start")[positions].astype(np.int64)
    pairs, family = np.unique(group * len(words) + word, return_inverse=True)
    families = tuple(
        (index.string(pair // len(words)) if pair >= len(words) else "", words[pair % len(words)])
        for pair in pairs.tolist()
    )
    order = np.lexsort((positions, starts))
    family = family.astype(np.int64)
    number, sequenced = _numbers(sequence[order], family[order], len(families))
    return Collectives(
        positions[order], starts[order], ends[order], families, family[order], number, sequenced
    )


def _whole(index: Index, positions: I64, ends: I64) -> tuple[I64, I64]:
    """Return which of some slices stand for their collectives, and the ends of these: of slices that are its
    steps the first, of all others each, but for those around steps.
    """
    names = index.column("slices.name")[positions]
    tag_of: dict[str, int] = {}
    tags: dict[int, int] = {}
    for number in distinct(names).tolist():
        match = COLLECTIVE_STEP.match(index.string(number))
        tags[number] = -1 if match is None else tag_of.setdefault(match["tag"], len(tag_of))
    if not tag_of:
        return np.arange(len(positions), dtype=np.int64), ends
    # AllReduce of 0 to 100 around Send, Recv, Send, Recv is one collective: its first step stands for it and
    # reaches to the end of the last, and the slice around them is left out, or its time would count twice.
    # Steps with nothing around them are told apart by `Restart`, those of two tags or processes always.
    starts = index.column("slices.start")[positions].astype(np.int64)
    tag = np.array([tags[number] for number in names.tolist()], np.int64)
    steps = np.flatnonzero(tag >= 0)
    around = _around(index, positions[steps])
    process = index.lanes["process"][lanes_of(index, positions[steps])].astype(np.int64)
    order = np.lexsort((starts[steps], around, tag[steps], process))
    steps, around, process = steps[order], around[order], process[order]
    keys = zip(process.tolist(), tag[steps].tolist(), around.tolist())
    rows, last = [], []
    before, restart = None, Restart()
    for row, key, name, end in zip(steps.tolist(), keys, names[steps].tolist(), ends[steps].tolist()):
        if restart.begins(name, key != before) and (key != before or key[2] < 0):
            rows.append(row)
            last.append(end)
        last[-1] = max(last[-1], end)
        before = key
    others = np.flatnonzero((tag < 0) & ~np.isin(positions, around))
    chosen = np.concatenate([others, np.array(rows, np.int64)])
    return chosen, np.concatenate([ends[others], np.array(last, np.int64)])


@dataclass
class Restart:
    """Tells where a collective begins among steps that do not say it: where its first one comes again after
    another, so that `Send Send Recv Recv Send Send …` is two.
    """

    first: int = -1
    last: int = -1

    def begins(self, name: int, is_other: bool) -> bool:
        """Take in the next step, which may be known to be of another collective."""
        begins = is_other or (name == self.first and name != self.last)
        if begins:
            self.first = name
        self.last = name
        return begins


def _around(index: Index, positions: I64) -> I64:
    """Return the innermost slice around each step that is no step itself, -1 for none."""
    parents, names = index.column("slices.parent"), index.column("slices.name")
    around = np.full(len(positions), -1, np.int64)
    for row, position in enumerate(positions.tolist()):
        at = int(parents[position])
        while at != NONE and COLLECTIVE_STEP.match(index.string(int(names[at]))):
            at = int(parents[at])
        around[row] = -1 if at == NONE else at
    return around


def no_collectives() -> Collectives:
    """Return the collectives of a source without any."""
    none = np.empty(0, np.int64)
    return Collectives(none, none, none, (), none, none, ())


def flex_collectives(index: Index, own: Callable[[I64], AnyArray] | None = None) -> Collectives:
    """Return the collectives of a FLEX job trace, or of the `own` slices of one of its ranks: what a sync
    group sends and receives, first to last.

    Where a group comes again, the k-th slice of each name belongs to its k-th collective; of names that say
    no more than the collective and the kind of step a new one begins as `Restart` tells.
    """
    groups = sync_groups(index)
    if not groups:
        return no_collectives()
    names = index.column("slices.name")
    positions = np.flatnonzero(np.isin(names, np.array(list(groups), names.dtype))).astype(np.int64)
    if own is not None:
        positions = positions[own(positions)]
    starts = index.column("slices.start")[positions].astype(np.int64)
    order = np.lexsort((positions, starts))
    positions, starts = positions[order], starts[order]
    ends = starts + index.duration(positions)
    parts: dict[tuple[str, int], list[int]] = {}
    turns: dict[int | str, int] = {}
    restarts: dict[str, Restart] = {}
    for at, name in enumerate(names[positions].tolist()):
        tag = groups[name]
        if tag.startswith("["):  # names of a collective's steps may be the same
            key, is_new = tag, restarts.setdefault(tag, Restart()).begins(name, tag not in turns)
            turns[key] = turn = turns.get(key, -1) + is_new
        else:
            turn = turns.get(name, 0)
            turns[name] = turn + 1
        parts.setdefault((tag, turn), []).append(at)
    tags = list(dict.fromkeys(tag for tag, _ in parts))
    ordered = sorted(parts, key=lambda key: parts[key][0])
    return Collectives(
        np.array([positions[parts[key][0]] for key in ordered], np.int64),
        np.array([starts[parts[key]].min() for key in ordered], np.int64),
        np.array([ends[parts[key]].max() for key in ordered], np.int64),
        tuple((tag, _name(tag, DEVICE) or "collective") for tag in tags),
        np.array([tags.index(tag) for tag, _ in ordered], np.int64),
        np.array([turn for _, turn in ordered], np.int64),
        (True,) * len(tags),
    )


def _words(index: Index, names: Sequence[str], which: I64, positions: I64) -> tuple[list[str], I64]:
    """Return the kinds of collectives and which kind each slice is: by its argument, else by its name."""
    texts = promoted_of(index, "collective", positions, -1)
    words = list(dict.fromkeys(names))
    codes = {word: at for at, word in enumerate(words)}
    word = np.array([codes[name] for name in names], np.int64)[which] if len(which) else which
    for text in distinct(texts[texts >= 0]).tolist():
        title = collective_word(index.string(text))
        if title not in codes:
            codes[title] = len(words)
            words.append(title)
        word = np.where(texts == text, codes[title], word)
    return words or [""], word


def match(ranks: Sequence[Collectives], least: int = 2) -> Matched:
    """Return which collectives of several ranks are the same: of one group, name and number. Those that fewer
    than `least` ranks have are left out.

    Where the trace has no numbers they are counted, from where the ends of the two ranks fit best if one of
    them has more: a capture may begin earlier on one rank than on another.
    """
    families = tuple(dict.fromkeys(family for rank in ranks for family in rank.families))
    if not families:
        return Matched.nothing(len(ranks))
    codes = {family: row for row, family in enumerate(families)}
    holders: list[list[tuple[int, int, I64]]] = [[] for _ in families]  # (rank, its place of it, its own)
    for at, rank in enumerate(ranks):
        order = np.argsort(rank.family, kind="stable").astype(np.int64)
        bounds = np.searchsorted(rank.family[order], np.arange(len(rank.families) + 1))
        for row, family in enumerate(rank.families):
            holders[codes[family]].append((at, row, order[bounds[row] : bounds[row + 1]]))
    parts: list[tuple[I64, ...]] = []
    for row, held in enumerate(holders):
        longest, _, chosen = max(held, key=lambda entry: len(entry[2]))
        for at, own, here in held:
            one, number = ranks[at], ranks[at].number[here]
            if at != longest and not one.sequenced[own] and 0 < len(here) != len(chosen):
                number = number + _shift(ranks[longest].ends[chosen], one.ends[here])
            whose = np.full(len(here), at, np.int64)
            of = np.full(len(here), row, np.int64)
            parts.append((of, number, whose, one.starts[here], one.ends[here], one.positions[here]))
    family_of, numbers, whose, *columns = (np.concatenate(column).astype(np.int64) for column in zip(*parts))
    order = np.lexsort((whose, numbers, family_of))
    family_of, numbers, whose = family_of[order], numbers[order], whose[order]
    begins = (np.diff(family_of, prepend=-1) != 0) | (np.diff(numbers, prepend=numbers[:1] - 1) != 0)
    collective = (np.cumsum(begins) - 1).astype(np.int64)
    everyone = Attendance(int(np.count_nonzero(begins)), len(ranks), collective, whose)
    who, left = everyone.take(np.ones(len(everyone), np.bool_), least)
    starts, ends, positions = (column[order][left] for column in columns)
    firsts = left[who.bounds[:-1]]
    return Matched(families, family_of[firsts], numbers[firsts], who, starts, ends, positions)


def _shift(longer: I64, shorter: I64) -> int:
    """Return how many of the longer row of ends to skip so that it fits the shorter one: where their
    distances scatter least; of several such shifts the one that moves the clock least.
    """
    spare = len(longer) - len(shorter)
    shifts: list[tuple[float, float, int]] = []
    for shift in range(-min(MAX_SHIFT, len(shorter) // 2), spare + min(MAX_SHIFT, len(shorter) // 2) + 1):
        low, high = max(0, -shift), min(len(shorter), len(longer) - shift)
        distance = longer[low + shift : high + shift] - shorter[low:high]
        middle = np.median(distance)
        shifts.append((float(np.median(np.abs(distance - middle))), abs(float(middle)), shift))
    least = min(scatter for scatter, _, _ in shifts)
    near = [entry for entry in shifts if entry[0] <= ALIKE * least + SCATTER_NS]
    return min(near, key=lambda entry: entry[1])[2]


def _numbers(sequence: I64, family: I64, families: int) -> tuple[I64, tuple[bool, ...]]:
    """Return the number of each collective within its family, and by family whether the trace gives it."""
    number = np.zeros(len(family), np.int64)
    sequenced = []
    for at in range(families):
        chosen = np.flatnonzero(family == at)
        numbers = sequence[chosen]
        given = bool((numbers != NOTHING).all()) and len(distinct(numbers)) == len(chosen)
        number[chosen] = numbers if given else np.arange(len(chosen))
        sequenced.append(given)
    return number, tuple(sequenced)


def world_size(index: Index) -> int:
    """Return how many ranks a file says that there are, 0 where it does not."""
    size = index.distributed.get("world_size")
    return size if type(size) is int else 0


@held_by_name
def _name(name: str, level: int) -> str:
    """Return which collective a slice's name stands for, "" for none."""
    if level == AIU:
        match = _AIU.match(name)
        return collective_word(match[1]) if match and not match[1].lower().endswith("setup") else ""
    if level == HOST:
        match = COLLECTIVE_CALL.match(name)
        return collective_word(match[1]) if match and not name.startswith("nccl:") else ""
    if step := COLLECTIVE_STEP.match(name):
        return collective_word(step["type"])
    if not COMMUNICATION.search(name):
        return ""
    for pattern in (COLLECTIVE_KERNEL, _AIU, COLLECTIVE_CALL, _ANY, _HCOLL):
        match = pattern.search(name)
        if match and match[1]:
            return collective_word(match[1])
    return "collective"


def collective_word(text: str) -> str:
    """Return the usual spelling of the kind of a collective: "AllReduce" is "all_reduce"."""
    plain = text.strip().strip("_").lower()
    return _WORDS.get(plain.replace("_", ""), plain)


@dataclass(frozen=True, eq=False)
class Attendance:
    """Entries (collective, rank) sorted by collective, then by rank; no collective is without one.

    Values of entries are columns of the same length beside it.
    """

    collectives: int
    ranks: int
    collective: I64
    rank: I64

    def __len__(self) -> int:
        return len(self.collective)

    @cached_property
    def bounds(self) -> I64:
        """Where the entries of each collective begin, and the end."""
        return np.searchsorted(self.collective, np.arange(self.collectives + 1)).astype(np.int64)

    @cached_property
    def sizes(self) -> I64:
        """How many ranks take part in each collective."""
        return np.diff(self.bounds)

    @cached_property
    def by_rank(self) -> I64:
        """The entries sorted by rank."""
        return np.argsort(self.rank, kind="stable").astype(np.int64)

    @cached_property
    def rank_bounds(self) -> I64:
        """Where the entries of each rank begin in `by_rank`, and the end."""
        return np.searchsorted(self.rank[self.by_rank], np.arange(self.ranks + 1)).astype(np.int64)

    def of_rank(self, rank: int) -> I64:
        """Return the entries of a rank, by collective."""
        return self.by_rank[self.rank_bounds[rank] : self.rank_bounds[rank + 1]]

    def of_ranks(self, ranks: I64) -> I64:
        """Return the entries of several ranks."""
        return self.by_rank[_entries(self.rank_bounds, ranks)]

    def of_collectives(self, collectives: I64) -> I64:
        """Return the entries of several collectives."""
        return _entries(self.bounds, collectives)

    def least(self, values: I64) -> I64:
        return np.minimum.reduceat(values, self.bounds[:-1]) if self.collectives else values[:0]

    def most(self, values: I64) -> I64:
        return np.maximum.reduceat(values, self.bounds[:-1]) if self.collectives else values[:0]

    def sums(self, values: AnyArray) -> I64:
        """Return the sum of the values of each collective."""
        whole = values.astype(np.int64)
        return added_up(whole, self.bounds[:-1]) if self.collectives else whole[:0]

    def take(self, entries: AnyArray, least: int = 2) -> tuple[Attendance, I64]:
        """Return the table of some entries (a mask) without the collectives that fewer than `least` of them
        are in, and which entries those are, as they stand here.
        """
        mask = np.asarray(entries, np.bool_)
        stays = mask & (self.sums(mask) >= least)[self.collective]
        left = np.flatnonzero(stays).astype(np.int64)
        present, collective = np.unique(self.collective[left], return_inverse=True)
        return Attendance(len(present), self.ranks, collective.astype(np.int64), self.rank[left]), left


def medians(groups: I64, values: I64, size: int) -> tuple[I64, I64]:
    """Return of each group (the median of its values, how many there are), exact; 0 for an empty one."""
    ordered = values[np.lexsort((values, groups))]
    counts = np.bincount(groups, minlength=size).astype(np.int64)
    firsts = np.cumsum(counts) - counts
    some = counts > 0
    low = ordered[(firsts + (counts - 1) // 2)[some]]
    high = ordered[(firsts + counts // 2)[some]]
    middle = np.zeros(size, np.int64)
    middle[some] = low + (high - low) // 2
    return middle, counts


def _entries(bounds: I64, numbers: I64) -> I64:
    """Return the integers from bounds[n] up to bounds[n + 1] for each number n, one after another."""
    return concatenated_ranges(bounds[numbers], bounds[numbers + 1] - bounds[numbers])
