"""What torch.compile leaves on the host: regions, calls of graphs, cache lookups, rows of the compiler."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from ..base.arrays import I64
from ..index.store import Index
from ..query.lookup import category_mask
from ..trace.devices import rank_of
from .op_events import HOST
from .scope import Scope
from .slices import Slices

REGION = "Torch-Compiled Region"
GRAPH = "## Call CompiledFxGraph "
FUNCTION = "CompiledFunction"
LOOKUP = "TorchDynamo Cache Lookup"
TIMED = " (dynamo_timed)"
DYNAMO = "dynamo_timed"
"""The category of what Dynamo writes of itself: chromium_events.json, as tlparse makes of TORCH_TRACE."""
REGION_ID = re.compile(r"Torch-Compiled Region: (?:!\d+/)?(?P<frame>\d+)/(?P<compile>\d+)")
GRAPH_HASH = re.compile(r"## Call CompiledFxGraph (?P<hash>\S+) ##")
FUNCTION_NAME = re.compile(r"CompiledFunction(Backward)?")


@dataclass(frozen=True, eq=False)
class Calls(Slices):
    """Slices of the host that start in a scope, by start; whole times."""

    rank: int


def calls(scope: Scope, source: int, text: str, pattern: re.Pattern[str] | None = None) -> Calls:
    """Return the host's slices whose name contains a text and, if one is given, matches a whole pattern; of
    those that Dynamo itself wrote all for its mark, TIMED, which their category stands for.
    """
    index = scope.trace.indexes[source]
    numbers = index.string_numbers(text, inside=True)
    if pattern is not None:
        numbers = [number for number in numbers if pattern.fullmatch(index.string(number))]
    whole = DYNAMO if text == TIMED and pattern is None else ""
    positions = _positions(scope, source, np.array(numbers, np.int64), whole)
    starts = scope.starts(source, positions)
    if scope.range is not None:
        inside = (starts >= scope.range[0]) & (starts < scope.range[1])
        positions, starts = positions[inside], starts[inside]
    durations = index.duration(positions)
    # An outer slice that begins with an inner one comes first.
    order = np.lexsort((-durations, starts))
    positions, starts, ends = positions[order], starts[order], (starts + durations)[order]
    names, categories = (index.column(f"slices.{key}")[positions] for key in ("name", "category"))
    return Calls(source, index, positions, starts, ends, names, categories, rank_of(index, source))


def is_of_dynamo(index: Index) -> bool:
    """Tell whether an index is of a file that Dynamo itself wrote."""
    return DYNAMO in index.categories


def _positions(scope: Scope, source: int, numbers: I64, category: str) -> I64:
    """Return the positions of the host's slices of these names, and of all of a category."""
    index = scope.trace.indexes[source]
    parts = [np.empty(0, np.int64)]
    whole = category_mask(index, {category} if category else ())
    if len(numbers) or whole.any():
        is_name = np.zeros(len(index.column("strings.offset")), np.bool_)
        is_name[numbers] = True
        host = category_mask(index, HOST) | category_mask(index, {DYNAMO})
        names, categories = index.column("slices.name"), index.column("slices.category")
        for part in scope.parts:
            scope.check()
            if part.source == source:
                at = slice(part.begin, part.end)
                of = categories[at]
                parts.append(part.begin + np.flatnonzero((is_name[names[at]] & host[of]) | whole[of]))
    positions: I64 = np.concatenate(parts)
    if scope.where is not None and len(positions):
        positions = positions[scope.where(index, positions)]
    return positions
