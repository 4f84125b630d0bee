"""Where the device is the limit the sentence says what it spends its time on, however kernels are called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.core.findings_traces import kernel, launched, op, trace_of
from tests.core.test_findings_efficiency import elementwise, findings_of, mm, moving_us, program
from tests.events import Event
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope

SHARES = {"gemm": 46, "elementwise": 34, "norm": 20}
"""Kinds of the kernels of a made program, and their % of its time."""
NAMES = {"gemm": "gemm_v{}", "elementwise": "elementwise_v{}", "norm": "layer_norm_v{}"}


def many_kernels(shares: dict[str, int], each: float = 2) -> list[Event]:
    """Return kernels one after another, of which none has a tenth of the time: every name runs once."""
    events, at = [], 0.0
    for kind, percent in shares.items():
        for number in range(round(percent / each)):
            events.append(kernel(at, each, NAMES.get(kind, kind + "_v{}").format(number)))
            at += each
    return events


def headline(events: Sequence[Event], folder: Path) -> Finding:
    """Return what is said of a device that is the limit."""
    report = findings(Scope(trace_of(events, folder)))
    return next(one for one in report.findings if one.rule == "device-bound")


@pytest.mark.parametrize("widest", [*SHARES])
def test_of_many_kernels_the_widest_kind_is_told(widest: str, tmp_path: Path) -> None:
    """Where no kernel has a tenth of the time, the kind that has most is named with its share."""
    shares = dict(zip([widest, *(kind for kind in SHARES if kind != widest)], SHARES.values()))
    said = headline(many_kernels(shares), tmp_path)
    assert "none of 50 kernels has a tenth of it" in said.text
    assert f"{widest} kernels take 46.0 %" in said.text
    assert f"46.0 % {widest} kernels" in said.short
    assert "no single kernel" in said.helps.lower()


def test_time_that_is_spread_is_said_to_be(tmp_path: Path) -> None:
    """Where no kind has a quarter of the time either, that is said plainly."""
    names = ("gemm", "elementwise", "layer_norm", "softmax", "flash_fwd", "conv2d")
    said = headline(many_kernels(dict.fromkeys(names, 16)), tmp_path)
    assert "no kind a quarter" in said.text and "16.7 %" in said.text


def test_the_operator_and_its_shapes_are_told(tmp_path: Path) -> None:
    """Of the widest kind the operator that owns most is named, with the shapes of most of its calls."""
    events: list[Event] = []
    for number in range(40):
        name, dims = ("aten::mul", [[4096, 8192]]) if number % 5 else ("aten::gelu", [[number + 1, 8]])
        events.append(op(10 * number, 4, name, **{"Input Dims": dims}))
        events += launched(10 * number + 1, 1, 5 + 25 * number, 25, f"elementwise_v{number}")
    events += [kernel(1005 + 25 * at, 25, f"gemm_v{at}") for at in range(20)]
    said = headline(events, tmp_path)
    assert "elementwise kernels take 66.7 %" in said.text
    assert "53.3 % is for aten::mul on [[4096,8192]]" in said.text


def test_what_could_be_got_back_is_told(tmp_path: Path) -> None:
    """Where shapes and the peak are known, the kind is told with what of it could be got back, at most."""
    ops = [
        elementwise(f"{name}", moving_us(2, 0.3)) for name in ("mul", "silu", "neg", "exp", "tanh", "sigmoid")
    ]
    renamed = [
        (*one[:4], f"vectorized_elementwise_v{at}_{number}", one[5])
        for number in range(2)
        for at, one in enumerate(ops)
    ]
    said = findings_of(program(renamed, rounds=1), tmp_path)["device-bound"]
    whole = 12 * moving_us(2, 0.3)
    assert f"(at most {0.7 * whole / 1000:.3g} ms could be got back)" in said.text


def test_beside_a_kernel_the_widest_kind_is_told(tmp_path: Path) -> None:
    """A kernel with less than half of the time stands beside a kind that has more."""
    ops = [mm(100), *(elementwise(name, 60) for name in ("mul", "silu", "neg", "pow"))]
    said = findings_of(program(ops), tmp_path)["device-bound"]
    assert "29.4 % of it in sm90_xmma_gemm" in said.text
    assert "elementwise kernels take 70.6 %" in said.text


def test_copies_that_are_the_limit_are_named(tmp_path: Path) -> None:
    """A device that mostly copies is said to do which copy."""
    copy = {"cat": "gpu_memcpy"}
    events = [kernel(0, 700, "Memcpy HtoD (Pageable -> Device)", **copy), kernel(700, 300, "gemm")]
    said = headline(events, tmp_path)
    assert "copies are the limit; 100.0 % of it in Memcpy HtoD" in said.text
