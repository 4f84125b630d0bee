"""`tracelane slices` lists what a filter matches."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.events import begin, complete
from tests.json_tables import command_json
from tracelane.tui.cli.main import main

EVENTS = [
    complete(30, 5, "late", "kernel", pid="GPU 0", tid=7),
    complete(0, 100, "outer"),
    complete(10.5, 5, "inner", args={"Ev Idx": 4}),
    complete(50, 2, "last"),
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"traceEvents": EVENTS}))
    return str(file)


def test_json_and_csv_hold_exact_values(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both list the same slices in order of time, with ids and times as in the file."""
    rows = command_json(capsys, "slices", path)["slices"]
    assert [row["name"] for row in rows] == ["outer", "inner", "late", "last"]
    assert rows[1] == {
        "name": "inner",
        "category": "cpu_op",
        "pid": 1,
        "tid": 1,
        "start_ns": 10_500,
        "duration_ns": 5000,
        "self_ns": 5000,
        "ordinal": 2,
        "lane": "thread 1",
        "unclosed": 0,
    }
    assert (rows[2]["pid"], rows[0]["self_ns"]) == ("GPU 0", 93_000)
    assert main(["slices", path, "--format", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert table == [{key: str(value) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--where", "cat:kernel"], ["late"]),
        (["--where", "arg.'Ev Idx'=4"], ["inner"]),
        (["--where", "none such"], []),
        (["--from", "+14us", "--to", "+40us"], ["outer", "inner", "late"]),
        (["--where", "-outer", "--limit", "1"], ["inner"]),
    ],
)
def test_filter_range_and_limit(
    path: str, options: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A filter, a stretch of time and a limit leave what they say."""
    assert [row["name"] for row in command_json(capsys, "slices", path, *options)["slices"]] == names


def test_a_table_says_how_many_there_are(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table ends with the count, and with how many it left out."""
    assert main(["slices", path, "--limit", "3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert (
        len(out) == 6 and out[2].startswith("outer") and out[-1] == "4 slices, 1 of them not listed (--limit)"
    )


def test_unclosed_slices_are_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A begin without an end is marked in JSON and CSV: its time is not known."""
    path = tmp_path / "open.json"
    path.write_text(json.dumps([begin(0, "left open"), complete(1, 2, "done")]))
    assert main(["slices", str(path), "--format", "csv", "--index-dir", str(tmp_path / "i")]) == 0
    rows = {row["name"]: row["unclosed"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows == {"left open": "1", "done": "0"}
    slices = command_json(capsys, "slices", path, "--index-dir", str(tmp_path / "i"))["slices"]
    assert {row["name"]: row["unclosed"] for row in slices} == {"left open": 1, "done": 0}
