"""`tracelane chain --json` against an independent reading of five real traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, GOLDENS, needs_corpus, needs_goldens
from tests.tui.cli_process import tracelane_here
from tracelane.core import open_trace
from tracelane.core.base.pattern import Pattern
from tracelane.core.export.chains import SourceChains, chain_json

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


@needs_corpus
@needs_goldens
@pytest.mark.parametrize("golden", CHAINS, ids=[path.name.split(".")[0] for path in CHAINS])
def test_chains_are_the_goldens(golden: Path, corpus_cache: Path) -> None:
    """Every sampled kernel has the golden's launch, way of knowing, op, ancestors and exact delay; the launch
    has as many kernels as the golden counts, and Python frames stand among the ancestors.
    """
    expected = json.loads(golden.read_text())
    trace = open_trace([CORPUS / expected["input"].removeprefix("share/")], index_dir=corpus_cache)
    index, launches = trace.indexes[0], trace.launches(0)
    chains = SourceChains(trace, 0)
    kernels = chains.named(Pattern("")).tolist()
    named = {int(index.column("slices.ordinal")[position]): position for position in kernels}
    assert expected["chains"]
    for chain in expected["chains"]:
        position = named[chain["kernel"]["event_index"]]
        said = chain_json(index, chains.chain(position))
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


@needs_corpus
@needs_goldens
def test_the_command_prints_the_goldens(corpus_cache: Path) -> None:
    """`--all --json` lists every kernel of the file; a golden's own ts_ns given to --at finds its kernel."""
    golden = next(path for path in CHAINS if path.name.startswith("spyre_decode"))
    expected = json.loads(golden.read_text())
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
