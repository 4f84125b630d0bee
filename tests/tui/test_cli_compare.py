"""`summary`, `diff`, `check` and `history`: what they print, and the exit codes that scripts go by."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.corpus import CASES, CORPUS, needs
from tests.events import complete, write_events
from tests.json_tables import command_json, flat
from tests.tui.small_file import small_file
from tracelane.tui.cli.limits import parse_value
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.cli.options import split_side
from tracelane.tui.text.table import HEIGHT, plot_text

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """Two steps of 100 µs, in each an op of 60 µs and a kernel of 30.5 µs."""
    return str(small_file(tmp_path))


def test_diff_of_steps(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two steps of one trace are compared: the kernel of the one is gone, that of the other new."""
    answer = command_json(capsys, "diff", f"{trace}:step=0", f"{trace}:step=nth:-1")
    assert (answer["command"], answer["failed"]) == ("diff", [])
    assert {row["presence"]: row["total_ns_delta"] for row in answer["kernels"]} == {
        "new": 30_500,
        "gone": -30_500,
    }
    (wall,) = [metric for metric in answer["metrics"] if metric["name"] == "step.length.median"]
    assert (wall["a"], wall["b"], wall["change"]) == (100_000, 100_000, 0)
    assert main(["diff", f"{trace}:+0us..+50us", f"{trace}:+0us..+100us"]) == 0
    out = capsys.readouterr().out
    assert "Ops: +0us..+100us against +0us..+50us" in out
    assert "aten::linear" in out


