"""FLOPs and bytes of one call of an operator, from the shapes, types and other inputs in the file.

Bytes are logical: each tensor once, by its own type, without caches. A product counts two FLOPs for each step
of its sum, everything else one for each output (a reduction one for each input).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

from ..peers.messages import SIZES

TYPES = {
    "c10::BFloat16": "bf16", "c10::Half": "fp16", "float": "fp32", "double": "fp64",
    "c10::Float8_e4m3fn": "fp8", "c10::Float8_e5m2": "fp8", "c10::Float8_e4m3fnuz": "fp8",
}  # fmt: skip
"""The types by which peaks are given."""
MATRIX, VECTOR = "matrix", "vector"
WHOLE = frozenset(
    {"long int", "long", "int", "short", "short int", "bool", "signed char", "unsigned char", "char"}
)
"""The types of whole numbers."""
NUMBERED = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 8: 4, 9: 8, 10: 16, 11: 1, 15: 2}
"""Bytes of an element by the number of its type. Source: PyTorch, c10/core/ScalarType.h."""
TRUTHS = frozenset({"eq", "ne", "lt", "gt", "le", "ge", "isnan", "logical_not", "logical_and"})
"""Elementwise operators that write truth values."""
FRACTIONS = frozenset(
    {"div", "exp", "log", "sqrt", "rsqrt", "sin", "cos", "tanh", "sigmoid", "reciprocal", "erf"}
)
"""Elementwise operators that write numbers with fractions, of whole numbers too."""


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

    def with_fractions(self, tensors: Sequence[int]) -> list[int]:
        """Return those of some tensors whose numbers have fractions."""
        return [at for at in tensors if self.types[at] not in WHOLE]

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


def _elementwise(name: str, operands: int) -> Callable[[Call], Cost]:
    """Return the cost of so many operands: a tensor more is the output, where the caller gave one."""

    def cost(call: Call) -> Cost:
        tensors = [at for at in range(len(call.types)) if call.is_tensor(at)][:operands]
        outputs = _broadcast([call.dims[at] for at in tensors])
        return outputs, call.bytes(*tensors) + outputs * _output_size(name, call, tensors)

    return cost


def _output_size(name: str, call: Call, tensors: Sequence[int]) -> int:
    """Return the bytes of an element of what an elementwise operator writes: truth values of a byte, in place
    the first tensor's type, else that of its tensors together. One without dimensions makes it no wider,
    unless it alone is a number with a fraction; quotients, roots and the like of whole numbers are fp32.
    Source: PyTorch's documentation, "Tensor Attributes", type promotion.

    An int64 tensor times an fp32 tensor: 4 bytes; int64 tensors are equal: 1; int64 by int64: 4.
    """
    plain = name.removeprefix("aten::")
    if plain in TRUTHS:
        return 1
    if plain.endswith("_") or plain == "masked_fill":
        return call.size(tensors[0])
    of = tensors[1:] if plain == "where" else tensors
    wide = [at for at in of if call.dims[at]] or of
    deciding = next((some for some in map(call.with_fractions, (wide, of)) if some), wide)
    size = max(map(call.size, deciding))
    return SIZES["float"] if plain in FRACTIONS and not call.with_fractions(deciding) else size


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
    own = SIZES["long int"] if call.types[0] in WHOLE else call.size(0)
    size = _asked_size(call, 3 if len(call.types) > 3 else 1) or own
    return call.numel(0), call.bytes(0) + prod(left) * size


def _asked_size(call: Call, at: int) -> int | None:
    """Return the bytes of an element of the type that an input names by its number; None where none does."""
    number = call.value(at)
    return NUMBERED.get(int(number)) if isinstance(number, float) else None


def _softmax(inputs: int) -> Callable[[Call], Cost]:
    """Of each element its exponent, the sums and the quotient: five FLOPs; of the backward pass, too. Its
    output is fp32 where the call says so of a half (half_to_float), the input's type in the backward pass.
    """

    def cost(call: Call) -> Cost:
        n = call.numel(0)
        if inputs == 1:
            size = SIZES["float"] if call.value(2) is True else call.size(0)
        else:
            size = _asked_size(call, 3) or call.size(0)
        return 5 * n, call.bytes(*range(inputs)) + n * size

    return cost


def _norm(call: Call) -> Cost:
    """A norm over the last dimensions, with as many weights as the call has."""
    n = call.numel(0)
    weights = [at for at in range(1, len(call.types)) if call.is_tensor(at) and call.dims[at]]
    return 5 * n + len(weights) * n, 2 * call.bytes(0) + call.bytes(*weights)


def _norm_backward(call: Call) -> Cost:
    """From gradient and input the gradient of the input; those of the weights are small."""
    return 8 * call.numel(1), call.bytes(0, 1) + call.bytes(1)


def _rows_taken(indices_at: int) -> Callable[[Call], Cost]:
    """Return the cost of taking rows of a table by their numbers: they are read and written, no more."""

    def cost(call: Call) -> Cost:
        count = call.numel(indices_at)
        width = prod(call.dims[0][1:])
        if indices_at == 2 and call.value(1) != 0:  # index_select along another dimension
            along = int(call.value(1))
            width = call.numel(0) // call.dims[0][along]
        return count * width, call.bytes(indices_at) + 2 * count * width * call.size(0)

    return cost


def _gather(call: Call) -> Cost:
    return call.numel(2), call.bytes(2) + 2 * call.numel(2) * call.size(0)


def _dropout(call: Call) -> Cost:
    """The output and a mask of a byte for each element."""
    return call.numel(0), 2 * call.bytes(0) + call.numel(0)


def _fill(call: Call) -> Cost:
    return call.numel(0), call.bytes(0)


def _grouped_mm(call: Call) -> Cost:
    """Products of groups of rows with a matrix for each group (mixtures of experts): each row once."""
    if len(call.dims[0]) != 2 or len(call.dims[1]) != 3:
        raise ValueError("another form than rows × (groups, k, n)")
    (m, k), (_, _, n) = call.dims[:2]
    return 2 * m * k * n, call.bytes(0, 1) + m * n * 2  # of 16 bits, as its outputs are


def _scaled_mm(call: Call) -> Cost:
    (m, k), (_, n) = call.dims[:2]
    return 2 * m * k * n, call.bytes(0, 1) + m * n * 2


def _attention_backward(causal_at: int) -> Callable[[Call], Cost]:
    """Return the cost from gradient, query, key and value on: five products in place of two."""
    forward = _attention(causal_at - 1)

    def cost(call: Call) -> Cost:
        inner = Call(call.dims[1:], call.types[1:], call.values[1:])
        flops, _ = forward(inner)
        return flops * 5 // 2, 2 * call.bytes(1, 2, 3) + 2 * call.bytes(0)

    return cost


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
        "silu", "reciprocal", "square", "relu6", "leaky_relu", "elu", "hardtanh", "hardswish", "softplus",
        "erf", "bitwise_not", "logical_not", "isnan", "floor", "ceil", "round", "sign", "gelu_", "silu_",
        "tanh_", "exp_",
    ),
    2: (
        "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow", "clamp_min", "clamp_min_",
        "threshold_backward", "eq", "ne", "lt", "gt", "le", "ge", "gelu_backward", "silu_backward",
        "tanh_backward", "sigmoid_backward", "maximum", "minimum", "bitwise_and", "logical_and",
        "masked_fill", "masked_fill_",
    ),
    3: ("where", "clamp", "clamp_", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_"),
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
    "aten::_scaled_dot_product_flash_attention_backward": (_attention_backward(11), MATRIX, 1),
    "aten::_scaled_dot_product_efficient_attention_backward": (_attention_backward(11), MATRIX, 1),
    "aten::_scaled_dot_product_cudnn_attention_backward": (_attention_backward(14), MATRIX, 1),
    "aten::_scaled_mm": (_scaled_mm, MATRIX, 0),
    "aten::_grouped_mm": (_grouped_mm, MATRIX, 0),
    "aten::_softmax": (_softmax(1), VECTOR, 0),
    "aten::_log_softmax": (_softmax(1), VECTOR, 0),
    "aten::_softmax_backward_data": (_softmax(2), VECTOR, 0),
    "aten::_log_softmax_backward_data": (_softmax(2), VECTOR, 0),
    "aten::native_layer_norm": (_norm, VECTOR, 0),
    "aten::native_layer_norm_backward": (_norm_backward, VECTOR, 1),
    "aten::_fused_rms_norm": (_norm, VECTOR, 0),
    "aten::embedding": (_rows_taken(1), VECTOR, 0),
    "aten::index_select": (_rows_taken(2), VECTOR, 0),
    "aten::gather": (_gather, VECTOR, 0),
    "aten::native_dropout": (_dropout, VECTOR, 0),
    "aten::fill_": (_fill, VECTOR, 0),
    "aten::copy_": (_copy, VECTOR, 0),
    "aten::sum": (_reduction, VECTOR, 0),
    "aten::mean": (_reduction, VECTOR, 0),
    "aten::batch_norm": (_batch_norm, VECTOR, 0),
    "aten::native_batch_norm_backward": (_batch_norm_backward, VECTOR, 1),
    **{name: (_elementwise(name, count), VECTOR, 0) for name, count in ELEMENTWISE.items()},
}
"""Name -> (cost, what does the work, the input whose type it has)."""


class Passed(NamedTuple):
    """What an elementwise operator reads and writes: elements of each input, elements and bytes of its
    output.
    """

    inputs: tuple[int, ...]
    output: int
    bytes: int


def passed_by(name: str, call: Call) -> Passed | None:
    """Return what a call of an elementwise operator or a copy passes on; None for others."""
    try:
        if name == "aten::copy_":
            return Passed((call.numel(1),), call.numel(0), call.bytes(0))
        tensors = [at for at in range(len(call.types)) if call.is_tensor(at)][: ELEMENTWISE[name]]
        outputs = _broadcast([call.dims[at] for at in tensors])
        inputs = tuple(call.numel(at) for at in tensors)
        return Passed(inputs, outputs, outputs * _output_size(name, call, tensors))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None


def cost_of(name: str, call: Call) -> Cost | None:
    """Return the FLOPs and bytes of a call; None where its inputs are not known or no model has them."""
    try:
        flops, size = MODELS[name][0](call)
    except (LookupError, TypeError, ValueError, ArithmeticError):
        return None
    return (flops, size) if flops >= 0 else None
