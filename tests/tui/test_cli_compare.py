"""`tracelane summary`, `diff` and `check`: what they print, and the exit codes that scripts go by."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.json_tables import flat
from tests.tui.small_file import small_file
from tracelane.tui.cli.limits import parse_value
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.cli.sides import split_side


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two steps of 100 µs, in each an op of 60 µs and a kernel of 30.5 µs."""
    return str(small_file(tmp_path))


def test_diff_of_steps(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two steps of one trace are compared: the kernel of the one is gone, that of the other new."""
    assert main(["diff", f"{trace}:step=0", f"{trace}:step=nth:-1", "--format", "json"]) == 0
    told = flat(json.loads(capsys.readouterr().out))
    assert (told["command"], told["failed"]) == ("diff", [])
    assert {row["presence"]: row["total_ns_delta"] for row in told["kernels"]} == {
        "new": 30_500,
        "gone": -30_500,
    }
    (wall,) = [metric for metric in told["metrics"] if metric["name"] == "step.wall.median"]
    assert (wall["a"], wall["b"], wall["change"]) == (100_000, 100_000, 0)
    assert main(["diff", f"{trace}:+0us..+50us", f"{trace}:+0us..+100us"]) == 0
    out = capsys.readouterr().out
    assert "Ops: B against A" in out
    assert "aten::linear" in out


def test_baseline(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A summary's file is a side; a metric that rose by more than allowed fails, with a sentence."""
    assert main(["summary", trace, "--step", "0", "--json"]) == 0
    baseline = tmp_path / "baseline.json"
    baseline.write_text(capsys.readouterr().out)
    assert main(["diff", str(baseline), f"{trace}:step=1", "--fail-above", "1%"]) == 0
    capsys.readouterr()
    arguments = ["diff", str(baseline), trace, "--fail-above", "5%", "--metric", "kernels.calls"]
    assert main(arguments) == 1
    assert "kernels.calls rose by 100.0%, from 1 to 2; 5% is allowed" in capsys.readouterr().err
    assert main(["diff", str(baseline), trace, "--format", "md"]) == 0
    assert "| kernels.calls | 1 | 2 | +1 | +100.00% |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("limits", "code", "said"),
    [
        (["--max", "kernels.calls=2"], 0, "ok        kernels.calls 2, at most 2"),
        (["--max", "kernels.calls=1"], 1, "EXCEEDED  kernels.calls 2, at most 1"),
        (["--max", "step.wall.p95=0.1ms", "--min", "step.count=2"], 0, "at least 2"),
        (["--min", "device.busy_share=90%"], 1, "EXCEEDED  device.busy_share"),
        (["--max", "memory.peak=1GiB"], 1, "nothing of it in the trace"),
        (["--max", "nothing=1"], EXIT_USAGE, ""),
        (["--max", "kernels.nothing=1"], EXIT_USAGE, ""),
        (["--max", "kernels.calls"], EXIT_USAGE, ""),
        ([], EXIT_USAGE, ""),
    ],
)
def test_check(
    trace: str, limits: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Limits that are kept give 0, others 1, wrong ones the code of a wrong command line."""
    assert main(["check", trace, *limits]) == code
    assert said in capsys.readouterr().out


def test_check_as_json(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON tells each limit, the value and whether it is kept."""
    assert main(["check", trace, "--max", "kernels.calls=1", "--json"]) == 1
    told = flat(json.loads(capsys.readouterr().out))
    assert not told["kept"]
    assert told["limits"] == [{"metric": "kernels.calls", "value": 2, "max": 1.0, "kept": False}]


@pytest.mark.parametrize("command", [["check", "{}", "--max", "kernels.calls=1"], ["diff", "{}", "{}"]])
def test_unreadable(command: list[str], tmp_path: Path) -> None:
    """What is no trace gives 2."""
    path = tmp_path / "no.json"
    path.write_text("this is no trace")
    assert main([word.format(path) for word in command]) == 2


def test_sides(tmp_path: Path) -> None:
    """The part stands behind the first colon before which there is a file; a file's own colons stay."""
    plain, odd = tmp_path / "a.json", tmp_path / "b:1.json"
    plain.touch()
    odd.touch()
    assert split_side(str(plain)) == (str(plain), "")
    assert split_side(f"{plain}:step=4") == (str(plain), "step=4")
    assert split_side(f"{plain}:09:28:06..09:28:07") == (str(plain), "09:28:06..09:28:07")
    assert split_side(str(odd)) == (str(odd), "")
    assert split_side(f"{odd}:step:3") == (str(odd), "step:3")


@pytest.mark.parametrize(
    ("text", "value"),
    [("400", 400), ("250ms", 250e6), ("100us", 1e5), ("5%", 0.05), ("1.5GiB", 1.5 * 2**30), ("-1e3", -1000)],
)
def test_values(text: str, value: float) -> None:
    """Numbers take units of time, size and share."""
    assert parse_value(text) == value
