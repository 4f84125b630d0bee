"""`tracelane steps` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.json_tables import flat
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file


@pytest.mark.slow
def test_the_command_prints_every_format(tmp_path: Path) -> None:
    """The choice and its reason are told; JSON has rows and groups; another name can be chosen."""
    path, more = str(small_file(tmp_path)), ("--index-dir", str(tmp_path / "cache"))
    table = tracelane_here("steps", path, *more).stdout
    assert "steps are ProfilerStep#N: the profiler marked them" in table and "first step" in table
    answer = flat(json.loads(tracelane_here("steps", path, "--format", "json", *more).stdout))
    assert [(row["step"], row["wall_ns"], row["device_busy_ns"]) for row in answer["steps"]] == [
        ("0", 100_000, 30_500),
        ("1", 100_000, 30_500),
    ]
    assert answer["groups"][0]["count"] == 2 and answer["choice"] == "ProfilerStep#N"
    linear = tracelane_here("steps", path, "--step-name", "aten::linear", "--format", "json", *more).stdout
    other = flat(json.loads(linear))
    assert [row["wall_ns"] for row in other["steps"]] == [60_000, 60_000]
    assert tracelane_here("steps", path, "--format", "csv", *more).stdout.startswith("step,group,start_ns")
    assert tracelane_here("steps", path, "--groups", "--format", "md", *more).stdout.startswith(
        "**Steps by group**"
    )
