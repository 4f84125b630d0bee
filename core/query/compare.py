"""Columns of numbers compared with the numbers of a filter, exactly."""

from __future__ import annotations

from math import ceil, floor
from typing import Any

import numpy as np

from ..base.arrays import AnyArray
from .filter import Number


def compared(values: AnyArray, number: Number) -> AnyArray:
    """Return which numbers of an array fit, exactly."""
    target = number.value
    if values.dtype.kind == "f":
        return _ordered(values, number.op, number.nearest)
    low, high = floor(target), ceil(target)
    limits = np.iinfo(values.dtype)
    if number.op == "=" and (low != high or not limits.min <= low <= limits.max):
        return np.zeros(len(values), bool)
    bound = low if number.op in (">", "<=", "=") else high
    if bound > limits.max or bound < limits.min:
        return np.full(len(values), (bound < limits.min) == (number.op in (">", ">=")))
    return _ordered(values, number.op, values.dtype.type(bound))


def _ordered(values: AnyArray, op: str, bound: Any) -> AnyArray:
    compare: Any = {
        ">": np.greater,
        ">=": np.greater_equal,
        "<": np.less,
        "<=": np.less_equal,
        "=": np.equal,
    }[op]
    holds: AnyArray = compare(values, bound)
    return holds
