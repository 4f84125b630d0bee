"""What changed from one run to another: on the first screen, in tables, on the ruler, and what is noise."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.findings_traces import launched, step
from tests.events import Event, metadata, write_events
from tests.tui.driver import open_viewer, screen_text, wait_until_idle
from tracelane.core.base.arrays import merge
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.tables.compare.compare import BOTH, GONE, NEW, VERDICT, WITHIN
from tracelane.core.tables.compare.run_changes import RowChange
from tracelane.core.tables.compare.run_pair import RunPair
from tracelane.core.tables.explain.pair_answers import PairAnswers, paired_runs
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.draw.run_marks import LonelyWork
from tracelane.tui.session import Viewport

STEPS, EACH = 8, 1000
KERNELS = {  # µs in a step of the earlier run and of the later one, and by how much it scatters
    "gemm": (300, 360, 4),
    "norm": (80, 82, 9),
    "gone_kernel": (40, 0, 2),
    "new_kernel": (0, 60, 2),
}
AT = {"gemm": 50, "norm": 450, "gone_kernel": 600, "new_kernel": 700}
"""Where in its step each kernel begins, µs."""


def lengths(name: str, run: int, number: int) -> int:
    """Return how long a kernel runs in a step of a run, 0 for not at all."""
    usual, scatter = KERNELS[name][run], KERNELS[name][2]
    return usual + scatter * ((number * 5 + run) % 3 - 1) if usual else 0


def write_run(folder: Path, run: int) -> Path:
    events: list[Event] = [metadata("process_labels", 0, labels="GPU 0")]
    for number in range(STEPS):
        begin = EACH * number
        events.append(step(number, begin, EACH - 1))
        for name, at in AT.items():
            if took := lengths(name, run, number):
                events += launched(begin + at - 20, 5, begin + at, took, name)
    folder.mkdir(parents=True)
    return write_events(folder / "rank0.pt.trace.json", events)


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("runs")
    return [write_run(folder / f"run_2026-11-0{run + 1}", run) for run in (0, 1)]


@pytest.fixture(scope="module")
def pair(paths: list[Path]) -> RunPair:
    return paired_runs(*(open_trace(path, index_dir=path.parent / "index") for path in paths))


@pytest.mark.parametrize(
    ("deltas", "chief"),
    [
        ({"gemm": 480, "old_norm": -622, "rms_norm": 630}, "gemm"),  # one took the other's place
        ({"gemm": 480, "rms_norm": 630}, "rms_norm"),
        ({"gemm": 480, "old_norm": -622}, "old_norm"),
        ({"gemm": 4, "old_norm": -622, "rms_norm": 630}, "rms_norm"),
        ({"old_norm": -622, "rms_norm": 622}, "old_norm"),
        ({}, None),
    ],
)
def test_what_took_a_place_is_not_the_chief_change(
    pair: RunPair, deltas: dict[str, int], chief: str | None
) -> None:
    """A new kernel and one that is gone count by what they change together."""
    assert isinstance(pair.answers, PairAnswers)
    presence = {"old_norm": GONE, "rms_norm": NEW}
    rows = tuple(
        RowChange(
            table="kernels",
            name=name,
            before_ns=1000,
            now_ns=1000 + delta,
            presence=presence.get(name, BOTH),
            verdict="slower" if delta > 0 else "faster",
            longest=None,
        )
        for name, delta in deltas.items()
    )
    row = replace(pair.answers.changes(), rows={"kernels": rows}).chief
    assert (row.name if row else None) == chief


def test_what_changed_and_what_is_noise(pair: RunPair) -> None:
    """Rows are of a step, the most changed first and noise last; the chief is beyond the noise; what one run
    lacks ran when the other's events say.
    """
    assert isinstance(pair.answers, PairAnswers)
    changes = pair.answers.changes()
    assert changes.per_step and changes is pair.answers.changes()
    rows = {row.name: row for row in changes.rows["kernels"]}
    assert [row.name for row in changes.rows["kernels"]][-1] == "norm" and rows["norm"].is_noise
    assert {name: row.verdict for name, row in rows.items() if name != "norm"} == {
        "gemm": "slower",
        "new_kernel": "slower",
        "gone_kernel": "faster",
    }
    assert {name: row.presence for name, row in rows.items()} == {
        "gemm": "both",
        "norm": "both",
        "new_kernel": "new",
        "gone_kernel": "gone",
    }
    for name, row in rows.items():
        mean = [sum(lengths(name, run, number) for number in range(STEPS)) / STEPS for run in (0, 1)]
        assert row.delta_ns == pytest.approx(1000 * (mean[1] - mean[0]), abs=1)
    chief = changes.chief
    assert chief is not None and chief.name == "gemm"  # the new one took the place of the one that is gone
    for name, run, when in (("gone_kernel", 0, changes.gone), ("new_kernel", 1, changes.new)):
        begins = [1000 * (EACH * number + AT[name]) for number in range(STEPS)]
        assert (when.starts - when.starts[0]).tolist() == [begin - begins[0] for begin in begins]
        took = [1000 * lengths(name, run, number) for number in range(STEPS)]
        assert (when.ends - when.starts).tolist() == took


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=6),
    st.lists(st.tuples(st.integers(0, 200), st.integers(1, 30)), max_size=6),
    st.integers(0, 150),
    st.integers(1, 60),
    st.integers(-20, 20),
)
def test_each_cell_is_marked_as_what_lies_in_it(
    new: list[tuple[int, int]], gone: list[tuple[int, int]], start: int, width: int, move: int
) -> None:
    """A cell has + where a kernel lies that only the later run has, moved as it is; - where one of the
    earlier run alone lies, ± for both, nothing for neither.
    """
    work = [
        merge(np.array([at for at, _ in one]), np.array([at + length for at, length in one]))
        for one in (new, gone)
    ]
    view = Viewport(start, 2 * width, width)
    edges = view.edges()

    def touches(spans: list[tuple[int, int]], cell: int, by: int) -> bool:
        return any(at + by < edges[cell + 1] and at + length + by > edges[cell] for at, length in spans)

    expected = ["", "+", "-", "±"]
    assert LonelyWork(work[0], work[1], move).characters(view) == [
        expected[touches(new, cell, move) + 2 * touches(gone, cell, 0)] for cell in range(width)
    ]


def test_tables_say_what_is_noise(pair: RunPair) -> None:
    """Kernels over all and in a step, and steps, each have a verdict beside the change; a range has none."""
    a, b = pair.common_steps().a[2].tolist()
    for range_, expected in ((None, WITHIN), ((a, b), WITHIN)):
        table = BY_NAME["kernels"].run(Scope(pair, range_, clocks=pair.clocks))["kernels"]
        keys = [column.key for column in table.columns]
        assert keys.index(VERDICT.key) == keys.index("total_ns_delta") + 1
        verdicts = dict(zip(table.texts("name"), table.texts(VERDICT.key)))
        assert verdicts["norm"] == expected
        assert {name: verdicts[name] for name in ("gemm", "new_kernel")} == {
            "gemm": "slower",
            "new_kernel": "slower",
        }
    steps = BY_NAME["steps"].run(Scope(pair, clocks=pair.clocks))["steps"]
    assert set(steps.texts(VERDICT.key)) <= {WITHIN, "slower", "faster"} and len(steps) == STEPS
    part = BY_NAME["kernels"].run(Scope(pair, (a, a + 500_000), clocks=pair.clocks))["kernels"]
    assert VERDICT.key not in part.data


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_first_screen_says_what_changed(pair: RunPair, size: tuple[int, int]) -> None:
    """Each side is called by what differs in its path, in header, lanes and panels; the kernel that changed
    most stands there with its figure, the ruler marks what one run lacks, and noise is called so.
    """
    async with open_viewer(with_cheap_lanes(pair), size) as (app, pilot):
        text = screen_text(app)
        lines = text.splitlines()
        assert "A 2026-11-01 · B 2026-11-02" in lines[0]
        assert "▸ A 2026-11-01" in text and "▸ B 2026-11-02" in text
        assert "no change in 8 steps; gemm +59.5 µs a step" in lines[2]
        assert re.search(r"\+59.5 µs +\+20% .*gemm  slower", text)
        ruler = next(line for line in lines if "▼ " in line)
        assert "+" in ruler[26:] or "-" in ruler[26:] or "±" in ruler[26:]
        if size == (120, 40):
            assert "new_kernel  new" in text and "gone_kernel  gone" in text and "norm  noise" in text
            app.run_command("panel-kernels")
            await wait_until_idle(app, pilot)
            text = screen_text(app)
            assert "2026-11-02 against 2026-11-01" in text
            assert re.search(r"norm.* ≈", text) and re.search(r"gemm.* ▲", text)


def test_diff_and_prints_name_the_sides(paths: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Texts, JSON, the tree and a printed picture call the sides by what differs in their paths."""
    a, b = map(str, paths)
    assert main(["diff", a, b]) == 0
    out = capsys.readouterr().out
    assert "A  2026-11-01: " in out and "B  2026-11-02: " in out
    assert "A 2026-11-01" in out and "Kernels: 2026-11-02 against 2026-11-01" in out
    assert main(["diff", a, b, "--tree"]) == 0
    assert capsys.readouterr().out.startswith("2026-11-02: ")
    assert main(["view", a, "--against", b, "--width", "100", "--height", "30"]) == 0
    out = capsys.readouterr().out
    assert "▸ A 2026-11-01" in out and "▸ B 2026-11-02" in out
    assert "no change in 8 steps; gemm +59.5 µs a step" in out
