"""Two runs in one view: step k over step k, what each step takes more between them, tables of B against A."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from textual.widgets import Input

from tests.core.findings_traces import launched, step
from tests.corpus import CORPUS, for_files, needs
from tests.events import Event, complete, metadata, write_events
from tests.tui.cli_process import on_terminal, tracelane_here
from tests.tui.driver import message, open_viewer, press_keys, screen_text, type_command
from tracelane.core.base.units import format_moment, format_ns
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.tables.compare.diff import difference
from tracelane.core.tables.compare.run_names import brief_name
from tracelane.core.tables.compare.run_pair import RunPair
from tracelane.core.tables.compare.summary import summarise
from tracelane.core.tables.explain.pair_answers import PairAnswers, paired_runs
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.tree import analyse_tree
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import open_trace
from tracelane.tui.device_shares import device_shares, states_over_all
from tracelane.tui.view_state import ShowAgainst
from tracelane.tui.widgets.prompt import Prompt

AIU = "aiu/spyre_torch_profiler"
PAIRS = {
    "regions of AIUs": (f"{AIU}/jamie_mlp__coordinate-remap*", f"{AIU}/jamie_mlp__upstream-main*", "0 1 2 3"),
    "another compiler": (f"{AIU}/decode_bmm__branch*", f"{AIU}/decode_bmm__upstream*", "0 1 2 3"),
    "two vendors": ("gpu/tl_h100_qwen_infer.json.gz", "gpu/tl_mi300_qwen_infer.json.gz", "6"),
    "more steps": ("cpu/torch213_mlp_plain.json", "cpu/torch213_graph_breaks.json", "0 1 2"),
    "other numbers": ("gpu/hta_a100_resnet_ddp_nccl.json.gz", "gpu/tl_h100_qwen_infer.json.gz", "6"),
    "ranks": ("multirank/dlrm_8gpu_ranks0-3", "multirank/torch213_ddp_gloo_2ranks", "10"),
    "no steps": ("chrome/viztracer_multithread.json", "odd/overlapping_x.json", ""),
}


def paths(name: str) -> list[str]:
    return [str(next(CORPUS.glob(pattern))) for pattern in PAIRS[name][:2]]


def pair_of_runs(name: str) -> RunPair:
    return paired_runs(*(open_trace(path) for path in paths(name)))


def region_lengths(path: str) -> list[int]:
    """Return how long each compiled region of an AIU trace takes until its last kernel is done, from JSON."""
    events = [
        one for one in json.loads(Path(path).read_text(encoding="utf-8"))["traceEvents"] if one["ph"] == "X"
    ]
    regions = sorted(
        (round(one["ts"] * 1000), round((one["ts"] + one["dur"]) * 1000))
        for one in events
        if one["name"] == "Torch-Compiled Region: 0/0"
    )
    launches = {
        one["args"]["correlation"]: round(one["ts"] * 1000)
        for one in events
        if one["name"] == "aiuLaunchControlBlocks"
    }
    reach = [end for _, end in regions]
    for kernel in (one for one in events if one.get("cat") == "kernel"):
        called = launches[kernel["args"]["correlation"]]
        for at, (start, end) in enumerate(regions):
            if start <= called < end:
                reach[at] = max(reach[at], round((kernel["ts"] + kernel["dur"]) * 1000))
    return [end - start for end, (start, _) in zip(reach, regions)]


@pytest.mark.slow
@for_files("name", PAIRS)
def test_the_same_steps_meet(name: str) -> None:
    """Steps of one label meet, else those of one place, else both runs; each begins where A's begins."""
    pair = pair_of_runs(name)
    steps = pair.common_steps()
    assert " ".join(steps.labels) == PAIRS[name][2]
    for at in range(len(steps.labels)):
        clocks = pair.clocks_at(int(steps.a[at, 0]), pair.clocks)
        assert steps.b[at, 0] + pair.move(clocks) == steps.a[at, 0]
        assert pair.side(0, clocks)[1] == pair.a.clocks


@pytest.mark.slow
@for_files("name", ["regions of AIUs", "another compiler"])
def test_a_step_takes_until_its_last_kernel_is_done(name: str) -> None:
    """Lengths of steps are those that the file's own events give."""
    expected = np.array([region_lengths(path) for path in paths(name)]).T
    assert np.abs(pair_of_runs(name).common_steps().lengths - expected).max() <= 1  # µs as floats above


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_two_bands_and_the_steps_between_them(size: tuple[int, int]) -> None:
    """The step that changed most is shown first, Enter says how long it took; > and < walk, each time both
    begin together; tables are B's against A's, and lead to slices of either.
    """
    pair = pair_of_runs("regions of AIUs")
    steps = pair.common_steps()
    changes = zip(steps.labels, steps.deltas.tolist(), steps.are_noise.tolist())
    texts = [f"step {label} {'≈' * noise}{format_moment(ns, 3)}" for label, ns, noise in changes]
    async with open_viewer(with_cheap_lanes(pair), size) as (app, pilot):
        for keys, at in ((), 0), (("enter",), 0), (("greater_than_sign",), 1), (("less_than_sign",), 0):
            await press_keys(app, pilot, *keys)
            if keys == ("enter",):
                a, b = map(brief_name, pair.names)
                first, second = map(format_ns, steps.lengths[0].tolist())
                assert f"step 0: {a} {first}, {b} {second}" in message(app)
            lines = screen_text(app).splitlines()
            where = {
                text: n for n, line in enumerate(lines) for text in ("▸ A ", "Δ B", "▸ B ") if text in line
            }
            assert list(where) == ["▸ A ", "Δ B", "▸ B "] and texts[at] in lines[where["Δ B"]]
            clocks = app.session.clocks
            assert steps.b[at, 0] + pair.move(clocks) == steps.a[at, 0]
            computed = [ns for (source, _), ns in clocks.offsets.items() if source == pair.source_count]
            assert set(computed) == {clocks.offset(pair.first)}  # of B's memory
        await press_keys(app, pilot, "5")
        assert "Δ Length" in screen_text(app)
        await press_keys(app, pilot, "enter")
        assert app.store.selected.row.source in range(pair.source_count)


