"""Programs that the device limits: each rule of what work could be spared speaks of a program that wastes it,
and is silent about one that does not.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.core.findings_traces import launched, op
from tests.events import Event
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import RULES, findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3", "numSms": 132, "computeMajor": 9}
BF16_TFLOPS, GBS = 989, 3350
"""Its peaks."""
BF16, FP32 = "c10::BFloat16", "float"
MM = [[4096, 4096], [4096, 4096]]
MM_US = 2 * 4096**3 / BF16_TFLOPS / 1e6
"""How long that product takes at the peak."""
X = [4096, 8192]
X_BYTES = 2 * 4096 * 8192
ADVICE = {"below-peak", "fusable", "fp32-products", "few-blocks"}

Op = tuple[str, list[Any], list[str], float, str, dict[str, Any]]
"""Name, shapes, types, µs of its kernel, the kernel's name, other arguments of the kernel."""


def mm(
    us: float, kernel: str = "sm90_xmma_gemm_bf16bf16_bf16f32_f32", types: str = BF16, blocks: int = 1024
) -> Op:
    return "aten::mm", MM, [types, types], us, kernel, {"grid": [blocks, 1, 1]}


def elementwise(name: str, us: float, inputs: int = 1, shape: Sequence[int] = X) -> Op:
    dims = [list(shape)] * inputs
    return (
        f"aten::{name}",
        dims,
        [BF16] * inputs,
        us,
        f"vectorized_elementwise<{name}>",
        {"grid": [9000, 1, 1]},
    )


def moving_us(tensors: int, share: float) -> float:
    """Return how long reading and writing so many tensors takes at a share of the peak."""
    return tensors * X_BYTES / GBS / 1e3 / share


def program(
    ops: Sequence[Op], rounds: int = 10, device: dict[str, Any] = H100, shapes: bool = True
) -> dict[str, Any]:
    """Return a trace of a device that does these operators one after another, always busy."""
    events: list[Event] = []
    at, now = 0.0, 100.0
    for name, dims, types, us, kernel, more in list(ops) * rounds:
        inputs = {"Input Dims": dims, "Input type": types} if shapes else {}
        events.append(op(at, 4, name, **inputs))
        events += launched(at + 1, 2, now, us, kernel, **more)
        at, now = at + 5, now + us + 0.5
    return {"deviceProperties": [device], "traceEvents": events}


def findings_of(trace: dict[str, Any], folder: Path) -> dict[str, Finding]:
    """Return the findings of a trace by their rules."""
    path = folder / "t.json"
    path.write_text(json.dumps(trace), encoding="utf-8")
    answer = findings(Scope(open_trace(path, index_dir=folder / "index")))
    return {one.rule: one for one in answer.findings}


CHAIN = [elementwise(name, moving_us(2, 0.9)) for name in ("mul", "pow", "silu", "neg")]
SEPARATED = [one for part in CHAIN for one in (part, mm(MM_US / 0.9))]
SPEAK = {
    "below-peak, product": ("below-peak", [mm(MM_US / 0.3)]),
    "below-peak, memory": ("below-peak", [mm(MM_US / 0.9), elementwise("silu", moving_us(2, 0.3))]),
    "fusable": ("fusable", [mm(MM_US / 0.9), *CHAIN]),
    "fp32-products": ("fp32-products", [mm(2 * 4096**3 / 60 / 1e6, "ampere_sgemm_128x64_tn", FP32)]),
    "few-blocks": ("few-blocks", [mm(MM_US / 0.6, blocks=32)]),
}
SILENT = {
    "products at 90 % of the peak": [mm(MM_US / 0.9)],
    "memory at 90 % of the peak": [elementwise("silu", moving_us(2, 0.9)), mm(MM_US / 0.9)],
    "elementwise operators that are separated": SEPARATED,
    "elementwise operators on other data": [
        mm(MM_US / 0.9), elementwise("silu", moving_us(2, 0.9)), elementwise("neg", 1, shape=[128, 128]),
    ],
    "TF32": [mm(2 * 4096**3 / 450 / 1e6, "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", FP32)],
    "blocks for all multiprocessors": [mm(MM_US / 0.9, blocks=132)],
}  # fmt: skip


