"""Scopes: what a range, lanes and devices count, and what a trace has nothing for."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.corpus import CORPUS, file, needs
from tests.events import complete, index_of, metadata
from tests.rank_files import rank_files
from tests.snapshots import pickled, snapshot_of, training
from tests.tui.small_file import small_file
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import Cancelled
from tracelane.core.tables.absent import absent
from tracelane.core.tables.device.idle import idle
from tracelane.core.tables.device.kernels import kernels
from tracelane.core.tables.frame import scope as scope_module
from tracelane.core.tables.frame.frame_columns import timed_work
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.ops import ops
from tracelane.core.tables.host.range_table import lane_table, range_table
from tracelane.core.tables.registry import PANELS, panels_without
from tracelane.core.tables.steps.steps import steps
from tracelane.core.trace import Trace, open_trace, trace_of
from tracelane.core.trace.devices import devices
from tracelane.core.trace.step_choice import find_steps


def _sums(scope: Scope) -> tuple[int, int, int]:
    chunks = list(scope.chunks())
    return (
        sum(len(chunk) for chunk in chunks),
        sum(int(chunk.durations.sum()) for chunk in chunks),
        sum(int(chunk.self_times.sum()) for chunk in chunks),
    )


@pytest.fixture
def nested(tmp_path: Path) -> Trace:
    """Two threads of slices that nest and overlap at random, and some of no length."""
    pick = random.Random(3)
    events = [
        complete(pick.randrange(400), pick.choice([0, 1, 5, 40, 200]), f"n{i % 3}", tid=1 + i % 2)
        for i in range(300)
    ]
    return Trace([index_of(events, tmp_path / "index")])


@pytest.mark.parametrize("cut", [1_000, 50_000, 123_456, 399_000])
def test_two_halves_make_the_whole(nested: Trace, cut: int) -> None:
    """Time and self time of the parts left and right of any cut add up to those of the whole."""
    _, total, own = _sums(Scope(nested))
    left, right = (_sums(Scope(nested, edges)) for edges in ((0, cut), (cut, 10**7)))
    assert (left[1] + right[1], left[2] + right[2]) == (total, own)


def test_a_range_holds_what_brute_force_finds(nested: Trace) -> None:
    """A slice is in the range when some of it is, one of no length when it stands inside."""
    index = nested.indexes[0]
    starts = index.column("slices.start").astype("i8")
    ends = starts + index.duration(range(len(starts)))
    for low, high in ((0, 1_000), (17_000, 90_000), (5_000, 5_001), (399_000, 400_000)):
        expected = {
            at
            for at, (a, b) in enumerate(zip(starts.tolist(), ends.tolist()))
            if a < high and (b > low or a == b >= low)
        }
        actual = [int(at) for chunk in Scope(nested, (low, high)).chunks() for at in chunk.positions]
        assert sorted(actual) == sorted(expected)
        beyond = sum(starts[at] < low or ends[at] > high for at in expected)
        assert Scope(nested, (low, high)).cut == beyond


def test_chunks_are_bounded_and_filtered(nested: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Smaller chunks give the same sums; a filter and a lane leave out the rest and the text says so."""
    whole = _sums(Scope(nested))
    monkeypatch.setattr(scope_module, "CHUNK", 7)
    assert _sums(Scope(nested)) == whole
    assert max(len(chunk) for chunk in Scope(nested).chunks()) <= 7
    lanes = [_sums(Scope(nested, lanes=[lane])) for lane in (0, 1)]
    assert tuple(map(sum, zip(*lanes))) == whole
    odd = Scope(nested, where=lambda index, positions: positions % 2 == 1)
    assert _sums(odd)[0] == whole[0] // 2
    assert Scope(nested).text == "whole trace"
    assert "1 of 2 lanes" in Scope(nested, lanes=[0]).text
    assert odd.text.endswith(", filtered")


def test_devices_are_found_by_label_or_by_their_work(tmp_path: Path) -> None:
    """A labelled process is a device with all its lanes; of another only the lanes with kernels are."""
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "cache")
    (device,) = devices(trace)
    assert (device.label, device.word, device.number) == ("AIU 0", "AIU", 0)
    events = [
        complete(1, 5, "aten::mm", tid=1),
        complete(1, 5, "cudaLaunchKernel", "cuda_runtime", tid=1),
        complete(3, 5, "gemm", "kernel", tid="stream 7"),
        metadata("process_labels", 1, labels="CPU"),
    ]
    (bare,) = devices(Trace([index_of(events, tmp_path / "index")]))
    assert (bare.word, bare.number, len(bare.lanes)) == ("CUDA", None, 1)


