"""What a trace has nothing for is told without counting, and never wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tracelane.core.tables import presence
from tracelane.core.tables.presence import absent
from tracelane.core.tables.registry import PANELS, panels_without
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace, open_trace

SAMPLES = Path(__file__).parents[1] / "samples"
NOTHING_OF_IT = {"ranks", "report", "memory", "compile", "regions", "graphs", "phases"}


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize(
    ("path", "lacks"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", NOTHING_OF_IT),
        ("gpu/tl_h100_qwen_infer.json.gz", NOTHING_OF_IT - {"memory"}),
        ("gpu/tl_torch_compile_triton.json.gz", {"memory", "phases", "ranks", "report"}),
        ("gpu/tl_vllm_capture_python_functions.pt.trace.json.gz", {"phases", "ranks", "regions", "report"}),
        ("gpu/hta_mtia_inference_rank0.json.gz", NOTHING_OF_IT),
        ("gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz", NOTHING_OF_IT - {"memory"}),
        ("aiu/mlp_trace.json", {"phases", "ranks", "report"}),
        ("aiu/sample_flex_3062_job_4.json", NOTHING_OF_IT),
        ("cpu/torch213_compile_first_call.json.gz", {"devices", "memory", "ranks", "report"}),
        ("cpu/torch213_graph_breaks.json", {"devices", "memory", "phases", "ranks", "report"}),
        ("multirank/dlrm_8gpu_ranks0-3", NOTHING_OF_IT - {"ranks"}),
        ("chrome/catapult_big_trace.json", NOTHING_OF_IT | {"devices"}),
    ],
)
def test_what_real_traces_lack(path: str, lacks: set[str], corpus_cache: Path) -> None:
    """Each trace lacks what it is known to, and every panel that needs it has no row."""
    files = CORPUS / path
    trace = open_trace(sorted(files.glob("*.json*")) if files.is_dir() else files, index_dir=corpus_cache)
    lacks_exactly(trace, lacks)


def test_what_the_file_of_dynamo_lacks(tmp_path: Path) -> None:
    """Its phases have the category dynamo_timed instead of a name that ends so."""
    trace = open_trace(SAMPLES / "dynamo_chromium_events.json", index_dir=tmp_path)
    lacks_exactly(trace, NOTHING_OF_IT - {"compile", "phases"} | {"devices"})
    row, panel = PANELS["compile-phases"]
    assert len(row.run(Scope(trace), **dict(panel.options))[panel.table]) == 14


def lacks_exactly(trace: Trace, lacks: set[str]) -> None:
    """Assert what a trace lacks, and that no panel which needs it has a row."""
    assert absent(trace) == lacks
    panels = panels_without(lacks)
    assert panels
    for name in panels:
        row, panel = PANELS[name]
        table = row.run(Scope(trace, clocks=trace.clocks), **dict(panel.options))[panel.table]
        assert not len(table), name


def test_every_panel_with_an_empty_text_of_its_own_says_what_it_needs() -> None:
    """A panel that needs nothing is one that any slice, op, collective or file fills."""
    free = {name for name, (_, panel) in PANELS.items() if not panel.needs}
    of_slices = {"table", "lanes-busy", "categories", "tree", "tree-callers", "tree-threads"}
    of_slices |= {"critical-path", "critical-segments"}
    assert free == of_slices | {"ops", "ops-shape", "ops-module", "ranks", "collectives"}


@pytest.mark.parametrize(
    ("name", "need"),
    [
        ("Torch-Compiled Region: 0/0", "regions"),
        ("## Call CompiledFxGraph abc ##", "graphs"),
        ("_compile.compile_inner (dynamo_timed)", "phases"),
        ("TorchDynamo Cache Lookup", "compile"),
        ("triton_poi_fused_add_0", "compile"),
        ("sdsc_fused_mm_1", "compile"),
    ],
)
def test_one_name_is_enough(name: str, need: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A single slice of such a name makes it present; names too many to look through make all present."""
    plain = Trace([index_of([complete(0, 5, "aten::mm")], tmp_path / "plain")])
    named = Trace([index_of([complete(0, 5, "aten::mm"), complete(6, 5, name)], tmp_path / "named")])
    assert need in absent(plain) and need not in absent(named)
    monkeypatch.setattr(presence, "MOST_BYTES", 4)
    assert absent(plain) == {"devices", "ranks", "report"}
