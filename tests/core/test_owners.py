"""Who owns the kernels of replayed graphs: joined to the traces of their captures, whose owners are known."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tracelane
from tests.events import Event, complete, write_events
from tests.graph_pairs import (
    HOST,
    MODEL,
    Kernel,
    capture_events,
    replay_events,
    swapped,
    write_pair,
)
from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.base.kineto import OPS
from tracelane.core.index.graph_folder import graph_folder
from tracelane.core.index.options import DEFAULT_OPTIONS, IndexOptions
from tracelane.core.index.producers import may_replay
from tracelane.core.query.lookup import category_mask, nearest_around
from tracelane.core.read import remote_files
from tracelane.core.read.remote_files import RemoteStatus
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.owners import Owners

HEAD = [Kernel(f"warm{number}", "aten::zero_") for number in range(7)]
OTHERS = [Kernel(f"other{number}") for number in range(len(MODEL))]
WIDE = [one._replace(dims=((64, 64), (64, 64))) for one in MODEL]
BRANCHES = [one._replace(stream=8 if one.name == "norm" else 7) for one in MODEL]
NODES = [one._replace(node=number) for number, one in enumerate(MODEL)]
LAYERS = MODEL[1:10]
STEP = "execute_{0}_context_0(sq0)_generation_{0}(sq{0})"


class Pair(NamedTuple):
    """What is replayed, what was captured, and what must be joined of it or why not."""

    name: str
    replays: Sequence[Sequence[Event]]
    captures: dict[str, Sequence[Event]]
    owners: Sequence[str] = ()  # the ops of all joined work, in order of time; "" for what is not joined
    reason: str = ""
    inferred: int = 0
    details: Sequence[dict[str, Any]] = ()


def ops_of(kernels: Sequence[Kernel]) -> list[str]:
    return [kernel.op for kernel in kernels]


ALL = ops_of(MODEL)
NONE = [""] * len(MODEL)
ONE = [replay_events(MODEL)]
TWO = [*ONE, replay_events(MODEL, number=2)]
FULL = {"graph_capture_rank_0.1.pt.trace.json": capture_events(MODEL)}
UNNAMED = {"bs_32_rank0.json": capture_events(MODEL, named=False)}
PAIRS = (
    Pair("as captured", ONE, FULL, ALL),
    Pair("replayed twice", TWO, FULL, ALL * 2),
    Pair("of a smaller batch", [replay_events(MODEL, STEP.format(30))], FULL, ALL),
    Pair("SGLang's names", [replay_events(MODEL, "step[DECODE bs=32]")], FULL, ALL),
    Pair("vLLM's plain names", [replay_events(MODEL, "execute_context_1(8)_generation_24(24)")], FULL, ALL),
    Pair("without a step", [replay_events(MODEL, "")], FULL, ALL),
    Pair("captured with more at the head", ONE, {"a.json": capture_events([*HEAD, *MODEL])}, ALL),
    Pair("known by the annotation alone", ONE, {"a.json": capture_events(MODEL, calls=False)}, ALL),
    Pair("known by the file alone", ONE, {"bs_32_rank0.json": capture_events(MODEL, "")}, ALL),
    Pair(
        "known by the folder's list",
        ONE,
        {"x.json": capture_events(MODEL, ""), "y.json": capture_events(OTHERS, "")},
        ALL,
        details=[
            {"file": "x.json", "batch_size": 32, "mode": "FULL"},
            {"file": "y.json", "batch_size": 64, "mode": "FULL"},
        ],
    ),
    Pair("on two streams", [replay_events(BRANCHES)], FULL, ALL),
    Pair(
        "two kernels swapped", ONE, {"a.json": capture_events(swapped(MODEL, 1, 2))}, NONE,
        "kernel 2 is gemm, and attention in capture_32_FULL",
    ),
    Pair(
        "swapped within a layer's repetition", ONE, {"a.json": capture_events(swapped(MODEL, 5, 6))}, NONE,
        "kernel 6 is attention, and norm in capture_32_FULL",
    ),
    Pair(
        "of another model", ONE, {"a.json": capture_events(OTHERS)}, NONE,
        "kernel 1 is embed, and other0 in capture_32_FULL",
    ),
    Pair(
        "of fewer kernels", ONE, {"a.json": capture_events(MODEL[:-1])}, NONE,
        "capture_32_FULL has 11 launches and the replay 12 kernels",
    ),
    Pair(
        "a part that comes again", [replay_events(LAYERS[:6])], {"a.json": capture_events(LAYERS)}, [""] * 6,
        "capture_32_FULL has 3 more launches, and several parts of it fit",
    ),
    Pair(
        "without its batch", [replay_events(MODEL, STEP.format(64))], FULL, NONE,
        "no captured graph holds a batch of 64",
    ),
    Pair(
        "of the least batch that holds it", [replay_events(MODEL, STEP.format(8))],
        {"a.json": capture_events(MODEL), "b.json": capture_events(OTHERS, "capture_16_FULL")}, NONE,
        "kernel 1 is embed, and other0 in capture_16_FULL",
    ),
    Pair(
        "two graphs of a batch, one fits", ONE,
        {"a.json": capture_events(OTHERS), "b.json": capture_events(MODEL, "capture_32_PIECEWISE")}, ALL,
    ),
    Pair(
        "two graphs of a batch that say the same", ONE,
        {"a.json": capture_events(MODEL), "b.json": capture_events(MODEL)}, ALL,
    ),
    Pair(
        "two graphs of a batch that differ", ONE,
        {"a.json": capture_events(MODEL), "b.json": capture_events(WIDE, "capture_32_LORA")}, NONE,
        "2 captured graphs fit it and name different owners (capture_32_FULL, capture_32_LORA)",
    ),
    Pair(
        "of another rank", ONE,
        {"bs_32_rank0.json": capture_events(MODEL), "bs_32_rank1.json": capture_events(WIDE)}, ALL,
    ),
    Pair("CUDA without names", TWO, UNNAMED, ALL * 2, inferred=24),
    Pair(
        "CUDA without names, on two streams", [replay_events(BRANCHES)], UNNAMED, NONE,
        "says no kernels' names, and the replay ran on several streams",
    ),
    Pair(
        "CUDA without names, of another length", ONE,
        {"a.json": capture_events([*HEAD, *MODEL], named=False)}, NONE,
        "says no kernels' names, and has 19 launches and the replay 12 kernels",
    ),
    Pair(
        "CUDA without names, one replay too short", [*ONE, replay_events(MODEL[:-1], number=2)], UNNAMED,
        [*NONE, *NONE[:-1]], "says no kernels' names, and ",
    ),
    Pair(
        "CUDA without names, a copy elsewhere", ONE,
        {"a.json": capture_events(swapped(MODEL, 3, 10), named=False)}, NONE,
        "says no kernels' names, and has copies at other places",
    ),
    Pair(
        "by nodes", [replay_events([*NODES[6:], *NODES[:6]])], {"a.json": capture_events(NODES)},
        ops_of([*MODEL[6:], *MODEL[:6]]),
    ),
    Pair(
        "by nodes, packed with the graph's", [replay_events([one._replace(node=(3 << 32) + at) for at, one in
                                                             enumerate(MODEL)])],
        {"a.json": capture_events(NODES, named=False)}, ALL,
    ),
    Pair(
        "by nodes of other kernels", [replay_events(swapped([*NODES], 1, 2))],
        {"a.json": capture_events([one._replace(node=at) for at, one in enumerate(swapped(MODEL, 1, 2))])},
        NONE, "nodes of capture_32_FULL launch other kernels than the replay's",
    ),
    Pair(
        "by nodes that are not there", [replay_events([one._replace(node=at + 5) for at, one in
                                                       enumerate(MODEL)])],
        {"a.json": capture_events(NODES)}, NONE, "capture_32_FULL has other nodes than the replay",
    ),
)  # fmt: skip


def opened(folder: Path, pair: Pair) -> Trace:
    path = write_pair(folder, pair.replays, pair.captures, pair.details)
    return open_trace(path, index_dir=folder / "index")


def op_names(owners: Owners) -> list[str]:
    """Return the op of each piece of work by start, "" for work that no capture owns."""
    index = owners.indexes[0]
    result = []
    for row in np.argsort(index.column("slices.start")[owners.kernels], kind="stable").tolist():
        of = owners.indexes[int(owners.book[row])]
        ops = np.flatnonzero(category_mask(of, OPS)[of.column("slices.category")])
        (op,) = nearest_around(of, owners.owner[[row]], ops, itself=True).tolist()
        name = of.string(int(of.column("slices.name")[op])) if op >= 0 else ""
        result.append(name if owners.capture[row] >= 0 else "")
    return result


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_replays_have_the_owners_of_their_captured_launches(tmp_path: Path, pair: Pair) -> None:
    """Each replayed kernel belongs to the op that launched it into the graph, or it is said why none does."""
    with_capture = opened(tmp_path, pair)
    owners = with_capture.owners(0)
    assert op_names(owners) == list(pair.owners)
    assert int(np.count_nonzero(owners.is_inferred)) == pair.inferred
    left = sum(not name for name in pair.owners)
    assert sum(one.kernels for one in owners.unjoined) == left
    assert all(pair.reason in one.reason for one in owners.unjoined)
    assert bool(owners.unjoined) == bool(pair.reason)
    for kernel, is_unjoined in zip(owners.kernels.tolist(), owners.is_unjoined.tolist()):
        said = with_capture.captured_facts(with_capture.slice_id_of(0, kernel)).get("no owner", "")
        assert said in {one.reason for one in owners.unjoined} if is_unjoined else not said
    durations = owners.indexes[0].duration(owners.kernels)
    assert sum(one.ns for one in owners.unjoined) == int(durations[~owners.by_capture].sum())


def test_an_op_of_a_capture_has_no_event_of_this_trace(tmp_path: Path) -> None:
    """The view of kernels names the op of each, and no event that launched it: that lies in another file."""
    path = write_pair(tmp_path, ONE, FULL)
    with tracelane.open(path, index_dir=tmp_path / "index") as trace:
        rows = list(trace.sql("select op, op_id from kernels order by ts", engine="sqlite").rows())
    assert [row["op"] for row in rows] == ALL
    assert {row["op_id"] for row in rows} == {None}


def test_graphs_of_a_step_are_those_of_the_capture_in_order(tmp_path: Path) -> None:
    """Layers captured into graphs of their own keep their modules, though they launch the same kernels."""
    captures = {"a.json": capture_events(LAYERS, "capture_32_PIECEWISE", graphs=(3, 6))}
    step = complete(1000, 3000, STEP.format(32), "user_annotation", **HOST)
    replays = [[step], *(replay_events(LAYERS[at : at + 3], "", number=1 + at // 3) for at in (0, 3, 6))]
    trace = open_trace(write_pair(tmp_path, replays, captures), index_dir=tmp_path / "index")
    owners = trace.owners(0)
    of = owners.indexes[1]
    parents = of.column("slices.parent")
    modules = parents[parents[owners.owner]]
    order = np.argsort(owners.indexes[0].column("slices.start")[owners.kernels])
    names = of.strings(of.column("slices.name")[modules[order]])
    assert names == [f"nn.Module: {kernel.module}" for kernel in LAYERS]


def test_another_number_of_graphs_than_the_step_replays_is_not_joined(tmp_path: Path) -> None:
    """A step with two replays has not the three graphs of its capture."""
    captures = {"a.json": capture_events(LAYERS, "capture_32_PIECEWISE", graphs=(3, 6))}
    step = complete(1000, 3000, STEP.format(32), "user_annotation", **HOST)
    replays = [[step], *(replay_events(LAYERS[:3], "", number=number) for number in (1, 2))]
    trace = open_trace(write_pair(tmp_path, replays, captures), index_dir=tmp_path / "index")
    (one,) = trace.owners(0).unjoined
    assert one.reason == "3 graphs in capture_32_PIECEWISE, and 2 replays in the step"
    assert (one.replays, one.kernels) == (2, 6)


def test_a_folder_opens_as_if_its_captures_were_not_there(tmp_path: Path) -> None:
    """The folder of a trace is that trace, its captures are no sources."""
    path = write_pair(tmp_path, ONE, FULL)
    trace = open_trace(tmp_path, index_dir=tmp_path / "index")
    assert [source.path for source in trace.sources] == [str(path)]
    assert trace.owners(0).by_capture.all()


@pytest.mark.parametrize("inside", [True, False])
def test_captures_are_found_in_a_folder_that_is_named(tmp_path: Path, inside: bool) -> None:
    """`captures` names the folder itself, or the one that it lies in."""
    write_pair(tmp_path / "there", ONE, FULL)
    path = write_events(tmp_path / "trace.json", replay_events(MODEL))
    folder = tmp_path / "there" / ("capture_traces" if inside else "")
    trace = open_trace(path, IndexOptions(tmp_path / "index", captures=folder))
    assert op_names(trace.owners(0)) == ALL


@pytest.mark.parametrize(
    ("url", "events", "folders"),
    [
        ("s3://bucket/run/trace.json", replay_events(MODEL), ["s3://bucket/run/capture_traces"]),
        ("https://host/trace.json?signed=1/2", replay_events(MODEL), []),
        ("s3://bucket/capture_traces/trace.json", replay_events(MODEL), []),
        ("s3://bucket/run/trace.json", [complete(1, 5, "aten::mm", "cpu_op", **HOST)], []),
    ],
)
def test_a_server_is_asked_once_for_captures_and_may_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, events: list[Event], folders: list[str]
) -> None:
    """A server is asked for the folder beside a trace where graphs may be replayed, and not of a link that is
    signed for one file; where it lists no folder, there is none.
    """
    seen: list[str] = []

    def refuse(folder: str) -> list[RemoteStatus]:
        seen.append(folder)
        raise UnreadableError("forbidden")

    monkeypatch.setattr(remote_files, "list_remote", refuse)
    with_events = open_trace(write_events(tmp_path / "trace.json", events), index_dir=tmp_path / "index")
    assert graph_folder(url, (url,), DEFAULT_OPTIONS, may_replay(with_events.indexes[0])) is None
    assert seen == folders


def test_a_folder_without_captures_is_refused(tmp_path: Path) -> None:
    """A folder that is named for its captures and has none is a mistake of the command."""
    path = write_events(tmp_path / "trace.json", replay_events(MODEL))
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is no folder with traces of captured graphs"):
        open_trace(path, IndexOptions(tmp_path / "index", captures=tmp_path / "empty"))


def test_a_changed_capture_is_read_again(tmp_path: Path) -> None:
    """What was remembered of a capture holds for that file alone."""
    path = write_pair(tmp_path, ONE, {"a.json": capture_events(MODEL)})
    assert op_names(open_trace(path, index_dir=tmp_path / "index").owners(0)) == ALL
    renamed = [one._replace(op=f"{one.op}2") for one in MODEL]
    write_events(tmp_path / "capture_traces" / "a.json", capture_events(renamed))
    assert op_names(open_trace(path, index_dir=tmp_path / "index").owners(0)) == ops_of(renamed)


def test_a_capture_is_remembered(tmp_path: Path) -> None:
    """Opened again, a trace has its owners without a look at the text of the captures."""
    path = write_pair(tmp_path, ONE, FULL)
    open_trace(path, index_dir=tmp_path / "index").owners(0)
    (memo,) = (tmp_path / "index").glob("**/captured-graphs-*.json")
    before = memo.stat().st_mtime_ns
    assert op_names(open_trace(path, index_dir=tmp_path / "index").owners(0)) == ALL
    assert memo.stat().st_mtime_ns == before


@pytest.mark.parametrize("content", [b"", b"{}", b'00000000\n{"launches": []}'])
def test_a_damaged_memory_of_a_capture_is_made_again(tmp_path: Path, content: bytes) -> None:
    """A damaged file beside the index of a capture changes no owner."""
    path = write_pair(tmp_path, ONE, FULL)
    open_trace(path, index_dir=tmp_path / "index").owners(0)
    (memo,) = (tmp_path / "index").glob("**/captured-graphs-*.json")
    memo.write_bytes(content)
    assert op_names(open_trace(path, index_dir=tmp_path / "index").owners(0)) == ALL


def test_a_capture_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A file of another kind among the captures is said, and the others are joined."""
    path = write_pair(tmp_path, ONE, FULL)
    (tmp_path / "capture_traces" / "page.json").write_text("<html></html>", encoding="utf-8")
    owners = open_trace(path, index_dir=tmp_path / "index").owners(0)
    assert op_names(owners) == ALL
    (problem,) = owners.problems
    assert problem.startswith("a capture cannot be read: ")
    assert os.path.join("capture_traces", "page.json") in problem


