"""The analysis `efficiency`: FLOP/s and bytes/s of operators by name and shapes, and of the peak."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

import numpy as np

from ..base.arrays import I64, places_in, sum_of
from ..base.private import settings_table
from ..base.safe_text import safe
from ..index.store import Index
from ..query.lookup import promoted_of
from ..query.promoted_terms import argument_values
from .metrics import ratio
from .op_models import ELEMENTWISE, MODELS, TYPES, Call, cost_of
from .op_sums import LinkedWork, work_in
from .schema import schema_from
from .scope import Scope
from .slices import rows_around
from .table import Table, Tables

EFFICIENCY = schema_from("""
    efficiency: Efficiency of operators; keys name shapes types inputs; read_by kernel_ns; chief name shapes
    kernel_ns tflops peak_share gbs;
    name: text = op (is_name), shapes: text, count = calls, flops = FLOPs of a call, bytes = bytes of a call,
    kernel_ns = kernel time, tflops: number = TFLOP/s, gbs: number = GB/s, tflops_min: number = least TFLOP/s
    (detail), tflops_max: number = most TFLOP/s (detail), intensity: number = FLOP/byte, peak_share = of the
    peak, above_peak: number = above it (detail), types: text (detail), inputs: text = other inputs (detail)
""")
NEEDS_VALUES = ("convolution", "attention", "sum", "mean", "batch_norm")
"""Operators whose cost depends on inputs that are no tensors."""


@dataclass
class _Row:
    call: Call
    count: int = 0
    ns: int = 0
    least: int = 0
    most: int = 0
    jump: tuple[int, int] = (0, -1)
    devices: set[tuple[str, float]] = field(default_factory=set)


def analyse_efficiency(scope: Scope) -> Tables:
    """Return what operators with a model achieve, by name, shapes, types and inputs. Raises Cancelled."""
    return Tables(scope.text, scope.origin, {"efficiency": lambda: efficiency(scope)})


def efficiency(scope: Scope) -> Table:
    """Return a row for each operator and its inputs, most kernel time first. Its kernel time is, of each
    call, the time in which any work ran that was launched in it; rates are ratios of sums. Raises Cancelled.
    """
    rows: dict[tuple[str, ...], _Row] = {}
    total = covered = 0
    for source in scope.sources:
        one, own = _add(scope, source, rows)
        total, covered = total + one, covered + own
    values = sorted(((key, row, cost) for key, row in rows.items() if (cost := cost_of(key[0], row.call))),
                    key=lambda entry: -entry[1].ns)  # fmt: skip
    table = Table.from_rows(
        EFFICIENCY,
        scope.text,
        [_record(key, row, cost) for key, row, cost in values],
        [row.jump for _, row, _ in values],
        totals={"device_ns": total, "modelled_ns": sum_of([row.ns for _, row, _ in values]),
                "modelled_share": ratio(sum_of([row.ns for _, row, _ in values]), total)},
    )  # fmt: skip
    return table


def _record(key: tuple[str, ...], row: _Row, cost: tuple[int, int]) -> dict[str, Any]:
    flops, size = cost
    name, shapes, types, inputs = key
    tflops, gbs = flops * row.count / row.ns / 1000, size * row.count / row.ns
    share = _peak_share(name, row, tflops, gbs)
    return {
        "name": name, "shapes": shapes, "count": row.count, "flops": flops, "bytes": size,
        "kernel_ns": row.ns, "tflops": tflops, "gbs": gbs, "tflops_min": flops / row.most / 1000,
        "tflops_max": flops / row.least / 1000, "intensity": ratio(flops, size), "peak_share": share,
        "above_peak": share is not None and share > 1, "types": types, "inputs": inputs,
    }  # fmt: skip


def _add(scope: Scope, source: int, rows: dict[tuple[str, ...], _Row]) -> tuple[int, int]:
    """Add the calls of a source; return the time of its device work, and that of calls with a model."""
    index = scope.trace.indexes[source]
    numbers = {number: name for name in MODELS for number in index.string_numbers(name)}
    names = index.column("slices.name")
    members = np.flatnonzero(np.isin(names, np.array(list(numbers), names.dtype)))
    work, around = work_in(scope, source, members)
    top = np.append(_outermost(index, members, numbers), -1)
    nodes = top[places_in(members, around)]
    linked = LinkedWork(work, nodes, np.full(len(members), -1, np.int64))
    busy = linked.busy_ns(np.arange(len(members)), len(members))
    used = np.flatnonzero(busy)
    positions, ns = members[used], busy[used]
    keys = [promoted_of(index, key, positions, -1) for key in ("input_dims", "input_type")]
    texts = [["" if at < 0 else index.string(at) for at in column.tolist()] for column in keys]
    inputs = _other_inputs(index, positions, [numbers[int(at)] for at in names[positions]])
    device = device_of(index)
    for position, time, dims, types, more in zip(positions.tolist(), ns.tolist(), *texts, inputs):
        key = (numbers[int(names[position])], dims, types, more)
        row = rows.get(key)
        if row is None:
            row = rows[key] = _Row(Call(*map(_list, (dims, types, more))), least=time)
        row.count, row.ns = row.count + 1, row.ns + time
        if time > row.most:
            row.jump = (source, position)
        row.least, row.most = min(row.least, time), max(row.most, time)
        row.devices.add(device)
    return sum_of(work.full_ns), sum_of(ns)


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


def _other_inputs(index: Index, positions: I64, names: list[str]) -> list[str]:
    texts = [""] * len(positions)
    some = [at for at, name in enumerate(names) if any(word in name for word in NEEDS_VALUES)]
    values = argument_values(index, "Concrete Inputs", positions[some]) if some else ()
    for at, value in zip(some, values):
        texts[at] = json.dumps(value) if isinstance(value, list) else ""
    return texts


def _list(text: str) -> list[Any]:
    try:
        values = json.loads(text) if text else []
    except ValueError:
        return []
    return values if isinstance(values, list) else []


# -- peaks ------------------------------------------------------------------------------------------------


def device_of(index: Index) -> tuple[str, float]:
    """Return the name of a source's device and its memory in GB; ("", 0) where the file names none."""
    properties = index.envelope.get("deviceProperties")
    first = properties[0] if isinstance(properties, list) and properties else None
    if not isinstance(first, dict):
        return "", 0.0
    memory = first.get("totalGlobalMem")
    return str(first.get("name", "")), memory / 1e9 if isinstance(memory, int | float) else 0.0


