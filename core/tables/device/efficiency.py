"""The analysis `efficiency`: FLOP/s and bytes/s of operators by name and shapes, of the peak of the device,
and how much of their time could be got back.

What bounds an operator is the peak that it comes nearest to, of FLOP/s or of bytes/s (the roofline); at that
peak it would take its time × the share. The rest could be got back, at most. What no model tells, or no known
peak, is unknown, and never counts as such.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from math import ceil, floor, log10, nan
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import F64, I64, places_in, sum_of
from ...base.safe_text import safe
from ...base.units import format_ns, format_share
from ...index.store import Index
from ...query.args import argument_values
from ...query.groups import Groups, concatenated, dense, groups_alike
from ...query.lookup import promoted_of, rows_around
from ...trace.owners import OWN
from ..frame.frame import Frame
from ..frame.metrics import ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..host.op_sums import LinkedWork, work_in
from .op_costs import ELEMENTWISE, MATRIX, MODELS, TYPES, VECTOR, Call, Cost, cost_of
from .peaks import device_of, peak_of

EFFICIENCY = TableSchema(
    "efficiency",
    "Efficiency of operators",
    (
        Column("name", "op", "text", is_name=True),
        Column("shapes", "shapes", "text"),
        Column("count", "calls", "count"),
        Column("flops", "FLOPs of a call", "count"),
        Column("bytes", "bytes of a call", "bytes"),
        Column("kernel_ns", "kernel time", "ns"),
        Column("tflops", "TFLOP/s", "number"),
        Column("gbs", "GB/s", "number"),
        Column("tflops_min", "least TFLOP/s", "number", detail=True),
        Column("tflops_max", "most TFLOP/s", "number", detail=True),
        Column("intensity", "FLOP/byte", "number"),
        Column("peak_share", "of the peak", "share"),
        Column("recoverable_ns", "could be got back", "ns"),
        Column("above_peak", "above it", "number", detail=True),
        Column("types", "types", "text", detail=True),
        Column("inputs", "other inputs", "text", detail=True),
    ),
    keys=("name", "shapes", "types", "inputs"),
    read_by="recoverable_ns",
    chief=("name", "shapes", "kernel_ns", "recoverable_ns", "peak_share", "tflops", "gbs"),
)
NEEDS_VALUES = (
    "convolution", "attention", "sum", "mean", "softmax", "batch_norm", "layer_norm", "index_select",
)  # fmt: skip
"""Operators whose cost depends on inputs that are no tensors."""


UNREAD = "not read"
"""In place of such inputs of calls whose text was not looked at."""


class OpKey(NamedTuple):
    """What calls of an operator have in common that cost the same; texts as they stand in the file."""

    name: str
    shapes: str
    types: str
    inputs: str  # those that are no tensors, where the cost depends on them

    @property
    def call(self) -> Call:
        return Call(_list(self.shapes), _list(self.types), _list(self.inputs))

    @property
    def cost(self) -> Cost | None:
        """What a call costs, None where no model has its inputs, or they were not read."""
        return None if self.inputs == UNREAD else cost_of(self.name, self.call)


@dataclass(frozen=True, eq=False)
class ModelledCalls:
    """The calls of a source's operators that have a model and launched work; of a capture's each replay is
    one.
    """

    work: Frame
    call: I64  # place below of the call in which each piece of work was launched, -1 for none
    positions: I64  # of the calls, of what is replayed that of its first work
    ns: I64  # in which any work ran that each launched
    key: I64  # place of each in `keys`
    keys: Sequence[OpKey]
    device: tuple[str, float]  # its name, GB of memory

    @cached_property
    def costs(self) -> list[Cost | None]:
        """What a call of each key costs, None where no model has its inputs."""
        return [key.cost for key in self.keys]

    @cached_property
    def key_ns(self) -> I64:
        """The sum of `ns` over the calls of each key."""
        return Groups(self.key, len(self.keys)).sums(self.ns)

    @cached_property
    def peak_shares(self) -> F64:
        """The share of the peak that the calls of each key reach together; NaN where that is not known."""
        counts = Groups(self.key, len(self.keys)).counts.tolist()
        shares = [
            None if cost is None else peak_share(key, self.device, *rates(cost, count, ns))
            for key, cost, count, ns in zip(self.keys, self.costs, counts, self.key_ns.tolist())
        ]
        return np.array([nan if share is None else share for share in shares], np.float64)


def modelled_calls(scope: Scope, source: int, most_read: int | None = None) -> ModelledCalls:
    """Return the calls of a source's operators that have a model, those of graphs that it replays among them
    where a capture says them. Of at most `most_read` calls, those that take longest, are inputs read that
    stand in the file's text alone (None: of all). Raises Cancelled.
    """
    owners = scope.trace.owners(source)
    parts = [_calls_in(scope, source, book, most_read) for book in range(len(owners.indexes))]
    work, call = parts[0].work, parts[0].call.copy()
    for at, part in enumerate(parts[1:], 1):
        owned = part.call >= 0
        call[owned] = part.call[owned] + sum(len(one.ns) for one in parts[:at])
    numbered: dict[OpKey, int] = {}
    key = concatenated(
        [
            np.array([numbered.setdefault(one, len(numbered)) for one in part.keys], np.int64)[part.key]
            for part in parts
        ]
    )
    positions, ns = (concatenated([getattr(part, name) for part in parts]) for name in ("positions", "ns"))
    return ModelledCalls(work, call, positions, ns, key, list(numbered), device_of(owners.indexes[OWN]))


class _CallsOfBook(NamedTuple):
    """The calls of a book of a source's owners, as ModelledCalls has them."""

    work: Frame
    call: I64
    positions: I64
    ns: I64
    key: I64
    keys: Sequence[OpKey]


