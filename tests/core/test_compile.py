"""torch.compile: regions, graphs, lookups, phases, and what the compiler wrote of a kernel and a graph."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, file, for_files, needs
from tests.events import arrow, complete, metadata, open_events
from tests.json_tables import analysed
from tests.tui.cli_process import tracelane_here
from tracelane.core.tables.compile.artefacts import Artefacts, CodeLine, read_artefacts
from tracelane.core.tables.compile.compile import compiled
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace

BREAKS = "cpu/torch213_graph_breaks.json"
BREAKS_WITH_STACK = "cpu/torch213_graph_breaks_stack_mem.json.gz"
FIRST_CALL = "cpu/torch213_compile_first_call.json.gz"
TRITON = "gpu/tl_torch_compile_triton.json.gz"
VLLM = "gpu/tl_vllm_decode_cudagraph_exec.json.gz"
MLP = "aiu/mlp_trace.json"
EAGER = "cpu/torch213_mlp_plain.json"
OF_TORCH = [f"cpu/torch_{release}_compiled.pt.trace.json.gz" for release in ("2.1", "2.13", "2.14")]
FILES = (BREAKS, BREAKS_WITH_STACK, FIRST_CALL, TRITON, MLP, *OF_TORCH, "compiled/model.pt.trace.json.gz")
FIRST_CALL_OF_TORCH = "cpu/torch_2.13_first_call.pt.trace.json.gz"
HOSTS = ("cpu_op", "user_annotation")


@cache
def events_of(name: str) -> list[dict[str, Any]]:
    """Return the host's slices by (start, longest first), with integer ns."""
    path = file(name)
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        events = json.loads(stream.read(), parse_float=Decimal)["traceEvents"]
    host = [e for e in events if e.get("cat") in HOSTS and e.get("ph") == "X"]
    for e in host:
        e["start"], e["end"] = (
            int(Decimal(e["ts"]) * 1000),
            int((Decimal(e["ts"]) + Decimal(e["dur"])) * 1000),
        )
    return sorted(host, key=lambda e: (e["start"], -e["end"]))


def outer_of(events: list[dict[str, Any]]) -> list[int]:
    """Return of each event the innermost other one of its thread that holds it, -1: none."""
    outer = []
    for at, e in enumerate(events):
        around = [
            other
            for other, o in enumerate(events[:at])
            if (o["pid"], o["tid"]) == (e["pid"], e["tid"])
            and o["start"] <= e["start"]
            and e["end"] <= o["end"]
        ]
        outer.append(min(around, key=lambda i: events[i]["end"] - events[i]["start"], default=-1))
    return outer


def of_name(name: str, pattern: str) -> list[dict[str, Any]]:
    return [e for e in events_of(name) if re.search(pattern, e["name"])]


def compile_answer(name: str, cache_dir: Path, **scope: Any) -> dict[str, Any]:
    trace = open_trace(file(name), index_dir=cache_dir)
    return analysed("compile", Scope(trace, **scope))


@for_files("name", FILES)
def test_the_tree_of_regions_is_that_of_the_times(name: str, corpus_cache: Path) -> None:
    """Each path of regions has its row under its parent's, with count, time and time without inner ones."""
    regions = of_name(name, "^Torch-Compiled Region")
    outer = outer_of(regions)
    paths: list[tuple[str, ...]] = []
    count: Counter[tuple[str, ...]] = Counter()
    total, own = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
    for at, e in enumerate(regions):
        label = e["name"].split(": ")[1]
        paths.append((*(paths[outer[at]] if outer[at] >= 0 else ()), label))
        count[paths[at]] += 1
        total[paths[at]] += e["end"] - e["start"]
        own[paths[at]] += e["end"] - e["start"]
        if outer[at] >= 0:
            own[paths[outer[at]]] -= e["end"] - e["start"]
    actual: dict[tuple[str, ...], list[int]] = {}
    above: list[str] = []
    for row in compile_answer(name, corpus_cache)["regions"]:
        above = [*above[: row["depth"]], row["name"].strip()]
        actual[tuple(above)] = [row["count"], row["total_ns"], row["self_ns"]]
        assert ("graph break" in row["note"]) == (row["depth"] > 0)
    assert actual == {path: [count[path], total[path], own[path]] for path in count}


