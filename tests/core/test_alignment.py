"""Clocks of ranks: the ends of the same collective fall together, and what is left is stated."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, files, for_files, needs
from tests.events import complete
from tracelane.core import Trace, open_trace
from tracelane.core.index.captures import Choice
from tracelane.core.index.store import Index
from tracelane.core.trace.alignment import align_ranks
from tracelane.core.trace.collectives import AIU, DEVICE, HOST, collectives_at, collectives_of

DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
GLOO = CORPUS / "multirank" / "torch213_ddp_gloo_2ranks"
RANKS = [tuple(files("cpu/torch_2.13_rank*.pt.trace.json.gz"))]
MS = 1_000_000
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def ends_of(index: Index, name: str) -> list[int]:
    """Return the ends of the kernels whose name has a word in it, in order of start, slice by slice."""
    spans = []
    for position in range(len(index.column("slices.start"))):
        category = index.categories[int(index.column("slices.category")[position])]
        if category == "kernel" and name in index.string(int(index.column("slices.name")[position])):
            spans.append((index.start(position), index.end(position)))
    return [end for _, end in sorted(spans)]


def write(folder: Path, rank: int, events: list[dict[str, Any]], **keys: Any) -> None:
    folder.mkdir(exist_ok=True)
    info = {"rank": rank, "world_size": 2}
    (folder / f"rank{rank}.json").write_text(
        json.dumps({"distributedInfo": info, **keys, "traceEvents": events}), encoding="utf-8"
    )


def reduce(
    start_us: float, us: float, name: str = KERNEL, cat: str = "kernel", **args: Any
) -> dict[str, Any]:
    return complete(start_us, us, name, cat, pid=0, tid=7, args=args)


def offsets(trace: Trace) -> list[int]:
    return [trace.clocks.offset(source) for source in range(len(trace.indexes))]


@needs(CORPUS)
def test_kernels_of_the_same_collective_lie_within_the_stated_residual(corpus_cache: Path) -> None:
    """The DLRM ranks' NCCL kernels, matched by name and order, end together as closely as is said."""
    trace = open_trace(DLRM, index_dir=corpus_cache)
    clocks, left = trace.alignment.rank_clocks, trace.indexes
    assert [clock.matched for clock in clocks] == [8] * 4
    for name in ("AllReduce", "SendRecv"):
        ends = np.array([ends_of(index, name) for index in left]) + np.array(offsets(trace))[:, None]
        for one in range(4):
            for other in range(4):
                difference = np.abs(ends[one] - ends[other]).max()
                assert difference <= min(clocks[one].residual_ns or 0, clocks[other].residual_ns or 0)
    assert max(clock.residual_ns or 0 for clock in clocks) < 10_000


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize("shift_us", [-3_000_000, 250, 7_777_777])
def test_a_shifted_clock_is_recovered(tmp_path: Path, corpus_cache: Path, shift_us: int) -> None:
    """A rank whose stamps are all moved by some time gets just that much back."""
    straight = offsets(open_trace(DLRM, index_dir=corpus_cache))
    for path in DLRM.iterdir():
        whole = json.loads(gzip.decompress(path.read_bytes()))
        if path.name.startswith("worker2"):
            for entry in whole["traceEvents"]:
                if "ts" in entry:
                    entry["ts"] += shift_us
        (tmp_path / path.name.removesuffix(".gz")).write_text(json.dumps(whole), encoding="utf-8")
    trace = open_trace(tmp_path)
    moved = offsets(trace)
    assert moved[2] == straight[2] - shift_us * 1000
    assert moved[:2] + moved[3:] == straight[:2] + straight[3:]
    (start, end), (low, high) = trace.span, open_trace(DLRM, index_dir=corpus_cache).span
    assert (start, end) == (low, high)


@for_files("paths", [(GLOO,), *RANKS])
def test_collectives_of_a_hosts_library_align_too(paths: tuple[Path, ...], corpus_cache: Path) -> None:
    """Gloo's calls on the CPU, on one host's clock, ask for next to no correction."""
    trace = open_trace(list(paths), index_dir=corpus_cache)
    assert trace.alignment.level == HOST
    assert abs(offsets(trace)[1]) < 100_000
    assert trace.sources[0].notes == (trace.alignment.text,)


def test_base_times_count_first(tmp_path: Path) -> None:
    """Files with different base times and no collective stand by their wall time, and that is said."""
    write(tmp_path, 0, [reduce(100, 5, "gemm")], baseTimeNanoseconds=1_700_000_000_000_000_000)
    write(tmp_path, 1, [reduce(40, 5, "gemm")], baseTimeNanoseconds=1_700_000_000_000_060_000)
    trace = open_trace(tmp_path)
    assert offsets(trace) == [0, 60_000]
    assert "no collective" in trace.alignment.text and trace.span == (100_000, 105_000)


