"""How a device spends its time: against HTA's exact numbers and against counting every ns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.core.hta import EXACT, HEAD, NAMES, RANKS, golden, opened, rule_050
from tests.corpus import needs_corpus, needs_goldens
from tests.json_tables import analysed
from tracelane.core.base.intervals import merge
from tracelane.core.tables.breakdown import (
    STREAMS,
    breakdown,
    device_table,
    exclusive,
    type_table,
)
from tracelane.core.tables.frame_columns import KindRule
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.kinds import kernel_types
from tracelane.core.tables.scope import Scope

HTA_TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY"}


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("rule", [rule_050, kernel_types], ids=["hta", "own"])
@pytest.mark.parametrize(("name", "rank"), RANKS)
def test_temporal_breakdown_is_exact(name: str, rank: str, rule: KindRule, corpus_cache: Path) -> None:
    """Every sum equals HTA's formula over exact stamps to 1 ns, with HTA's kernel types and with ours."""
    expected = golden(name)["per_rank"][rank][EXACT]
    work = breakdown(Scope(opened(name, rank, corpus_cache), allocations=True), rule)
    (device,) = device_table(work)
    temporal = expected["temporal"]
    assert device["rank"] == int(rank)
    assert device["slices"] == expected["gpu_rows"]
    assert device["kernel_time_ns"] == temporal["kernel_time"]
    assert device["busy_ns"] == temporal["busy"]
    assert device["idle_ns"] == temporal["idle"]
    assert device["compute_ns"] == temporal["compute"]
    assert device["non_compute_ns"] == temporal["non_compute"]
    assert device["comm_ns"] == expected["comm_comp_overlap"]["comm"]
    assert device["comm_compute_overlap_ns"] == expected["comm_comp_overlap"]["overlap"]
    types = {
        " overlapping ".join(HTA_TYPES[part] for part in key.split("+")): ns
        for key, ns in ((row["type"], row["ns"]) for row in type_table(work))
    }
    assert types == expected["kernel_type_with_memory"]
    assert device["compute_ns"] == golden(name)["per_rank"][rank][HEAD]["temporal"]["compute"]
    assert sum(row["slices"] for row in STREAMS.of(work.group("stream"))) == expected["gpu_rows"]


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("hta")])
def test_object_has_what_the_command_promises(name: str, corpus_cache: Path) -> None:
    """JSON names rank and device of each device and adds up."""
    answer = analysed("breakdown", Scope(opened(name, "0", corpus_cache)))
    (device,) = answer["devices"]
    assert (device["rank"], type(device["device"])) == (0, int)
    assert device["kernel_time_ns"] == device["idle_ns"] + device["compute_ns"] + device["non_compute_ns"]
    assert device["busy_ns"] == sum(row["ns"] for row in answer["types"])
    assert {row["device"] for row in answer["streams"]} == {device["device"]}


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("hta")])
def test_a_device_leads_to_its_longest_work(name: str, corpus_cache: Path) -> None:
    """The jump of a device's row is a slice of the longest duration that its kernels have."""
    scope = Scope(opened(name, "0", corpus_cache))
    table = device_table(breakdown(scope))
    assert table.positions is not None and len(table.positions) == len(table) == 1
    (length,) = scope.trace.indexes[0].duration(table.positions)
    assert length == kernels(scope).data["max_ns"].max()  # type: ignore[union-attr]


@needs_corpus
@needs_goldens
def test_halves_of_a_trace_add_up(corpus_cache: Path) -> None:
    """Busy time, compute and communication of two touching ranges are those of both together."""
    trace = opened("hta_a100_resnet_ddp_nccl", "0", corpus_cache)
    start, end = trace.span
    middle = start + (end - start) * 2 // 5 + 12_345
    (whole,) = device_table(breakdown(Scope(trace)))
    halves = [device_table(breakdown(Scope(trace, part)))[0] for part in ((start, middle), (middle, end))]
    for what in ("busy_ns", "compute_ns", "comm_ns", "memory_ns", "comm_compute_overlap_ns"):
        assert sum(half[what] for half in halves) == whole[what], what


def test_combinations_of_types_match_counting_every_ns() -> None:
    """The time of each combination is the number of ns in which exactly these types run."""
    random = np.random.default_rng(5)
    for _ in range(50):
        sets, seen = [], np.zeros((3, 120), np.bool_)
        for number in range(3):
            starts = random.integers(0, 100, int(random.integers(0, 6)))
            ends = starts + random.integers(0, 20, len(starts))
            sets.append(merge(starts, ends))
            for a, b in zip(starts.tolist(), ends.tolist()):
                seen[number, a:b] = True
        names = ("compute", "communication", "memory")
        expected: dict[str, int] = {}
        for column in seen.T:
            key = "+".join(name for name, on in zip(names, column) if on)
            if key:
                expected[key] = expected.get(key, 0) + 1
        assert exclusive(sets) == expected
