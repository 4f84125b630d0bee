"""The analysis `efficiency`: FLOP/s and bytes/s of operators by name and shapes, and of the peak.

FLOPs and bytes of one call of an operator, from the shapes, types and other inputs in the file.

Bytes are logical: each tensor once, by its own type, without caches. A product counts two FLOPs for each step
of its sum, everything else one for each output (a reduction one for each input).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from html import escape
from math import ceil, floor, log10, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import I64, places_in, sum_of
from ...base.private import settings_table
from ...base.safe_text import safe
from ...index.store import Index
from ...query.args import argument_values
from ...query.lookup import promoted_of
from ..frame.metrics import ratio
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope, rows_around
from ..frame.table import Table, Tables
from ..host.op_sums import LinkedWork, work_in
from ..peers.messages import SIZES

TYPES = {
    "c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64",
    "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8", "c10::Float8_e4m3fnuz": "fp8",
}  # fmt: skip
"""The types by which peaks are given."""
MATRIX, VECTOR = "matrix", "vector"


class Call(NamedTuple):
    """The inputs of a call: shapes, types, and those that are no tensors, as the file has them."""

    dims: Sequence[Any]
    types: Sequence[str]
    values: Sequence[str]

    def numel(self, at: int) -> int:
        return prod(self.dims[at])

    def size(self, at: int) -> int:
        """Return the bytes of an element of an input; KeyError for an unknown type."""
        return SIZES[self.types[at]]

    def bytes(self, *inputs: int) -> int:
        return sum(self.numel(at) * self.size(at) for at in inputs)

    def is_tensor(self, at: int) -> bool:
        """Tell whether an input is a tensor of a known type; one without dimensions has one element."""
        return at < len(self.types) and self.types[at] in SIZES

    def value(self, at: int) -> Any:
        """Return an input that is no tensor: true, false, a list, a number; None where there is none."""
        text = self.values[at] if at < len(self.values) else ""
        if text in ("True", "False"):
            return text == "True"
        if text.startswith("["):
            parts = [part.strip() for part in text.strip("[]").split(",") if part.strip()]
            return [part == "True" if part in ("True", "False") else float(part) for part in parts]
        return float(text) if text else None


Cost = tuple[int, int]
"""(FLOPs, bytes)"""


def _mm(call: Call, bias: bool = False) -> Cost:
    first = 1 if bias else 0
    *batch, m, k = call.dims[first]
    n = call.dims[first + 1][-1]
    outputs = prod(batch) * m * n
    flops = 2 * outputs * k + (outputs if bias else 0)
    return flops, call.bytes(*range(first + 2)) + outputs * call.size(first)


def _convolution(call: Call) -> Cost:
    inputs, weight = call.dims[0], call.dims[1]
    transposed, stride, padding, dilation = (call.value(at) for at in (6, 3, 4, 5))
    space = [
        (size - 1) * int(step) - 2 * int(pad) + int(gap) * (kernel - 1) + 1 + int(more)
        if transposed
        else (size + 2 * int(pad) - int(gap) * (kernel - 1) - 1) // int(step) + 1
        for size, kernel, step, pad, gap, more in zip(
            inputs[2:],
            weight[2:],
            *(_each(one, inputs) for one in (stride, padding, dilation, call.value(7))),
        )
    ]
    groups = int(call.value(8) or 1)
    channels = weight[1] * groups if transposed else weight[0]
    outputs = inputs[0] * channels * prod(space)
    steps = inputs[0] * prod(inputs[2:] if transposed else space) * prod(weight)
    has_bias = call.is_tensor(2)
    size = call.bytes(0, 1, *([2] if has_bias else [])) + outputs * call.size(0)
    return 2 * steps + (outputs if has_bias else 0), size


def _each(values: Any, inputs: Sequence[int]) -> list[float]:
    """Return a value for each dimension of space."""
    space = len(inputs) - 2
    own = list(values) if isinstance(values, list) else [values or 0]
    return own * space if len(own) == 1 else own


def _convolution_backward(call: Call) -> Cost:
    """Only what the mask asks for: the gradients of input, weight and bias."""
    mask = call.value(10) or [True, True, True]
    gradient, inputs, weight = call.dims[:3]
    spatial = inputs if call.value(7) else gradient
    steps = 2 * spatial[0] * prod(spatial[2:]) * prod(weight)
    flops = steps * (int(mask[0]) + int(mask[1])) + (prod(gradient) if mask[2] else 0)
    size = call.bytes(0, 1, 2) * (int(mask[0]) + int(mask[1]))
    return flops, size + (gradient[1] * call.size(0) if mask[2] else 0)


def _attention(causal_at: int) -> Callable[[Call], Cost]:
    def cost(call: Call) -> Cost:
        (batch, heads, queries, depth), (*_, keys, _), (*_, width) = call.dims[:3]
        steps = 2 * batch * heads * queries * keys * (depth + width)
        is_half = call.value(causal_at) is True and queries == keys
        outputs = batch * heads * queries * width
        return steps // (2 if is_half else 1), call.bytes(0, 1, 2) + outputs * call.size(0)

    return cost


def _elementwise(operands: int) -> Callable[[Call], Cost]:
    """Return the cost of so many operands: a tensor more is the output, where the caller gave one."""

    def cost(call: Call) -> Cost:
        tensors = [at for at in range(len(call.types)) if call.is_tensor(at)][:operands]
        outputs = _broadcast([call.dims[at] for at in tensors])
        # One without dimensions does not make the output wider.
        wide = [call.size(at) for at in tensors if call.dims[at]] or [call.size(at) for at in tensors]
        return outputs, call.bytes(*tensors) + outputs * max(wide)

    return cost


def _copy(call: Call) -> Cost:
    return call.numel(0), call.numel(0) * call.size(0) + call.bytes(1)


def _broadcast(shapes: Sequence[Sequence[int]]) -> int:
    longest = max(map(len, shapes))
    aligned = [[1] * (longest - len(shape)) + list(shape) for shape in shapes]
    return prod(0 if 0 in sizes else max(sizes) for sizes in zip(*aligned))


def _reduction(call: Call) -> Cost:
    dims = call.value(1)
    axes = {int(at) % len(call.dims[0]) for at in dims} if isinstance(dims, list) and dims else None
    left = [] if axes is None else [size for at, size in enumerate(call.dims[0]) if at not in axes]
    return call.numel(0), call.bytes(0) + prod(left) * call.size(0)


def _batch_norm(call: Call) -> Cost:
    n, channels = call.numel(0), call.dims[0][1]
    is_training = call.value(5) is True
    vectors = sum(call.is_tensor(at) for at in range(1, 5)) + (2 if is_training else 0)
    return (5 if is_training else 2) * n + 6 * channels, 2 * call.bytes(0) + vectors * channels * call.size(0)


def _batch_norm_backward(call: Call) -> Cost:
    return 9 * call.numel(1), call.bytes(0, 1) + call.bytes(1) + 4 * call.dims[1][1] * call.size(1)


Model = tuple[Callable[[Call], Cost], str, int]
# fmt: off
OPERANDS = {
    1: (
        "neg", "exp", "log", "sqrt", "rsqrt", "abs", "sin", "cos", "tanh", "sigmoid", "relu", "relu_", "gelu",
        "silu", "reciprocal", "square",
    ),
    2: (
        "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow", "clamp_min", "clamp_min_",
        "threshold_backward", "eq", "ne", "lt", "gt", "le", "ge",
    ),
    3: ("where", "clamp", "clamp_"),
}
# fmt: on
"""Elementwise operators by the number of their tensors."""
ELEMENTWISE = {f"aten::{name}": count for count, names in OPERANDS.items() for name in names}
MODELS: dict[str, Model] = {
    "aten::mm": (_mm, MATRIX, 0),
    "aten::bmm": (_mm, MATRIX, 0),
    "aten::addmm": (lambda call: _mm(call, True), MATRIX, 1),
    "aten::baddbmm": (lambda call: _mm(call, True), MATRIX, 1),
    "aten::convolution": (_convolution, MATRIX, 0),
    "aten::convolution_backward": (_convolution_backward, MATRIX, 0),
    "aten::_scaled_dot_product_flash_attention": (_attention(4), MATRIX, 0),
    "aten::_scaled_dot_product_efficient_attention": (_attention(6), MATRIX, 0),
    "aten::_scaled_dot_product_cudnn_attention": (_attention(6), MATRIX, 0),
    "aten::copy_": (_copy, VECTOR, 0),
    "aten::sum": (_reduction, VECTOR, 0),
    "aten::mean": (_reduction, VECTOR, 0),
    "aten::batch_norm": (_batch_norm, VECTOR, 0),
    "aten::native_batch_norm_backward": (_batch_norm_backward, VECTOR, 1),
    **{name: (_elementwise(count), VECTOR, 0) for name, count in ELEMENTWISE.items()},
}
"""Name -> (cost, what does the work, the input whose type it has)."""


def cost_of(name: str, call: Call) -> Cost | None:
    """Return the FLOPs and bytes of a call; None where its inputs are not known or no model has them."""
    try:
        flops, size = MODELS[name][0](call)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None
    return (flops, size) if flops >= 0 else None


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
        Column("above_peak", "above it", "number", detail=True),
        Column("types", "types", "text", detail=True),
        Column("inputs", "other inputs", "text", detail=True),
    ),
    keys=("name", "shapes", "types", "inputs"),
    read_by="kernel_ns",
    chief=("name", "shapes", "kernel_ns", "tflops", "peak_share", "gbs"),
)
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
    modelled = sum_of([row.ns for _, row, _ in values])
    return Table.from_rows(
        EFFICIENCY,
        scope.text,
        [_record(key, row, cost) for key, row, cost in values],
        [row.jump for _, row, _ in values],
        totals={"device_ns": total, "modelled_ns": modelled, "modelled_share": ratio(modelled, total)},
    )


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
    first = next(iter(index.device_properties), None)
    if first is None:
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
