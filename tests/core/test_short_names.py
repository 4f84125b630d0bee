"""Short forms of names, numbers as people read them, exact times and sets of time."""

from __future__ import annotations

import math
import re
import time
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import for_files, traces
from tracelane.core.base.arrays import Intervals, merge
from tracelane.core.base.short_names import BLANK, MAX_LENGTH, short_name, short_names
from tracelane.core.base.units import (
    format_bytes,
    format_count,
    format_ns,
    format_share,
)
from tracelane.core.read.event_writer import ns_from_text, time_of
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.selection import Selection, selected_scope
from tracelane.core.trace import open_trace

TABLE = [
    ("merge_sort.<locals>.merge (/src/sorts.py:20)", "merge_sort.<locals>.merge (/src/sorts.py:20)"),
    ("Model.<lambda>", "Model.<lambda>"),
    ("f.<locals>.<genexpr>", "f.<locals>.<genexpr>"),
    ("/tmp/x/inductor-spyre/sdsc_fused_mm_mul_silu_0_434jgp19/bundle.mlir", "sdsc_fused_mm_mul_silu_0"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_mul_silu_0_", "sdsc_fused_bmm_mul_silu_0"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_1_obv__lbc", "sdsc_fused_bmm_1"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_mul_silu_0_kypoozpt/bundle.mlir", "sdsc_fused_bmm_mul_silu_0"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_1_1zu_u1v7/bun", "sdsc_fused_bmm_1"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_1_12345678/b", "sdsc_fused_bmm_1"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_mul_silu_0_ym", "sdsc_fused_bmm_mul_silu_0"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_mul_silu", "sdsc_fused_bmm_mul_silu"),
    ("/tmp/x/inductor-spyre/sdsc_fused_bmm_mul_silu/bundle.mlir", "sdsc_fused_bmm_mul_silu"),
    ("/tmp/x/inductor-spyre/sdsc_fused_conv_2_mul_3_4w1ui68x/bundle.mlir", "sdsc_fused_conv_2_mul_3"),
    ("/tmp/x/ab/triton_poi_fused_add_0_434jgp19/triton_.cubin", "triton_poi_fused_add_0"),
    ("/tmp/x/my_kernel/bundle.mlir", "my_kernel"),
    ("./k/bundle.mlir", "k"),
    ("/a/b/c/mm.mlir", "mm.mlir"),
    ("triton_poi_fused_add_relu_0", "triton_poi_fused_add_relu_0"),
    ("spyre_kernel_v1_fused_mm_silu_ABCDEFGH12345678#3", "fused_mm_silu"),
    ("", BLANK),
    (" \n", BLANK),
    ("aten::linear", "aten::linear"),
    ("ProfilerStep#3", "ProfilerStep#3"),
    ("Optimizer.step#SGD.step", "Optimizer.step#SGD.step"),
    ("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"),
    ("nn.Module: Sequential_0", "nn.Module: Sequential_0"),
    ("/usr/lib/python3.11/json/decoder.py(343): raw_decode", "decoder.py(343): raw_decode"),
    ("<built-in method foo of type object at 0x7f>", "<built-in method foo of type object at 0x7f>"),
    ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "ncclKernel_AllReduce_RING_LL_Sum_float"),
    ("ampere_sgemm_32x32_sliced1x4_tn", "ampere_sgemm_32x32_sliced1x4_tn"),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, "
        "at::native::binary_internal::MulFunctor<float> >, at::detail::Array<char*, 2> >(int, float)",
        "vectorized_elementwise<4, AUnaryFunctor>",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::sigmoid_kernel_cuda(at::Tensor&)"
        "::{lambda()#2}::operator()() const::{lambda(float)#1}, at::detail::Array<char*, 2> >(int, x)",
        "vectorized_elementwise<4, sigmoid>",
    ),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm>(cutlass_80::Params)", "Kernel2<cutlass_80_simt_sgemm>"),
    (
        "void (anonymous namespace)::elementwise_kernel_with_index<int, f(c10::Scalar const&)::{lambda()#1}"
        "::operator()() const::{lambda(long)#1}>(int, x)",
        "elementwise_kernel_with_index<int, f>",
    ),
    ("_ZN2at6native29vectorized_elementwise_kernelILi4EEvv", "vectorized_elementwise_kernel"),
    (
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
        "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad",
    ),
    ("\x1b[31mred\x1b[0m", "⟨U+001B⟩[31mred⟨U+001B⟩[0m"),
]