@pytest.mark.parametrize("analysis", [range_table, lane_table, ops, kernels, timed_work, steps, idle])
def test_an_analysis_stops_wherever_it_is_told_to(
    analysis: Callable[[Scope], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asked at any of the points where it looks, it ends there; never asked, it comes to its end."""
    monkeypatch.setattr(scope_module, "CHUNK", 2)
    trace = open_trace(small_file(tmp_path), index_dir=tmp_path / "index")
    calls: list[int] = []

    def counted() -> bool:
        calls.append(0)
        return False

    analysis(Scope(trace, cancelled=counted))
    assert calls
    for last in range(len(calls)):
        left = iter([False] * last + [True])
        with pytest.raises(Cancelled):
            analysis(Scope(trace, cancelled=lambda left=left: next(left)))  # type: ignore[misc]


SAMPLES = Path(__file__).parents[1] / "samples"
NOTHING_OF_IT = {"ranks", "report", "memory", "segments", "compile", "regions", "graphs", "phases"}


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "lacks"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", NOTHING_OF_IT),
        ("gpu/tl_h100_qwen_infer.json.gz", NOTHING_OF_IT - {"memory"}),
        ("gpu/tl_torch_compile_triton.json.gz", {"memory", "phases", "ranks", "report", "segments"}),
        (
            "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz",
            {"phases", "ranks", "regions", "report", "segments"},
        ),
        ("gpu/hta_mtia_inference_rank0.json.gz", NOTHING_OF_IT),
        ("gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz", NOTHING_OF_IT - {"memory"}),
        ("aiu/mlp_trace.json", {"phases", "ranks", "report", "segments"}),
        ("aiu/sample_flex_3062_job_4.json", NOTHING_OF_IT),
        ("cpu/torch213_compile_first_call.json.gz", {"devices", "memory", "ranks", "report", "segments"}),
        ("cpu/torch213_graph_breaks.json", {"devices", "memory", "phases", "ranks", "report", "segments"}),
        ("multirank/dlrm_8gpu_ranks0-3", NOTHING_OF_IT - {"ranks"}),
        ("chrome/catapult_big_trace.json", NOTHING_OF_IT | {"devices"}),
    ],
)
def test_what_real_traces_lack(path: str, lacks: set[str], corpus_cache: Path) -> None:
    """Each trace lacks what it is known to, and every panel that needs it has no row."""
    files = file(path)
    trace = open_trace(sorted(files.glob("*.json*")) if files.is_dir() else files, index_dir=corpus_cache)
    lacks_exactly(trace, lacks)


def test_what_the_file_of_dynamo_lacks(tmp_path: Path) -> None:
    """Its phases have the category dynamo_timed instead of a name that ends so."""
    trace = open_trace(SAMPLES / "dynamo_chromium_events.json", index_dir=tmp_path)
    lacks_exactly(trace, NOTHING_OF_IT - {"compile", "phases"} | {"devices"})
    row, panel = PANELS["compile-phases"]
    assert len(row.run(Scope(trace), **dict(panel.options))[panel.table]) == 14


def test_what_a_snapshot_of_memory_lacks(tmp_path: Path) -> None:
    """It has allocators and segments, and nothing of a program's time."""
    path = tmp_path / "s.pickle"
    path.write_bytes(pickled(snapshot_of(training())))
    trace = open_trace(path, index_dir=tmp_path / "index")
    lacks_exactly(trace, NOTHING_OF_IT - {"memory", "segments"} | {"devices"})
    row, panel = PANELS["memory-segments"]
    assert len(row.run(Scope(trace), **dict(panel.options))[panel.table]) == 3


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
    monkeypatch.setattr("tracelane.core.tables.absent.MAX_BYTES", 4)
    assert absent(plain) == {"devices", "ranks", "report"}


def test_a_rank_is_looked_at_alone(tmp_path: Path) -> None:
    """What is counted rank by rank looks at the rows of that rank, not at those of all others each time."""

    def looks(world: int) -> int:
        checks = 0

        def cancelled() -> bool:
            nonlocal checks
            checks += 1
            return False

        folder = rank_files(tmp_path / str(world), world)
        with closing(open_trace(folder, index_dir=tmp_path / f"index-{world}")) as trace:
            assert len(ops(Scope(trace, cancelled=cancelled))) > 0
        return checks

    assert looks(12) == 4 * looks(3)


def test_steps_are_found_once(tmp_path: Path) -> None:
    """Whoever asks for the steps of a rank under the same clocks is given the same, under others others."""
    trace = open_trace(rank_files(tmp_path / "ranks", 2), index_dir=tmp_path / "index")
    assert find_steps(trace, 1, trace.clocks) is find_steps(trace, 1, trace.clocks)
    steps, moved = find_steps(trace, 1), find_steps(trace, 1, Clocks().shifted((1, ""), 5))
    assert steps is not None and moved is not None
    assert moved.starts[0] == steps.starts[0] + 5


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (1_500_000, 2_000_000, "range +1.5 ms .. +2 ms"),
        (1_234_567_890, 3_234_567_890, "range +1.234 s .. +3.234 s"),
        (932_100_200_000, 932_105_200_000, "range +15 min 32.1002 s .. +15 min 32.1052 s"),
        (5_000_000_000, 5_000_000_001, "range +5 s .. +5.000000001 s"),
    ],
)
def test_the_ends_of_a_range_differ(low: int, high: int, words: str, tmp_path: Path) -> None:
    """However late a short range is, its ends have the digits that tell them apart."""
    trace = trace_of("t.json", index_of([complete(0, 1e9)], tmp_path))
    assert Scope(trace, (low, high)).when == words
