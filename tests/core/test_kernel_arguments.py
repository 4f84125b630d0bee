"""Arguments of kernels as columns and groups, against the events as they stand in the file."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus
from tracelane.core.base.errors import UsageError
from tracelane.core.query.promoted_terms import argument_values
from tracelane.core.tables.instances import instances
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace, open_trace

REAL = "gpu/hta_a100_resnet_ddp_nccl.json.gz"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
KEYS = ["bytes", "registers per thread", "warps per SM", "grid", "nothing"]
"""Promoted numbers and texts, one that is only in the source, one that no event has."""


@pytest.fixture
def trace(corpus_cache: Path) -> Trace:
    """Real kernels and copies."""
    return open_trace(CORPUS / REAL, index_dir=corpus_cache)


def _events() -> list[dict[str, Any]]:
    with gzip.open(CORPUS / REAL) as stream:
        events: list[dict[str, Any]] = json.load(stream)["traceEvents"]
    return events


def _texts(value: Any) -> str | None:
    return (
        None
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, separators=(",", ":"))
    )


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("key", KEYS)
def test_values(key: str, trace: Trace) -> None:
    """Each slice has the value of its own event, in whatever order slices are asked for."""
    index, events = trace.indexes[0], _events()
    kinds = [number for number, name in enumerate(index.categories) if name in WORK]
    positions = np.flatnonzero(np.isin(index.column("slices.category"), kinds))[::-7].astype(np.uint32)
    actual = argument_values(index, key, positions)
    ordinals = index.column("slices.ordinal")[positions].tolist()
    expected = [events[ordinal]["args"].get(key) for ordinal in ordinals]
    assert [_texts(value) for value in actual] == [_texts(value) for value in expected]
    assert any(value is not None for value in actual) == (key != "nothing")


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("key", ["bytes", "warps per SM"])
def test_columns(key: str, trace: Trace) -> None:
    """Sum and mean are over those of a name that have the argument."""
    sums: dict[str, list[float]] = defaultdict(list)
    for event in _events():
        if event.get("cat") in WORK and key in event["args"]:
            sums[event["name"]].append(event["args"][key])
    rows = list(kernels(Scope(trace), arguments=[key]).rows())
    assert sums and sums.keys() <= {row["name"] for row in rows}
    for row in rows:
        values = sums.get(str(row["name"]))
        if values is None:
            assert (row[f"arg:{key}"], row[f"arg:{key}_mean"]) == (None, None)
        else:
            assert row[f"arg:{key}"] == pytest.approx(float(sum(map(Fraction, values))))
            assert row[f"arg:{key}_mean"] == pytest.approx(float(sum(map(Fraction, values)) / len(values)))


@needs_corpus
def test_groups(trace: Trace) -> None:
    """A group for each value, one for work without it, and nothing gets lost."""
    expected: dict[str, int] = defaultdict(int)
    for event in _events():
        if event.get("cat") in WORK:
            expected[str(event["args"].get("warps per SM", "(none)"))] += 1
    table = kernels(Scope(trace), "arg:warps per SM")
    assert {row["name"]: row["count"] for row in table.rows()} == expected
    runs, _ = instances(Scope(trace), "Memcpy", "time", 5, ["bytes"])
    assert all(str(text).isdigit() for text in runs.data["arg:bytes"])


@needs_corpus
def test_what_is_no_argument(trace: Trace) -> None:
    """An argument that no kernel has as a number, or that is not spelled as one, is told."""
    with pytest.raises(UsageError, match="nothing"):
        kernels(Scope(trace), arguments=["nothing"])
    with pytest.raises(UsageError, match="arg:KEY"):
        kernels(Scope(trace), "arg:")
