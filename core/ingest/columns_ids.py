"""Ids of flow, async and counter events: which kind of id it is, and a number that is equal for equal ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .columns import I64, U8, IdKind
from .columns_time import values_of
from .interning import StringTable, json_text


def id_columns(events: Sequence[dict[str, Any]], strings: StringTable, exact: bool) -> tuple[U8, I64]:
    """Return (id_kind, id_value) per event; see `IdKind`."""
    values = values_of(events, "id")
    if set(map(type, values)) == {int} and not any("id2" in e or "scope" in e for e in events):
        try:
            return np.full(len(events), IdKind.INTEGER, np.uint8), np.array(values, np.int64)
        except OverflowError:
            pass
    pairs = [_id_of(event, strings, exact) for event in events]
    return np.array([kind for kind, _ in pairs], np.uint8), np.array([value for _, value in pairs], np.int64)


def _id_of(event: dict[str, Any], strings: StringTable, exact: bool) -> tuple[IdKind, int]:
    scope = event.get("scope")
    second = event.get("id2")
    if type(second) is dict:
        for key, kind in (("local", IdKind.LOCAL), ("global", IdKind.GLOBAL)):
            value = second.get(key)
            if value is not None:
                return kind, strings[json_text(value if scope is None else [scope, value], exact)]
    value = event.get("id")
    if value is None:
        return IdKind.NONE, 0
    if scope is not None:
        return IdKind.SCOPED, strings[json_text([scope, value], exact)]
    if type(value) is int and -(1 << 63) <= value < 1 << 63:
        return IdKind.INTEGER, value
    return IdKind.TEXT, strings[json_text(value, exact)]
