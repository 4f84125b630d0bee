"""Copies: bytes, time and bandwidth by kind, against sums over the file's events."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, needs_corpus
from tracelane.core.tables.copies import copies, kind_of
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import open_trace

FILES = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/hta_mi250_minitoy_rocm62.json.gz",
    "gpu/kineto_tb_gpu_metrics_counters.json",
    "aiu/mlp_trace.json",
)
CATEGORIES = ("gpu_memcpy", "gpu_memset", "Memcpy", "Memset")


@cache
def events_of(name: str) -> list[dict[str, Any]]:
    path = CORPUS / name
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        events = json.loads(file.read(), parse_float=Decimal)["traceEvents"]
    return [e for e in events if e.get("cat") in CATEGORIES and e.get("ph") == "X"]


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("half", [False, True])
def test_sums_are_those_of_the_file(name: str, half: bool, corpus_cache: Path) -> None:
    """Count, bytes and ns by kind are exact; of a range those that start in it count whole."""
    trace = open_trace(CORPUS / name, index_dir=corpus_cache)
    events = events_of(name)
    starts = sorted(int(e["ts"] * 1000) for e in events)
    span = (starts[len(starts) // 4], starts[3 * len(starts) // 4] + 1) if half else None
    expected: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for e in events:
        if span is None or span[0] <= int(e["ts"] * 1000) < span[1]:
            sums = expected[kind_of(e["name"], name.startswith("aiu/"))]
            sums[0] += 1
            sums[1] += e["args"].get("bytes", 0)
            sums[2] += int(e["dur"] * 1000)
            sums[3] += int(e["dur"] * 1000) if "bytes" in e["args"] else 0
    rows = list(copies(Scope(trace, span)).rows())
    assert {(row["name"], row["memory"]): [row["count"], row["bytes"], row["time_ns"]] for row in rows} == {
        key: sums[:3] for key, sums in expected.items()
    }
    for row in rows:
        _, size, _, sized = expected[str(row["name"]), str(row["memory"])]
        moved = sized and row["name"] != "Allocation"
        assert row["bandwidth"] == (pytest.approx(size / sized * 1e9) if moved else None)


@needs_corpus
def test_what_the_profiler_wrote_of_each_copy(corpus_cache: Path) -> None:
    """The recorded bandwidths, weighted by time, are what bytes and time give; GB are 10^9 bytes."""
    trace = open_trace(CORPUS / FILES[0], index_dir=corpus_cache)
    for row in copies(Scope(trace)).rows():
        assert row["recorded_mean"] == pytest.approx(row["bandwidth"], rel=1e-2)
    most = max(float(e["args"]["memory bandwidth (GB/s)"]) for e in events_of(FILES[0]))
    assert max(row["recorded_max"] for row in copies(Scope(trace)).rows()) == pytest.approx(most * 1e9)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Memcpy HtoD (Pageable -> Device)", ("HtoD", "Pageable → Device")),
        ("Memcpy (DtoH)", ("DtoH", "")),
        ("Memcpy PtoP (Device -> Device)", ("PtoP", "Device → Device")),
        ("Memset (Device)", ("Memset", "")),
        ("CopyDeviceToHost", ("DtoH", "")),
        ("Memcpy (<unknown>)", ("Memcpy (<unknown>)", "")),
        ("dma_request", ("dma_request", "")),
    ],
)
def test_kinds_by_name(name: str, kind: tuple[str, str]) -> None:
    """Every profiler's way to name a copy gives its kind; an unknown one stays as it is."""
    assert kind_of(name) == kind