@pytest.mark.parametrize(("raw", "short"), TABLE)
def test_short_names(raw: str, short: str) -> None:
    """Each kind of name is reduced to what tells it apart."""
    assert short_name(raw) == short


@pytest.mark.parametrize(
    "raw", ["f<" * 2500, "a(" * 2500, "void " + "x::" * 2000 + "y<int>(z)", "_Z" + "9" * 5000]
)
def test_hostile_names_are_quick_and_bounded(raw: str) -> None:
    """Names of 5,000 characters, balanced or not, come out short, non-empty, and without delay."""
    begin = time.process_time()
    short = short_name(raw)
    assert 0 < len(short) <= MAX_LENGTH and "\n" not in short
    assert time.process_time() - begin < 1.0


def test_names_that_differ_have_short_forms_that_differ() -> None:
    """Functors, template arguments, cut names, hashes of two compilations, even equal beginnings."""
    functor = "void k<4, at::BinaryFunctor<float, at::{}Functor<float> >, std::array<char*, 3ul> >(int)"
    raws = [
        functor.format("Mul"),
        functor.format("Add"),
        "/tmp/x/sdsc_fused_mm_0_434jgp19/bundle.mlir",
        "/tmp/x/sdsc_fused_mm_0_kypoozpt/bundle.mlir",
        "gemm_" + "x" * 300 + "_a",
        "gemm_" + "x" * 300 + "_b",
        "y" * 5000 + "a" + "z" * 100,
        "y" * 5000 + "b" + "z" * 100,
        "/a/b.py(1): f",
        "/c/b.py(1): f",
        "plain",
        "",
        " ",
    ]
    forms = short_names(raws)
    assert len(set(forms)) == len(raws)
    assert forms[:4] == [
        "k<4, BinaryFunctor<float, MulFunctor>>",
        "k<4, BinaryFunctor<float, AddFunctor>>",
        "sdsc_fused_mm_0_434jgp19",
        "sdsc_fused_mm_0_kypoozpt",
    ]
    assert forms[10] == "plain"
    assert max(map(len, forms)) <= MAX_LENGTH
    assert short_names(forms) == forms


@for_files("path", traces("gpu/*"))
def test_no_kernel_of_a_real_trace_is_joined_with_another(path: Path, corpus_cache: Path) -> None:
    """All distinct names of a file have distinct short forms, one for each in the same order; none is too
    long, and the short form of a short form is that form.
    """
    trace = open_trace([path], index_dir=corpus_cache)
    index = trace.indexes[0]
    raws = index.strings(np.unique(index.column("slices.name")))
    forms = short_names(raws)
    assert len(set(forms)) == len(set(raws))
    assert max(map(len, forms)) <= MAX_LENGTH
    once = list(map(short_name, raws))
    assert list(map(short_name, once)) == once
    trace.close()


@for_files("path", traces("gpu/tl_mi300_resnet_train*", "gpu/hta_a100_resnet_ddp_nccl*"))
def test_rows_of_short_names_are_printed_as_rows_of_names(path: Path, corpus_cache: Path) -> None:
    """`kernels --by short` prints what `kernels` prints: its names are not shortened twice."""
    trace = open_trace([path], index_dir=corpus_cache)
    by_name, by_short = kernels(Scope(trace)), kernels(Scope(trace), "short")
    printed = by_name.short_forms["name"]
    assert by_short.texts("name") == [printed[name] for name in by_name.texts("name")]
    assert "name" not in by_short.short_forms
    trace.close()


@pytest.mark.slow
@for_files("path", traces("gpu/*"))
def test_a_filter_takes_the_names_that_tables_print(path: Path, corpus_cache: Path) -> None:
    """`name=` with the printed form of a kernel matches that kernel's slices."""
    trace = open_trace([path], index_dir=corpus_cache)
    table = kernels(Scope(trace)).head(40)
    raws = table.texts("name")
    for raw, short in zip(raws, short_names(raws)):
        if "'" not in short and not re.search(r" \(\d+\)$", short):
            rows = kernels(selected_scope(trace, None, Selection(where=f"name='{short}'")))
            assert raw in rows.texts("name"), short
    trace.close()


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (1000, "1 µs"),
        (37_097, "37.097 µs"),
        (2_095_790, "2.095 ms"),
        (999_999_999, "999.999 ms"),
        (1_500_000_000, "1.5 s"),
        (123_500_000_000, "2 min 03.5 s"),
        (3_660 * 10**9, "1 h 01 min"),
        (5_533_068_085 * 10**6, "64 d 00 h"),
        (64 * 86400 * 10**9 + 3600 * 10**9, "64 d 01 h"),
        (-1500, "-1.5 µs"),
    ],
)
def test_times(ns: int, text: str) -> None:
    """Each duration has the unit that fits it, rounded down."""
    assert format_ns(ns) == text


