"""Which ranks belong together: those of one host, or of one group of the parallel layout (TP, PP, DP).

A layout is known, by the first of these that tells:

1. from `distributedInfo.pg_config` of the rank's file: the process group whose description (else its name) is
   that of the axis, such as `mesh_tp` or `PIPELINE_MODEL_PARALLEL_GROUP`, and which holds this rank;
2. from the process groups of its collectives, where their names are of that kind;
3. from the places in the files' names (`-TP-1-DP-0`, `dp0_pp0_tp1_rank1`): ranks that differ in this axis
   only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.arrays import distinct
from ...base.errors import UsageError
from ...index.captures import ranks_text
from ..peers.skew import Skew

if TYPE_CHECKING:
    from ...trace import Trace

HOST = "host"
_AXIS_WORDS = {
    "tp": frozenset({"tp", "tensor", "tensorparallel", "tensormodelparallel"}),
    "pp": frozenset({"pp", "pipeline", "pipelineparallel", "pipelinemodelparallel"}),
    "dp": frozenset({"dp", "ddp", "fsdp", "hsdp", "sdp", "data", "dataparallel", "shard", "replicate"}),
}
"""What the names and descriptions of process groups call an axis: torch's device meshes, Megatron, vLLM."""
_OTHER_AXES = {
    axis: frozenset({"ep", "expert", "embedding"}).union(*(_AXIS_WORDS[other] for other in others))
    for axis, others in (("tp", ("pp", "dp")), ("pp", ("tp", "dp")), ("dp", ("tp", "pp")))
}
"""A group whose name has one of these too is none of the axis alone: TENSOR_AND_DATA_PARALLEL_GROUP."""
_PLAIN_WORDS = frozenset({"mesh", "group", "groups", "model", "parallel", "process", "pg", "gloo", "nccl"})
"""These say nothing of the axis."""
_SHARDS, _REPLICAS = frozenset({"shard", "fsdp", "hsdp", "sdp"}), frozenset({"replicate"})
"""Where data parallel ranks are in two groups, those that share the parameters and those that repeat them,
both together are the group of the axis.
"""
_WORD = re.compile(r"[a-z]+")
_COORDINATE = re.compile(r"([A-Z]{2}) (\d+)")
HOST_KEYS = ("host_name", "hostname")
"""What Kineto, and what others call the host in a trace's own keys."""
MAX_RANKS = 1 << 20
"""No world is larger; a greater number in a file is not believed."""
UNKNOWN = "unknown"
"""The group of ranks whose files do not tell."""


Runs = tuple[range, ...]
"""Ranks as runs of equal stride: what each of many ranks says of all of them stays short."""


class ProcessGroup(NamedTuple):
    """A process group that a rank is in."""

    name: str
    description: str
    runs: Runs


class RankOrigin(NamedTuple):
    """What a rank's file and its name tell of where the rank belongs."""

    rank: int
    host: str
    coordinates: str  # in the parallel layout: "TP 1 DP 0"
    groups: tuple[ProcessGroup, ...]


def rank_origins(trace: Trace, sources: Sequence[int]) -> dict[int, RankOrigin]:
    """Return by source what its file tells."""
    return {
        source: RankOrigin(
            _rank(trace, source),
            host_of_source(trace, source),
            trace.members[source].layout if source < len(trace.members) else "",
            process_groups(trace.indexes[source].distributed, _rank(trace, source)),
        )
        for source in sources
    }


def rank_groups(origins: Mapping[int, RankOrigin], by: str, waiting: Skew) -> dict[int, str]:
    """Return by source what the group of its rank is called: its host, or its ranks as "ranks 0-3".

    Raises UsageError where no file tells.
    """
    numbers = {source: origin.rank for source, origin in origins.items()}
    if by == HOST:
        labels = {source: origin.host for source, origin in origins.items()}
    else:
        labels = _of_configuration(origins, by)
        for other in (_of_collectives(by, numbers, waiting), _of_places(origins, by)):
            labels = {source: labels.get(source) or other.get(source, "") for source in origins}
    if not any(labels.values()):
        sources = (
            "host_name" if by == HOST else "pg_config, names of process groups, names of files as -TP-0-DP-1"
        )
        raise UsageError(f"--group-by {by}: no file says which ranks these are ({sources})")
    return {source: labels.get(source) or UNKNOWN for source in origins}


def _rank(trace: Trace, source: int) -> int:
    rank = trace.rank(source)
    return source if rank is None else rank


def host_of_source(trace: Trace, source: int) -> str:
    """Return the host that a source's file names, before or behind its events; "" for none."""
    host = trace.members[source].host if source < len(trace.members) else ""
    said = map(trace.indexes[source].envelope.get, HOST_KEYS)
    return host or next((text for text in said if isinstance(text, str)), "")


def _title(ranks: Iterable[int]) -> str:
    ordered = sorted(set(ranks))
    return f"rank{'s' if len(ordered) > 1 else ''} {ranks_text(ordered)}"


def _of_configuration(origins: Mapping[int, RankOrigin], axis: str) -> dict[int, str]:
    groups = {source: _groups_of_axis(origin, axis) for source, origin in origins.items()}
    together = _united(group for several in groups.values() if len(several) > 1 for group in several)
    runs = {
        source: several[0] if len(several) == 1 else together[origins[source].rank]
        for source, several in groups.items()
        if several
    }
    titles = {each: _title(_ranks_in(each)) for each in set(runs.values())}
    return {source: titles[each] for source, each in runs.items()}