def times_by_path(table: Table, key: str) -> dict[tuple[str, ...], int]:
    """Return a number of each node of a tree by the names on its path."""
    paths_of_nodes: dict[int, tuple[str, ...]] = {-1: ()}
    times = {}
    numbers = (table.numbers(column).tolist() for column in ("node", "parent", key))
    for node, parent, ns, name in zip(*numbers, table.texts("name")):
        paths_of_nodes[node] = (*paths_of_nodes[parent], name)
        times[paths_of_nodes[node]] = ns
    return times


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"bottom_up": True}, {"by": "launch"}], ids=str)
async def test_trees_meet_by_path(options: dict[str, Any], corpus_cache: Path) -> None:
    """A call of a tree of B against A has B's time, and the difference to A's on the same path; a path of one
    run alone is there, too.
    """
    runs = [open_trace(path, index_dir=corpus_cache) for path in paths("another compiler")]
    trees = [analyse_tree(Scope(run, clocks=run.clocks), **options)["tree"] for run in runs]
    a, b = (times_by_path(tree, "total_ns") for tree in trees)
    pair = paired_runs(*runs)
    table = BY_NAME["tree"].run(Scope(pair, clocks=pair.clocks), **options)["tree"]
    deltas = times_by_path(table, "total_ns_delta")
    assert times_by_path(table, "total_ns") == {path: b.get(path, 0) for path in deltas}
    assert deltas == {path: b.get(path, 0) - a.get(path, 0) for path in {**b, **a}}
    depths = table.numbers("depth")
    assert (set(a) - set(b) or "by" in options) and (np.diff(depths) <= 1).all() and depths[0] == 0
    if not options:
        async with open_viewer(with_cheap_lanes(pair), (160, 50)) as (app, pilot):
            await press_keys(app, pilot, "3", "Z")
            assert "Δ total" in screen_text(app)


@pytest.mark.slow
@for_files("name", ["ranks", "no steps", "other numbers"])
def test_a_picture_has_both_runs(name: str) -> None:
    """Without a terminal a picture has a band for each rank of A, the changes, and one for each of B."""
    a, b = paths(name)
    answer = tracelane_here("view", a, "--against", b, "--width", "80", "--height", "40")
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    heads = [line[2] for line in lines if line[:2] in ("▸ ", "▾ ") and line[2:4] in ("A ", "B ")]
    count = {"ranks": (4, 2)}.get(name, (1, 1))
    assert heads == ["A"] * count[0] + ["B"] * count[1]
    assert sum("Δ B - A" in line for line in lines) == 1


def test_what_cannot_be_paired_is_refused(tmp_path: Path) -> None:
    """Standard input, and logs of one of the runs, are no pair; a run that is missing is named."""
    trace = tmp_path / "one.json"
    trace.write_text(json.dumps([complete(0, 5)]), encoding="utf-8")
    refused = {
        "against": ("-",),
        "logs": (str(trace), "--smi", str(trace)),
        "no.json": ("no.json",),
    }
    for word, more in refused.items():
        answer = tracelane_here("view", str(trace), "--against", *more)
        assert answer.returncode != 0 and word in answer.stderr, answer.stderr


def program(folder: Path, name: str, device_us: int, jitter_us: int = 3, waits: bool = False) -> Path:
    """Six steps that the host enqueues in 2 ms each and the device works off in about `device_us` each."""
    events: list[Event] = []
    now = free = 1_000
    for number in range(6):
        length = device_us + jitter_us * (number * 7 % 5 - 2)
        free = max(free, now + 20)
        events += launched(now + 10, 5, free, length)
        begin, free = now, free + length
        now = max(now + 2_000, free if waits else 0)
        events.append(step(number, begin, now - begin - 1))
    return write_events(folder / name, [metadata("process_labels", 0, labels="GPU 0"), *events])


