"""`view --text`: the verdict and what takes most time as plain lines in reading order."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.findings_traces import DEVICE, launched, op
from tests.core.test_device_state import open_ranks
from tests.events import metadata, write_events
from tests.tui.cli_process import on_terminal
from tracelane.tui.cli.main import main
from tracelane.tui.draw.glyphs import UNICODE

DRAWN = set(UNICODE.bars[1:] + UNICODE.shades[1:] + UNICODE.lefts[1:] + "│┊╵[]─")


@pytest.fixture
def late(tmp_path: Path) -> str:
    """A device that waits 500 of 600 µs for its next launch."""
    label = metadata("process_labels", DEVICE, labels="GPU 0")
    events = [label, op(0, 600, "aten::slow"), *launched(0, 5, 10, 50), *launched(560, 5, 570, 50)]
    return str(write_events(tmp_path / "late.json", events))


def lines_of(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_reading_order(late: str, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """How long, what devices did, what costs time, which kernels: in this order, and nothing is drawn."""
    assert main(["view", late, "--text", "--index-dir", cache]) == 0
    lines = lines_of(capsys)
    starts = ["1 file, ", "GPU 0, of ", "1. ", "Device work, most time first:", "k: 100 µs, 100.0 %"]
    at = [next(n for n, line in enumerate(lines) if line.startswith(start)) for start in starts]
    assert at == sorted(at)
    assert "idle: host late" in lines[at[1]]
    assert not DRAWN.intersection("".join(lines[: at[-1]]))


def test_ranks_that_wait(tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of several ranks it says which one comes last, and how long the others wait."""
    open_ranks(tmp_path, 2, 2)
    paths = [str(tmp_path / f"rank{rank}.json") for rank in range(2)]
    assert main(["view", *paths, "--text", "--index-dir", cache]) == 0
    said = [line for line in lines_of(capsys) if line.startswith("rank ")]
    assert len(said) == 2 and sum("last in" in line for line in said) == 1


def test_without_devices(tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without devices the operators stand there that take most time of their own."""
    write_events(tmp_path / "host.json", [op(0, 60, "aten::long"), op(70, 20, "aten::short")])
    assert main(["view", str(tmp_path / "host.json"), "--text", "--index-dir", cache]) == 0
    lines = lines_of(capsys)
    assert lines.index("aten::long: 60 µs, 75.0 %, 1 call") < lines.index(
        "aten::short: 20 µs, 25.0 %, 1 call"
    )


@pytest.mark.parametrize("options", [["--from", "0"], ["--search", "mm"], ["--against", "x"]])
def test_of_the_whole_trace(
    options: list[str], late: str, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A part of a trace, a search and a second run are refused in one line."""
    options = [late if one == "x" else one for one in options]
    assert main(["view", late, "--text", *options, "--index-dir", cache]) == 64
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.slow
def test_on_a_terminal_that_cannot_draw(late: str, cache: str) -> None:
    """With TERM=dumb these lines are printed, not a picture."""
    played = on_terminal(late, "--index-dir", cache, TERM="dumb")
    assert played.code == 0 and "Device work, most time first:" in played.screen
