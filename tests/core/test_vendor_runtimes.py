"""Runtimes of vendors that nobody wrote down: what ends in _runtime or _driver is one, in every analysis."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.events import Event, complete, index_of, metadata
from tracelane.core.base.kineto import RUNTIME, vendor_of
from tracelane.core.query.chain import chain_of
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.launches import analyse_launches
from tracelane.core.tables.ops import ops, sort_column
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace
from tracelane.core.trace.devices import devices

VENDORS = ("npu", "musa", "sdaa", "my_own", "TOPS")


def program(category: str, label: str = "") -> list[Event]:
    """Four ops that each launch a kernel by correlation, and a wait for a device that is long done."""
    events = [metadata("process_labels", 0, labels=label)] if label else []
    for n in range(1, 5):
        at, args = n * 1000, {"correlation": n, "External id": 70 + n}
        events += [
            complete(at, 100, "aten::mm", "cpu_op", pid=9, tid=1, args={"External id": 70 + n}),
            complete(at + 10, 20, "xLaunchKernel", category, pid=9, tid=1, args=args),
            complete(at + 50, 30, "k", "kernel", pid=0, tid=3, args={**args, "stream": 3, "device": 0}),
        ]
    events.append(complete(5000, 900, "xStreamSynchronize", category, pid=9, tid=1))
    return events


@pytest.mark.parametrize("vendor", VENDORS)
@pytest.mark.parametrize("kind", ["runtime", "driver"])
def test_calls_of_any_vendor_launch(vendor: str, kind: str, tmp_path: Path) -> None:
    """Launches, ops, chains and findings hold the calls of a runtime by the ending of their category."""
    trace = Trace([index_of(program(f"{vendor}_{kind}"), tmp_path)])
    table = analyse_launches(Scope(trace)).main
    assert list(table.data["name"]) == ["xLaunchKernel"] and table.totals["without_launch"] == 0
    assert (int(table.data["count"][0]), int(table.data["delay_ns"][0])) == (4, 4 * 20_000)
    rows = {row["name"]: row for row in ops(Scope(trace)).rows()}
    assert rows["xLaunchKernel"]["calls"] == 4
    assert rows["aten::mm"]["device_total_ns"] == 4 * 30_000
    kernel = trace.indexes[0].strings(trace.indexes[0].column("slices.name")).index("k")
    assert [link.role for link in chain_of(trace.indexes[0], kernel)][:3] == ["kernel", "launch", "op"]
    assert "sync" in [finding.rule for finding in findings(Scope(trace)).findings]


@pytest.mark.parametrize(
    ("category", "label", "title", "word"),
    [
        ("musa_runtime", "MUSA 1", "MUSA 1", "MUSA"),
        ("npu_runtime", "NPU 0", "NPU 0", "NPU"),
        ("npu_runtime", "GPU 0", "GPU 0", "NPU"),
        ("sdaa_driver", "", "device", "SDAA"),
        ("cuda_runtime", "MUSA 1", "device", "CUDA"),
        ("cuda_driver", "GPU 3", "GPU 3", "CUDA"),
    ],
)
def test_devices_are_called_as_their_runtime_tells(
    category: str, label: str, title: str, word: str, tmp_path: Path
) -> None:
    """A device has its process's label where its vendor's runtime is in the file, and the vendor's word."""
    (device,) = devices(Trace([index_of(program(category, label), tmp_path)]))
    assert (device.label, device.word) == (title, word)


@pytest.mark.parametrize(
    "category", ["kernel", "cpu_op", "runtime", "_runtime", "overhead", "privateuse1_driver", "driver", "", 7]
)
def test_other_categories_are_no_vendors_runtime(category: object) -> None:
    """Only what stands before the ending makes a vendor; the driver of AIUs stands on their device."""
    assert (category in RUNTIME) == (category == "runtime")


def test_vendors_by_category() -> None:
    """The vendor is all that stands before the ending."""
    assert [vendor_of(text) for text in ("npu_runtime", "my_own_driver", "gpu_memcpy", "x_Runtime")] == [
        "npu",
        "my_own",
        "",
        "x",
    ]


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("self_npu_time_total", "self_device_ns"),
        ("musa_time_total", "device_total_ns"),
        ("cuda_time", "device_avg_ns"),
        ("-xpu_memory_usage", "-device_mem"),
        ("self_cpu_time_total", "self_cpu_ns"),
        ("cpu_time", "cpu_avg_ns"),
    ],
)
def test_sort_keys_of_any_device(key: str, column: str) -> None:
    """PyTorch's sort keys name the device by its own word."""
    assert sort_column(key) == column