@cache
def peaks() -> tuple[Mapping[str, Any], ...]:
    """Return what devices can do: the tables below `peaks` of the settings, then those of peaks.toml."""
    own = settings_table("peaks").items()
    mine = [{"name": name, **table} for name, table in own if isinstance(table, dict)]
    text = (Path(__file__).parent / "peaks.toml").read_text(encoding="utf-8")
    return (*mine, *tomllib.loads(text)["device"])


def peak_of(device: str, memory_gb: float) -> Mapping[str, Any] | None:
    """Return what a device of this name can do, None where that is not known."""
    for one in peaks():
        is_other = one.get("without") and _has_words(device, str(one["without"]))
        if _has_words(device, str(one["name"])) and not is_other and memory_gb >= one.get("memory_gb", 0):
            return one
    return None


def _has_words(device: str, words: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(words)}(?![a-z0-9])", device, re.IGNORECASE) is not None


def _peak_share(name: str, row: _Row, tflops: float, gbs: float) -> float | None:
    """Return the part of the peak of FLOP/s or of bytes/s, whichever is nearer to it; None where unknown."""
    peak = peak_of(*next(iter(row.devices))) if len(row.devices) == 1 else None
    if peak is None:
        return None
    _, kind, typed_by = MODELS[name]
    form, of_kind = TYPES.get(row.call.types[typed_by], ""), peak.get(kind)
    pairs = ((tflops, of_kind.get(form) if isinstance(of_kind, dict) else None), (gbs, peak.get("gbs")))
    return max((a / b for a, b in pairs if isinstance(b, int | float) and b > 0), default=None)


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
