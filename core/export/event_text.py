"""The text of single events out of a block, byte by byte as it stands in the source."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal
from typing import Any

import orjson

from ..base.json_text import structure
from ..read.repair import RepairedEvent, repair

EXACT_KEYS = ("ts", "dur")
_GAP = re.compile(rb"[\s,]*+")


def event_texts(data: bytes, count: int, repaired: bool) -> list[bytes]:
    """Return the text of each of a block's elements, in the order in which they were counted.

    What is no valid JSON is written anew from what could be read of it, times with all their digits.
    """
    if not repaired:
        shape = structure(data)
        if len(shape.ends) == count and shape.close is None and shape.stray is None:
            texts, begin = [], 0
            for end in shape.ends:
                gap = _GAP.match(data, begin)
                texts.append(data[gap.end() if gap else begin : end])
                begin = end
            return texts
    items = [item for item in repair(data) if isinstance(item, RepairedEvent)]
    return [_sound(data[item.offset : item.offset + item.length], item) for item in items]


def _sound(text: bytes, item: RepairedEvent) -> bytes:
    """Return an element's own text where it is valid JSON, else its value written anew."""
    if not item.why:
        try:
            orjson.loads(text)
        except ValueError:
            pass
        else:
            return text
    return event_text(item.value)


def event_text(value: Any) -> bytes:
    """Return a value as JSON; Decimals as the numbers they are, what JSON has no number for as text."""
    if not isinstance(value, dict):
        return json.dumps(_plain(value), ensure_ascii=False).encode("utf-8", "replace")
    fields = []
    for key, field in value.items():
        exact = isinstance(field, Decimal) and field.is_finite()
        text = str(field) if exact else json.dumps(_plain(field), ensure_ascii=False)
        fields.append(f"{json.dumps(str(key), ensure_ascii=False)}: {text}")
    return ("{" + ", ".join(fields) + "}").encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
