"""Names are explained in one line with a source, and each by the entry that is meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tracelane.core.index.store import Index
from tracelane.core.tables.explain import TABLE, explain
from tracelane.core.trace import Trace, open_trace

MOST = 100
"""Cells of a line: it shall fit the panel on a screen of ordinary width."""


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A source with calls of CUDA."""
    return index_of([complete(0, 1, "cudaLaunchKernel", "cuda_runtime")], tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def aiu(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A source with calls of the AIU's runtime."""
    events = [complete(0, 1, "aiuMalloc", "privateuse1_runtime")]
    return index_of(events, tmp_path_factory.mktemp("aiu"))


def test_every_entry_is_a_plain_line_with_a_source() -> None:
    """Lines begin small, end without a stop, are short and alike in no two places; patterns are sound."""
    lines = [entry.line for entry in TABLE]
    assert len(set(lines)) == len(lines)
    for entry in TABLE:
        re.compile(entry.pattern)
        assert entry.source
        assert len(entry.line) <= MOST, entry.line
        assert not entry.line.endswith(".")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("cudaLaunchKernel", "queues a kernel"),
        ("cudaLaunchKernelExC", "queues a kernel"),
        ("hipExtModuleLaunchKernel", "loaded module"),
        ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "how many blocks fit"),
        ("cudaDeviceSynchronize", "waits for all work of the device"),
        ("aten::addmm", "plus a bias"),
        ("aten::mm", "two matrices"),
        ("aten::bmm", "batches"),
        ("Torch-Compiled Region: 3/1", "frame id / compile id"),
        ("## Call CompiledFxGraph None ##", "Inductor"),
        ("triton_red_fused_add_mean_0", "loops over its input"),
        ("compile_file (dynamo_timed)", "C++ compiler"),
        ("aiurdmabarrier2", "barrier"),
        ("AIURDMABARRIER2", "barrier"),
        ("aiuCommsCollAllreduceSetup", "sets up"),
        ("aiuCommsCollAllreduce", "as the host sees it"),
        ("Unknown CBID 91", "no name for"),
    ],
)
def test_names_are_explained(cuda: Index, name: str, part: str) -> None:
    """The first entry that fits the whole name, case aside, is the one that is meant."""
    explanation = explain(name, Trace([cuda]), 0)
    assert explanation is not None
    assert part in explanation.line


@pytest.mark.parametrize("name", ["my_function", "aten::mm_backward", "cudaLaunchKernel2", ""])
def test_other_names_are_left_alone(cuda: Index, name: str) -> None:
    """A name that only begins like one of the table is not explained."""
    assert explain(name, Trace([cuda]), 0) is None


def test_a_memset_allocates_on_an_aiu_only(cuda: Index, aiu: Index) -> None:
    """What a name means depends on the device: elsewhere a memset sets memory."""
    explanation = explain("Memset (Device)", Trace([aiu]), 0)
    assert explanation is not None
    assert "allocated" in explanation.line
    assert explain("Memset (Device)", Trace([cuda]), 0) is None


@needs_corpus
@pytest.mark.parametrize(
    ("name", "categories"),
    [
        ("aiu/mlp_trace.json", ("privateuse1_runtime", "privateuse1_driver", "gpu_memset")),
        ("gpu/tl_h100_qwen_infer.json.gz", ("cuda_runtime", "cuda_driver")),
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", ("overhead",)),
    ],
)
def test_the_calls_of_real_traces_are_known(
    name: str, categories: tuple[str, ...], corpus_cache: Path
) -> None:
    """Of the runtime's calls in these traces nine of ten slices have an explanation."""
    index = open_trace(CORPUS / name, index_dir=corpus_cache).indexes[0]
    kinds = index.column("slices.category").tolist()
    names = index.strings(index.column("slices.name"))
    calls = [text for kind, text in zip(kinds, names) if index.categories[kind] in categories]
    known = sum(explain(text, Trace([index]), 0) is not None for text in calls)
    assert known >= 0.9 * len(calls), {text for text in calls if explain(text, Trace([index]), 0) is None}