def _calls_in(scope: Scope, source: int, book: int, most_read: int | None) -> _CallsOfBook:
    """Return the calls of the source itself, or those of a capture: there each replay calls once more what
    was captured once, and leads to the first work of it.
    """
    index = scope.trace.owners(source).indexes[book]
    numbers = {number: name for name in MODELS for number in index.string_numbers(name)}
    names = index.column("slices.name")
    members = np.flatnonzero(np.isin(names, np.array(list(numbers), names.dtype)))
    work, around = work_in(scope, source, members, book)
    top = np.append(_outermost(index, members, numbers), -1)
    nodes = top[places_in(members, around)]
    called, positions = np.arange(len(members)), members
    if book != OWN:
        nodes, called = _replayed(nodes, work.launched)
        positions = _first_work(work, nodes, len(called))
    linked = LinkedWork(work, nodes, np.full(len(called), -1, np.int64))
    busy = linked.busy_ns(np.arange(len(called)), len(called))
    used = np.flatnonzero(busy)
    of, which = dense(called[used])
    own = members[which]
    total = Groups(of, len(own)).sums(busy[used])
    inputs, texts = _other_inputs(index, own, numbers, total, most_read)
    columns = (
        names[own],
        promoted_of(index, "input_dims", own, -1),
        promoted_of(index, "input_type", own, -1),
    )
    alike = groups_alike((*columns, inputs), len(own))
    rows = zip(*(column[alike.first()].tolist() for column in (*columns, inputs)))
    keys = [
        OpKey(numbers[name], _text(index, dims), _text(index, types), texts[more])
        for name, dims, types, more in rows
    ]
    return _CallsOfBook(work, places_in(used, nodes), positions[used], busy[used], alike.codes[of], keys)


def _replayed(nodes: I64, launched: I64) -> tuple[I64, I64]:
    """Return (the call of each piece of work, a pair of a captured call and a replay, -1 for none; the place
    of the captured call of each of these).
    """
    replays, replay = np.unique(launched, return_inverse=True)
    is_owned = nodes >= 0
    pairs, calls = np.unique(nodes[is_owned] * len(replays) + replay[is_owned], return_inverse=True)
    result = np.full(len(nodes), -1, np.int64)
    result[is_owned] = calls
    return result, pairs // max(1, len(replays))


def _first_work(work: Frame, nodes: I64, count: int) -> I64:
    """Return the position of the earliest work of each node."""
    order = np.argsort(-work.start, kind="stable")
    order = order[nodes[order] >= 0]
    first = np.full(count, -1, np.int64)
    first[nodes[order]] = work.position[order]
    return first


def analyse_efficiency(scope: Scope) -> Tables:
    """Return what operators with a model achieve, by name, shapes, types and inputs. Raises Cancelled."""
    return Tables(scope.text, scope.origin, {"efficiency": lambda: efficiency(scope)})


@dataclass
class _Row:
    """The calls of a key, of all sources."""

    count: int = 0
    ns: int = 0
    least: int = 0
    most: int = 0
    jump: tuple[int, int] = (0, -1)
    devices: set[tuple[str, float]] = field(default_factory=set)


