"""The ops table: PyTorch's own text, character for character, and the command that prints it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.corpus import GOLDENS, needs_goldens
from tests.json_tables import flat
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file
from tracelane.core.tables.ops import ops, sort_column
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import open_trace
from tracelane.tui.text.ops_table import memory_text, ops_text, torch_time_text

FOLDER = GOLDENS / "key_averages"
TABLES = {"cpu_time_total_default_width_row_limit_20": "cpu_time_total"}
FLOPS = re.compile(r"(?<=  )(-{12}|Total MFLOPs| *(--|[0-9.]+))  $")


@needs_goldens
@pytest.mark.parametrize(
    "name", ["ka_compile_breaks_mem_shapes", "ka_mlp_sched_shapes_mem", "ka_mlp_sched_stack_mem_verbose"]
)
def test_text_is_that_of_torch(name: str, corpus_cache: Path) -> None:
    """The printed table equals torch's, but for FLOPs, which a trace does not hold."""
    golden = json.loads((FOLDER / f"{name}.golden.json").read_bytes())
    trace = open_trace(next(FOLDER.glob(f"{name}.pt.trace.json*")), index_dir=corpus_cache)
    table = ops(Scope(trace))
    for title, key in TABLES.items():
        expected = golden["tables"][title].splitlines()
        if "with_flops" in golden["profile_options"]:
            expected = [FLOPS.sub("", line) for line in expected]
        lines = ops_text(table, table.order(sort_column(key)), 20).splitlines()
        assert lines == expected


@pytest.mark.parametrize(
    ("ns", "text"), [(0, "0.000us"), (999, "0.999us"), (1_500_000, "1.500ms"), (2_000_000_000, "2.000s")]
)
def test_times(ns: int, text: str) -> None:
    """Units change at 1000 us and at a second."""
    assert torch_time_text(ns) == text


@pytest.mark.parametrize(
    ("count", "text"), [(-12, "-12 B"), (1024, "1.00 KB"), (-2_097_152, "-2.00 MB"), (1 << 31, "2.00 GB")]
)
def test_memory(count: int, text: str) -> None:
    """Units are of 1024, with a sign where memory was released."""
    assert memory_text(count) == text


@pytest.mark.slow
def test_a_step_is_one_of_those_found(tmp_path: Path) -> None:
    """Without the profiler's marks --step means what `tracelane steps` finds; a wrong one is told."""
    path = tmp_path / "regions.json"
    names = ("Torch-Compiled Region: 0/0", "aten::mm")
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 100 * i, "dur": dur}
        for i in range(3)
        for name, dur in zip(names, (90, 10 + i))
    ]
    path.write_text(json.dumps(events))
    more = ("--format", "json", "--index-dir", str(tmp_path / "cache"))
    answer = flat(json.loads(tracelane_here("ops", str(path), "--step", "2", *more).stdout))
    assert [(row["name"], row["cpu_total_ns"]) for row in answer["ops"]] == [
        (names[0], 90_000),
        (names[1], 12_000),
    ]
    wrong = tracelane_here("ops", str(path), "--step", "7", *more)
    assert wrong.returncode == 64 and "0 to 2" in wrong.stderr


@pytest.mark.slow
def test_the_command_prints_every_format(tmp_path: Path) -> None:
    """Table with the device's word and footer; JSON with its keys; a wrong sort key is wrong usage."""
    path, more = str(small_file(tmp_path)), ("--index-dir", str(tmp_path / "cache"))
    table = tracelane_here("ops", path, *more).stdout
    assert "Self AIU" in table and "Self AIU time total: 61.000us" in table
    answer = flat(json.loads(tracelane_here("ops", path, "--format", "json", "--step", "1", *more).stdout))
    assert answer["scope"].startswith("step 1")
    (step, linear, *_) = answer["ops"]
    assert (step["name"], step["annotation"], linear["name"]) == ("ProfilerStep*", True, "aten::linear")
    assert (linear["calls"], linear["cpu_total_ns"], linear["device_total_ns"]) == (1, 60_000, 30_500)
    assert tracelane_here("ops", path, "--format", "csv", *more).stdout.startswith("name,calls,cpu_total_ns")
    assert tracelane_here("ops", path, "--format", "md", *more).stdout.startswith("**Ops**")
    only = flat(json.loads(tracelane_here("ops", path, "--where", "cat:kernel", "--json", *more).stdout))
    assert [row["on_device"] for row in only["ops"]] == [True] * 2 and "filtered" in only["scope"]
    wrong = tracelane_here("ops", path, "--sort", "nonsense", *more)
    assert wrong.returncode == 64 and "self_cpu_time_total" in wrong.stderr