@for_files("name", FILES)
def test_graphs_and_signs_are_counted(name: str, corpus_cache: Path) -> None:
    """Calls and times by hash are the file's, the device's twins of annotations are not counted again."""
    expected: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for e in of_name(name, "^## Call CompiledFxGraph"):
        expected[e["name"].split()[3]][0] += 1
        expected[e["name"].split()[3]][1] += e["end"] - e["start"]
    answer = compile_answer(name, corpus_cache)
    assert answer["applied"] is True
    assert {row["name"]: [row["count"], row["total_ns"]] for row in answer["graphs"]} == expected
    signs = {row["name"]: (row["count"], row["total_ns"]) for row in answer["signs"]}
    for sign, pattern in (
        ("Torch-Compiled Region", "^Torch-Compiled Region"),
        ("TorchDynamo Cache Lookup", "^TorchDynamo Cache Lookup$"),
        ("CompiledFunction", "^CompiledFunction(Backward)?$"),
    ):
        events = of_name(name, pattern)
        sums = (len(events), sum(e["end"] - e["start"] for e in events))
        assert signs.get(sign, (0, 0)) == sums, sign


@for_files("name", [FIRST_CALL, FIRST_CALL_OF_TORCH])
def test_compile_time_adds_up(name: str, corpus_cache: Path) -> None:
    """The phases' own times are those of a walk, and add up to the time in which anything is compiled."""
    rows = of_name(name, r"\(dynamo_timed\)$")
    own = [e["end"] - e["start"] for e in rows]
    for at, outer in enumerate(outer_of(rows)):
        if outer >= 0:
            own[outer] -= rows[at]["end"] - rows[at]["start"]
    expected: Counter[str] = Counter()
    for e, ns in zip(rows, own):
        expected[e["name"].removesuffix(" (dynamo_timed)")] += ns
    answer = compile_answer(name, corpus_cache)
    assert {row["name"]: row["self_ns"] for row in answer["phases"]} == expected
    assert answer["compile_ns"] == sum(expected.values())
    phase = {row["name"]: row["phase"] for row in answer["phases"]}
    assert (phase["bytecode_tracing"], phase["aot_trace_joint_graph"]) == ("dynamo", "AOT")
    assert (phase.get("compile_file", "inductor"), phase["Scheduler.codegen"]) == ("inductor", "inductor")
    assert "" not in phase.values()


@for_files("name, frames", [(FIRST_CALL, ("0/0", "1/0")), (FIRST_CALL_OF_TORCH, ("3/0",))])
def test_compilations_have_their_ids(name: str, frames: tuple[str, ...], corpus_cache: Path) -> None:
    """Each frame was compiled, then its backward graph; their phases add up to their times."""
    rows = compile_answer(name, corpus_cache)["compilations"]
    both = [(frame, of) for frame in frames for of in ("frame", "backward graph")]
    assert [(row["name"], row["of"]) for row in rows] == both
    for row in rows:
        assert row["dynamo_ns"] + row["aot_ns"] + row["inductor_ns"] == row["total_ns"]


@needs(CORPUS)
def test_steps_have_their_lookups(corpus_cache: Path) -> None:
    """With the region as step the lookup right before it is the step's; each step calls the same graphs."""
    rows = compile_answer(BREAKS, corpus_cache)["steps"]
    lookups = len(of_name(BREAKS, "^TorchDynamo Cache Lookup$"))
    assert sum(row["lookups"] for row in rows) == lookups == 12
    assert [(row["regions"], row["nested"], row["new_graphs"]) for row in rows] == [
        (4, 3, 2),
        (4, 3, 0),
        (4, 3, 0),
    ]


@needs(CORPUS)
def test_device_time_by_code(corpus_cache: Path) -> None:
    """Kernels of Inductor, of libraries and of users are told apart, by where they were launched too."""
    code = {row["name"]: row for row in compile_answer(TRITON, corpus_cache)["code"]}
    assert {name: row["kernels"] for name, row in code.items()} == {"library": 8, "Inductor (Triton)": 4}
    assert all(row["compiled_ns"] == row["total_ns"] for row in code.values()), "all inside the one region"
    graph = compile_answer(VLLM, corpus_cache)
    kinds = {row["name"]: row["kernels"] for row in graph["code"]}
    assert kinds["Inductor (Triton)"] == 48
    assert kinds["user Triton"] == 204
    assert "names of Inductor's kernels alone" in " ".join(graph["notes"])
    aiu = {row["name"]: row["kernels"] for row in compile_answer(MLP, corpus_cache)["code"]}
    assert aiu == {"Inductor (Spyre)": 30}, "an AIU's Memset (Device) is an allocation"


