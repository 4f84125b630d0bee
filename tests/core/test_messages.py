"""What collectives move and how fast: sizes, types, groups and bandwidths of `ranks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.test_flex import jobs_of_ranks
from tests.corpus import CORPUS, GOLDENS, needs_corpus, needs_goldens
from tracelane.core import open_trace
from tracelane.core.tables.messages import bus_factor
from tracelane.core.tables.rank_tables import analyse_ranks
from tracelane.core.tables.scope import Scope

MI300 = CORPUS / "gpu" / "tl_mi300_resnet_train_rank0of8.json.gz"
A100 = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
GLOO = CORPUS / "multirank" / "torch213_ddp_gloo_2ranks"
KEYS = ("name", "dtype", "bytes", "group_size", "pure_ns", "algbw", "busbw", "wait_ns", "ranks_missing")


def reference_of(path: Path, key: str) -> Any:
    name = path.name.partition(".")[0]
    return json.loads((GOLDENS / "efficiency" / f"{name}.json").read_text())[key]


def collectives(path: Path, **more: Any) -> list[dict[str, Any]]:
    trace = open_trace([path], **more)
    rows = list(analyse_ranks(Scope(trace, clocks=trace.clocks))["collectives"].rows())
    trace.close()
    return rows


@needs_corpus
@needs_goldens
def test_one_rank_of_eight_by_its_kernels(corpus_cache: Path) -> None:
    """The all-reduces of a single rank are those of the reference numbers, marked as one rank of eight."""
    reference = reference_of(MI300, "collectives")["per_collective"]
    rows = [row for row in collectives(MI300, index_dir=corpus_cache) if row["name"] == "all_reduce"]
    assert len(rows) == len(reference) == 6
    for row, one in zip(rows, reference):
        size, ns = int(one["In msg nelems"]) * 2, round(one["comm_latency"] * 1000)
        values = ("all_reduce", "BFloat16", size, 8, ns, size / ns, size / ns * 1.75, None, 7)
        assert tuple(row[key] for key in KEYS) == pytest.approx(values)
    assert (rows[0]["bytes"], rows[0]["pure_ns"]) == (5_746_640, 6_911_678)
    assert (round(rows[0]["algbw"], 4), round(rows[0]["busbw"], 4)) == (0.8314, 1.4550)


@needs_corpus
@needs_goldens
def test_several_ranks_by_their_annotations(corpus_cache: Path) -> None:
    """Kernels without sizes have those of the annotation around their launch, as in the reference numbers."""
    reference = reference_of(DLRM, "collectives_derived")["rows"]
    rows = collectives(DLRM, index_dir=corpus_cache)
    assert [row["ranks"] for row in rows] == [[0, 1, 2, 3]] * len(reference)
    for row, one in zip(rows, reference):
        assert [f"nccl:{row['name']}"] == one["collective"]
        assert (row["dtype"], row["bytes"]) == (one["dtype"], max(one["bytes_in_per_rank"]))
        assert (row["pure_ns"], row["group_size"], row["ranks_missing"]) == (one["min_dur_ns"], 8, 4)
        assert row["algbw"] == pytest.approx(one["algbw_GB_per_s_min_dur"], abs=1e-6)
        assert row["busbw"] == pytest.approx(one["busbw_GB_per_s_min_dur"], abs=1e-6)
        starts, ends = row["starts_ns"], row["ends_ns"]
        assert row["wait_ns"] == sum(min(max(starts), end) - start for start, end in zip(starts, ends))


@needs_corpus
@pytest.mark.parametrize(
    ("path", "row"),
    [
        (A100, ("broadcast", "Float", 53120 * 4, 2, 30_975, 212480 / 30975, 212480 / 30975, 1)),
        (GLOO, ("all_reduce", "float", 134154 * 4, 2, 414_770, 536616 / 414770, 536616 / 414770, 0)),
    ],
)
def test_first_collectives(path: Path, row: tuple[Any, ...], corpus_cache: Path) -> None:
    """Kernels of a rank of two by their arguments, and calls of the host by their own."""
    first = collectives(path, index_dir=corpus_cache)[0]
    assert tuple(first[key] for key in KEYS if key != "wait_ns") == pytest.approx(row)


def test_sizes_in_names(tmp_path: Path) -> None:
    """In a FLEX job trace names say what went over the wire: what is sent or received, whichever is more."""
    folder = jobs_of_ranks(tmp_path / "jobs", {3: 0, 5: 60})
    for path in folder.iterdir():
        text = path.read_text().replace("SenRdmaSend_1 ", "SenRdmaSend_1 [4096B] ")
        path.write_text(text.replace("SenRdmaRecv_0 ", "SenRdmaRecv_0 [512B] "))
    rows = collectives(folder, index_dir=tmp_path / "i")
    assert [row["bytes"] for row in rows] == [4096] * 4
    assert all(row["algbw"] == row["busbw"] == 4096 / row["pure_ns"] for row in rows)


@pytest.mark.parametrize(
    ("kind", "factor"),
    [
        *(("all_reduce", 1.75), ("reduce_scatter", 0.875), ("all_gather", 0.875), ("all_to_all", 0.875)),
        *(("broadcast", 1.0), ("reduce", 1.0), ("send_recv", 1.0), ("barrier", None)),
    ],
)
def test_bus_bandwidth_is_that_of_nccl(kind: str, factor: float | None) -> None:
    """Among eight ranks the factors are those that NCCL's tests print; among unknown ones most have none."""
    assert bus_factor(kind, 8) == factor
    assert bus_factor(kind, None) is None
