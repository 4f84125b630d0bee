"""Kernel <- launch <- op <- annotation: small cases, goldens, an independent reading of five real traces."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, GOLDENS, needs
from tests.events import complete, index_of
from tests.small_index import L, S, write_index
from tests.tui.cli_process import tracelane_here
from tracelane.core import open_trace
from tracelane.core.base.pattern import Pattern
from tracelane.core.export.chains import SourceChains
from tracelane.core.index.store import Index
from tracelane.core.query.chain import chain_of, enclosing


def small(tmp_path: Path, kernel: S, flows: list[tuple[int, int, str]], launch: S | None = None) -> list:
    cpu = L(
        pid="10",
        tid="10",
        slices=[
            S(0, 1000, "outer", "user_annotation", ordinal=0),
            S(10, 500, "aten::mm", "cpu_op", ordinal=1, promoted={"external_id": 77}),
            launch or S(20, 30, "cudaLaunchKernel", "cuda_runtime", ordinal=2, promoted={"correlation": 5}),
        ],
    )
    gpu = L(pid="0", tid="7", slices=[kernel])
    write_index(tmp_path, [cpu, gpu], flows=flows)
    index = Index.open(tmp_path)
    kernel_position = index.position_of(9)
    assert kernel_position is not None
    names = index.strings(index.column("slices.name"))
    return [(link.role, names[link.position], link.via) for link in chain_of(index, kernel_position)]


OUTER = [("op", "aten::mm", "enclosing"), ("annotation", "outer", "enclosing")]


def test_a_flow_is_followed(tmp_path: Path) -> None:
    """A flow into the kernel leads to its launch, whatever the correlation says."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 6})
    links = small(tmp_path, kernel, [(2, 9, "ac2g")])
    assert links == [("kernel", "k", ""), ("launch", "cudaLaunchKernel", "flow"), *OUTER]


def test_without_a_flow_the_correlation_is_used_and_said(tmp_path: Path) -> None:
    """A kernel with the correlation of a runtime slice is launched by it."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 5})
    links = small(tmp_path, kernel, [])
    assert links == [("kernel", "k", ""), ("launch", "cudaLaunchKernel", "correlation"), *OUTER]


def test_the_external_id_is_the_last_resort(tmp_path: Path) -> None:
    """With neither flow nor correlation the op of the same External id is shown, and how it was found."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 8, "external_id": 77})
    links = small(tmp_path, kernel, [])
    assert links == [
        ("kernel", "k", ""),
        ("op", "aten::mm", "external id"),
        ("annotation", "outer", "enclosing"),
    ]


@pytest.mark.parametrize("promoted", [{}, {"correlation": 0}])
def test_nothing_is_guessed(tmp_path: Path, promoted: dict[str, int]) -> None:
    """A copy with correlation 0, or none, has no launch, even where others have a 0 too."""
    copy = S(100, 50, "Memset", "gpu_memset", ordinal=9, promoted=promoted)
    launch = S(20, 30, "aiuMalloc", "privateuse1_runtime", ordinal=2, promoted={"correlation": 0})
    assert small(tmp_path, copy, [], launch) == [("kernel", "Memset", "")]


CHAINS = sorted((GOLDENS / "chains").glob("*.chain.json")) if (GOLDENS / "chains").is_dir() else []
VIA = {"ac2g flow": "flow", "correlation (no usable flow)": "correlation", None: None}
HOSTS = ("cpu_op", "user_annotation")


