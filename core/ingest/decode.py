"""Decoders: the bytes of a block to events. Two of them, with one result.

`orjson` is the fast one. `ijson` is the reference: integers of any size and values of any depth, without
recursion, and `ts` and `dur` of events as exact Decimals. The fast decoder hands over to the reference where
it would not say what the text says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any, TypeAlias

import orjson

Decoder: TypeAlias = Callable[[bytes], list[object]]

EXACT_KEYS = frozenset({"ts", "dur"})
_ENDLESS = re.compile(rb"(?<![0-9])[0-9]{4301}")
"""More digits than Python reads as an integer; ijson's C library does not survive far longer ones."""
_BEYOND_ORJSON = ("depth", "recursion", "infinity", "range")
"""In orjson's message: well-formed JSON that it refuses all the same."""
_LONE = re.compile(
    rb"(?<!\\)(?:\\\\)*(?:\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F])"
)


def decode_fast(data: bytes) -> list[object]:
    """Decode events joined by commas with orjson; ValueError where they are no JSON."""
    try:
        events: list[object] = orjson.loads(b"".join((b"[", data, b"]")))
    except orjson.JSONDecodeError as error:
        message = str(error).lower()
        if any(word in message for word in _BEYOND_ORJSON):
            return decode_exact(data)
        raise
    return events


def decode_exact(data: bytes) -> list[object]:
    """Decode events joined by commas with ijson, `ts` and `dur` of events exactly; ValueError if no JSON.

    Integers keep all their digits. Other fractions become floats, as orjson reads them.
    """
    import ijson  # every process that reads would load it, and few need it

    data.decode("utf-8")
    if _ENDLESS.search(data):
        raise ValueError("a number of more digits than can be read")
    if b"\\u" in data and _LONE.search(data):
        raise ValueError("lone surrogate")
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


DECODERS: Mapping[str, Decoder] = {"orjson": decode_fast, "ijson": decode_exact}
"""What `--decoder` may name."""
