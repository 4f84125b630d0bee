"""Artefacts of a compiler are read in linear time, whatever they are full of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.linear import assert_linear
from tracelane.core.tables.compile.artefacts import read_artefacts

BREAK = "dynamo_graph_break_reason_0.txt"
STACKS = "inductor_provenance_tracking_kernel_stack_traces_1.json"
NODES = "inductor_provenance_tracking_node_mappings_1.json"
AGAIN = "recompile_reasons_1.json"
CODE, GRAPH, LOG = "output_code.py", "fx_graph_readable.txt", "torch_logs.log"
RECORD = "V0101 00:00:00.000000 1 torch/_dynamo/x.py:1] "
SHAPES: dict[str, tuple[str, str, str, str, int]] = {
    # file, what stands before, what is repeated, what stands behind, and how often
    "lines of a reason": (BREAK, "Graph break in user code at a.py:1\n", "Reason: x\n", "", 10_000),
    "digits of a line": (BREAK, "Graph break in user code at a.py:", "1", "\n", 1_000),
    "colons of a path": (BREAK, "Graph break in user code at ", "a:1:", "\n", 20_000),
    "digits in JSON": (STACKS, '{"k": ', "1", "}", 50_000),
    "nested JSON": (STACKS, "", "[", "", 50_000),
    "kernels": (STACKS, '{"k": ["s"]', ', "triton_a": ["File \\"a.py\\", line 1, in f\\n x"]', "}", 5_000),
    "stacks of a kernel": (STACKS, '{"k": ["s"', ', "File \\"a.py\\", line 1, in f\\n x"', "]}", 5_000),
    "lines of a stack": (STACKS, '{"k": ["', 'File \\"a.py\\", line 1, in f\\n x\\n', '"]}', 5_000),
    "nodes of a kernel": (NODES, '{"cppCodeToPost": {"k": ["a"', ', "n"', "]}}", 20_000),
    "reasons": (AGAIN, '["a"', ', "reason of another"', "]", 20_000),
    "lines of code": (CODE, "", "# Topologically Sorted Source Nodes: [a], Original ATen: [b]\n", "", 10_000),
    "blanks in code": (CODE, "", " ", "\n", 50_000),
    "one long line of code": (CODE, "buf = ", "extern_kernels.", "\n", 10_000),
    "lines of a graph": (GRAPH, "", " # File: a.py:1 in f, code: x\n mul = a\n", "", 5_000),
    "quotes in a graph": (GRAPH, "", 'a: "', "\n", 20_000),
    "records of a log": (LOG, "", RECORD + "Graph break in user code at a.py:1\n", "", 5_000),
    "lines of a record": (LOG, RECORD + "Recompiling function f in a.py:1\n", "    - x\n", "", 10_000),
    "brackets in a log": (LOG, "V0101 00:00 ", "]", " {}\n", 20_000),
    "JSON in a log": (LOG, RECORD + "{", '"a":', "}\n", 20_000),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_artefacts_take_linear_time(name: str, tmp_path: Path) -> None:
    """Four times as much of whatever a file is full of takes about four times as long."""
    file, before, unit, behind, count = SHAPES[name]

    def prepare(n: int) -> Callable[[], object]:
        folder = tmp_path / str(n)
        folder.mkdir(exist_ok=True)
        (folder / file).write_text(before + unit * n + behind, encoding="utf-8")
        return lambda: read_artefacts(str(folder), [])

    assert_linear(prepare, count)