def _groups_of_axis(origin: RankOrigin, axis: str) -> list[Runs]:
    """Return the ranks of the process group of an axis that a file tells: of several names that fit the one
    with the fewest other words (DATA_PARALLEL_GROUP before DATA_PARALLEL_GROUP_WITH_CP); of shards and their
    replicas both.
    """
    fitting = sorted(
        (
            (len(words - _AXIS_WORDS[axis]), len(text), text, group.runs)
            for group in origin.groups
            for text in (group.description, group.name)
            if _is_of_axis(words := _words(text), axis)
        ),
        key=lambda each: each[:3],
    )
    if not fitting:
        return []
    kinds = [
        next((runs for _, _, text, runs in fitting if _words(text) & kind), None)
        for kind in (_SHARDS, _REPLICAS)
    ]
    if _words(fitting[0][2]) & (_SHARDS | _REPLICAS) and all(runs is not None for runs in kinds):
        return [runs for runs in kinds if runs is not None]
    return [fitting[0][3]]


def _words(text: str) -> frozenset[str]:
    """Return the words of a process group's name, without those that say nothing of its axis."""
    return frozenset(_WORD.findall(text.lower())) - _PLAIN_WORDS


def _is_of_axis(words: frozenset[str], axis: str) -> bool:
    return bool(words & _AXIS_WORDS[axis]) and not words & _OTHER_AXES[axis]


def _united(groups: Iterable[Runs]) -> dict[int, Runs]:
    """Return for each rank all ranks that are connected to it by groups with a rank in common."""
    together: dict[int, set[int]] = {}
    for group in dict.fromkeys(groups):
        ranks = set(_ranks_in(group))
        tied = {id(union): union for rank in ranks if (union := together.get(rank)) is not None}
        union = ranks.union(*tied.values())
        together.update(dict.fromkeys(union, union))
    runs = {id(union): runs_of(union) for union in {id(each): each for each in together.values()}.values()}
    return {rank: runs[id(union)] for rank, union in together.items()}


def process_groups(distributed: Mapping[str, Any], rank: int | None) -> tuple[ProcessGroup, ...]:
    """Return a rank's process groups by its trace's own keys; torch writes none for a group of all."""
    configured, world = distributed.get("pg_config"), distributed.get("world_size")
    everyone = range(world) if type(world) is int and 0 < world <= MAX_RANKS else range(0)
    groups = []
    for group in configured if isinstance(configured, list) else []:
        ranks = group.get("ranks") if isinstance(group, dict) else None
        if not isinstance(ranks, list) or any(type(each) is not int or each < 0 for each in ranks):
            continue
        if rank in (ranks or everyone):
            texts = (group.get("pg_name"), group.get("pg_desc"))
            name, description = (text if isinstance(text, str) else "" for text in texts)
            groups.append(ProcessGroup(name, description, runs_of(ranks or everyone)))
    return tuple(groups)


def runs_of(ranks: Iterable[int]) -> Runs:
    """Return the ranks in order as ranges of equal stride: [0, 4, 8, 9] is range(0, 9, 4), range(9, 10)."""
    ordered = sorted(set(ranks))
    runs: list[range] = []
    at = 0
    while at < len(ordered):
        last = at
        stride = ordered[at + 1] - ordered[at] if at + 1 < len(ordered) else 1
        while last + 1 < len(ordered) and ordered[last + 1] - ordered[last] == stride:
            last += 1
        runs.append(range(ordered[at], ordered[last] + 1, stride))
        at = last + 1
    return tuple(runs)


def _ranks_in(runs: Runs) -> list[int]:
    return [rank for run in runs for rank in run]


def _of_collectives(axis: str, numbers: Mapping[int, int], waiting: Skew) -> dict[int, str]:
    """Return the groups that the collectives' own process groups are called by."""
    ranks_of: dict[str, set[int]] = {}
    for at, (group, _) in enumerate(waiting.families):
        if _is_of_axis(_words(group), axis):
            in_family = waiting.family[waiting.who.collective] == at
            columns = distinct(waiting.who.rank[in_family]).tolist()
            ranks_of.setdefault(group, set()).update(waiting.sources[column] for column in columns)
    return {
        source: _title(numbers[other] for other in sources if other in numbers)
        for sources in ranks_of.values()
        for source in sources
        if source in numbers
    }


def _of_places(origins: Mapping[int, RankOrigin], axis: str) -> dict[int, str]:
    """Return the groups of the ranks whose places in the layout differ in the axis only; none where two ranks
    stand in one place: then the names tell how large the layout is.
    """
    others: dict[frozenset[tuple[str, str]], list[int]] = {}
    key_of = {}
    rank_at: dict[str, int] = {}
    for source, origin in origins.items():
        coordinates = dict(_COORDINATE.findall(origin.coordinates))
        coordinates.pop("EP", None)  # experts are spread over the ranks of the other axes
        if coordinates.pop(axis.upper(), None) is not None:
            if rank_at.setdefault(origin.coordinates, origin.rank) != origin.rank:
                return {}
            key_of[source] = frozenset(coordinates.items())
            others.setdefault(key_of[source], []).append(origin.rank)
    return {source: _title(others[key]) for source, key in key_of.items()}
