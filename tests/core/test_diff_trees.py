"""Op trees of two traces against each other: the worst first, one sentence on top, nothing lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import tracelane
from tests.corpus import CORPUS, needs_corpus
from tests.events import Event, complete
from tracelane.core import open_trace
from tracelane.core.tables.diff_trees import diff_trees
from tracelane.core.tables.scope import Scope
from tracelane.tui.cli.main import main

SPYRE = CORPUS / "aiu" / "spyre_torch_profiler"


def trace_of(path: Path, ops: list[tuple[str, float, list[tuple[str, float]]]], steps: int = 2) -> Path:
    """Write steps in which each op runs on the host for some µs and launches device work of some µs."""
    events: list[Event] = []
    for step in range(steps):
        at, free = 10_000.0 * step, 10_000.0 * step + 1000
        events.append(complete(at, 5000, f"ProfilerStep#{step}", cat="user_annotation", pid=7, tid=7))
        for name, us, works in ops:
            events.append(complete(at, us, name, pid=7, tid=7))
            for work, ns in works:
                number = len(events)
                call = {"correlation": number}
                cat = "gpu_memcpy" if work.startswith("Memcpy") else "kernel"
                events.append(
                    complete(at + 1, 1, "cudaLaunchKernel", cat="cuda_runtime", pid=7, tid=7, args=call)
                )
                events.append(complete(free, ns, work, cat=cat, pid=0, tid=7, args=call | {"stream": 7}))
                free += ns
                at += 2
            at += us
    path.write_text(json.dumps(events))
    return path


@pytest.fixture
def eager(tmp_path: Path) -> Path:
    return trace_of(
        tmp_path / "eager.json",
        [("aten::linear", 40, [("gemm", 500)]), ("aten::relu", 34, [("relu", 120)])],
    )


@pytest.fixture
def compiled(tmp_path: Path) -> Path:
    return trace_of(
        tmp_path / "compiled.json",
        [
            ("aten::linear", 44, [("gemm", 500)]),
            ("Torch-Compiled Region: 0/0", 60, [("triton_poi_fused_relu_0", 27), ("Memcpy DtoD", 33)]),
        ],
    )


def test_one_sentence_says_it(eager: Path, compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the host and the kernels take in a step, and the copies that are new, stand on top."""
    sentence = "compiled: host 74 µs → 104 µs a step, kernels 620 µs → 560 µs, 1 new copy of 33 µs"
    assert main(["diff", str(eager), str(compiled), "--tree"]) == 0
    assert capsys.readouterr().out.startswith(sentence + "\n")
    assert main(["diff", str(eager), str(compiled), "--tree", "--json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert whole["notes"] == [sentence]
    table = tracelane.diff(eager, compiled, tree=True).main
    assert list(table.rows()) == whole["tables"]["tree"]["rows"]
    rows = {row["name"]: row for row in table.rows()}
    assert {name: row["presence"] for name, row in rows.items()} == {
        "ProfilerStep#*": "both",
        "aten::linear": "both",
        "aten::relu": "gone",
        "Torch-Compiled Region: 0/0": "new",
    }
    assert [row["name"] for row in table.rows()][-1] == "aten::relu", "what takes less comes last"
    assert rows["aten::linear"]["host_change_ns"] == 4_000 and not rows["aten::linear"]["device_change_ns"]
    assert rows["aten::relu"]["device_a_ns"] == 120_000 and rows["aten::relu"]["calls_a"] == 1


@needs_corpus
@pytest.mark.parametrize(
    ("before", "now", "share", "worst"),
    [
        (
            "jamie_mlp__coordinate-remap",
            "jamie_mlp__upstream-main",
            0.047,
            "launch_kernel:sdsc_fused_bmm_mul_silu_0",
        ),
        ("small_bmm__branch-baseline", "small_bmm__planned-only", -0.014, ""),
        ("prefill_bmm__branch-baseline", "prefill_bmm__coordinate-remap", -0.046, ""),
        ("decode_bmm__branch-baseline", "decode_bmm__upstream-main", -0.003, ""),
    ],
)
def test_regressions_lie_where_they_are(
    before: str, now: str, share: float, worst: str, corpus_cache: Path
) -> None:
    """The kernels of a pair change by what is known, below the same paths, the worst path first."""
    paths = [next(SPYRE.glob(f"{name}*")) for name in (before, now)]
    a, b = (Scope(open_trace([path], index_dir=corpus_cache)) for path in paths)
    rows = list(diff_trees(a, b, (before, now)).rows())
    tops = [row for row in rows if row["parent"] == -1]
    spent = [sum(row[key] for row in tops) for key in ("device_a_ns", "device_b_ns")]
    assert spent[1] / spent[0] - 1 == pytest.approx(share, abs=0.0006)
    leaf = max(
        (row for row in rows if row["name"].startswith("launch_kernel")),
        key=lambda row: row["device_change_ns"],
    )
    assert not worst or leaf["name"] == worst


@needs_corpus
def test_nothing_is_lost_and_nothing_changes_against_itself(corpus_cache: Path) -> None:
    """Against nothing a tree holds all device work; against itself it has no row."""
    path = CORPUS / "gpu" / "tl_mi300_resnet_train_rank0of8.json.gz"
    trace = open_trace([path], index_dir=corpus_cache)
    scope = Scope(trace)
    assert not len(diff_trees(scope, scope, ("a", "b")))
    empty = Scope(trace, range=(trace.span[0] - 2, trace.span[0] - 1))
    rows = list(diff_trees(empty, scope, ("a", "b")).rows())
    own = [row["device_b_ns"] for row in rows if row["parent"] == -1]
    assert all(row["presence"] == "new" for row in rows)
    work = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    whole = sum(
        round(e["dur"] * 1000) for e in work if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    )
    assert sum(own) == whole


def test_only_two_sides(eager: Path, compiled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Three sides have no tree, neither typed nor in Python."""
    assert main(["diff", str(eager), str(eager), str(compiled), "--tree"]) == 64
    assert "compares two traces" in capsys.readouterr().err
    with pytest.raises(tracelane.TracelaneError, match="two traces"):
        tracelane.diff([eager, eager], compiled, tree=True)