@for_files("eager, warm", [(EAGER, BREAKS), ("cpu/torch_2.13_training.pt.trace.json.gz", OF_TORCH[1])])
def test_what_is_not_there_is_said(eager: str, warm: str, corpus_cache: Path) -> None:
    """An eager trace shows no sign; a compiled one of the CPU says that its kernels leave no events."""
    plain = compile_answer(eager, corpus_cache)
    assert (plain["applied"], plain["signs"]) == (False, [])
    assert "nothing shows torch.compile" in plain["notes"][1]
    assert any("leave no events" in note for note in compile_answer(warm, corpus_cache)["notes"])


@for_files("name", [BREAKS, *OF_TORCH[1:]])
def test_a_range_counts_what_begins_in_it(name: str, corpus_cache: Path) -> None:
    """In the second half of the regions' time only those count that begin there."""
    regions = of_name(name, "^Torch-Compiled Region")
    span = (regions[len(regions) // 2]["start"], 1 << 60)
    rows = compile_answer(name, corpus_cache, range=span)["regions"]
    assert sum(row["count"] for row in rows) == len(regions) - len(regions) // 2


@pytest.fixture
def recompiled_trace(tmp_path: Path) -> Trace:
    """Frame 0 runs as compiled for the first, then for the third time; two kernels with plain names."""
    launches = [complete(ts, 2, "hipModuleLaunchKernel", "cuda_runtime") for ts in (50, 80)]
    kernels = [
        complete(55, 3, "attn_fwd", "kernel", pid=0, tid=7),
        complete(85, 4, "my_kernel", "kernel", pid=0, tid=7),
    ]
    events = [
        metadata("process_labels", 0, labels="GPU 0"),
        complete(0, 10, "Torch-Compiled Region: 0/0"),
        complete(20, 10, "Torch-Compiled Region: 0/2"),
        complete(40, 30, "aten::_flash_attention_forward"),
        *launches,
        *arrow(50, launches[0], kernels[0]),
        *arrow(80, launches[1], kernels[1]),
        *kernels,
    ]
    return open_events(tmp_path, events)


def test_recompilations(recompiled_trace: Trace) -> None:
    """A frame of which a later compilation ran was compiled again, at least as often as the id says."""
    summary = compiled(Scope(recompiled_trace))
    assert [(row["frame"], row["runs"]) for row in summary.recompiled.rows()] == [(0, {"0": 1, "2": 1})]
    assert "frame 0 was compiled at least 3 times" in summary.signs.notes[1]
    assert [row["note"] for row in summary.regions.rows()] == ["", "compiled again"]


def test_plain_names_are_judged_by_their_op(recompiled_trace: Trace) -> None:
    """A plain kernel name under an aten op is a library's, under none the user's Triton."""
    code = {row["name"]: row["total_ns"] for row in compiled(Scope(recompiled_trace)).code.rows()}
    assert code == {"user Triton": 4_000, "library": 3_000}


def test_dynamos_own_file(tmp_path: Path) -> None:
    """chromium_events.json, recorded with PyTorch 2.13, gives phases and compilations with their ids."""
    sample = Path(__file__).parent.parent / "samples" / "dynamo_chromium_events.json"
    begun = [event for event in json.loads(sample.read_text(encoding="utf-8")) if event["ph"] == "B"]
    result = compiled(Scope(open_trace([sample], index_dir=tmp_path)))
    assert result.signs.totals["applied"] and any("Dynamo's own file" in note for note in result.signs.notes)
    entire = [event for event in begun if event["name"].startswith("entire_")]
    assert result.compilations.texts("name") == [event["args"]["compile_id"] for event in entire]
    assert result.compilations.texts("of").count("backward graph") == 2
    assert sum(result.phases.numbers("count").tolist()) == len(begun)
    assert {"dynamo", "AOT"} <= set(result.phases.texts("phase"))


SAMPLES = Path(__file__).parent.parent / "samples" / "compiled"
TRACE = SAMPLES / "model.pt.trace.json.gz"
SOFTMAX, NORM = "graph_3_cpp_fused__softmax_sin_0", "graph_2_cpp_fused_native_layer_norm_0"
SIZES = "0/0: tensor 'x' size mismatch at index 0. expected 8, actual 16"
BRANCH = "Data-dependent branching"
CODE = "y=torch.relu(s.l(s.n(x)))*2+x"
"""Recorded on the CPU with PyTorch 2.13: a graph break at line 8, compiled again for a second shape."""


def rows_of(*arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a command's tables."""
    done = tracelane_here(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return {name: table["rows"] for name, table in json.loads(done.stdout)["tables"].items()}


BOTH = {"graph break", "recompilation"}
KINDS = {
    # artefacts: the lines of two kernels of the trace, None for those not known; kinds of reasons
    "torch_trace": (("model.py:7", "model.py:9, model.py:8"), BOTH),
    "tl_out": (("model.py:7", "model.py:9, model.py:8"), BOTH),
    "torch_compile_debug": (("model.py:7", None), set()),
    "logs": ((None, None), BOTH),
}


@pytest.mark.parametrize("name", KINDS)
def test_each_kind_of_artefact_is_read(name: str, tmp_path: Path) -> None:
    """Each folder that PyTorch or tlparse writes gives the lines, nodes and reasons that stand in it."""
    lines, kinds = KINDS[name]
    tables = rows_of("source", str(TRACE), "--artefacts", str(SAMPLES / name), "--index-dir", str(tmp_path))
    by_name = {row["name"]: row for row in tables["source"]}
    assert (
        tuple(by_name[kernel]["line"] if kernel in by_name else None for kernel in (NORM, SOFTMAX)) == lines
    )
    known = [by_name[kernel] for kernel in (NORM, SOFTMAX) if kernel in by_name]
    assert all(row["count"] == 3 and row["nodes"] for row in known)
    assert {row["kind"] for row in tables["reasons"]} == kinds
    reasons = {row["reason"] for row in tables["reasons"] if row["graph"] == "0/1"}
    assert reasons == ({SIZES, BRANCH} if kinds else set())


def test_files_beside_the_trace_are_read_unasked(tmp_path: Path) -> None:
    """What lies beside a trace is read without an option, also by `compile`, which says why for a region."""
    folder = tmp_path / "run"
    shutil.copytree(SAMPLES, folder)
    trace = str(folder / TRACE.name)
    tables = rows_of("source", trace, "--index-dir", str(tmp_path))
    (row,) = [row for row in tables["source"] if row["name"] == NORM]
    assert row["code"] == CODE and row["files"] == "/home/user/model.py"
    regions = rows_of("compile", trace, "--index-dir", str(tmp_path))["regions"]
    (region,) = [row for row in regions if row["frame"] == "0"]
    assert SIZES in region["reason"] and BRANCH in region["reason"]
    alone = tmp_path / "alone" / TRACE.name
    alone.parent.mkdir()
    shutil.copy(TRACE, alone)
    done = tracelane_here("source", str(alone), "--index-dir", str(tmp_path))
    assert done.returncode == 0 and "--artefacts" in done.stdout


TRITON_SOURCE = """
# kernel path: /tmp/x/ab/cab.py
# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add, aten.relu]
# Source node to ATen node mapping:
#   x => add
# Graph fragment:
#   %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%a, %b), kwargs = {})
triton_poi_fused_add_relu_0 = async_compile.triton('triton_poi_fused_add_relu_0', '''
''', device_str='cuda')
    # Topologically Sorted Source Nodes: [z], Original ATen: [aten.mm]
    extern_kernels.mm(buf0, arg1, out=buf1)
"""
"""As get_kernel_metadata and define_kernel of Inductor write it for a GPU."""


def test_generated_code_names_its_nodes(tmp_path: Path) -> None:
    """The comment above a kernel in output_code.py, and above a call of a library, is its origin."""
    (tmp_path / "output_code.py").write_text(TRITON_SOURCE, encoding="utf-8")
    origins = read_artefacts(str(tmp_path), []).origins
    assert {name: (one.nodes, one.ops) for name, one in origins.items()} == {
        "triton_poi_fused_add_relu_0": (("x", "y"), ("aten.add", "aten.relu")),
        "extern_kernels.mm": (("z",), ("aten.mm",)),
    }


def handle(number: int, line: int | None, op: str | None, *parts: int) -> dict[str, Any]:
    """Return a DebugHandle of torch-spyre's file."""
    source = {"file": "/m/model.py", "start_line": line, "start_col": 4, "end_line": None, "end_col": None}
    return {
        "id": str(number),
        "source": source if line else None,
        "aten_op": op,
        "ir_chain": [f"node_{number}"],
        "fused_from": [str(part) for part in parts],
        "transform_history": [],
    }


KEY = "spyre_kernel_v1_fused_mm_silu_abcdefgh234567ab"
SPYRE = {
    "schemaVersion": 1,
    "handles": {
        str(n): handle(n, *rest)
        for n, *rest in ((1, None, None, 2, 3, 1), (2, 7, "aten.mm"), (3, 9, "aten.silu"))
    },
    "kernelIdentities": {
        "abcdefgh234567ab": {
            "directHandleIds": ["1"],
            "specHandleBindings": [],
            "atenOps": ["aten.mm", "aten.silu"],
            "eventNameBase": KEY,
        }
    },
}


def test_spyre_kernels_join_their_provenance(tmp_path: Path) -> None:
    """A kernel of Spyre has the lines of all handles that it was fused from, whatever its number."""
    trace = tmp_path / "t.json"
    event = {"ph": "X", "cat": "kernel", "pid": 0, "tid": 1, "ts": 1, "dur": 5}
    trace.write_text(
        json.dumps([{**event, "name": f"{KEY}#{step}", "ts": 10 * step} for step in (1, 3)]), encoding="utf-8"
    )
    (tmp_path / "spyre_provenance.json").write_text(json.dumps(SPYRE), encoding="utf-8")
    rows = rows_of("source", str(trace), "--index-dir", str(tmp_path))["source"]
    assert [(row["name"], row["line"], row["ops"], row["nodes"]) for row in rows] == [
        (f"{KEY}#{step}", "model.py:7, model.py:9", "aten.mm, aten.silu", "node_1, node_2, node_3")
        for step in (1, 3)
    ]


def test_what_is_not_known_is_named_by_its_keys(tmp_path: Path) -> None:
    """Of JSON in another form nothing is invented: a note has its keys."""
    (tmp_path / "my_provenance.json").write_text('{"version": 7, "kernels": []}', encoding="utf-8")
    result = read_artefacts(str(tmp_path), [])
    assert not result.origins and result.notes == [
        "my_provenance.json: not known; its keys are version, kernels"
    ]
    done = tracelane_here(
        "source", str(TRACE), "--artefacts", str(tmp_path / "no"), "--index-dir", str(tmp_path)
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_other_logs_and_several_runs(tmp_path: Path) -> None:
    """A log that no compiler wrote says nothing, however long it is; several runs read together are told."""
    (tmp_path / "train.log").write_text("step 1\n" * 100_000, encoding="utf-8")
    assert read_artefacts("", [str(tmp_path / "t.json")]) == Artefacts()
    (tmp_path / "t.json").write_text("[]", encoding="utf-8")
    for run in ("run_2026_01_02_03", "run_2026_01_03_04"):
        folder = tmp_path / "torch_compile_debug" / run
        folder.mkdir(parents=True)
        (folder / "output_code.py").write_text(TRITON_SOURCE, encoding="utf-8")
    result = read_artefacts("", [str(tmp_path / "t.json")])
    assert "triton_poi_fused_add_relu_0" in result.origins
    assert result.notes == [
        "2 runs of a compiler are read together: a kernel has the lines of all that name it"
    ]


FILES_SOURCE = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file() and path.suffix != ".gz"]


@pytest.mark.parametrize("file", FILES_SOURCE, ids=[path.name for path in FILES_SOURCE])
def test_no_damage_of_an_artefact_breaks_the_reader(file: Path, tmp_path: Path) -> None:
    """Wherever a file is cut, or a piece of it is missing, it is read as far as it goes."""
    text, copy = file.read_text(encoding="utf-8"), tmp_path / file.parent.name / file.name
    copy.parent.mkdir()
    for at in range(0, len(text), max(1, len(text) // 40)):
        for damaged in (text[:at], text[:at] + text[at + 50 :], text[:at] + "\0]}\n\t" + text[at:]):
            copy.write_text(damaged, encoding="utf-8")
            result = read_artefacts(str(tmp_path), [])
            assert not result.notes
            assert all(isinstance(line, CodeLine) for one in result.origins.values() for line in one.lines)


@pytest.mark.parametrize(
    ("phase", "note", "compile_ns"),
    [
        ("_compile.compile_inner (dynamo_timed)", "it compiled, and no code", 900_000),
        ("aot_collect_metadata (dynamo_timed)", "it compiled, and no code", 900_000),
        ("aten::mm", "is not applied", 0),
    ],
)
def test_what_was_compiled_was_applied(phase: str, note: str, compile_ns: int, tmp_path: Path) -> None:
    """A trace that spends its time compiling says so, also where none of the code ran in it."""
    signs = compiled(Scope(open_events(tmp_path, [complete(0, 900, phase)]))).signs
    assert note in signs.notes[0]
    assert signs.totals == {"applied": compile_ns > 0, "compile_ns": compile_ns}
    assert any("nothing shows torch.compile" in text for text in signs.notes) == (compile_ns == 0)