def efficiency(scope: Scope) -> Table:
    """Return a row for each operator and its inputs, first those of which most time could be got back. Its
    kernel time is, of each call, the time in which any work ran that was launched in it; rates are ratios of
    sums. Raises Cancelled.
    """
    rows: dict[OpKey, _Row] = {}
    total = 0
    for source in scope.sources:
        calls = modelled_calls(scope, source)
        _add(calls, source, rows)
        total += sum_of(calls.work.full_ns)
    records = [
        (_record(key, row, cost), row.jump) for key, row in rows.items() if (cost := key.cost) is not None
    ]
    records.sort(key=lambda one: (-(one[0]["recoverable_ns"] or 0), -one[0]["kernel_ns"]))
    modelled, rated, recoverable = (
        sum_of([record[of] or 0 for record, _ in records if record[test] is not None])
        for of, test in (
            ("kernel_ns", "kernel_ns"),
            ("kernel_ns", "peak_share"),
            ("recoverable_ns", "peak_share"),
        )
    )
    unknown = max(0, total - rated)
    return Table.from_rows(
        EFFICIENCY,
        scope.text,
        [record for record, _ in records],
        [jump for _, jump in records],
        totals={
            "device_ns": total, "modelled_ns": modelled, "modelled_share": ratio(modelled, total),
            "recoverable_ns": recoverable, "unknown_ns": unknown, "unknown_share": ratio(unknown, total),
        },
        notes=(
            *_notes(recoverable, rated, unknown, total),
            *(note for source in scope.sources for note in scope.trace.capture_notes(source)),
        ),
    )  # fmt: skip


def _notes(recoverable: int, rated: int, unknown: int, total: int) -> tuple[str, ...]:
    """Return what could be got back of how much, and of how much that is not known."""
    if not rated:
        return (
            ("what could be got back is not known: the peak of this device, or no operator's shapes",)
            if total
            else ()
        )
    text = f"of {format_ns(rated)} of kernel time at most {format_ns(recoverable)} could be got back"
    rest = f"; of {format_ns(unknown)} ({format_share(unknown / total)} of all) that is not known"
    return (text + (rest if unknown else ""),)


def _record(key: OpKey, row: _Row, cost: Cost) -> dict[str, Any]:
    flops, size = cost
    tflops, gbs = rates(cost, row.count, row.ns)
    share = peak_share(key, next(iter(row.devices)), tflops, gbs) if len(row.devices) == 1 else None
    return {
        "name": key.name, "shapes": key.shapes, "count": row.count, "flops": flops, "bytes": size,
        "kernel_ns": row.ns, "tflops": tflops, "gbs": gbs, "tflops_min": flops / row.most / 1000,
        "tflops_max": flops / row.least / 1000, "intensity": ratio(flops, size), "peak_share": share,
        "recoverable_ns": None if share is None else recoverable_ns(row.ns, share),
        "above_peak": share is not None and share > 1, "types": key.types, "inputs": key.inputs,
    }  # fmt: skip


def rates(cost: Cost, count: int, ns: int) -> tuple[float, float]:
    """Return (TFLOP/s, GB/s) of so many calls in so many ns."""
    return cost[0] * count / ns / 1000, cost[1] * count / ns


def recoverable_ns(ns: int, share: float) -> int:
    """Return how much shorter work would be at the peak, of which it reaches a share."""
    return round(ns * (1 - min(1.0, max(0.0, share))))


def peak_share(key: OpKey, device: tuple[str, float], tflops: float, gbs: float) -> float | None:
    """Return the part of the peak of FLOP/s or of bytes/s, whichever is nearer to it; None where unknown."""
    peak = peak_of(*device)
    if peak is None:
        return None
    _, kind, typed_by = MODELS[key.name]
    types = key.call.types
    form = TYPES.get(types[typed_by], "") if typed_by < len(types) else ""
    pairs = ((tflops, _flops_peak(peak, kind, form, tflops)), (gbs, peak.get("gbs")))
    return max((a / b for a, b in pairs if isinstance(b, int | float) and b > 0), default=None)


def _flops_peak(peak: Mapping[str, Any], kind: str, form: str, tflops: float) -> Any:
    """Return the peak of FLOP/s of a kind of work on numbers of a type. Products in fp32 run as TF32 on
    tensor cores or without them, which no argument tells: what is faster than the latter can be, is TF32.
    """
    matrix, vector = ({} if not isinstance(peak.get(one), dict) else peak[one] for one in (MATRIX, VECTOR))
    own = (matrix if kind == MATRIX else vector).get(form)
    if own is not None or kind != MATRIX or form != "fp32":
        return own
    plain = vector.get(form)
    return plain if isinstance(plain, int | float) and tflops <= plain else matrix.get("tf32", plain)


