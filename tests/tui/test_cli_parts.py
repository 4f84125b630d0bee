"""The options that say which files and which steps a command speaks of, on every command that has a trace."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import file
from tests.events import complete, write_events
from tests.json_tables import command_json
from tracelane.tui.cli.main import main

RELEASES = ("2.1", "2.14")


@pytest.fixture(params=RELEASES)
def gloo(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder of two ranks of gloo, rank1 the second."""
    folder = tmp_path / "gloo"
    folder.mkdir()
    for rank in range(2):
        text = gzip.decompress(file(f"cpu/torch_{request.param}_rank{rank}.pt.trace.json.gz").read_bytes())
        (folder / f"rank{rank}.json").write_bytes(text)
    return folder


MS = 1000


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """Run a command and return what it printed."""
    assert main([str(argument) for argument in arguments]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "command",
    [
        ("slices", "--format", "csv"),
        ("chain", "--name", "all_reduce", "--all", "--json"),
        ("info", "--json"),
        ("summary", "--json"),
    ],
    ids=lambda command: command[0],
)
def test_a_rank_of_a_folder_is_its_file(
    command: tuple[str, ...], gloo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a command says of one rank of a folder is what it says of that rank's file."""
    name, *more = command
    folder = printed(capsys, name, gloo, *more, "--rank", "1", "--index-dir", tmp_path)
    alone = printed(capsys, name, gloo / "rank1.json", *more, "--index-dir", tmp_path)
    assert len(folder) > 900
    # A summary is called what was asked for.
    assert folder.replace(f'"{gloo.name}"', '"rank1.json"') == alone


def test_a_rank_is_cut_and_compared(gloo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A window of one rank is cut of its folder; a comparison takes the rank of both sides."""
    where = ("--from", "step:nth:1", "-o")
    folder, alone = tmp_path / "folder.json", tmp_path / "alone.json"
    printed(capsys, "cut", gloo, "--rank", "1", *where, folder)
    printed(capsys, "cut", gloo / "rank1.json", *where, alone)
    assert folder.read_bytes() == alone.read_bytes()
    assert main(["cut", str(gloo), *where, str(tmp_path / "both.json")]) == 64
    assert "--rank N" in capsys.readouterr().err
    answer = command_json(capsys, "diff", gloo, gloo, "--rank", "0")
    one = {metric["name"]: metric["a"] for metric in answer["metrics"]}
    assert one["step.count"] == 2 and {metric["change"] for metric in answer["metrics"]} <= {0, None}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file whose profiler marked two steps, with three rounds of a loop of one's own in the second."""
    events: list[dict[str, Any]] = [
        complete(0, 10 * MS, "ProfilerStep#0", "user_annotation"),
        complete(10 * MS, 30 * MS, "ProfilerStep#1", "user_annotation"),
        complete(10 * MS, MS, "before"),
    ]
    for number, length in enumerate((4, 6, 5)):
        start = (12 + 8 * number) * MS
        events += [
            complete(start, length * MS, f"round {number}", "user_annotation", tid=2),
            complete(start, length * MS - MS, "aten::mm", tid=2),
            complete(start + MS, MS, "kernel", "kernel", pid=0, tid=7),
        ]
    return write_events(tmp_path / "rounds.json", events)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("slices", "--step", "nth:1", "--where", "aten"), ["aten::mm"]),
        (
            ("slices", "--skip-first", "2", "--where", "cat:user_annotation", "--lanes", "thread 2"),
            ["round 2"],
        ),
        (("slices", "--from", "step:2", "--where", "kernel"), ["kernel"]),
    ],
)
def test_steps_of_a_name_bound_what_is_listed(
    path: Path, arguments: tuple[str, ...], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A step, the steps left out and a typed step are those of the name."""
    name, *more = arguments
    text = printed(capsys, name, path, "--step-name", "round 7", "--format", "csv", *more)
    assert [row["name"] for row in csv.DictReader(io.StringIO(text))] == expected


def _rows(
    capsys: pytest.CaptureFixture[str], command: str, *arguments: str | Path, table: str = ""
) -> list[dict[str, Any]]:
    whole = command_json(capsys, command, *arguments)
    return list(whole[table or command])


def test_steps_of_a_name_cut_every_table(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables by step, comparisons, checks, gaps that recur and reports cut by the steps of the name."""
    named = ("--step-name", "round 0")
    by_step = _rows(capsys, "ops", path, "--by", "step", *named)
    assert [row["step"] for row in by_step if row["name"] == "aten::mm"] == ["0", "1", "2"]
    summary = {row["name"]: row for row in _rows(capsys, "summary", path, *named, table="metrics")}
    wall = summary["step.wall.max"]
    assert wall["value"] == 6_000_000
    answer = command_json(capsys, "diff", f"{path}:step=0", path, *named)
    counts = next(metric for metric in answer["metrics"] if metric["name"] == "step.count")
    assert (counts["a"], counts["b"]) == (1, 3)
    printed(capsys, "check", path, *named, "--max", "step.wall.median=5ms", "--min", "step.count=3")
    gaps = _rows(capsys, "idle", path, "--recurring", *named)
    assert [row["steps"] for row in gaps] == [2]
    said = "Iterations: 3 (round 0: chosen by name, with 2 names that differ in numbers only), median 5 ms"
    assert said in printed(capsys, "report", path, *named)
    assert main(["kernels", str(path), "--step-name", "nothing"]) == 64
    assert "no slice is called nothing" in capsys.readouterr().err
