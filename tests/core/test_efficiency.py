"""What operators achieve: FLOPs and bytes of calls, kernel time, and the part of the peak."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.corpus import CORPUS, GOLDENS, needs
from tests.events import complete, open_events
from tracelane.core.tables.device.efficiency import (
    UNREAD,
    analyse_efficiency,
    efficiency,
    modelled_calls,
    plot_svg,
)
from tracelane.core.tables.device.op_costs import MODELS, Call, cost_of
from tracelane.core.tables.device.peaks import peak_of, peaks
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.peers.messages import SIZES
from tracelane.core.trace import open_trace

BF16, FP32 = "c10::BFloat16", "float"
MEMSETS_NS = 327_837
"""The 81 memsets of the MI300 trace that a correlation links and no flow: the other tool leaves them out."""


def cost(
    name: str, dims: list[Any], types: list[str], values: list[str] | None = None
) -> tuple[int, int] | None:
    return cost_of(f"aten::{name}", Call(dims, types, values or [""] * len(dims)))


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize(
    ("name", "more_ns"),
    [("tl_h100_qwen_infer", 0), ("tl_mi300_resnet_train_rank0of8", MEMSETS_NS)],
)
def test_rows_are_those_of_the_goldens(name: str, more_ns: int, corpus_cache: Path) -> None:
    """Calls, FLOPs, bytes and kernel time of every operator that has a model there. Its bytes know no mask,
    one output of a reduction, and once four bytes of a number; its rows are by kernels too.
    """
    rows = json.loads((GOLDENS / "efficiency" / f"{name}.json").read_bytes())["rows"]
    table = efficiency(Scope(open_trace(CORPUS / "gpu" / f"{name}.json.gz", index_dir=corpus_cache)))
    own = defaultdict(list)
    for row in table.rows():
        own[row["name"], _text(json.loads(row["shapes"])), _text(json.loads(row["types"]))].append(row)
    sums: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        (mine,) = (
            one
            for one in own[row["name"], _text(row["input_dims"]), _text(row["input_type"])]
            if not one["inputs"] or json.loads(one["inputs"]) == row["concrete_inputs"]
        )
        assert mine["flops"] == (row.get("flops_rederived") or row["flops"]), row["name"]
        is_masked = row.get("flops_rederived", row["flops"]) != row["flops"]
        is_reduction = row["name"] in ("aten::mean", "aten::sum")
        assert is_reduction or is_masked or row["bytes"] - mine["bytes"] in (0, 4), row["name"]
        key = tuple(map(str, (mine["name"], mine["shapes"], mine["types"], mine["inputs"])))
        sums[key][0] += row["count"]
        sums[key][1] += row["kernel_time_ns_exact"]
    mine_ns = 0
    for row in table.rows():
        if (
            of := sums.get(tuple(map(str, (row["name"], row["shapes"], row["types"], row["inputs"]))))
        ) is not None:
            assert row["count"] == of[0]
            mine_ns += row["kernel_ns"]
            assert row["kernel_ns"] == of[1] or more_ns
    assert mine_ns - sum(ns for _, ns in sums.values()) == more_ns


def _text(value: Any) -> str:
    return json.dumps(value)


@needs(CORPUS)
def test_known_figures(corpus_cache: Path) -> None:
    """The largest product of the H100 trace, and the convolution whose input needs no gradient."""
    table = efficiency(Scope(open_trace(CORPUS / "gpu/tl_h100_qwen_infer.json.gz", index_dir=corpus_cache)))
    row = next(row for row in table.rows() if row["shapes"] == "[[8944,1024],[1024,2816]]")
    assert (row["count"], row["flops"], row["bytes"], row["kernel_ns"]) == (
        48,
        51_581_550_592,
        74_457_088,
        4_055_251,
    )
    assert row["tflops"] == pytest.approx(610.545, abs=1e-3)
    assert row["peak_share"] == pytest.approx(610.545 / 989, abs=1e-4)
    assert row["tflops_min"] <= row["tflops"] <= row["tflops_max"]
    assert table.totals["device_ns"] == 45_647_300
    assert table.totals["modelled_share"] == pytest.approx(table.totals["modelled_ns"] / 45_647_300)
    path = CORPUS / "gpu/tl_mi300_resnet_train_rank0of8.json.gz"
    flops = [
        row["flops"]
        for row in efficiency(Scope(open_trace(path, index_dir=corpus_cache))).rows()
        if row["name"] == "aten::convolution_backward" and "[False, True, False]" in row["inputs"]
    ]
    assert flops == [2_360_279_040]


def test_costs_of_calls() -> None:
    """Each tensor has its own type; masks, biases, groups and broadcasts count."""
    assert cost("mm", [[2, 3], [3, 4]], [BF16, BF16]) == (48, 12 + 24 + 16)
    assert cost("addmm", [[4], [2, 3], [3, 4]], [FP32, BF16, BF16]) == (56, 16 + 12 + 24 + 16)
    assert cost("bmm", [[5, 2, 3], [5, 3, 4]], [FP32, FP32]) == (240, 4 * (30 + 60 + 40))
    assert cost("mul", [[4, 3], [3]], [FP32, BF16]) == (12, 48 + 6 + 48)
    assert cost("add_", [[], [], []], ["long int", "long int", "Scalar"]) == (1, 24)
    assert cost("copy_", [[8], [8], []], [FP32, BF16, "Scalar"]) == (8, 32 + 16)
    assert cost("sum", [[4, 3], [], []], [FP32, "", ""], ["", "[-1]", "False"]) == (12, 48 + 16)
    assert cost("sum", [[4, 3], [], []], [FP32, "", ""], ["", "", ""]) == (12, 48 + 4)
    types = [BF16, BF16, BF16, *[""] * 6]
    values = ["", "", "", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "2"]
    grouped = cost("convolution", [[1, 4, 5, 5], [6, 2, 3, 3], [6], *[[]] * 6], types, values)
    assert grouped == (2 * 6 * 9 * 2 * 9 + 54, 2 * (100 + 108 + 6 + 54))
    values[3] = "[0, 0]"  # as files have it that do not know the stride
    assert cost("convolution", [[1, 4, 5, 5], [6, 2, 3, 3], [6], *[[]] * 6], types, values) is None
    strided = cost("convolution", [[1, 4, 5, 5], [6, 4, 3, 3], [], *[[]] * 6], [BF16, BF16, *[""] * 7],
                   ["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])  # fmt: skip
    assert strided == (2 * 6 * 9 * 4 * 9, 2 * (100 + 216 + 54))
    shapes = [[2, 4, 8, 16], [2, 4, 8, 16], [2, 4, 8, 16], [], [], []]
    for causal, half in (("True", 2), ("False", 1)):
        inputs = ["", "", "", "0.", causal, "False"]
        attention = cost("_scaled_dot_product_flash_attention", shapes, [FP32] * 3 + [""] * 3, inputs)
        assert attention == (2 * 8 * 8 * 8 * 32 // half, 4 * 4 * 1024)


@pytest.mark.parametrize(
    ("name", "types", "values", "of_output"),
    [
        ("eq", [FP32, FP32], None, 1),
        ("lt", [FP32, "Scalar"], None, 1),
        ("isnan", [BF16], None, 1),
        ("mul_", [BF16, FP32], None, 2),
        ("mul", [BF16, FP32], None, 4),
        ("add", ["long int", FP32], None, 4),
        ("add", ["long int", "int"], None, 8),
        ("div", ["long int", "long int"], None, 4),
        ("rsqrt", ["int"], None, 4),
        ("neg", ["int"], None, 4),
        ("neg", ["long int"], None, 8),
        ("where", ["bool", BF16, BF16], None, 2),
        ("masked_fill", [BF16, "bool", "Scalar"], None, 2),
        ("_softmax", [BF16, "", ""], ["", "-1", "True"], 4),
        ("_softmax", [BF16, "", ""], ["", "-1", "False"], 2),
        ("_softmax_backward_data", [FP32, FP32, "", ""], ["", "", "-1", "15"], 2),
        ("sum", ["bool", ""], ["", ""], 8),
        ("sum", [BF16, ""], ["", "6"], 4),
        ("sum", [BF16, "", "", ""], ["", "[]", "False", "7"], 8),
        ("mean", [BF16, "", "", ""], ["", "[]", "False", ""], 2),
    ],
)
def test_outputs_have_the_types_that_pytorch_gives_them(
    name: str, types: list[str], values: list[str] | None, of_output: int
) -> None:
    """Truth values have a byte, what happens in place its own type, quotients of whole numbers are fp32."""
    dims = [[8] if kind in SIZES else [] for kind in types]
    cost_there = cost(name, dims, types, values)
    assert cost_there is not None
    outputs = 1 if name in ("sum", "mean") else 8
    assert cost_there[1] - sum(8 * SIZES[kind] for kind in types if kind in SIZES) == outputs * of_output
    alone = cost("mul", [[8], []], ["long int", "float"])
    assert alone == (8, 8 * 8 + 4 + 8 * 4)  # a number with a fraction makes whole numbers so


def test_what_is_not_known_has_no_cost() -> None:
    """Shapes that are not there, unknown types: for every operator with a model, without an error."""
    for name in MODELS:
        for dims, types in ([], []), ([[2, 2], [2, 2]], ["", ""]), ([[2], "x", None], [FP32, "?", FP32]):
            cost_of(name, Call(dims, types, []))
        assert cost_of(name, Call([], [], [])) is None


def test_peaks_have_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of the file, and the user's own go before."""
    assert all(one["source"] and one["gbs"] > 0 for one in peaks())
    for device, memory_gb, gbs in (
        ("NVIDIA A100-SXM4-80GB", 85.0, 2039),
        ("NVIDIA A100 80GB PCIe", 85.0, 1935),
        ("NVIDIA A100-SXM4-40GB", 42.0, 1555),
        ("NVIDIA A100-PCIE-40GB", 42.0, 1555),
        ("NVIDIA H100 80GB HBM3", 85.0, 3350),
        ("NVIDIA H100 PCIe", 85.0, 2000),
        ("NVIDIA H100 NVL", 100.0, None),
        ("NVIDIA H200", 150.0, 4800),
        ("NVIDIA H200 NVL", 150.0, None),
        ("NVIDIA GH200 480GB", 102.0, None),
        ("NVIDIA B200", 190.0, 8000),
        ("NVIDIA GB200", 190.0, None),
        ("AMD Instinct MI300X", 206.0, 5300),
        ("AMD Instinct MI300X OAM", 206.0, 5300),
        ("AMD Instinct MI300A", 128.0, None),
        ("AMD Instinct MI250X", 68.0, 1638.4),
        ("AMD Instinct MI350X", 309.0, None),
        ("AIU", 0, None),
        ("", 0, None),
    ):
        assert (peak_of(device, memory_gb) or {}).get("gbs") == gbs, device
    assert (peak_of("AMD Instinct MI250X", 68.0) or {})["matrix"]["bf16"] == 191.5
    (tmp_path / "tracelane").mkdir()
    (tmp_path / "tracelane/config.toml").write_text('[peaks."NVIDIA H200"]\ngbs = 7\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    peaks.cache_clear()
    assert (peak_of("NVIDIA H200", 141.0) or {})["gbs"] == 7
    peaks.cache_clear()


def test_a_plot_and_what_is_above_the_peak(tmp_path: Path) -> None:
    """A product too fast for its device is marked, in the table and in the picture, which is XML."""
    op = {"Input Dims": [[4096, 4096], [4096, 4096]], "Input type": [BF16, BF16]}
    events = [
        complete(0, 10, "aten::mm", args=op),
        complete(2, 2, "cudaLaunchKernel", "cuda_runtime", args={"correlation": 1}),
        complete(20, 10, "k", "kernel", pid=0, tid=7, args={"correlation": 1}),
    ]
    document = {"deviceProperties": [{"name": "NVIDIA H200"}], "traceEvents": events}
    (tmp_path / "t.json").write_text(json.dumps(document), encoding="utf-8")
    tables = analyse_efficiency(Scope(open_trace(tmp_path / "t.json", index_dir=tmp_path / "index")))
    (row,) = tables["efficiency"].rows()
    assert row["above_peak"] and row["peak_share"] > 10
    picture = ElementTree.fromstring("".join(plot_svg(tables)))
    assert [one.attrib["fill"] for one in picture.iter("{http://www.w3.org/2000/svg}circle")] == ["crimson"]


def test_inputs_that_were_not_read_cost_nothing_known(tmp_path: Path) -> None:
    """Of calls whose cost depends on inputs in the file's text the longest are read; the others are unknown,
    and no row of other calls changes.
    """
    events = []
    for at, us in enumerate((10, 30, 20)):
        ids = {"correlation": at + 1, "External id": at + 1}
        inputs = {"Input Dims": [[4, 3], [], []], "Input type": [FP32, "", ""]}
        values = {"Concrete Inputs": ["", "[-1]", "False"]}
        events += [
            complete(100 * at, 20, "aten::sum", "cpu_op", args={**ids, **inputs, **values}),
            complete(100 * at + 1, 5, "cudaLaunchKernel", "cuda_runtime", args=ids),
            complete(100 * at + 30, us, "k", "kernel", pid=0, tid=7, args={**ids, "stream": 7}),
        ]
    scope = Scope(open_events(tmp_path, events))
    every, some = modelled_calls(scope, 0), modelled_calls(scope, 0, 1)
    assert every.costs == [(12, 48 + 16)] and every.key_ns.tolist() == [60_000]
    known = {some.keys[at].inputs == UNREAD: ns for at, ns in enumerate(some.key_ns.tolist())}
    assert known == {True: 30_000, False: 30_000}
    assert sorted(map(str, some.costs)) == ["(12, 64)", "None"]
