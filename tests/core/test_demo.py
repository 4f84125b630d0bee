"""The demo trace: the same bytes everywhere, and what it promises to show."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bundle.demo.make import made_files
from bundle.demo.smi import INTERVAL
from tracelane.core.demo.trace import FILES, demo_files, write_demo

DIGESTS = {
    "rank0.pt.trace.json": "f46fa3c295b81e9583c9a70a61d50989d3baef596b4eda7d4742f00cd0a21ec2",
    "rank1.pt.trace.json": "0213b49f48bb946f6fab25f267dc3d8b704621e3d9960517a4117b1108dc98a5",
    "aiu-smi.log": "e51c517f877560e450063ad3c2fd77ac7c88c7e134a4efe178f759a221cb7792",
}


def _files() -> dict[str, bytes]:
    return {file.name: file.data for file in demo_files()}


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    """The demo's files by name."""
    return _files()


@pytest.fixture(scope="module")
def events(files: dict[str, bytes]) -> dict[str, list[dict[str, Any]]]:
    """The events of each of the two ranks."""
    traces = {name: json.loads(data)["traceEvents"] for name, data in files.items() if name.endswith(".json")}
    assert len(traces) == 2
    return traces


def test_the_package_has_what_the_script_makes(files: dict[str, bytes]) -> None:
    """bundle/demo makes these bytes on every platform and in every Python; packed they are small."""
    assert {name: hashlib.sha256(data).hexdigest() for name, data in files.items()} == DIGESTS
    assert made_files() == files, "run: python -m bundle.demo.make"
    assert FILES.stat().st_size < 150_000


def test_everything_that_a_trace_can_have_is_there(events: dict[str, list[dict[str, Any]]]) -> None:
    """Each rank has three steps and all categories, phases and flows worth showing; flows pair one to one."""
    for mine in events.values():
        assert 3000 <= len(mine) <= 6000
        steps = [e["name"] for e in mine if e["name"].startswith("ProfilerStep#")]
        assert steps == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]
        counts = Counter((e["ph"], e.get("cat")) for e in mine)
        host_categories = (
            "python_function cpu_op user_annotation privateuse1_runtime privateuse1_driver kernel"
        )
        for category in f"{host_categories} gpu_memcpy gpu_memset Trace".split():
            assert counts["X", category] > 0, category
        assert counts["i", "cpu_instant_event"] and counts["C", "memory"]
        for category in ("ac2g", "fwdbwd"):
            starts = [e["id"] for e in mine if e["ph"] == "s" and e["cat"] == category]
            ends = [e["id"] for e in mine if e["ph"] == "f" and e["cat"] == category]
            assert sorted(starts) == sorted(ends) == sorted(set(starts)), category
        assert any("/inductor-spyre/sdsc_fused_" in e["name"] for e in mine)


def test_one_gap_stands_out(events: dict[str, list[dict[str, Any]]]) -> None:
    """In rank 0's second step the device stands still while the data loader reads; nowhere else so long."""
    longest = {}
    for name, mine in events.items():
        kernels = sorted(
            (e["ts"], e["ts"] + e["dur"]) for e in mine if e.get("cat") == "kernel" and e["tid"] == 0
        )
        gaps = sorted((after[0] - before[1], before[1]) for before, after in pairwise(kernels))
        longest[name] = gaps[-1]
        assert gaps[-1][0] > 5 * gaps[-4][0]
    assert longest["rank0.pt.trace.json"][0] > 148_000 * 0.9
    loader = next(e for e in events["rank0.pt.trace.json"] if e["name"].startswith("dataset.py(33)"))
    gap, start = longest["rank0.pt.trace.json"]
    assert loader["ts"] <= start + gap and start <= loader["ts"] + loader["dur"]


def test_log_follows_the_kernels(files: dict[str, bytes], events: dict[str, list[dict[str, Any]]]) -> None:
    """Rows of the log line up with its header, and power is high exactly where kernels ran."""
    lines = files["aiu-smi.log"].decode().splitlines()
    header = next(line for line in lines if line.startswith("#ID")).split()[1:]
    assert header[:6] == ["Date", "Time", "hostcpu", "hostmem", "pwr", "tempr"]
    rows = [line.split() for line in lines if not line.startswith("#")]
    assert all(len(row) == len(header) + 1 for row in rows)
    mine = [row for row in rows if row[0] == "0"]
    power = [float(row[header.index("pwr") + 1]) for row in mine if row[5] != "-"]
    kernels = [e for e in events["rank0.pt.trace.json"] if e.get("cat") == "kernel"]
    span_ms = (max(e["ts"] + e["dur"] for e in kernels) - min(e["ts"] for e in kernels)) / 1000
    hot = sum(watts > 30 for watts in power)
    assert 0.6 * span_ms / (INTERVAL / 1e6) <= hot <= span_ms / (INTERVAL / 1e6) + 2
    assert max(power) < 75


def test_written_where_asked(tmp_path: Path, files: dict[str, bytes]) -> None:
    """The folder is made, and its files are the demo's."""
    paths = write_demo(tmp_path / "a" / "b")
    assert [path.name for path in paths] == list(files)
    assert all(path.read_bytes() == files[path.name] for path in paths)
