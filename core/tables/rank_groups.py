"""Which ranks belong together: those of one host, or of one group of the parallel layout (TP, PP, DP).

A layout is known, by the first of these that tells:

1. from `distributedInfo.pg_config` of the rank's file: the process group whose description (else its name) is
   that of the axis, such as `mesh_tp` or `PIPELINE_MODEL_PARALLEL_GROUP`, and whose ranks hold this one;
2. from the process groups of its collectives, where their names are of that kind;
3. from the places in the files' names (`-TP-1-DP-0`): ranks that differ in this axis only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import UsageError
from ..index.captures import ranks_text
from .skew import Skew

if TYPE_CHECKING:
    from ..trace import Trace

HOST, *AXES = GROUPINGS = ("host", "tp", "pp", "dp")
_WORDS = {
    "tp": re.compile(r"(?<![a-z])(?:tp|tensor_?(?:model_?)?parallel)(?![a-z])", re.IGNORECASE),
    "pp": re.compile(r"(?<![a-z])(?:pp|pipeline_?(?:model_?)?parallel)(?![a-z])", re.IGNORECASE),
    "dp": re.compile(r"(?<![a-z])(?:d|f?sd|hsd|dd)p(?![a-z])|(?<![a-z])data_?parallel", re.IGNORECASE),
}
"""What the names and descriptions of process groups call an axis: torch's device meshes, Megatron, vLLM."""
_PLACE = re.compile(r"([A-Z]{2}) (\d+)")
HOST_KEYS = ("host_name", "hostname")
"""What Kineto, and what others call the host in a trace's own keys."""
UNKNOWN = "unknown"
"""The group of ranks whose files do not tell."""


@dataclass(frozen=True)
class RankOrigin:
    """What a rank's file and its name tell of where the rank belongs."""

    rank: int
    host: str
    place: str  # in the parallel layout: "TP 1 DP 0"
    envelope: object  # the trace's own keys


def rank_origins(trace: Trace, sources: Sequence[int]) -> dict[int, RankOrigin]:
    """Return by source what its file tells."""
    return {
        source: RankOrigin(
            _rank(trace, source),
            host_of_source(trace, source),
            trace.members[source].place if source < len(trace.members) else "",
            trace.indexes[source].manifest.get("envelope"),
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
        places = "host_name" if by == HOST else "pg_config, names of process groups, names as -TP-0-DP-1"
        raise UsageError(f"--group-by {by}: no file says so ({places})")
    return {source: labels.get(source) or UNKNOWN for source in origins}


def _rank(trace: Trace, source: int) -> int:
    rank = trace.rank(source)
    return source if rank is None else rank


def host_of_source(trace: Trace, source: int) -> str:
    """Return the host that a source's file names, before or behind its events; "" for none."""
    host = trace.members[source].host if source < len(trace.members) else ""
    envelope = trace.indexes[source].manifest.get("envelope")
    if host or not isinstance(envelope, dict):
        return host
    return next((text for key in HOST_KEYS if isinstance(text := envelope.get(key), str)), "")


def _title(ranks: Iterable[int]) -> str:
    ordered = sorted(set(ranks))
    return f"rank{'s' if len(ordered) > 1 else ''} {ranks_text(ordered)}"


def _of_configuration(origins: Mapping[int, RankOrigin], axis: str) -> dict[int, str]:
    """Return the groups that `pg_config` tells."""
    labels = {}
    for source, origin in origins.items():
        fitting = [
            (len(words), ranks)
            for words, ranks in _configured(origin.envelope)
            if origin.rank in ranks and _WORDS[axis].search(words)
        ]
        if fitting:  # "DATA_PARALLEL_GROUP" before "DATA_PARALLEL_GROUP_WITH_CP"
            labels[source] = _title(min(fitting)[1])
    return labels


def _configured(envelope: Any) -> list[tuple[str, list[int]]]:
    """Return (description or name, ranks) of the process groups of a file, those that are sound."""
    info = envelope.get("distributedInfo") if isinstance(envelope, dict) else None
    groups = info.get("pg_config") if isinstance(info, dict) else None
    sound = []
    for group in groups if isinstance(groups, list) else []:
        ranks = group.get("ranks") if isinstance(group, dict) else None
        if isinstance(ranks, list) and all(type(rank) is int and rank >= 0 for rank in ranks):
            texts = (group.get("pg_desc"), group.get("pg_name"))
            sound += [(text, ranks) for text in texts if isinstance(text, str)]
    return sound


def _of_collectives(axis: str, numbers: Mapping[int, int], waiting: Skew) -> dict[int, str]:
    """Return the groups that the collectives' own process groups are called by."""
    ranks_of: dict[str, set[int]] = {}
    for place, (group, _) in enumerate(waiting.families):
        if _WORDS[axis].search(group):
            in_family = waiting.family[waiting.who.collective] == place
            columns = np.unique(waiting.who.rank[in_family]).tolist()
            ranks_of.setdefault(group, set()).update(waiting.sources[column] for column in columns)
    return {
        source: _title(numbers[other] for other in sources if other in numbers)
        for sources in ranks_of.values()
        for source in sources
        if source in numbers
    }


def _of_places(origins: Mapping[int, RankOrigin], axis: str) -> dict[int, str]:
    """Return the groups of the ranks whose places in the layout differ in the axis only."""
    others: dict[frozenset[tuple[str, str]], list[int]] = {}
    key_of = {}
    for source, origin in origins.items():
        coordinates = dict(_PLACE.findall(origin.place))
        if coordinates.pop(axis.upper(), None) is not None:
            key_of[source] = frozenset(coordinates.items())
            others.setdefault(key_of[source], []).append(origin.rank)
    return {source: _title(others[key]) for source, key in key_of.items()}
