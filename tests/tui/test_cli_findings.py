"""`tracelane findings`: what it prints as text and JSON, of which part."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.json_tables import command_json, flat
from tests.tui.small_file import small_file
from tracelane.tui.cli.main import EXIT_USAGE, main


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two kernels of 30.5 µs on one stream, at 1060 and 1160 µs, launched at 1040 and 1140 for 10 µs."""
    return str(small_file(tmp_path))


def test_json(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON carries its schema, times since the start, and everything that the text says."""
    answer = command_json(capsys, "findings", trace)
    assert main(["findings", trace, "--format", "json"]) == 0
    assert answer == flat(json.loads(capsys.readouterr().out))
    gaps = next(row for row in answer["findings"] if row["rule"] == "launch-gaps")
    # The second kernel was launched at 140 µs, after the first was done at 90.5; it started at 160.
    assert gaps["claimed_ns"] == 69_500
    assert (gaps["evidence"][0]["start_ns"], gaps["evidence"][0]["end_ns"]) == (90_500, 160_000)
    assert {"rule", "reason"} == set(answer["not_judged"][0])


def test_text(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The text names title, cost, evidence and help of each finding, and what was not judged."""
    assert main(["findings", trace]) == 0
    text = capsys.readouterr().out
    assert "Gaps while the host launches: 69.5 µs" in text
    assert "longest wait: 69.5 µs at +90.5 µs" in text
    assert "helps: Launch ahead" in text and "not checked, as " in text
    assert main(["findings", trace, "--limit", "1"]) == 0
    assert "\n2. " not in capsys.readouterr().out


def test_range(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A range is what is judged; a wrong one is told in a line."""
    answer = command_json(capsys, "findings", trace, "--from", "+60us", "--to", "+90us")
    assert "launch-gaps" not in [row["rule"] for row in answer["findings"]]
    assert main(["findings", trace, "--from", "nonsense"]) == EXIT_USAGE
    assert main(["findings", trace, "--lanes", "Stream"]) == EXIT_USAGE
