"""`source` and `compile` say what the compiler wrote of a kernel and of a graph."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.tui.cli_process import tracelane_here
from tracelane.core.tables.artefacts import Artefacts, CodeLine, read_artefacts

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


TRITON = """
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
    (tmp_path / "output_code.py").write_text(TRITON)
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
    trace.write_text(json.dumps([{**event, "name": f"{KEY}#{step}", "ts": 10 * step} for step in (1, 3)]))
    (tmp_path / "spyre_provenance.json").write_text(json.dumps(SPYRE))
    rows = rows_of("source", str(trace), "--index-dir", str(tmp_path))["source"]
    assert [(row["name"], row["line"], row["ops"], row["nodes"]) for row in rows] == [
        (f"{KEY}#{step}", "model.py:7, model.py:9", "aten.mm, aten.silu", "node_1, node_2, node_3")
        for step in (1, 3)
    ]


def test_what_is_not_known_is_named_by_its_keys(tmp_path: Path) -> None:
    """Of JSON in another form nothing is invented: a note has its keys."""
    (tmp_path / "my_provenance.json").write_text('{"version": 7, "kernels": []}')
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
    (tmp_path / "train.log").write_text("step 1\n" * 100_000)
    assert read_artefacts("", [str(tmp_path / "t.json")]) == Artefacts()
    (tmp_path / "t.json").write_text("[]")
    for run in ("run_2026_01_02_03", "run_2026_01_03_04"):
        folder = tmp_path / "torch_compile_debug" / run
        folder.mkdir(parents=True)
        (folder / "output_code.py").write_text(TRITON)
    result = read_artefacts("", [str(tmp_path / "t.json")])
    assert "triton_poi_fused_add_relu_0" in result.origins
    assert result.notes == [
        "2 runs of a compiler are read together: a kernel has the lines of all that name it"
    ]


FILES = [path for path in sorted(SAMPLES.rglob("*")) if path.is_file() and path.suffix != ".gz"]


@pytest.mark.parametrize("file", FILES, ids=[path.name for path in FILES])
def test_no_damage_of_an_artefact_breaks_the_reader(file: Path, tmp_path: Path) -> None:
    """Wherever a file is cut, or a piece of it is missing, it is read as far as it goes."""
    text, copy = file.read_text(), tmp_path / file.parent.name / file.name
    copy.parent.mkdir()
    for at in range(0, len(text), max(1, len(text) // 40)):
        for damaged in (text[:at], text[:at] + text[at + 50 :], text[:at] + "\0]}\n\t" + text[at:]):
            copy.write_text(damaged)
            result = read_artefacts(str(tmp_path), [])
            assert not result.notes
            assert all(isinstance(line, CodeLine) for one in result.origins.values() for line in one.lines)
