"""What a trace tells of the machine and the software that it was taken with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..trace import Trace


KNOWN = {
    "schemaVersion": "Kineto schema",
    "host_name": "host",
    "trace_id": "trace id",
    "record_shapes": "record_shapes",
    "profile_memory": "profile_memory",
    "with_stack": "with_stack",
    "with_flops": "with_flops",
    "with_modules": "with_modules",
}
"""Keys of a trace's envelope that are told under another name, in this order; versions and settings."""
DEVICE_KEYS = ("deviceProperties", "computeProperties")
GROUP_KEYS = ("backend", "rank", "world_size", "pg_count")
SPOKEN_OF = frozenset(
    {*KNOWN, *DEVICE_KEYS, "distributedInfo", "traceName", "displayTimeUnit", "baseTimeNanoseconds", "INFO"}
)
LONGEST = 300


def environment(trace: Trace) -> list[tuple[str, str]]:
    """Return (what, value) pairs of all files' envelopes; what files agree on stands once."""
    pairs: dict[tuple[str, str], None] = {}
    for index in trace.indexes:
        envelope = index.manifest.get("envelope")
        if isinstance(envelope, dict):
            pairs.update(dict.fromkeys(_entries(envelope)))
    return list(pairs)


def _entries(envelope: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in DEVICE_KEYS:
        alike: dict[str, list[str]] = {}
        devices = envelope.get(key)
        for device in devices if isinstance(devices, list) else []:
            if isinstance(device, dict):
                alike.setdefault(_short(", ".join(_properties(device))), []).append(
                    str(device.get("id", "?"))
                )
        for text, numbers in alike.items():
            yield f"device{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}", text
    group = envelope.get("distributedInfo")
    if isinstance(group, dict):
        entries = [
            f"{key} {group[key]}" for key in ("backend", "rank", "world_size", "pg_count") if key in group
        ]
        yield "distributed", _short(", ".join(entries))
    for key, name in KNOWN.items():
        if key in envelope:
            yield name, _short(envelope[key])
    for key, value in envelope.items():
        if key not in SPOKEN_OF:
            yield key, _short(value)


def _properties(device: Mapping[str, Any]) -> Iterator[str]:
    """Yield the name, then the other plain values, with their keys."""
    if "name" in device:
        yield str(device["name"])
    for key, value in device.items():
        if key not in ("id", "name") and isinstance(value, str | int | float):
            yield f"{key} {value}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
