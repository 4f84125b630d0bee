"""What devices can do at most, by name: FLOP/s by type, bytes/s of memory; which device a file is of."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...base.private import settings_table
from ...index.store import Index

PEAKS = "peaks"
"""The table of the settings that holds devices: each a table of what it can do."""


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
    mine, _ = peaks_of(settings_table(PEAKS))
    text = (Path(__file__).parent / "peaks.toml").read_text(encoding="utf-8")
    return (*mine, *tomllib.loads(text)["device"])


def peaks_of(settings: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Return the devices of the settings' table of peaks, and what of it is not understood."""
    rows: list[Mapping[str, Any]] = []
    complaints: list[str] = []
    for name, table in settings.items():
        if not isinstance(table, dict):
            complaints.append(f"{PEAKS}.{name} must be a table of matrix, vector, gbs")
            continue
        wrong = [key for key, value in table.items() if not _is_peak(key, value)]
        complaints += [f"{PEAKS}.{name}.{key} is not understood" for key in wrong]
        rows += [{"name": name, **table}] if not wrong else []
    return rows, complaints


def _is_peak(key: str, value: object) -> bool:
    if key in ("matrix", "vector"):
        return isinstance(value, dict) and all(_is_peak("gbs", one) for one in value.values())
    if key in ("gbs", "memory_gb"):
        return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return key in ("without", "source") and isinstance(value, str)


def peak_of(device: str, memory_gb: float) -> Mapping[str, Any] | None:
    """Return what a device of this name can do, None where that is not known."""
    for one in peaks():
        is_other = one.get("without") and _has_words(device, str(one["without"]))
        if _has_words(device, str(one["name"])) and not is_other and memory_gb >= one.get("memory_gb", 0):
            return one
    return None


def _has_words(device: str, words: str) -> bool:
    return re.search(rf"(?<![a-z0-9]){re.escape(words)}(?![a-z0-9])", device, re.IGNORECASE) is not None