def plain(entry: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a golden's slice in the shape of the command's."""
    if entry is None:
        return None
    same = {key: entry[key] for key in ("name", "pid", "tid")}
    times = {"start_ns": entry["ts_ns"], "duration_ns": entry["dur_ns"]}
    return {**same, **times, "category": entry["cat"]}


def golden_chain(chain: dict[str, Any]) -> dict[str, Any]:
    """Return what the command must say of a golden's chain, ancestors as "category:name"."""
    return {
        "kernel": plain(chain["kernel"]),
        "via": VIA[chain["via"]],
        "launch": plain(chain["launch"]),
        "op": plain(chain["innermost_op_or_annotation"]),
        "ancestors": chain["chain_outer_to_inner"],
        "launch_delay_ns": chain["launch_delay_from_launch_end_ns"],
    }


def command_chain(chain: dict[str, Any]) -> dict[str, Any]:
    """Return what the command said, its ancestors reduced to those that the goldens name."""
    hosts = [f"{s['category']}:{s['name']}" for s in chain["ancestors"] if s["category"] in HOSTS]
    return {**chain, "ancestors": hosts}


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("golden", CHAINS, ids=[path.name.split(".")[0] for path in CHAINS])
def test_chains_are_the_goldens(golden: Path, corpus_cache: Path) -> None:
    """Every sampled kernel has the golden's launch, way of knowing, op, ancestors and exact delay; the launch
    has as many kernels as the golden counts, and Python frames stand among the ancestors.
    """
    expected = json.loads(golden.read_text(encoding="utf-8"))
    trace = open_trace([CORPUS / expected["input"].removeprefix("share/")], index_dir=corpus_cache)
    index, launches = trace.indexes[0], trace.launches(0)
    chains = SourceChains(trace, 0)
    kernels = chains.named(Pattern("")).tolist()
    named = {int(index.column("slices.ordinal")[position]): position for position in kernels}
    assert expected["chains"]
    for chain in expected["chains"]:
        position = named[chain["kernel"]["event_index"]]
        said = {key: value for key, value in chains.chain_json(position).items() if key != "replay"}
        assert command_chain(said) == golden_chain(chain)
        outer = chain["outermost_user_annotation"]
        annotations = [s for s in said["ancestors"] if s["category"] == "user_annotation"]
        assert annotations[:1] == ([] if outer is None else [plain(outer)])
        frames = [s for s in said["ancestors"] if s["category"] == "python_function"]
        frame = chain["innermost_python_function"]
        assert frames[-1:] == ([] if frame is None else [plain(frame)])
        launch, _ = launches.launch_of(position)
        if launch is not None:
            count = chain["kernels_of_this_launch"]
            assert len(launches.between(launch, launch + 1)) == count
    trace.close()


@needs(CORPUS, GOLDENS)
def test_the_command_prints_the_goldens(corpus_cache: Path) -> None:
    """`--all --json` lists every kernel of the file; a golden's own ts_ns given to --at finds its kernel."""
    golden = next(path for path in CHAINS if path.name.startswith("spyre_decode"))
    expected = json.loads(golden.read_text(encoding="utf-8"))
    path = str(CORPUS / expected["input"].removeprefix("share/"))
    done = tracelane_here(
        "chain", path, "--name", "sdsc_", "--all", "--json", "--index-dir", str(corpus_cache)
    )
    assert done.returncode == 0, done.stderr
    said = [command_chain(chain) for chain in json.loads(done.stdout)]
    assert len(said) == expected["kernels_in_file"]
    by_time = sorted(expected["chains"], key=lambda chain: int(chain["kernel"]["ts_ns"]))
    assert said == [golden_chain(chain) for chain in by_time]
    chain = expected["chains"][3]
    at = str(chain["kernel"]["ts_ns"])
    done = tracelane_here(
        "chain", path, "--name", "sdsc_", "--at", at, "--json", "--index-dir", str(corpus_cache)
    )
    assert [command_chain(entry) for entry in json.loads(done.stdout)] == [golden_chain(chain)]


@pytest.mark.parametrize("seed", range(4))
def test_what_encloses_a_slice_is_all_that_runs_where_it_begins(seed: int, tmp_path: Path) -> None:
    """Also where slices of a lane overlap, on each of several lanes: as if all others had been looked at."""
    pick = random.Random(seed)
    spans = [
        (tid, pick.randrange(60), pick.randrange(1, 20), f"{tid} {number}")
        for tid in (1, 2, 3)
        for number in range(12)
    ]
    index = index_of([complete(ts, dur, name, tid=tid) for tid, ts, dur, name in spans], tmp_path)
    names = index.strings(index.column("slices.name"))
    for position, name in enumerate(names):
        ((tid, ts, dur, _),) = (one for one in spans if one[-1] == name)
        expected = {
            other[-1]
            for other in spans
            if other[0] == tid and other[1] < ts < other[1] + other[2] and other[-1] != name
        }
        around = {names[at] for at in enclosing(index, position)}
        # Of slices that begin together the longer ones are around.
        together = {other[-1] for other in spans if other[:2] == (tid, ts) and other[2] >= dur}
        assert expected <= around <= expected | together, name
