"""Parts in a form that compares: rows with strings, tracks and ordinals of the whole file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from operator import itemgetter
from typing import Any

from tests.batches import Part
from tracelane.core.read.batch import IdKind
from tracelane.core.read.promoted import PROMOTED, Kind

_TEXTS = {one.key for one in PROMOTED if one.kind is Kind.TEXT}


def whole(parts: Iterable[Part]) -> dict[str, Any]:
    """Return all that parts in file order say together, wherever they were cut; block tables left out."""
    contents: dict[str, Any] = {"timed": [], "flows": [], "asyncs": [], "counters": []}
    promoted: dict[str, list[tuple[int, Any]]] = {}
    metadata: dict[tuple[str, str, str], tuple[int, str]] = {}
    counts: Counter[str] = Counter()
    base = 0
    for part in parts:
        strings, tracks = part.strings, part.tracks
        for name in ("timed", "flows", "asyncs", "counters"):
            table = {column: values.tolist() for column, values in part.tables[name].items()}
            table["ordinal"] = [ordinal + base for ordinal in table["ordinal"]]
            table["track"] = [tracks[track] for track in table["track"]]
            for column in ("category", "name", "series"):
                if column in table:
                    table[column] = [strings[number] for number in table[column]]
            if "id_kind" in table:
                table["id_value"] = [
                    strings[value] if kind > IdKind.INTEGER else value
                    for kind, value in zip(table["id_kind"], table["id_value"])
                ]
            sort_column = list(table).index("ordinal")
            contents[name] += sorted(zip(*table.values()), key=itemgetter(sort_column))
        for key, table_of_key in part.promoted.items():
            values = table_of_key["value"].tolist()
            if key in _TEXTS:
                values = [strings[value] for value in values]
            ordinals = [ordinal + base for ordinal in table_of_key["ordinal"].tolist()]
            promoted.setdefault(key, []).extend(zip(ordinals, values))
        for one in part.metadata:
            key3 = (one.pid, one.tid, one.name)
            metadata.pop(key3, None)
            metadata[key3] = (one.ordinal + base, one.args)
        counts.update(part.counts)
        base += part.events
    contents |= {
        "promoted": promoted,
        "metadata": list(metadata.items()),
        "counts": dict(counts),
        "events": base,
    }
    return contents


def blocks(parts: Iterable[Part]) -> list[tuple[int, int, int, int, int]]:
    """Return the block table with ordinals of the whole file."""
    rows: list[tuple[int, int, int, int, int]] = []
    base = 0
    for part in parts:
        table = {column: values.tolist() for column, values in part.tables["blocks"].items()}
        table["ordinal"] = [ordinal + base for ordinal in table["ordinal"]]
        rows += zip(*table.values())
        base += part.events
    return rows
