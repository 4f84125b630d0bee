"""`tracelane range`: the same numbers as the file, in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from tests.json_tables import flat
from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.main import EXIT_USAGE, main


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rank of the demo."""
    return write_demo(tmp_path_factory.mktemp("demo"))[0]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """One index folder for this file's tests."""
    return str(tmp_path_factory.mktemp("indexes"))


def test_whole_trace_counts_every_slice(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The JSON's counts add up to the slices of the file but for whole-window spans, sorted as asked for."""
    assert main(["range", str(demo), "--format", "json", "--sort", "count", "--index-dir", cache]) == 0
    got = flat(json.loads(capsys.readouterr().out))
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
    arguments = ["range", str(demo), "--format", "json", "--index-dir", cache]
    assert main([*arguments, "--where", "cat:kernel"]) == 0
    every = flat(json.loads(capsys.readouterr().out))
    assert {row["category"] for row in every["range"]} == {"kernel"} and "filtered" in every["scope"]
    assert main([*arguments, "--where", "cat:kernel", "--step", "11"]) == 0
    step = flat(json.loads(capsys.readouterr().out))
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
