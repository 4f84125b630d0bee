"""`tracelane range`: steps and lanes that are chosen, wrong uses."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tracelane.tui.cli.main import EXIT_USAGE, main


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


@pytest.mark.parametrize(
    "wrong", [["--sort", "nothing"], ["--lanes", "nosuchlane"], ["--lanes", "("], ["--from", "12"]]
)
def test_wrong_use_is_told(
    wrong: list[str], demo: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column, lane or time that is not there ends with one line and the code for wrong use."""
    assert main(["range", str(demo), "--index-dir", cache, *wrong]) == EXIT_USAGE
    assert capsys.readouterr().err.count("\n") == 1