def _add(calls: ModelledCalls, source: int, rows: dict[OpKey, _Row]) -> None:
    """Add the calls of a source to the rows of all."""
    groups = Groups(calls.key, len(calls.keys))
    columns = (
        groups.counts,
        groups.sums(calls.ns),
        groups.least(calls.ns),
        groups.most(calls.ns),
        calls.positions[groups.longest(calls.ns)],
    )
    for key, count, ns, least, most, position in zip(calls.keys, *(column.tolist() for column in columns)):
        row = rows.setdefault(key, _Row(least=least))
        if most > row.most:
            row.jump = (source, position)
        row.count, row.ns = row.count + count, row.ns + ns
        row.least, row.most = min(row.least, least), max(row.most, most)
        row.devices.add(calls.device)


def _text(index: Index, number: int) -> str:
    return "" if number < 0 else index.string(number)


def _outermost(index: Index, members: I64, numbers: Mapping[int, str]) -> I64:
    """Return for each member the outermost one around it: a copy inside a normalisation is part of that. An
    elementwise operator has only its like as parts: relu_ is the clamp_min_ in it.
    """
    parent = rows_around(index, members)
    simple = [number for number, name in numbers.items() if name in ELEMENTWISE]
    names = np.append(index.column("slices.name")[members].astype(np.int64), -1)
    parent[np.isin(names[parent], simple) & (names[parent] != names[:-1])] = -1
    top = np.arange(len(members))
    while (inner := parent[top] >= 0).any():
        top[inner] = parent[top[inner]]
    return top


def _other_inputs(
    index: Index, positions: I64, names: Mapping[int, str], ns: I64, most_read: int | None
) -> tuple[I64, list[str]]:
    """Return the inputs of calls that are no tensors, where the cost depends on them: the number of each
    call's text, and the texts. Reading one takes some 40 µs.
    """
    needing = [number for number, name in names.items() if any(word in name for word in NEEDS_VALUES)]
    some = np.flatnonzero(np.isin(index.column("slices.name")[positions], needing))
    texts = {"": 0, UNREAD: 1}
    of_calls = np.zeros(len(positions), np.int64)
    of_calls[some] = texts[UNREAD]
    some = np.sort(some[np.argsort(-ns[some], kind="stable")][:most_read])
    values = argument_values(index, "Concrete Inputs", positions[some]) if len(some) else ()
    read = (json.dumps(value) if isinstance(value, list) else "" for value in values)
    of_calls[some] = [texts.setdefault(text, len(texts)) for text in read]
    return of_calls, list(texts)


def _list(text: str) -> list[Any]:
    try:
        values = json.loads(text) if text else []
    except ValueError:
        return []
    return values if isinstance(values, list) else []


# -- a plot -----------------------------------------------------------------------------------------------


def plot_svg(tables: Tables) -> Iterator[str]:
    """Yield the rows as a picture: FLOP/s over FLOPs per byte by powers of ten, areas by kernel time."""
    rows = [row for row in tables["efficiency"].rows() if row["tflops"] > 0 and row["intensity"]]
    yield '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 480" font-family="sans-serif" '
    yield 'font-size="10">'
    yield '<rect width="640" height="480" fill="white"/><path d="M50 20V440H620" fill="none" stroke="black"/>'
    yield '<text x="330" y="470">FLOP per byte</text><text x="8" y="14">TFLOP/s</text>'
    points = [(log10(row["intensity"]), log10(row["tflops"]), row) for row in rows]
    if points:
        low_x, high_x = floor(min(x for x, _, _ in points)), ceil(max(x for x, _, _ in points) + 0.01)
        low_y, high_y = floor(min(y for _, y, _ in points)), ceil(max(y for _, y, _ in points) + 0.01)
        across, up = 570 / (high_x - low_x), 420 / (high_y - low_y)
        for power in range(low_x, high_x + 1):
            yield f'<text x="{50 + (power - low_x) * across:.1f}" y="455">1e{power}</text>'
        for power in range(low_y, high_y + 1):
            yield f'<text x="8" y="{440 - (power - low_y) * up:.1f}">1e{power}</text>'
        longest = max(row["kernel_ns"] for row in rows)
        for x, y, row in points:
            where = f'cx="{50 + (x - low_x) * across:.1f}" cy="{440 - (y - low_y) * up:.1f}"'
            words = escape(safe(f"{row['name']} {row['shapes']}: {row['tflops']:.4g} TFLOP/s"))
            colour = "crimson" if row["above_peak"] else "steelblue"
            radius = 2 + 12 * (row["kernel_ns"] / longest) ** 0.5
            yield f'<circle {where} r="{radius:.1f}" fill="{colour}" fill-opacity="0.5">'
            yield f"<title>{words}</title></circle>"
    yield "</svg>\n"
