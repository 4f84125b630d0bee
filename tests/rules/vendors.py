"""Vendors and producers stand in two tables; elsewhere core decides nothing by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .rule import Exempt, Rule, SourceFile

NAMES = re.compile(
    r"[nrh]ccl|oneccl|hcoll|gloo|cuda|cupti|nvtx|roctx|nvidia|\bhip(?=[A-Z_]|\b)|xla\b|\btpu|aiu|\bflex\b|FLEX"
    r"|spyre|privateuse|mtia|\bxpu|sycl|gaudi|\bhpu|\bnpu\b|Ascend (Hardware|NPU)|\bcann\b|msprof|rocprof"
    r"|rocm|rocprim|musa|tensorflow|proton|nsys|nsight|viztracer|kineto|triton|inductor|vllm|sglang"
    r"|cutlass|cublas|cudnn|nvjet|rocblas|SenRdma|Cmpt (Exec|Prep)|\bDma[IO]\b",
    re.IGNORECASE,
)
"""Words of vendors of devices, their libraries and tools, and of compilers and engines."""
ONE_FORM = "the file is about one producer's form, and is asked only of files of it"
COMPILERS = "what compilers call their code, by which compiled code is known: none of them writes traces"
MESSAGE = "advice, or where a rule comes from: it is said, and nothing is decided by it"
TORCH = "an operator, a device or a setting of PyTorch, by its own name"
EXCEPTIONS = (
    Exempt("core/index/producers.py", "", "the table of producers"),
    Exempt("core/index/flex.py", "", ONE_FORM),
    Exempt("core/index/analyzer.py", "", ONE_FORM),
    Exempt("core/trace/cycle_stamps.py", "", ONE_FORM),
    Exempt(
        "core/trace/collectives.py",
        r"\^aiuCommsColl|hcoll|^nccl:$",
        "which kind a collective is, by its library's words",
    ),
    Exempt("core/trace/devices.py", r"^AIU ?$|^CUDA$", "what devices are called that no file labels"),
    Exempt("core/trace/step_names.py", "", "what engines call their steps: they write no traces"),
    Exempt("core/tables/explain/explain.py", "", "explanations of single calls by their names"),
    Exempt("core/tables/explain/questions.py", r"\b(nccl|triton)\b", "words that people ask in"),
    Exempt("core/tables/findings/aiu.py", "", "rules about the calls of one vendor's runtime"),
    Exempt("core/tables/findings/rule.py", "", MESSAGE),
    Exempt("core/tables/findings/judge.py", "^aiu$", "the name of a file with rules"),
    Exempt(
        "core/tables/findings/*.py",
        r"NVIDIA|CUDA|cudnn|nvidia-smi|cuda\.set_sync|TORCHINDUCTOR|CUPTI|Triton kernel|AIU traces|inductor",
        MESSAGE,
    ),
    Exempt("core/tables/findings/*.py", r"^aiu-", "the ids of rules"),
    Exempt("core/tables/findings/*.py", r"triton", COMPILERS),
    Exempt("core/tables/findings/efficiency.py", r"scudnn", "kernels in fp32, by the names of libraries"),
    Exempt("core/tables/findings/compiled.py", r"cublas", "calls that load libraries, whoever's"),
    Exempt("core/tables/findings/kernels.py", r"hipMemcpyDtoD", "copies within a device, in all spellings"),
    Exempt(
        "core/tables/doctor/*.py",
        r"AIU|Kineto|FLEX|CUDA\)|aiu-trace-analyzer|torch-spyre|kineto-spyre",
        MESSAGE,
    ),
    Exempt("core/tables/doctor/rule.py", r"^cuda_runtime_version$", "a key of the file's own"),
    Exempt(
        "core/tables/frame/kinds.py",
        "",
        "the table of what kernels compute: libraries are known there by name",
    ),
    Exempt("core/tables/compile/*.py", "", COMPILERS),
    Exempt("core/tables/absent.py", "", COMPILERS),
    Exempt("core/tables/device/aiu_cycles.py", "", ONE_FORM),
    Exempt("core/tables/device/op_costs.py", r"^aten::", TORCH),
    Exempt("core/tables/host/allocators.py", "", TORCH),
    Exempt("core/tables/host/host_columns.py", r"aten::", TORCH),
    Exempt("core/tables/path/path_graph.py", r"^wait_on_cuda_event", "an argument of the format"),
    Exempt(
        "core/tables/ranks/rank_groups.py",
        r"^(gloo|nccl)$",
        "words in names of process groups that say no axis",
    ),
    Exempt("core/tables/registry.py", "", "texts of help"),
)


def _named(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No literal and no pattern of index, query, trace and tables names a vendor or producer."""
    return ((line, text) for line, text in file.texts() if NAMES.search(text))


RULES = (
    Rule(
        "vendors stand in the tables",
        ("core/index", "core/query", "core/trace", "core/tables"),
        _named,
        (
            ('is_copy = name.startswith("cudaMemcpy")', 1),
            ('re.compile(r"hipMemcpy|nccl")', 1),
            ('"""What CUDA calls a stream."""\nkind = "kernel"', 0),
            ('title = "shipping"', 0),
        ),
        EXCEPTIONS,
    ),
)