def test_a_capture_that_begins_earlier_still_matches(tmp_path: Path) -> None:
    """Where one rank has more collectives, ends tell which are the same; sequence numbers where there are."""
    starts = [100.0, 390.0, 500.0, 1130.0, 1200.0, 1999.0]
    write(tmp_path / "a", 0, [reduce(at, 20) for at in starts])
    write(tmp_path / "a", 1, [reduce(at + 5_000, 20) for at in starts[2:]])
    assert offsets(open_trace(tmp_path / "a")) == [0, -5 * MS]
    write(tmp_path / "b", 0, [reduce(100.0 * n, 20, Seq=n) for n in range(1, 6)])
    write(tmp_path / "b", 1, [reduce(100.0 * n + 7, 20, Seq=n) for n in range(3, 9)])
    trace = open_trace(tmp_path / "b")
    assert offsets(trace) == [0, -7_000]
    assert trace.alignment.matched is not None and trace.alignment.matched.number.tolist() == [3, 4, 5]


def test_ranks_of_other_groups_are_reached_over_those_in_both(tmp_path: Path) -> None:
    """Ranks 0 and 2 share no collective, but each shares some with rank 1."""
    one, two = {"Process Group Name": "1"}, {"Process Group Name": "2"}
    at = (100.0, 250.0, 700.0)
    write(tmp_path, 0, [reduce(start, 10, **one) for start in at])
    write(tmp_path, 1, [reduce(s + 50, 10, **one) for s in at] + [reduce(s + 20, 10, **two) for s in at])
    write(tmp_path, 2, [reduce(s + 1_000, 10, **two) for s in at])
    assert offsets(open_trace(tmp_path)) == [0, -50_000, -1_030_000]


def test_kinds_whose_ends_do_not_meet_are_left_out(tmp_path: Path) -> None:
    """A broadcast's root may be long gone: its ends do not move the clocks nor count in the residual."""
    send = "ncclDevKernel_Broadcast_RING_LL(x)"
    at = (100.0, 400.0, 900.0)
    write(tmp_path, 0, [reduce(s, 20) for s in at] + [reduce(s + 50, 5, send) for s in at])
    write(tmp_path, 1, [reduce(s + 3, 20) for s in at] + [reduce(s + 50, 200, send) for s in at])
    trace = open_trace(tmp_path)
    assert offsets(trace) == [0, -3_000]
    assert [clock.residual_ns for clock in trace.alignment.rank_clocks] == [0, 0]


@pytest.mark.parametrize(
    ("name", "cat", "args", "level", "family"),
    [
        (KERNEL, "kernel", {}, DEVICE, ("", "all_reduce")),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half(x)", "kernel", {}, DEVICE, ("", "reduce_scatter")),
        (
            "ncclDevKernel_Generic(x)",
            "kernel",
            {"Collective name": "_allgather_base"},
            DEVICE,
            ("", "all_gather"),
        ),
        ("ncclKernel_SendRecv_RING(x)", "kernel", {"Process Group Name": "3"}, DEVICE, ("3", "send_recv")),
        ("void vllm::cross_device_reduce_1stage<half>(x)", "kernel", {}, DEVICE, ("", "all_reduce")),
        ("HCOLL_AllReduce_ring_bf16", "kernel", {}, DEVICE, ("", "all_reduce")),
        ("aiuCommsCollAllgather", "privateuse1_runtime", {}, AIU, ("", "all_gather")),
        ("AIUCOMMSCOLLBARRIER", "privateuse1_runtime", {}, AIU, ("", "barrier")),
        ("gloo:all_reduce", "user_annotation", {}, HOST, ("", "all_reduce")),
    ],
)
def test_collectives_are_known_by_name(
    tmp_path: Path, name: str, cat: str, args: dict[str, Any], level: int, family: tuple[str, str]
) -> None:
    """Kernels of NCCL old and new, AIU's calls, HCOLL and gloo are collectives of the usual names."""
    write(tmp_path, 0, [reduce(1, 2, name, cat, **args), reduce(5, 2, "gemm"), reduce(9, 1, "memcpy")])
    actual_level, collectives = collectives_of(open_trace(tmp_path / "rank0.json").indexes[0])
    assert (actual_level, collectives.families, len(collectives)) == (level, (family,), 1)


@pytest.mark.parametrize("name", ["aiuCommsCollAllreduceSetup", "nccl:all_reduce", "aten::all"])
def test_what_only_prepares_a_collective_is_none(tmp_path: Path, name: str) -> None:
    """Setting up and enqueueing are no collectives, and a single rank needs no clock."""
    write(tmp_path, 0, [reduce(1, 2, name, "user_annotation")])
    trace = open_trace(tmp_path / "rank0.json")
    assert not any(len(collectives_at(trace.indexes[0], level)) for level in (DEVICE, AIU, HOST))
    assert align_ranks(trace.indexes, trace.members).text == ""


def test_captures_opened_together_are_not_aligned_with_each_other(tmp_path: Path) -> None:
    """The collectives of two captures are not the same, however alike they look."""
    for capture, at in (("a", 100), ("b", 900_000)):
        write(tmp_path / capture, 0, [reduce(at, 20), reduce(at + 50, 20)])
        write(tmp_path / capture, 1, [reduce(at + 3, 20), reduce(at + 53, 20)])
    together = open_trace(tmp_path, choice=Choice(capture="all"))
    assert len(together.indexes) == 4 and offsets(together) == [0, 0, 0, 0]
    assert "several captures are open" in together.alignment.text
    assert offsets(open_trace(tmp_path)) == [0, -3_000]