@pytest.mark.parametrize("lost", ["Begin", "End"])
def test_half_of_the_calls_of_a_capture_are_enough(tmp_path: Path, lost: str) -> None:
    """Where the calls that begin captures were not recorded, or those that end them, annotations say where
    captures are.
    """
    (name, events), *_ = FULL.items()
    half = [event for event in events if not event["name"].endswith(f"Stream{lost}Capture")]
    assert len(half) == len(events) - 1
    path = write_pair(tmp_path, ONE, {name: half})
    assert op_names(open_trace(path, index_dir=tmp_path / "index").owners(0)) == ALL


def test_work_outside_of_graphs_keeps_its_launch(tmp_path: Path) -> None:
    """Kernels that no graph replayed are owned by their own calls, with captures or without."""
    args = {"correlation": 77, "stream": 7}
    eager = [
        complete(3000, 40, "aten::add", "cpu_op", **HOST),
        complete(3010, 5, "hipLaunchKernel", "cuda_runtime", **HOST, args={**args, "kernel": "add"}),
        complete(3020, 9, "add", "kernel", pid=9, tid=7, args=args),
    ]
    trace = open_trace(write_pair(tmp_path, [*ONE, eager], FULL), index_dir=tmp_path / "index")
    owners, launches = trace.owners(0), trace.launches(0)
    own = ~owners.by_capture
    assert int(np.count_nonzero(own)) == 1
    assert (owners.book[own] == 0).all()
    assert (owners.owner[own] == launches.launch[own]).all()
    alone = open_trace(
        write_events(tmp_path / "alone.json", json.loads(json.dumps(eager))), index_dir=tmp_path / "index"
    )
    assert not alone.owners(0).by_capture.any()


def test_captures_that_cannot_be_indexed_are_said(tmp_path: Path) -> None:
    """Where the cache has no room for captures the trace opens, and it is said why nothing is joined."""
    path = write_pair(tmp_path, ONE, FULL)
    open_trace(path, index_dir=tmp_path / "index")
    trace = open_trace(path, IndexOptions(tmp_path / "index", cache_limit=1))
    owners = trace.owners(0)
    assert not owners.by_capture.any()
    (problem,) = owners.problems
    assert problem.startswith("captures cannot be indexed: ")
    assert sum(one.kernels for one in owners.unjoined) == len(MODEL)


def test_node_ids_of_a_trace_that_has_gone_decide_nothing(tmp_path: Path) -> None:
    """A trace whose file has gone is joined by names and order, though its capture has ids of nodes."""
    path = write_pair(tmp_path, [replay_events(NODES)], {"a.json": capture_events(NODES)})
    trace = open_trace(path, index_dir=tmp_path / "index")
    path.unlink()
    assert op_names(trace.owners(0)) == ALL