@pytest.mark.parametrize("name", SPEAK)
def test_waste_is_told(name: str, tmp_path: Path) -> None:
    """The rule about it speaks, alone, and claims no more than could be spared."""
    rule, ops = SPEAK[name]
    told_of = findings_of(program(ops), tmp_path)
    assert ADVICE & told_of.keys() == {rule}, told_of
    assert 0 < told_of[rule].share < 0.9
    assert "device-bound" in told_of


@pytest.mark.parametrize("name", SILENT)
def test_sound_work_is_not_blamed(name: str, tmp_path: Path) -> None:
    """A program that uses the device well is told that the device is its limit, and nothing to spare."""
    told_of = findings_of(program(SILENT[name]), tmp_path)
    assert not ADVICE & told_of.keys()
    assert "device-bound" in told_of


def test_what_could_be_spared_of_a_product(tmp_path: Path) -> None:
    """At 30 % of the peak seven tenths of the time."""
    finding = findings_of(program([mm(MM_US / 0.3)]), tmp_path)["below-peak"]
    assert finding.claimed_ns == pytest.approx(0.7 * 10 * 1000 * MM_US / 0.3, rel=0.01)
    assert finding.text.startswith("mm at 30.0 %: of ")


def test_what_could_be_spared_of_a_chain(tmp_path: Path) -> None:
    """Four operators that read and write a tensor each are one that does so once: a quarter is left."""
    trace = program([mm(MM_US / 0.9), *CHAIN], rounds=1)
    chain_us = sum(us for *_, us, _, _ in CHAIN)
    finding = findings_of(trace, tmp_path)["fusable"]
    assert finding.claimed_ns == pytest.approx(750 * chain_us, rel=0.01)
    assert "4 elementwise operators in 1 chain" in finding.text


def test_what_could_be_spared_by_tf32(tmp_path: Path) -> None:
    """The part by which TF32's peak is above that of fp32: 67 of 494 TFLOP/s are left."""
    ops = SPEAK["fp32-products"][1]
    finding = findings_of(program(ops), tmp_path)["fp32-products"]
    assert finding.claimed_ns == pytest.approx((1 - 67 / 494) * 10 * 1000 * ops[0][3], rel=0.01)


def test_what_a_fuller_device_could_spare(tmp_path: Path) -> None:
    """Of 132 multiprocessors 100 have nothing to do."""
    ops = SPEAK["few-blocks"][1]
    finding = findings_of(program(ops), tmp_path)["few-blocks"]
    assert finding.claimed_ns == pytest.approx(100 / 132 * 10 * 1000 * ops[0][3], rel=0.01)


@pytest.mark.parametrize(
    ("device", "shapes", "reason"),
    [
        ({"name": "Unheard-of 9000"}, True, "the trace does not name a device whose peak is known"),
        (H100, False, "no operator with work on the device has input shapes (record_shapes=True)"),
    ],
)
def test_what_is_not_known_is_not_judged(
    device: dict[str, Any], shapes: bool, reason: str, tmp_path: Path
) -> None:
    """Without a known peak or without shapes nothing is recoverable, and the reason is said."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps(program([mm(MM_US / 0.3)], device=device, shapes=shapes)), encoding="utf-8")
    answer = findings(Scope(open_trace(path, index_dir=tmp_path / "index")))
    assert "below-peak" not in {one.rule for one in answer.findings}
    assert dict(answer.not_judged)["below-peak"] == reason


def test_the_headline_names_the_first_kernel(tmp_path: Path) -> None:
    """Which kernel takes most of the time, and at which share of the peak; its longest run comes first."""
    finding = findings_of(program([mm(MM_US / 0.9), elementwise("silu", moving_us(2, 0.9))]), tmp_path)[
        "device-bound"
    ]
    assert "of it in sm90_xmma_gemm_bf16bf16_bf16f32_f32, at 90.0 % of the peak" in finding.text
    assert (
        finding.evidence[0].label.startswith("its longest run: sm90")
        and finding.evidence[0].slice is not None
    )


def test_a_program_that_waits_is_not_told(tmp_path: Path) -> None:
    """Where the device is idle most of the time its work is not what to make faster."""
    trace = program([mm(MM_US / 0.3)])
    for number, event in enumerate(one for one in trace["traceEvents"] if one["cat"] == "kernel"):
        event["ts"] += 5000 * number
    assert not ADVICE & findings_of(trace, tmp_path).keys()
    assert RULES.keys() >= ADVICE
