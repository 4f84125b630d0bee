"""Ids of flow, async and counter events: which kind of id it is, and a number that is equal for equal ids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from operator import contains
from typing import Any, NamedTuple

from .columns import IdKind
from .columns_time import values_of
from .interning import StringTable, json_text
from .packed import packed_integers


class Ids(NamedTuple):
    """`id_kind` and `id_value` of some events, as raw native values."""

    kinds: bytes  # uint8, see `IdKind`
    values: bytes  # int64


def ids_of(events: Sequence[dict[str, Any]], strings: StringTable, exact: bool) -> Ids:
    """Return the ids of events."""
    numbers = packed_integers(values_of(events, "id"))
    if numbers is not None and not any(any(map(contains, events, repeat(key))) for key in ("id2", "scope")):
        return Ids(bytes([IdKind.INTEGER]) * len(events), numbers)
    pairs = [_id_of(event, strings, exact) for event in events]
    return Ids(bytes(kind for kind, _ in pairs), packed_integers([value for _, value in pairs]) or b"")


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
