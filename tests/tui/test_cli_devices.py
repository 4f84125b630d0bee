"""`tracelane breakdown`, `kernels`, `idle`, `launches`: what they print, in which forms, for which part."""

from __future__ import annotations

import csv
import io
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


def test_breakdown(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Busy and idle time are those of the two kernels and the gap between them."""
    answer = command_json(capsys, "breakdown", trace)
    (device,) = answer["devices"]
    assert (device["rank"], device["device"], device["label"]) == (0, 0, "AIU 0")
    assert (device["kernel_time_ns"], device["busy_ns"], device["idle_ns"]) == (130_500, 61_000, 69_500)
    assert (device["compute_ns"], device["non_compute_ns"], device["comm_ns"]) == (61_000, 0, 0)
    assert device["comm_compute_overlap_share"] is None
    assert [stream["stream"] for stream in answer["streams"]] == ["1"]


def test_kernels(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each name has a row, all of them are one type; a limit and an order are kept."""
    rows = command_json(capsys, "kernels", trace)["kernels"]
    assert [(row["count"], row["total_ns"], row["share"]) for row in rows] == [(1, 30_500, 0.5)] * 2
    (row,) = command_json(capsys, "kernels", trace, "--by", "type")["kernels"]
    assert (row["name"], row["count"], row["stdev_ns"]) == ("compute", 2, 0.0)
    names = [row["name"] for row in rows]
    (first,) = command_json(capsys, "kernels", trace, "--sort", "-name", "--limit", "1")["kernels"]
    assert first["name"] == min(names)


def test_runs(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The runs of a kernel are listed by time or by length, and the histogram stands below them."""
    rows = command_json(capsys, "kernels", trace, "--runs", ".", "--order", "time")["kernels"]
    assert [(row["start_ns"], row["duration_ns"]) for row in rows] == [(60_000, 30_500), (160_000, 30_500)]
    assert main(["kernels", trace, "--runs", "."]) == 0
    assert "Durations: whole trace" in capsys.readouterr().out
    assert main(["kernels", trace, "--runs", "("]) == EXIT_USAGE


def test_idle(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The one gap is the host's: the launch began 49.5 µs into it."""
    answer = command_json(capsys, "idle", trace)
    (stream,) = answer["streams"]
    assert (stream["idle_ns"], stream["host_wait_ns"], stream["host_wait_gaps"]) == (69_500, 69_500, 1)
    (gap,) = answer["gaps"]
    assert (gap["gap_ns"], gap["class"], gap["launch"]) == (69_500, "host_wait", "launch")
    assert (gap["launch_after_ns"], gap["start_ns"]) == (49_500, 90_500)
    assert gap["host"].startswith("aten::linear")


def test_recurring_gaps(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The gaps can be grouped by what lies around them; a trace without any has none."""
    (row,) = command_json(capsys, "idle", trace, "--recurring")["idle"]
    assert (row["before"], row["gaps"], row["idle_ns"], row["share"]) == ("(no name)", 1, 69_500, 1.0)
    assert command_json(capsys, "idle", trace, "--recurring", "--step", "1")["idle"] == []


def test_launches(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both launches took 10 µs, and their kernels waited 10 µs more; one stood in the queue at most."""
    answer = command_json(capsys, "launches", trace)
    assert (answer["count"], answer["without_launch"]) == (2, 0)
    totals = {row["of"]: row["total_ns"] for row in answer["statistics"]}
    assert (totals["call"], totals["delay"]) == (20_000, 20_000)
    (queue,) = answer["queues"]
    assert (queue["count"], queue["max"], queue["mean"]) == (4, 1, 0.5)


def test_a_step_counts_what_lies_in_it(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A step or a range holds the device work inside, cut at the edges, and the scope line says so."""
    answer = command_json(capsys, "breakdown", trace, "--step", "1")
    assert answer["devices"][0]["busy_ns"] == 30_500
    assert "step 1" in answer["scope"]
    answer = command_json(capsys, "breakdown", trace, "--from", "+70us", "--to", "+170us")
    assert answer["devices"][0]["busy_ns"] == 20_500 + 10_000


@pytest.mark.parametrize("command", COMMANDS)
def test_every_form(command: str, trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables and Markdown name the scope, CSV has one header and rows of its width."""
    for form in ("text", "md"):
        assert main([command, trace, "--format", form]) == 0
        out = capsys.readouterr().out
        assert "whole trace" in out and "\x1b" not in out
    assert main([command, trace, "--format", "csv"]) == 0
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) > 1 and len({len(row) for row in rows}) == 1


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
