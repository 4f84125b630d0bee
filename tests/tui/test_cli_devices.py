"""`tracelane breakdown`, `kernels`, `idle`, `launches`: runs, arguments, traces without device work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.json_tables import command_json
from tests.tui.small_file import small_file
from tracelane.tui.cli.main import EXIT_USAGE, main

COMMANDS = ("breakdown", "kernels", "idle", "launches")


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two kernels of 30.5 µs on one stream, at 1060 and 1160 µs, launched at 1040 and 1140 for 10 µs."""
    return str(small_file(tmp_path))


def test_runs(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The runs of a kernel are listed by time or by length, and the histogram stands below them."""
    rows = command_json(capsys, "kernels", trace, "--runs", ".", "--order", "time")["kernels"]
    assert [(row["start_ns"], row["duration_ns"]) for row in rows] == [(60_000, 30_500), (160_000, 30_500)]
    assert main(["kernels", trace, "--runs", "."]) == 0
    assert "Durations: whole trace" in capsys.readouterr().out
    assert main(["kernels", trace, "--runs", "("]) == EXIT_USAGE


@pytest.mark.parametrize("command", COMMANDS)
def test_no_device_is_no_failure(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace of the host alone has empty tables."""
    path = tmp_path / "host.json"
    path.write_text(json.dumps([{"ph": "X", "name": "op", "cat": "cpu_op", "ts": 1, "dur": 2}]))
    for form in ("text", "json", "csv", "md"):
        assert main([command, str(path), "--format", form]) == 0
    assert "device work here" in capsys.readouterr().out


@pytest.mark.parametrize("options", [("--column", "arg:bytes"), ("--group-by", "arg:bytes"), ("--runs", "x")])
def test_arguments_of_no_kernels(
    options: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments are asked of a trace without device work: the answer is that there is none."""
    path = tmp_path / "host.json"
    path.write_text(json.dumps([{"ph": "X", "name": "op", "cat": "cpu_op", "ts": 1, "dur": 2}]))
    for form in ("json", "csv", "md", "text"):
        assert main(["kernels", str(path), *options, "--format", form]) == 0
    assert "device work here" in capsys.readouterr().out


def test_an_unknown_column_is_told(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A column that is not there is wrong usage, and the answer names those that are."""
    assert main(["kernels", trace, "--sort", "weight"]) == EXIT_USAGE
    assert "total_ns" in capsys.readouterr().err
