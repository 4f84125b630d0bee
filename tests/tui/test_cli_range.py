"""`tracelane range`: the same numbers as the file, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.json_tables import command_json
from tracelane.tui.cli.main import EXIT_USAGE, main


def test_whole_trace_counts_every_slice(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON's counts add up to the slices of the file but for whole-window spans, sorted as asked for."""
    got = command_json(capsys, "range", demo, "--sort", "count", "--index-dir", cache)
    events = json.loads(demo.read_bytes())["traceEvents"]
    kinds = [event["cat"] for event in events if event["ph"] == "X"]
    assert sum(row["count"] for row in got["range"]) == len(kinds) - kinds.count("Trace") < len(kinds)
    counts = [row["count"] for row in got["range"]]
    assert counts == sorted(counts, reverse=True)
    assert got["scope"] == "whole trace"


def test_a_step_and_lanes(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A step alone means all of it; lanes are chosen by title; the table says what it speaks of."""
    arguments = ["range", str(demo), "--from", "step:nth:2", "--index-dir", cache]
    assert main([*arguments, "--by", "lane", "--format", "csv"]) == 0
    every = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert every and all(0 <= float(row["share"]) <= 1 for row in every)
    assert main([*arguments, "--lanes", "stream", "--limit", "2"]) == 0
    text = capsys.readouterr().out
    assert "range +" in text and " lanes" in text.splitlines()[0]
    assert max(map(len, text.splitlines())) <= 160


def test_what_matches_only(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--where counts what matches, --step one step."""
    arguments = ("range", demo, "--index-dir", cache, "--where", "cat:kernel")
    every = command_json(capsys, *arguments)
    assert {row["category"] for row in every["range"]} == {"kernel"} and "filtered" in every["scope"]
    step = command_json(capsys, *arguments, "--step", "4")
    assert 0 < step["slices"] < every["slices"]


@pytest.mark.parametrize(
    "wrong", [["--sort", "nothing"], ["--lanes", "nosuchlane"], ["--lanes", "("], ["--from", "12"]]
)
def test_wrong_use_is_told(
    wrong: list[str], demo: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column, lane or time that is not there ends with one line and the code for wrong use."""
    assert main(["range", str(demo), "--index-dir", cache, *wrong]) == EXIT_USAGE
    assert capsys.readouterr().err.count("\n") == 1
