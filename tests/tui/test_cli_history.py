"""`tracelane history`: a metric over many summaries, and `check` and `diff` against several earlier runs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.events import complete
from tests.tui.small_file import small_file
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.text.plot import HEIGHT, plot_text

Capture = pytest.CaptureFixture[str]
TIMES = (100, 104, 98, 102, 101, 99, 140)


def write_trace(folder: Path, name: str, kernel_us: int) -> Path:
    """Write two steps with a kernel each."""
    events = []
    for step in range(2):
        at = 1000 * step
        ids = {"correlation": step + 1}
        events.append(complete(at, 900, f"ProfilerStep#{step}", "user_annotation", pid=7, tid=7))
        events.append(complete(at + 10, 5, "cudaLaunchKernel", "cuda_runtime", pid=7, tid=7, args=ids))
        events.append(complete(at + 20, kernel_us, "gemm", "kernel", pid=0, tid=7, args=ids))
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


@pytest.fixture
def runs(tmp_path: Path, capsys: Capture) -> list[Path]:
    """Summaries of seven runs, run8.json to run14.json: six alike, the last 40 % slower."""
    folder = tmp_path / "runs"
    folder.mkdir()
    files = []
    for number, us in enumerate(TIMES, 8):
        trace = write_trace(tmp_path, f"trace{number}", us)
        assert main(["summary", str(trace), "--json", "--index-dir", str(tmp_path)]) == 0
        files.append(folder / f"run{number}.json")
        files[-1].write_text(capsys.readouterr().out)
    return files


def test_a_metric_over_runs(runs: list[Path], capsys: Capture) -> None:
    """Runs stand in order of their numbers; one beyond the noise of those before is said to be slower."""
    folder = str(runs[0].parent)
    assert main(["history", folder, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["kernels.time"]["rows"]
    assert [row["run"] for row in rows] == [f"run{n}.json" for n in range(8, 15)]
    assert [row["value"] for row in rows] == [2000 * us for us in TIMES]
    assert [row["verdict"] for row in rows][:3] == ["", "noise unknown", "noise unknown"]
    assert [row["verdict"] for row in rows][3:] == ["within the noise"] * 3 + ["slower"]
    assert rows[-1]["change"] == 2000 * 140 - 201_000 and isinstance(rows[-1]["change"], int)
    assert (
        main(["history", folder, "--limit", "2", "--metric", "kernels.calls", "--metric", "kernels.time"])
        == 0
    )
    out = capsys.readouterr().out
    assert "History of kernels.calls" in out and "run14.json" in out and "run8.json" not in out
    assert main(["history", *map(str, runs[-2:]), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "run,value,change,relative,verdict,runs"


def test_what_is_no_history(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    """Files that are no summaries are passed by and counted; a folder without any is an error of one line."""
    (runs[0].parent / "other.json").write_text("{}")
    assert main(["history", str(runs[0].parent)]) == 0
    assert "1 other JSON file" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, tmp_path / "none", small_file(tmp_path)):
        assert main(["history", str(path)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    for metric in ("nothing", "kernels.nothing"):
        assert main(["history", str(runs[0].parent), "--metric", metric]) == EXIT_USAGE
    runs[3].write_text(runs[3].read_text()[:-200])
    assert main(["history", str(runs[0].parent)]) == 2


@pytest.mark.parametrize(
    ("values", "first", "last"),
    [([1, 2, 3], "3 │", "1 │"), ([5, None, 5], "5 │", "5 │"), ([0.5], "0.5 │", "0.5 │")],
)
def test_the_plot(values: list[float | None], first: str, last: str) -> None:
    """The greatest value reaches the top line, the least the bottom one; no value leaves a hole."""
    lines = plot_text(values, str, 40).splitlines()
    assert len(lines) == HEIGHT
    assert lines[0].startswith(first) and lines[-1].startswith(last)
    heights = [
        sum(line[6 + 4 * at : 7 + 4 * at] not in ("", " ", "·") for line in lines)
        for at in range(len(values))
    ]
    ordered = [height for height, value in zip(heights, values) if value is not None]
    assert ordered == sorted(ordered) and ordered[0] > 0
    assert all((height == 0) == (value is None) for height, value in zip(heights, values))


def test_a_plot_of_many_values_fits() -> None:
    """Of more values than cells the last are drawn, in ASCII where nothing else can be shown."""
    text = plot_text([float(n % 50) for n in range(1000)], lambda value: f"{value:.0f}", 60, True)
    assert all(len(line) <= 60 for line in text.splitlines()) and text.isascii()
    assert plot_text([None, None], str, 60) == ""


@pytest.mark.slow
def test_several_earlier_runs_are_the_noise(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    """`diff A A A B` and `check B --baseline A …` fail where B is beyond what the runs before scatter."""
    earlier, slow = [str(path) for path in runs[:5]], str(tmp_path / "trace14.json")
    usual = str(tmp_path / "trace13.json")
    junit = tmp_path / "junit.xml"
    options = ["--fail-above", "1%", "--index-dir", str(tmp_path)]
    assert main(["diff", *earlier, usual, *options]) == 0
    out = capsys.readouterr().out
    assert "of 5 earlier runs" in out and "difference of medians beyond 3 standard errors" in out
    assert main(["diff", *earlier, slow, *options]) == 1
    assert "kernels.time rose by 38.6%" in capsys.readouterr().err
    baselines = [word for path in earlier for word in ("--baseline", path)]
    ci = ["--junit", str(junit), "--github"]
    assert main(["check", usual, *baselines, *options, "--max", "kernels.calls=2", *ci]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["ok", "ok"]
    assert main(["check", slow, *baselines, *options, "--max", "kernels.calls=2", *ci]) == 1
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["ok", "EXCEEDED"]
    assert len([line for line in err.splitlines() if line.startswith("::error")]) == 1
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert main(["check", slow, *baselines, *options, "--json"]) == 1
    (row,) = json.loads(capsys.readouterr().out)["tables"]["baseline"]["rows"]
    assert (row["metric"], row["verdict"], row["kept"]) == ("kernels.time", "slower", False)


@pytest.mark.parametrize(
    "arguments", [["diff", "{}"], ["check", "{}", "--fail-above", "3%"], ["check", "{}", "--baseline", "{}"]]
)
def test_half_a_comparison(arguments: list[str], tmp_path: Path, capsys: Capture) -> None:
    """One side, or a share without a baseline and the other way round, are wrong command lines."""
    trace = str(write_trace(tmp_path, "trace", 100))
    assert main([word.format(trace) for word in arguments]) == EXIT_USAGE
    assert len(capsys.readouterr().err.splitlines()) == 1


DAMAGE = [
    ("metrics", "value", value) for value in ("abc", [1], {}, True, 10**400, float("nan"), float("inf"))
]
DAMAGE += [("metrics", "unit", "bananas"), ("kernels", "steps", -1), ("kernels", "step_deviation_ns", -5)]


@pytest.mark.slow
@pytest.mark.parametrize(("table", "key", "value"), DAMAGE)
def test_a_damaged_summary(table: str, key: str, value: object, runs: list[Path], capsys: Capture) -> None:
    """A number that is none, or none that can be, is an error of one line for whichever command reads it."""
    whole = json.loads(runs[0].read_text())
    for row in whole["tables"][table]["rows"]:
        row[key] = value
    runs[0].write_text(json.dumps(whole))
    other = str(runs[1])
    for arguments in (
        ["diff", str(runs[0]), other],
        ["diff", other, str(runs[0])],
        ["history", str(runs[0])],
    ):
        assert main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "not a complete summary" in line
