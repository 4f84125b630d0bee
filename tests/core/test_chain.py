"""Kernel <- launch <- op <- annotation, on small cases and against the goldens of real traces."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.small_index import L, S, write_index
from tracelane.core.index.store import Index
from tracelane.core.query.chain import chain_of


def small(tmp_path: Path, kernel: S, flows: list[tuple[int, int, str]], launch: S | None = None) -> list:
    cpu = L(
        pid="10",
        tid="10",
        slices=[
            S(0, 1000, "outer", "user_annotation", ordinal=0),
            S(10, 500, "aten::mm", "cpu_op", ordinal=1, promoted={"external_id": 77}),
            launch or S(20, 30, "cudaLaunchKernel", "cuda_runtime", ordinal=2, promoted={"correlation": 5}),
        ],
    )
    gpu = L(pid="0", tid="7", slices=[kernel])
    write_index(tmp_path, [cpu, gpu], flows=flows)
    index = Index.open(tmp_path)
    kernel_position = index.position_of(9)
    assert kernel_position is not None
    names = index.strings(index.column("slices.name"))
    return [(link.role, names[link.position], link.via) for link in chain_of(index, kernel_position)]


OUTER = [("op", "aten::mm", "enclosing"), ("annotation", "outer", "enclosing")]


def test_a_flow_is_followed(tmp_path: Path) -> None:
    """A flow into the kernel leads to its launch, whatever the correlation says."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 6})
    links = small(tmp_path, kernel, [(2, 9, "ac2g")])
    assert links == [("kernel", "k", ""), ("launch", "cudaLaunchKernel", "flow"), *OUTER]


def test_without_a_flow_the_correlation_is_used_and_said(tmp_path: Path) -> None:
    """A kernel with the correlation of a runtime slice is launched by it."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 5})
    links = small(tmp_path, kernel, [])
    assert links == [("kernel", "k", ""), ("launch", "cudaLaunchKernel", "correlation"), *OUTER]


def test_the_external_id_is_the_last_resort(tmp_path: Path) -> None:
    """With neither flow nor correlation the op of the same External id is shown, and how it was found."""
    kernel = S(100, 50, "k", "kernel", ordinal=9, promoted={"correlation": 8, "external_id": 77})
    links = small(tmp_path, kernel, [])
    assert links == [
        ("kernel", "k", ""),
        ("op", "aten::mm", "external id"),
        ("annotation", "outer", "enclosing"),
    ]


@pytest.mark.parametrize("promoted", [{}, {"correlation": 0}])
def test_nothing_is_guessed(tmp_path: Path, promoted: dict[str, int]) -> None:
    """A copy with correlation 0, or none, has no launch, even where others have a 0 too."""
    copy = S(100, 50, "Memset", "gpu_memset", ordinal=9, promoted=promoted)
    launch = S(20, 30, "aiuMalloc", "privateuse1_runtime", ordinal=2, promoted={"correlation": 0})
    assert small(tmp_path, copy, [], launch) == [("kernel", "Memset", "")]
