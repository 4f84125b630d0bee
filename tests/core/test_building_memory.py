"""Memory while an index is built does not grow with what is built: one lane, many ids, many names."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.events import read_result
from tracelane.core.base import arrays
from tracelane.core.index import pyramid
from tracelane.core.index.build import build
from tracelane.core.index.store import Index
from tracelane.core.index.workers import Workers
from tracelane.core.native.library import native_library
from tracelane.core.read.batch import TABLES, Batch, IdKind, Table, string_table
from tracelane.core.read.batch_store import BatchStore, store_batch

CHUNK = 50_000
N, MORE = 150_000, 600_000
"""So many events of each kind, and four times as many."""
BUFFERS = 0
MAX_HELD = 5 << 20
"""Bytes that are held at most, whatever the kind; the columns of MORE slices alone are 16 MB."""
BYTES_PER_EVENT = 2
BYTES_PER_NAME = 20
"""Names have numbers in memory; and those of all are searched when roles are decided."""
X, B, E, I, S, F = b"XBEisf"  # noqa: E741 - as traces call them
TEXTS = ["", "1", "2", "work", "gpu_user_annotation", "kernel"]


def rows_of(table: str, ordinal: np.ndarray, **columns: Any) -> Table:
    """Return columns of a table: those given, one value for all or one each, and zeros."""
    return {
        name: np.full(len(ordinal), 0, dtype) if name not in columns and name != "ordinal"
        else np.broadcast_to(ordinal if name == "ordinal" else columns[name], len(ordinal)).astype(dtype)
        for name, dtype in TABLES[table].items()
    }  # fmt: skip


def side_by_side(i: np.ndarray) -> dict[str, Table]:
    return {"timed": rows_of("timed", i, phase=X, name=3, category=5, start=10 * i, duration=7)}


def nested_and_late(i: np.ndarray) -> dict[str, Table]:
    """Four in one another, the innermost first in the file."""
    depth = i % 4
    start = 100 * (i // 4) + 30 - 10 * depth
    return {
        "timed": rows_of("timed", i, phase=X, name=3, category=i % 3, start=start, duration=5 + 20 * depth)
    }


def pairs(i: np.ndarray) -> dict[str, Table]:
    return {"timed": rows_of("timed", i, phase=np.where(i % 2, E, B), name=3, start=5 * i)}


def without_ends(i: np.ndarray) -> dict[str, Table]:
    phase = np.where(i % 1000 == 0, B, X)
    return {"timed": rows_of("timed", i, phase=phase, start=10 * i, duration=np.where(phase == X, 5, 0))}


def below_annotations(i: np.ndarray) -> dict[str, Table]:
    is_one = i % 1000 == 0
    length, category = np.where(is_one, 9000, 7), np.where(is_one, 4, 5)
    return {"timed": rows_of("timed", i, phase=X, category=category, start=10 * i, duration=length)}


def long_ones(i: np.ndarray) -> dict[str, Table]:
    return {"timed": rows_of("timed", i, phase=X, start=i << 33, duration=1 << 32)}


def instants(i: np.ndarray) -> dict[str, Table]:
    return {"timed": rows_of("timed", i, phase=I, name=3, start=10 * (i ^ 1))}


def ids_on_a_thread(i: np.ndarray) -> dict[str, Table]:
    some = rows_of(
        "flows", i, phase=np.where(i % 2, F, S), id_kind=IdKind.INTEGER, id_value=i // 2, start=10 * i
    )
    slices = rows_of("timed", i[::2], phase=X, start=10 * i[::2], duration=15)
    return {"timed": slices, "flows": some}


def ids_of_their_own(i: np.ndarray) -> dict[str, Table]:
    """Eight events each, in other order than their numbers."""
    phase = np.choose(i % 8, [*b"bnnnnnn", ord("e")])
    value = i // 8 * 7919 % (1 << 17)
    return {"asyncs": rows_of("asyncs", i, phase=phase, id_kind=IdKind.INTEGER, id_value=value, start=10 * i)}


def one_id(i: np.ndarray) -> dict[str, Table]:
    phase = np.where(i % 2, ord("e"), ord("b"))
    return {"asyncs": rows_of("asyncs", i, phase=phase, id_kind=IdKind.INTEGER, id_value=7, start=10 * i)}


def samples(i: np.ndarray) -> dict[str, Table]:
    return {"counters": rows_of("counters", i, name=3, series=1 + i % 2, start=10 * (i ^ 1), value=i % 977)}


def names(i: np.ndarray) -> dict[str, Table]:
    return {"timed": rows_of("timed", i, phase=X, name=len(TEXTS) + i, start=10 * i, duration=7)}


KINDS: tuple[Callable[[np.ndarray], dict[str, Table]], ...] = (
    side_by_side, nested_and_late, pairs, without_ends, below_annotations, long_ones, instants,
    ids_on_a_thread, ids_of_their_own, one_id, samples, names,
)  # fmt: skip


def peak_of(kind: Callable[[np.ndarray], dict[str, Table]], n: int, folder: Path) -> int:
    """Build the index of n events of a kind; return how many bytes Python and numpy held at most."""
    folder.mkdir()
    texts = [text.encode() for text in TEXTS]
    texts += [f"name {number}".encode() for number in range(n if kind is names else 0)]
    table = string_table(texts, [(1, 2)])
    with BatchStore(folder) as store:
        batches = []
        for number, (begin, end) in enumerate(pairwise([*range(0, n, CHUNK), n])):
            tables = kind(np.arange(begin, end))
            for own in tables.values():
                own["ordinal"] -= np.uint32(begin)
            uses = np.arange(1, len(TEXTS), dtype=np.uint32)
            if kind is names:
                uses = np.concatenate((uses, np.arange(begin, end) + len(TEXTS))).astype(np.uint32)
            batch = Batch(
                number=number, events=end - begin, tables=tables, promoted={}, metadata=[],
                counts={"phase.X": end - begin}, problems=[], table=0, first_uses=uses,
                first_tracks=np.zeros(1, np.uint32),
            )  # fmt: skip
            batches.append(store_batch(batch, store))
        read = read_result(batches, [table])
        tracemalloc.start()
        try:
            build(read, folder, Workers(1, buffers=BUFFERS), free_events=store.free_events)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    with closing(Index.open(folder)) as index:
        report = index.read_report
        placed = report["slices"] + report["pairs"] + report["unmatched_begin"] + report["instant_events"]
        assert placed + report["flow_events"] + report["async_events"] + report["counter_values"] >= n
    return peak


@pytest.mark.slow
@pytest.mark.skipif(native_library().functions is None, reason="plain loops hold Python's objects")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_memory_does_not_grow(
    kind: Callable[[np.ndarray], dict[str, Table]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four times as many events take two bytes each more at most, and few megabytes in all; names more."""
    monkeypatch.setattr(pyramid, "BATCH", 1 << 14)  # so that both sizes are many pieces
    monkeypatch.setattr(arrays.pieces, "__defaults__", (1 << 13,))
    least, most = (peak_of(kind, n, tmp_path / str(n)) for n in (N, MORE))
    each = BYTES_PER_NAME if kind is names else BYTES_PER_EVENT
    assert most <= MAX_HELD + (each - BYTES_PER_EVENT) * MORE
    assert most - least <= each * (MORE - N)
