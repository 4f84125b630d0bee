"""The benchmark: one command that measures what it says, and tells it as tables."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.forms import FORMS
from benchmarks.readers import PROGRAMS
from benchmarks.shapes import SHAPES
from tests.corpus import LATER, ROOT
from tests.waiting import PATIENCE_S

pytestmark = [*LATER]

RUN = ROOT / "benchmarks" / "run.py"
MACHINE = {
    "date": "1 May 2026",
    "processor": "p",
    "architecture": "a",
    "cores": 2,
    "memory_bytes": 1e9,
    "system": "s",
    "python": "3",
    "load_before": 0.1,
    "versions": {"numpy": "2"},
}


def run(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(RUN), *arguments],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_indexing_is_measured(tmp_path: Path) -> None:
    """A made trace is indexed, in each form and of each shape; the same JSON gives the same tables again."""
    saved = tmp_path / "bench.json"
    options = ("--only", "indexing", "forms", "shapes", "--size", "2e6", "--workers", "1", "--rounds", "3")
    printed = run(*options, "--json", str(saved))
    result = json.loads(saved.read_text(encoding="utf-8"))
    (facts,) = result["indexing"]
    assert abs(facts["text_bytes"] - 2e6) < 1e6
    assert facts["slices"] > 2000 and 0 < facts["index_bytes_per_slice"] < 200
    assert facts["workers"]["1"]["mb_per_s"] > 0
    if sys.platform == "linux":
        assert facts["workers"]["1"]["peak_private_bytes"] > 0
    runs = facts["workers"]["1"]["seconds_of_all"]
    assert len(runs) == 3 and facts["workers"]["1"]["seconds"] == runs[1] and runs == sorted(runs)
    assert [each["form"] for each in result["forms"]] == list(FORMS)
    assert all(each["mb_per_s"] > 0 for each in result["forms"])
    assert [each["shape"] for each in result["shapes"]] == list(SHAPES)
    assert all(each["cpu_s"] > 0 for each in result["shapes"])
    for line in ("| index, 1 process |", "| 10,000 ids, ", "bytes per slice"):
        assert line in printed
    assert run("--from", str(saved)) == printed


def test_readers_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reader runs once a round, the median counts; those that take minutes run once, and what is not
    installed is left out with the reason.
    """
    monkeypatch.delenv("TRACELANE_PERFETTO", raising=False)
    saved = tmp_path / "bench.json"
    printed = run("--only", "readers", "--size", "2e6", "--rounds", "3", "--json", str(saved))
    rows = json.loads(saved.read_text(encoding="utf-8"))["readers"]
    assert [each["name"] for each in rows][: len(FORMS)] == [f"tracelane, {form}" for form in FORMS]
    once = {f"{program.name}, a tenth of it scaled" for program in PROGRAMS}
    for each in (row for row in rows if "seconds" in row):
        runs = each["seconds_of_all"]
        assert len(runs) == (1 if each["name"] in once else 3) and each["seconds"] == runs[len(runs) // 2]
        assert each["version"] and (each["memory_bytes"] > 0 or sys.platform != "linux")
    left_out = {each["name"]: each["not_run"] for each in rows if "not_run" in each}
    assert "TRACELANE_PERFETTO names no script" in left_out.pop("Perfetto's engine, as its page runs it")
    assert all(name.startswith(("HolisticTraceAnalysis", "TraceLens")) for name in left_out)
    assert all(f"| {name} | left out: not installed |" in printed for name in left_out)
    assert run("--from", str(saved)) == printed


def test_opening_is_measured(tmp_path: Path) -> None:
    """How long it takes to the first lanes is told of a trace with an index."""
    saved = tmp_path / "bench.json"
    printed = run("--only", "reopening", "--reopen", "1e6", "--json", str(saved))
    (facts,) = json.loads(saved.read_text(encoding="utf-8"))["reopening"]
    assert facts["to_picture"]["median_ms"] > 0 and facts["reopened"]["median_ms"] > 0
    assert facts["processor_time"]["median_ms"] > 0 and facts["leaving"]["median_ms"] > 0
    for picture in (facts["reopened"], facts["drawn"]):
        assert picture["processor_ms"] > 0 and picture["times_numpy"] > 0
    for what in ("imports to picture", "command to picture as left", "command to picture drawn anew"):
        assert f"| {what}, {report.mb(facts['bytes'])} |" in printed
    assert run("--from", str(saved)) == printed


def test_many_files_and_panels_are_measured(tmp_path: Path) -> None:
    """A trace five times as large is indexed and removed; the viewer opens ranks and shows each panel; a
    question is asked twice.
    """
    saved, folder = tmp_path / "bench.json", tmp_path / "made"
    options = (
        "--size",
        "2e6",
        "--rounds",
        "1",
        "--ranks",
        "10",
        "--folder",
        str(folder),
        "--json",
        str(saved),
    )
    printed = run("--only", "large", "ranks", "findings", "panels", *options)
    result = json.loads(saved.read_text(encoding="utf-8"))
    large = result["large"]
    assert 4 < large["bytes"] / large["small_bytes"] < 6 and large["cpu_ms_per_mb"] > 0
    assert not [path for path in folder.iterdir() if "large" in path.name or "ranks" in path.name]
    ranks = result["ranks"]
    assert ranks["ranks"] == 10 and ranks["bytes"] > 8e6
    assert 0 < ranks["drawn"]["cpu_s"] <= ranks["known"]["cpu_s"]
    assert ranks["drawn"]["seconds"] <= ranks["known"]["seconds"] and ranks["index"]["cpu_s"] > 0
    assert all(result["findings"][turn]["cpu_s"] > 0 for turn in ("first", "again"))
    costs = {each["title"]: each for each in result["panels"]["panels"]}
    assert {"Findings", "Top down", "Kernel", "Steps", "Longest gap"} <= costs.keys()
    for each in (one for one in costs.values() if one.get("rows")):
        assert 0 < each["first_cpu_s"] <= each["cpu_s"]
    for line in ("processor time a MB", "viewer without an index, until all is known", "`5` Steps"):
        assert f"| {line} |" in printed
    assert run("--from", str(saved)) == printed


def test_the_document_takes_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands between the markers is replaced, and nothing else."""
    document = tmp_path / "performance.md"
    document.write_text(f"before\n{report.BEGIN}old\n{report.END}\nafter\n", encoding="utf-8")
    monkeypatch.setattr(report, "DOCUMENT", document)
    report.into_document("new\n")
    assert (
        document.read_text(encoding="utf-8")
        == f"before\n{report.BEGIN}{report.HEADING}new\n\n{report.END}\nafter\n"
    )


def test_what_was_not_measured_has_no_table() -> None:
    """A part that was left out gives no empty table, a program that is not there says so."""
    assert report.markdown({"machine": MACHINE}).count("|---|") == 0
    run = {"seconds": 2.0, "cpu_s": 3.0, "mb_per_s": 50.0, "peak_private_bytes": 30e6}
    facts = {"trace": "t", "text_bytes": 100e6, "events": 9, "slices": 5, "workers": {"2": run}}
    facts |= {"index_bytes_per_slice": 50.0, "apart_bytes_per_slice": 1.0}
    read = {"version": "1", "memory_bytes": 30e6, "lacks": "", "better": ""}
    rows = [
        {"name": name, "seconds": seconds, "seconds_of_all": [seconds], **read}
        for name, seconds in (("first", 2.0), ("slow", 9.0))
    ]
    rows.append({"name": "gone", "not_run": "not installed"})
    printed = report.markdown({"machine": MACHINE, "indexing": [facts], "readers": rows})
    assert "| gone | not installed |" in printed and "| 9.0 (one run) | 4.50 |" in printed