def test_counts_bytes_shares() -> None:
    """Counts have separators, sizes binary units, shares one decimal."""
    assert format_count(1234567) == "1,234,567"
    assert [format_bytes(n) for n in (5, 4096, 1342177280, 15 << 20)] == [
        "5 B",
        "4.00 KiB",
        "1.25 GiB",
        "15.0 MiB",
    ]
    assert format_share(0.1234) == "12.3 %"


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("0", 0),
        ("1712195495505582.988", 1712195495505582988),
        (" 400 ", 400_000),
        ("1E+2", 100_000),
        ("1e-3", 1),
        ("1.7e15", 1_700_000_000_000_000_000),
        ("-50", -50_000),
        ("9223372036854775807", 9223372036854775807000),
        ("0.0005", 0),
        ("0.0015", 2),
        ("0.00050000000000000000000001", 1),
        ("-0.0015", -2),
        (".5", 500),
        ("5.", 5000),
        ("1e-999999", 0),
        ("0e999999", 0),
        ("1" + "0" * 5000, None),
        ("2." + "0" * 5000 + "1", 2000),
        ("0." + "123456789" * 600, 123),
        ("1e999999", None),
        ("1e400", None),
        ("1e9999999", None),
        ("abc", None),
        ("", None),
        (".", None),
        ("1 2", None),
        ("0x10", None),
        ("nan", None),
        ("inf", None),
        ("1_000", None),
        ("١", None),
    ],
)
def test_texts(text: str, ns: int | None) -> None:
    """Each form of number a trace may hold means its exact ns, and what is no finite number means none."""
    assert ns_from_text(text) == ns


@pytest.mark.parametrize("value", [True, None, [], {}, math.nan, math.inf, Decimal("NaN")])
def test_unusable_values(value: object) -> None:
    """What is no number is no time, booleans included."""
    assert time_of(value) is None


PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def _set(pairs: list[tuple[int, int]]) -> set[int]:
    return {t for a, b in pairs for t in range(a, b)}


def _merged(pairs: list[tuple[int, int]]) -> Intervals:
    return merge(np.array([a for a, _ in pairs], np.int64), np.array([b for _, b in pairs], np.int64))


def _points(intervals: Intervals) -> set[int]:
    assert (intervals.starts < intervals.ends).all()
    assert (intervals.starts[1:] > intervals.ends[:-1]).all()
    return {t for a, b in zip(intervals.starts, intervals.ends) for t in range(int(a), int(b))}


@given(PAIRS, PAIRS)
def test_set_algebra_is_that_of_points(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    """Union, intersection, difference and length are those of the sets of single nanoseconds."""
    x, y = _merged(a), _merged(b)
    assert _points(x) == _set(a)
    assert x.length == len(_set(a))
    assert _points(x.intersection(y)) == _set(a) & _set(b)
    assert _points(x.union(y)) == _set(a) | _set(b)
    assert _points(x.without(y)) == _set(a) - _set(b)


@given(PAIRS, st.integers(0, 60), st.integers(0, 60))
def test_windows(pairs: list[tuple[int, int]], low: int, high: int) -> None:
    """Clipping, gaps and covered time of a window count the window's nanoseconds."""
    x, window = _merged(pairs), set(range(low, high))
    assert _points(x.clipped(low, high)) == _set(pairs) & window
    if low < high:
        assert _points(x.gaps(low, high)) == window - _set(pairs)
        covered = x.covered(np.array([low], np.int64), np.array([high], np.int64))
        assert covered.tolist() == [len(_set(pairs) & window)]


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 60)), max_size=12),
    st.lists(st.integers(-20, 300), min_size=1, max_size=8),
)
def test_what_lies_before_a_moment(intervals: list[tuple[int, int]], times: list[int]) -> None:
    """What is covered before a moment counts each ns once, however the intervals overlap."""
    starts = np.array([a for a, _ in intervals], np.int64)
    ends = np.array([a + d for a, d in intervals], np.int64)
    moments = {t for a, d in intervals for t in range(a, a + d)}
    expected = [sum(m < t for m in moments) for t in times]
    assert merge(starts, ends).before(np.array(times, np.int64)).tolist() == expected
