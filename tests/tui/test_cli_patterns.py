"""The patterns of a reading guide, each on a trace that has it and on one that nearly has it; baselines."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any

import pytest

import tracelane
from tests.corpus import CORPUS, for_files
from tests.events import Event, complete, write_events
from tests.json_tables import command_json
from tracelane.tui.cli.main import main

CASES = CORPUS.parent / "cases" / "cheat"
NAMED: Mapping[str, tuple[Mapping[str, tuple[int, int] | None], AbstractSet[str]]] = {
    # A file of cases/cheat: the rules it must have with the number of steps (None: any), those it must not.
    "P_overhead": ({"overhead-bound": (6, 6)}, {"device-bound"}),
    "P_compute": ({"device-bound": (8, 8)}, {"overhead-bound", "device-idle"}),
    "P_hotspot": ({"device-hotspot": (6, 6)}, set()),
    "N_hotspot": ({}, {"device-hotspot", "host-hotspot"}),
    "P_dtod": ({"hidden-copies": (6, 6)}, set()),
    "N_dtod": ({}, {"hidden-copies"}),
    "P_bufreq": ({"profiler": None, "device-idle": None, "first-kernel": (1, 3)}, {"device-clock"}),
    "P_gap_once": ({"step-gap": (1, 8), "sync": (1, 8)}, {"device-bound"}),
    "P_uneven3": ({"uneven-kernel": (1, 3)}, set()),
    "N_uneven20": ({}, {"uneven-kernel"}),
    "P_bmm": ({"fused-ops": (6, 6)}, set()),
    "N_bmm": ({}, {"fused-ops"}),
    "P_graphbreak_compiledfunction_only": ({"graph-breaks": (4, 4)}, {"device-hotspot"}),
    "P_endsync": ({"sync": (0, 3), "overhead-bound": (3, 3)}, set()),
    "N_endsync": ({}, {"sync"}),
    "P_coldstart": ({"cold-start": (1, 3)}, set()),
    "N_coldstart": ({}, {"cold-start", "late-first-op"}),
    "G_guide64_cold": (
        {
            "cold-start": (1, 3),
            "first-kernel": (1, 3),
            "occupancy-query": (3, 3),
            "profiler": None,
            "late-first-op": (1, 3),
        },
        {"device-clock", "device-bound"},
    ),
    "G_guide64_cold_nobuf": (
        {"overhead-bound": (3, 3), "cold-start": (1, 3), "first-kernel": (1, 3), "occupancy-query": (3, 3)},
        {"device-clock", "device-bound", "profiler"},
    ),
}


def _steps(name: str, us: float) -> list[Event]:
    """Return five steps of one operator that takes so long."""
    events = []
    for number in range(5):
        at = number * 2000.0
        events.append(complete(at, us + 20, f"ProfilerStep#{number}", "user_annotation"))
        events.append(complete(at + 5, us, name))
    return events


COMPILED, EAGER = _steps("CompiledFunction", 300), _steps("aten::mm", 50)


def _findings(path: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict[str, Any]]:
    answer = command_json(capsys, "findings", path, "--index-dir", path.parent / "index", *more)
    return {row["rule"]: row for row in answer["findings"]}


@pytest.mark.slow
@for_files("name", NAMED)
def test_files_of_the_guide(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that has a pattern names it in as many steps as it is in; one that nearly has it does not."""
    (tmp_path / "trace.json").write_bytes((CASES / f"{name}.json").read_bytes())
    rows = _findings(tmp_path / "trace.json", capsys)
    present, absent = NAMED[name]
    for rule, steps in present.items():
        assert rule in rows, (rule, sorted(rows))
        assert rows[rule]["evidence"]
        if steps is not None:
            assert (rows[rule]["in_steps"], rows[rule]["of_steps"]) == steps, rule
    assert not absent & set(rows)
    assert name != "P_gap_once" or "In step 5 " in rows["step-gap"]["finding"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["trace", "summary", "part"])
def test_compiled_slower_than_another_trace(
    form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against an eager run compiled steps that take longer are named, whichever is the baseline."""
    compiled = write_events(tmp_path / "compiled.json", COMPILED)
    eager = write_events(tmp_path / "eager.json", EAGER)
    slower = write_events(tmp_path / "slower.json", _steps("aten::mm", 800))
    baseline = str(eager)
    if form == "summary":
        assert main(["summary", str(eager), "--json", "--index-dir", str(tmp_path / "index")]) == 0
        baseline = str(tmp_path / "baseline.json")
        Path(baseline).write_text(capsys.readouterr().out, encoding="utf-8")
    elif form == "part":
        baseline = f"{eager}:step=2"
    rows = _findings(compiled, capsys, "--baseline", baseline)
    assert (rows["compiled-slower"]["in_steps"], rows["compiled-slower"]["of_steps"]) == (5, 5)
    assert "compiled-slower" not in _findings(compiled, capsys, "--baseline", str(slower))
    assert "compiled-slower" in _findings(eager, capsys, "--baseline", str(compiled))
    assert "compiled-slower" not in _findings(compiled, capsys)


def test_baseline_in_python(tmp_path: Path) -> None:
    """From Python the baseline is another opened trace."""
    compiled = tracelane.open(str(write_events(tmp_path / "compiled.json", COMPILED)))
    eager = tracelane.open(str(write_events(tmp_path / "eager.json", EAGER)))
    assert "compiled-slower" in list(compiled.findings(baseline=eager)["rule"])
    assert "compiled-slower" not in list(compiled.findings()["rule"])


def test_baseline_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A baseline that cannot be read is a line of error."""
    trace = write_events(tmp_path / "trace.json", EAGER)
    assert main(["findings", str(trace), "--baseline", str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