@pytest.mark.parametrize(
    ("device_us", "waits", "words", "claimed_us"),
    [
        (50_000, False, ("b takes as long as a", "within the noise"), 0),
        (
            50_002,
            False,
            ("more than a", "within the noise", "no kernel or operator changed beyond the noise"),
            0,
        ),
        (
            60_000,
            False,
            ("60 ms more than a in 6 steps (from the start", "kernel k changed most, +10 ms a step (slower)"),
            60_000,
        ),
        (60_000, True, ("more than a in 6 steps (from the start", "slower"), 60_000),
        (40_000, False, ("60 ms less than a", "kernel k changed most, -10 ms a step (faster)"), 0),
    ],
)
def test_only_what_takes_longer_beyond_the_noise_is_a_loss(
    device_us: int, waits: bool, words: tuple[str, ...], claimed_us: int, tmp_path: Path
) -> None:
    """The sentence says by what steps are measured and whether that is more than noise, as `diff` does."""
    paths = program(tmp_path, "a.json", 50_000), program(tmp_path, "b.json", device_us, waits=waits)
    pair = paired_runs(*(open_trace(path, index_dir=tmp_path / "index") for path in paths))
    assert isinstance(pair.answers, PairAnswers)
    (finding,) = pair.answers.findings().findings
    assert all(word in finding.text for word in words), finding.text
    assert finding.claimed_ns == pytest.approx(claimed_us * 1000, rel=0.01)
    assert finding.kind == ("loss" if claimed_us else "headline")
    sides = [summarise(Scope(run, clocks=run.clocks), name) for run, name in ((pair.a, "A"), (pair.b, "B"))]
    change = difference(sides[:1], sides[1]).metrics["step.length.mean"].change or 0
    assert change * 6 == pytest.approx(int(pair.common_steps().deltas.sum()), abs=60)


def two_runs(folder: Path) -> list[Path]:
    """Write two runs of two steps; the second takes longer."""
    folder.mkdir()
    paths = []
    for name, took in (("monday", 100), ("tuesday", 160)):
        events = [
            event
            for number in range(2)
            for event in (
                complete(1000 * number, took + 20, f"ProfilerStep#{number}", "user_annotation"),
                complete(1000 * number + 5, took, "aten::mm", "cpu_op"),
            )
        ]
        paths.append(write_events(folder / f"{name}.json", events))
    return paths


async def test_another_run_is_asked_for_from_inside(tmp_path: Path) -> None:
    """`:against FILE` leaves for both runs; what is not there is said, and nothing is left."""
    monday, tuesday = two_runs(tmp_path / "runs")
    async with open_viewer(open_trace(monday)) as (app, pilot):
        await type_command(pilot, f"against {tmp_path}/none.json")
        assert "no such file" in message(app) and app.return_value is None
        app.run_command("against")
        await pilot.pause()
        await pilot.press("slash", "right")  # the rest of the only path that begins so
        await pilot.pause()
        assert app.main.query_one(Prompt).query_one(Input).value == str(tuesday)
        await pilot.press("escape")
        await type_command(pilot, f"against {tuesday}")
    assert app.return_value == ShowAgainst(str(tuesday))
    async with open_viewer(paired_runs(open_trace(monday), open_trace(tuesday))) as (app, pilot):
        app.run_command("against")
        await pilot.pause()
    assert app.return_value == ShowAgainst("")


@pytest.mark.slow
def test_two_runs_and_one_again_on_a_terminal(tmp_path: Path) -> None:
    """A run is shown below, then the first alone; a file that is no trace leaves the first, and is named."""
    monday, tuesday = two_runs(tmp_path / "runs")
    broken = tmp_path / "broken.json"
    broken.write_text("{", encoding="utf-8")
    played = on_terminal(
        str(monday),
        play=(
            ("monday", ":"),
            ("only REGEX", f"against {broken}\r"),
            ("no trace events in it", ":"),
            ("only REGEX", f"against {tuesday}\r"),
            ("Two runs", ":"),
            ("only REGEX", "against\r"),
            ("by their own time", "q"),
        ),
    )
    assert played.code == 0


@pytest.mark.parametrize("is_swapped", [False, True])
def test_each_run_is_as_busy_as_alone(is_swapped: bool, tmp_path: Path) -> None:
    """The header says of each device the share of its own run's time, also where one run is ten times as long
    as the other.
    """
    runs = []
    for name, length in (("short", 1_000), ("long", 10_000)):
        labels = metadata("process_labels", 0, labels="GPU 0")
        host = complete(0, length, "aten::mm", pid=7, tid=7)
        work = [complete(at, 300, "gemm", "kernel", pid=0, tid=7) for at in range(100, length, 1_000)]
        path = write_events(tmp_path / f"{name}.json", [labels, host, *work])
        runs.append(open_trace(path, index_dir=tmp_path / "index"))
    alone = [device_shares(scope, states_over_all(scope)) for scope in map(Scope, runs)]
    pair = paired_runs(*reversed(runs)) if is_swapped else paired_runs(*runs)
    scope = Scope(pair, clocks=pair.clocks)
    shares = device_shares(scope, states_over_all(scope))
    expected = [one.share for (one,) in (reversed(alone) if is_swapped else alone)]
    assert [one.share for one in shares] == pytest.approx(expected)
    assert all(share == pytest.approx(0.3) for share in expected)
