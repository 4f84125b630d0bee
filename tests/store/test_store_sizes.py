"""A capture store is read in linear time, whatever its files are full of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.linear import assert_linear
from tracelane.core.store.groups import NOTHING, TABLES, RankSummary, packed_summaries, update_groups
from tracelane.core.store.location import RANKS, RecordName, StoreLocation, short_hash, write_store_manifest
from tracelane.core.store.opened import open_store
from tracelane.core.store.tables import STORE_TABLES, store_tables
from tracelane.core.tables.findings.finding import Findings
from tracelane.core.tables.findings.forms import findings_object

FACTS = {"world": 1 << 16, "host": "h", "base_ns": 0, "span": [0, 1 << 40], "origin_ns": 0, "level": 0}


def rows(table: str, count: int, *, alike: bool) -> dict[str, Any]:
    """Return so many rows of a table, of one name or of a name each."""
    texts, numbers = TABLES[table]
    names = [f"n{0 if alike else at}" for at in range(count)]
    values = np.arange(count, dtype=np.int64) * 10
    return dict.fromkeys(texts, names) | {
        key: values + 5 if key == "end" else values % 2 if key in ("family", "message") else values
        for key in numbers
    }


def summary(rank: int, **tables: dict[str, Any]) -> RankSummary:
    devices = {"devices": {"busy": 1, "work": 1}}
    facts = {**FACTS, **devices, "name": f"r{rank}", "rank": rank}
    return RankSummary(facts, not_judged(0), {**NOTHING, **tables})


def groups_of(count: int) -> dict[str, Any]:
    return {"groups": [[f"g{at}", "", [[0, 8, 1]]] for at in range(count)]}


def not_judged(count: int) -> dict[str, Any]:
    """Return findings of none, and so many rules that were not judged."""
    none = findings_object(Findings("", (), ()), 0)
    return {**none, "not_judged": [{"rule": f"r{at}", "reason": "x"} for at in range(count)]}


SHAPES: dict[str, tuple[Callable[[int], list[RankSummary]], int]] = {
    # what a store holds, and of how much
    "ranks": (lambda n: [summary(rank) for rank in range(n)], 40),
    "steps": (lambda n: [summary(rank, steps=rows("steps", n, alike=False)) for rank in range(2)], 4_000),
    "steps of one name": (
        lambda n: [summary(rank, steps=rows("steps", n, alike=True)) for rank in range(2)],
        4_000,
    ),
    "kernels": (
        lambda n: [summary(rank, kernels=rows("kernels", n, alike=False)) for rank in range(2)],
        4_000,
    ),
    "collectives": (
        lambda n: [
            summary(
                rank,
                collectives=rows("collectives", n, alike=False),
                families=rows("families", 2, alike=False),
                messages=rows("messages", 2, alike=False),
            )
            for rank in range(2)
        ],
        4_000,
    ),
    "process groups": (
        lambda n: [
            RankSummary({**summary(rank).facts, **groups_of(n)}, not_judged(0), NOTHING) for rank in range(2)
        ],
        1_000,
    ),
    "long names": (
        lambda n: [
            RankSummary({**summary(0).facts, "name": "x" * n, "host": "y" * n}, not_judged(0), NOTHING)
        ],
        200_000,
    ),
    "rules that are not judged": (
        lambda n: [RankSummary(summary(0).facts, not_judged(n), NOTHING)],
        20_000,
    ),
}


def written(folder: Path, summaries: Sequence[RankSummary]) -> Path:
    """Write a store of these ranks, with their groups."""
    location = StoreLocation(str(folder))
    write_store_manifest(location, "")
    groups = set()
    for one in summaries:
        data = packed_summaries([one])
        hashes = short_hash(str(one.facts["rank"]).encode()), short_hash(b"state"), short_hash(data)
        record = RecordName(one.facts["rank"], *hashes)
        location.write(f"{RANKS}/{record}", data)
        groups.add(record.group)
    update_groups(location, groups)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_stores_take_linear_time(name: str, tmp_path: Path) -> None:
    """Four times as much of whatever a store is full of takes about four times as long."""
    shape, count = SHAPES[name]

    def prepare(n: int) -> Callable[[], object]:
        folder = written(tmp_path / str(n), shape(n))

        def work() -> None:
            store = open_store(str(folder))
            for table in STORE_TABLES:
                list(store_tables(store, table, {}))

        return work

    assert_linear(prepare, count)
