"""Several earlier runs as one side, and what the noise says of each metric and row of a comparison."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete, index_of
from tracelane.core.base.errors import UsageError
from tracelane.core.export.summary_file import read_summary, summary_json
from tracelane.core.tables.diff import Difference, difference, median_of_runs
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.summary import Summary, summarise
from tracelane.core.trace import Trace, open_trace

STEPS = 6


def run(folder: Path, kernels: dict[str, list[int]], title: str = "run") -> Summary:
    """Return the summary of steps of 1 ms, with a kernel of each name (µs by step) launched in a module."""
    events = []
    for step in range(max(len(times) for times in kernels.values())):
        at = 1000 * step
        events.append(complete(at, 1000, f"ProfilerStep#{step}", "user_annotation", pid=7, tid=7))
        module = complete(at + 10, 900, "nn.Module: Linear_0", "python_function", pid=7, tid=7)
        events.append(module)
        for number, (name, times) in enumerate(kernels.items()):
            begin = at + 20 + 200 * number
            ids = {"correlation": 1 + 100 * step + number}
            events.append(complete(begin, 50, f"aten::{name}", pid=7, tid=7))
            events.append(complete(begin, 5, "cudaLaunchKernel", "cuda_runtime", pid=7, tid=7, args=ids))
            if times[step]:
                kernel = complete(begin + 10, times[step], name, "kernel", pid=0, tid=number, args=ids)
                events.append(kernel)
    return summarise(Scope(Trace([index_of(events, folder)])), title)


def verdicts(result: Difference, table: str) -> dict[str, object]:
    """Return what is said of each row of a table by its name."""
    key = result.tables[table].columns[0].key
    return {str(row[key]): row["verdict"] for row in result.tables[table].rows()}


STEADY = [100, 101, 99, 100, 102, 98]
SLOWER = [time + 20 for time in STEADY]
WIDE = [100, 140, 70, 120, 60, 130]
WIDE_LATER = [time + 20 for time in (140, 70, 100, 130, 120, 60)]


def test_each_kernel_and_step_is_judged_by_its_steps(tmp_path: Path) -> None:
    """20 µs more are a regression of a steady kernel, and noise of one that varies by more than that."""
    before = run(tmp_path / "a", {"steady": STEADY, "wide": WIDE, "gone": STEADY, "once": [7, 0, 0, 0, 0, 0]})
    now = run(
        tmp_path / "b", {"steady": SLOWER, "wide": WIDE_LATER, "new": STEADY, "once": [9, 0, 0, 0, 0, 0]}
    )
    result = difference([before], now)
    assert verdicts(result, "kernels") == {
        "steady": "slower",
        "wide": "within the noise",
        "new": "slower",
        "gone": "faster",
        "once": "noise unknown",
    }
    errors = {row["name"]: row["error_ns"] for row in result.tables["kernels"].rows()}
    assert 0 < errors["steady"] < 5_000 < errors["wide"] < 50_000  # type: ignore[operator]
    assert result.metrics["kernels.time"].runs == 0
    rows = list(result.tables["kernels"].rows())
    assert rows[0]["name"] == "new" and rows[-1]["name"] == "gone"


def test_steps_are_judged_one_by_one(tmp_path: Path) -> None:
    """A single step of which the kernels take far longer than the others scatter is said to be slower."""
    before = run(tmp_path / "a", {"steady": STEADY})
    now = run(tmp_path / "b", {"steady": [*STEADY[:3], 190, *STEADY[4:]]})
    result = difference([before], now)
    assert verdicts(result, "steps") == {"4": "slower"} | {
        str(n): "within the noise" for n in (1, 2, 3, 5, 6)
    }
    assert result.metrics["kernels.time"].verdict == "within the noise"


def test_ops_and_modules_are_judged(tmp_path: Path) -> None:
    """Ops and modules have rows of their own; more calls in a module in the same time are no regression."""
    before = run(tmp_path / "a", {"steady": STEADY})
    now = run(tmp_path / "b", {"steady": STEADY, "more": STEADY})
    result = difference([before], now)
    assert verdicts(result, "ops")["aten::more"] == "slower"
    (row,) = result.tables["modules"].rows()
    assert (row["module"], row["count_delta"], row["self_cpu_ns_delta"]) == ("Linear_0", STEPS * 2, 0)
    assert row["verdict"] == "within the noise"


def test_the_median_of_runs_is_what_is_compared_with(tmp_path: Path) -> None:
    """Of five runs each number is the median, and how far they scatter is the noise."""
    runs = [run(tmp_path / str(n), {"k": [100 + 5 * n] * STEPS}, f"run {n}") for n in (2, 0, 4, 1, 3)]
    before = median_of_runs(runs)
    assert before.title == "median of 5 runs: run 2, run 0, run 4, run 1, run 3"
    assert before.metrics["kernels.time"].value == 110_000 * STEPS
    (row,) = before.tables["kernels"].rows()
    assert row["total_ns"] == 110_000 * STEPS
    for time, verdict in ((125, "within the noise"), (240, "slower"), (10, "faster")):
        result = difference(runs, run(tmp_path / f"now {time}", {"k": [time] * STEPS}))
        change = result.metrics["kernels.time"]
        assert (change.verdict, change.runs) == (verdict, 5)
        assert verdicts(result, "kernels") == {"k": verdict}
    one = difference(runs[:1], run(tmp_path / "same", {"k": [125] * STEPS}))
    assert one.metrics["kernels.time"].verdict == "slower"  # against the steps of one run alone
    with pytest.raises(UsageError):
        median_of_runs([])


def test_two_runs_are_too_few_for_their_own_noise(tmp_path: Path) -> None:
    """With two earlier runs the steps of both together tell the noise."""
    runs = [run(tmp_path / str(n), {"k": [time + n for time in STEADY]}) for n in range(2)]
    result = difference(runs, run(tmp_path / "now", {"k": SLOWER}))
    change = result.metrics["kernels.time"]
    assert change.noise is not None and (change.runs, change.noise.before.count) == (0, 2 * STEPS)
    assert change.verdict == "slower"


def test_shortened_runs_do_not_make_rows_new(tmp_path: Path) -> None:
    """What runs may have left out is not taken for 0, and their sums stay the whole."""
    names = {f"k{n}": [10 * (n + 1)] * STEPS for n in range(4)}
    runs = [run(tmp_path / str(n), names).shortened(2) for n in range(3)]
    result = difference(runs, run(tmp_path / "now", names))
    assert len(result.tables["kernels"]) == 0
    more = difference(runs, run(tmp_path / "more", {**names, "k0": [15] * STEPS}))
    assert [row["presence"] for row in more.tables["kernels"].rows()] == ["both"]


@needs_corpus
def test_a_summary_keeps_the_scatter(tmp_path: Path, corpus_cache: Path) -> None:
    """Compared with a summary read from its file, rows are judged as against the trace itself."""
    folder = CORPUS / "aiu" / "spyre_torch_profiler"
    before, now = (
        summarise(Scope(open_trace(next(folder.glob(f"{name}*")), index_dir=corpus_cache)), name)
        for name in ("jamie_mlp__coordinate-remap", "jamie_mlp__upstream-main")
    )
    path = tmp_path / "baseline.json"
    path.write_text(summary_json(before, 1000))
    expected = {"sdsc_fused_bmm_mul_silu_0": "slower", "sdsc_fused_bmm_1": "within the noise"}
    for side in (before, read_summary(path)):
        assert verdicts(difference([side], now), "kernels") == expected