def test_baseline(trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A summary's file is a side; a metric that rose by more than allowed fails, with a sentence."""
    assert main(["summary", trace, "--step", "0", "--json"]) == 0
    baseline = tmp_path / "baseline.json"
    baseline.write_text(capsys.readouterr().out, encoding="utf-8")
    assert main(["diff", str(baseline), f"{trace}:step=1", "--fail-above", "1%"]) == 0
    capsys.readouterr()
    arguments = ["diff", str(baseline), trace, "--fail-above", "5%", "--metric", "kernels.calls"]
    assert main(arguments) == 1
    assert (
        "kernels.calls rose by 100.0%, from 1 to 2 (noise unknown); 5% is allowed" in capsys.readouterr().err
    )
    assert main(["diff", str(baseline), trace, "--format", "md"]) == 0
    assert "| kernels.calls | 1 | 2 | +1 | +100.00% |" in capsys.readouterr().out


@pytest.mark.parametrize("form", ["md", "html", "csv"])
def test_a_limit_says_what_it_leaves_out(trace: str, form: str, capsys: Capture) -> None:
    """--limit holds for every table, in every form, and the rest is counted."""
    assert main(["diff", f"{trace}:step=0", f"{trace}:step=1", "--limit", "1", "--format", form]) == 0
    said = capsys.readouterr()
    assert " not shown" in (said.err if form == "csv" else said.out)  # CSV has no place for it


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
        (["--max", "step.wall.p95=700"], EXIT_USAGE, ""),
        (["--max", "step.wall.p95=5%"], EXIT_USAGE, ""),
        (["--max", "device.busy_share=95"], EXIT_USAGE, ""),
        (["--max", "device.busy_share=1"], 0, "at most 100.00%"),
        ([], EXIT_USAGE, ""),
    ],
)
def test_check(
    trace: str, limits: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Limits that are kept give 0, others 1, wrong ones the code of a wrong command line."""
    assert main(["check", trace, *limits]) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("option", [("--fail-above", "5"), ("--min-time", "100"), ("--fail-above", "5ms")])
def test_shares_and_times_carry_units(
    trace: str, option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A share above 1 without % and a time without a unit are refused before a trace is read."""
    assert main(["diff", trace, trace, *option]) == EXIT_USAGE
    assert f"{option[0]} is a " in capsys.readouterr().err


def test_check_as_json(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """JSON tells each limit, the value and whether it is kept."""
    assert main(["check", trace, "--max", "kernels.calls=1", "--json"]) == 1
    answer = flat(json.loads(capsys.readouterr().out))
    assert not answer["kept"]
    assert answer["limits"] == [{"metric": "kernels.calls", "value": 2, "max": 1.0, "kept": False}]


@pytest.mark.parametrize("command", [["check", "{}", "--max", "kernels.calls=1"], ["diff", "{}", "{}"]])
def test_unreadable(command: list[str], tmp_path: Path) -> None:
    """What is no trace gives 2."""
    path = tmp_path / "no.json"
    path.write_text("this is no trace", encoding="utf-8")
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


PAIRS = [
    ("jamie_mlp__coordinate-remap", "jamie_mlp__upstream-main", 0.047, "slower", 1),
    ("small_bmm__branch-baseline", "small_bmm__planned-only", -0.014, "within the noise", 0),
    ("prefill_bmm__branch-baseline", "prefill_bmm__coordinate-remap", -0.046, "faster", 0),
    ("decode_bmm__branch-baseline", "decode_bmm__upstream-main", -0.003, "within the noise", 0),
]


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(("before", "now", "change", "verdict", "code"), PAIRS)
def test_kernel_time_decides(
    before: str, now: str, change: float, verdict: str, code: int, tmp_path: Path, capsys: Capture
) -> None:
    """Of four pairs of real Spyre runs only the one whose kernels got 4.7 % slower fails at 3 %."""
    folder = CORPUS / "aiu" / "spyre_torch_profiler"
    sides = [str(next(folder.glob(f"{name}*"))) for name in (before, now)]
    junit = tmp_path / "junit.xml"
    options = ["--fail-above", "3%", "--format", "json", "--junit", str(junit), "--github"]
    assert main(["diff", *sides, *options, "--index-dir", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert len([line for line in err.splitlines() if line.startswith("::error")]) == code
    rows = {row["name"]: row for row in json.loads(out)["tables"]["metrics"]["rows"]}
    assert rows["kernels.time"]["relative"] == pytest.approx(change, abs=0.0006)
    assert rows["kernels.time"]["verdict"] == verdict
    suite = ElementTree.parse(junit).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", str(code))


@needs(CASES)
def test_functors_that_swap_are_told_apart(tmp_path: Path, capsys: Capture) -> None:
    """Two functors of one template whose times swap are +100 µs and -100 µs, by name, the worse one first."""
    sides = [str(CASES / "adversarial" / f"{name}.json") for name in ("da", "db")]
    assert main(["diff", *sides, "--format", "json", "--index-dir", str(tmp_path)]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["kernels"]["rows"]
    assert [abs(row["total_ns_delta"]) > 0 for row in rows] == [True, True]
    assert rows[0]["total_ns_delta"] == -rows[1]["total_ns_delta"] > 0
    assert rows[0]["name"] != rows[1]["name"]
    assert rows[0]["short_name"] != rows[1]["short_name"]


@needs(CORPUS)
def test_a_side_may_be_filtered(tmp_path: Path, capsys: Capture) -> None:
    """`--where` holds for both sides; of a summary it can choose nothing."""
    folder = CORPUS / "aiu" / "spyre_torch_profiler"
    sides = [str(next(folder.glob(f"{name}*"))) for name in PAIRS[0][:2]]
    options = ["--where", "bmm", "--format", "json", "--index-dir", str(tmp_path)]
    assert main(["diff", *sides, *options]) == 0
    rows = json.loads(capsys.readouterr().out)["tables"]["kernels"]["rows"]
    assert rows and all("bmm" in row["name"] for row in rows)


def test_a_filter_that_leaves_nothing_is_no_success(trace: str, capsys: Capture) -> None:
    """A filter of which nothing is left to compare ends as a wrong command, not as all is well."""
    for arguments in (["diff", trace, trace], ["check", trace, "--baseline", trace]):
        assert main([*arguments, "--fail-above", "5%", "--where", "nosuch"]) == EXIT_USAGE
        assert "nothing to check: no kernel or op matches 'nosuch'" in capsys.readouterr().err
        assert main([*arguments, "--fail-above", "5%", "--where", "linear"]) == 0
        capsys.readouterr()


def test_lanes_hold_for_both_sides(trace: str, tmp_path: Path, capsys: Capture) -> None:
    """A trace whose lanes are chosen is checked against the same lanes of an earlier run, not against all."""
    metrics = [word for name in ("kernels.calls", "ops.calls") for word in ("--metric", name)]
    check = ["check", trace, "--baseline", trace, "--fail-above", "0%", *metrics, "--json"]
    assert main([*check, "--lanes", "stream"]) == 0
    rows = flat(json.loads(capsys.readouterr().out))["baseline"]
    assert [row["value"] - row["before"] for row in rows] == [0, 0]
    assert main(["summary", trace, "--json"]) == 0
    (tmp_path / "summary.json").write_text(capsys.readouterr().out, encoding="utf-8")
    check[check.index("--baseline") + 1] = str(tmp_path / "summary.json")
    assert main([*check, "--lanes", "stream"]) == EXIT_USAGE
    assert "--lanes can choose nothing" in capsys.readouterr().err


def test_limits_stand_in_a_file(trace: str, tmp_path: Path, capsys: Capture) -> None:
    """[max] and [min] of a TOML file are limits as --max and --min are; what means nothing there is named."""
    limits = tmp_path / "limits.toml"
    limits.write_text(
        '[max]\n"kernels.calls" = 2\n"step.length.median" = "1ms"\n[min]\n"kernels.calls" = 3\n',
        encoding="utf-8",
    )
    assert main(["check", trace, "--limits", str(limits), "--index-dir", str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines()] == ["ok", "ok", "EXCEEDED"]
    limits.write_text('[max]\nkernels.calls = 1\nstep.length.median = "1ms"\n', encoding="utf-8")
    assert main(["check", trace, "--limits", str(limits), "--index-dir", str(tmp_path)]) == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["EXCEEDED", "ok"]
    for text, message in [
        ("[most]\na = 1\n", "'most' is not understood"),
        ("[max]\na = true\n", "needs a number"),
        ("[max]\na = 'long'\n", "limits.toml: a in [max]: 'long' is no value"),
        ("[max]\nkernels.cals = 2\n", "no metric 'kernels.cals'"),
        ("[max]\n" + ".".join("a" * 5000) + " = 2\n", "needs a number"),
        ("[max\n", "limits.toml"),
        ("", "holds no limits"),
        ("a = " + "[" * 5000 + "]" * 5000, "limits.toml"),
    ]:
        limits.write_text(text, encoding="utf-8")
        assert main(["check", trace, "--limits", str(limits), "--index-dir", str(tmp_path)]) == EXIT_USAGE
        assert message in capsys.readouterr().err
    assert main(["check", trace, "--limits", str(tmp_path / "none.toml")]) == 2


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
    return write_events(folder / f"{name}.json", events)


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
        files[-1].write_text(capsys.readouterr().out, encoding="utf-8")
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
    assert capsys.readouterr().out.splitlines()[0] == "run,value,change,relative,verdict,runs,reason"


def test_what_is_no_history(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    """Files that are no summaries are passed by and counted; a folder without any is an error of one line."""
    (runs[0].parent / "other.json").write_text("{}", encoding="utf-8")
    assert main(["history", str(runs[0].parent)]) == 0
    assert "1 other JSON file" in capsys.readouterr().err
    empty = tmp_path / "empty"
    empty.mkdir()
    for path in (empty, tmp_path / "none", small_file(tmp_path)):
        assert main(["history", str(path)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1
    for metric in ("nothing", "kernels.nothing"):
        assert main(["history", str(runs[0].parent), "--metric", metric]) == EXIT_USAGE
    runs[3].write_text(runs[3].read_text(encoding="utf-8")[:-200], encoding="utf-8")
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


@pytest.mark.parametrize("values", [(5.0,), (5.0, 5.0, 5.0), (0.0, None, 0.0)])
def test_a_plot_of_equal_values_is_half_as_high(values: tuple[float | None, ...]) -> None:
    """Where there is no least and no greatest value, columns end in the middle."""
    lines = [line.partition("│")[2].strip(" ·") for line in plot_text(values, str, 40).splitlines()]
    assert [bool(line) for line in lines] == [number >= HEIGHT // 2 for number in range(HEIGHT)]
    assert set("".join(lines)) <= {"█", " ", "·"}


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


def test_a_damaged_summary(runs: list[Path], capsys: Capture) -> None:
    """A number that is none, or none that can be, is an error of one line for whichever command reads it."""
    damaged, other, text = str(runs[0]), str(runs[1]), runs[0].read_text(encoding="utf-8")
    for table, key, value in DAMAGE:
        whole = json.loads(text)
        for row in whole["tables"][table]["rows"]:
            row[key] = value
        runs[0].write_text(json.dumps(whole), encoding="utf-8")
        for arguments in (["diff", damaged, other], ["diff", other, damaged], ["history", damaged]):
            assert main(arguments) == 2, (table, key, value)
            (line,) = capsys.readouterr().err.splitlines()
            assert "not a complete summary" in line
