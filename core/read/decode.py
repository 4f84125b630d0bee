"""Decoding elements for those who need their values: arguments on demand, and what is nested very deep."""

from __future__ import annotations

import re
from decimal import Decimal
from io import BytesIO
from typing import Any

import orjson

EXACT_KEYS = frozenset({"ts", "dur"})
_ENDLESS = re.compile(rb"(?<![0-9])[0-9]{4301}")
"""More digits than Python reads as an integer; the C library of ijson does not survive far longer ones."""


_BEYOND_ORJSON = ("depth", "recursion", "infinity", "range")
"""In orjson's message: sound JSON that it refuses all the same."""


def decode_elements(data: bytes) -> list[object]:
    """Decode elements joined by commas; ValueError where they are no JSON."""
    try:
        elements: list[object] = orjson.loads(b"".join((b"[", data, b"]")))
    except orjson.JSONDecodeError as error:
        if any(word in str(error).lower() for word in _BEYOND_ORJSON):
            return decode_deep(data)
        raise
    return elements


def decode_deep(data: bytes) -> list[object]:
    """Decode elements joined by commas, however deep; ValueError where they are no JSON.

    Integers keep all their digits, `ts` and `dur` of events are Decimals, other fractions floats.
    """
    import ijson  # few need it

    data.decode("utf-8")
    if _ENDLESS.search(data):
        raise ValueError("a number of more digits than can be read")
    result: list[object] = []
    stack: list[Any] = []
    keys: list[str] = []
    container: Any = None
    key = ""
    try:
        for event, value in ijson.basic_parse(BytesIO(b"[" + data + b"]"), use_float=False):
            if event == "map_key":
                key = value
                continue
            if event in ("end_map", "end_array"):
                container, key = stack.pop(), keys.pop()
                continue
            opens = event in ("start_map", "start_array")
            if opens:
                value = {} if event == "start_map" else []
                if container is None and not stack and event == "start_array":
                    stack.append(None)
                    keys.append("")
                    container = result
                    continue
            elif type(value) is Decimal and not (
                len(stack) == 2 and key in EXACT_KEYS and type(container) is dict
            ):
                value = float(value)
            if type(container) is dict:
                container[key] = value
            else:
                container.append(value)
            if opens:
                stack.append(container)
                keys.append(key)
                container = value
    except (ijson.JSONError, ArithmeticError) as error:  # ArithmeticError: an exponent beyond Decimal's
        raise ValueError(str(error)) from error
    return result
