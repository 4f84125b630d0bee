"""Short forms of names, as they are read in lanes and tables."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, needs_corpus, representative
from tracelane.core import open_trace
from tracelane.core.base.short_names import BLANK, LONGEST, short_name, short_names
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.selection import Selection, selected_scope

TABLE = [
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
    assert 0 < len(short) <= LONGEST and "\n" not in short
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
    assert max(map(len, forms)) <= LONGEST + 5


@needs_corpus
@pytest.mark.parametrize("path", representative(sorted(CORPUS.glob("gpu/*"))), ids=lambda path: path.name)
def test_no_kernel_of_a_real_trace_is_joined_with_another(path: Path, corpus_cache: Path) -> None:
    """All distinct names of a file have distinct short forms, one for each in the same order."""
    trace = open_trace([path], index_dir=corpus_cache)
    index = trace.indexes[0]
    raws = index.strings(np.unique(index.column("slices.name")))
    assert len(set(short_names(raws))) == len(set(raws))
    trace.close()


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("path", sorted(CORPUS.glob("gpu/*")), ids=lambda path: path.name)
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
