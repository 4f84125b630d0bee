"""Commands that print tables: what each prints, of which part, in which form, and fitting the terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import zipfile
from pathlib import Path

import pytest

from tests.corpus import CORPUS, file, for_files, needs
from tests.events import begin, complete, write_events
from tests.json_tables import command_json, flat
from tests.tui.cli_process import tracelane
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.frame.schema import Column, TableSchema
from tracelane.core.tables.frame.table import Table
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import EXIT_USAGE, main
from tracelane.tui.text.table import BAR, EIGHTHS, TableStyle, table_text

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
    path.write_text(
        json.dumps([{"ph": "X", "name": "op", "cat": "cpu_op", "ts": 1, "dur": 2}]), encoding="utf-8"
    )
    for form in ("text", "json", "csv", "md"):
        assert main([command, str(path), "--format", form]) == 0
    assert "device work here" in capsys.readouterr().out


@pytest.mark.parametrize("options", [("--column", "arg:bytes"), ("--group-by", "arg:bytes"), ("--runs", "x")])
def test_arguments_of_no_kernels(
    options: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Arguments are asked of a trace without device work: the answer is that there is none."""
    path = tmp_path / "host.json"
    path.write_text(
        json.dumps([{"ph": "X", "name": "op", "cat": "cpu_op", "ts": 1, "dur": 2}]), encoding="utf-8"
    )
    for form in ("json", "csv", "md", "text"):
        assert main(["kernels", str(path), *options, "--format", form]) == 0
    assert "device work here" in capsys.readouterr().out


def test_an_unknown_column_is_told(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A column that is not there is wrong usage, and the answer names those that are."""
    assert main(["kernels", trace, "--sort", "weight"]) == EXIT_USAGE
    assert "total_ns" in capsys.readouterr().err


BREAKS = CORPUS / "cpu" / "torch213_graph_breaks.json"
FIRST_CALL = CORPUS / "cpu" / "torch213_compile_first_call.json.gz"


@needs(CORPUS)
def test_the_tree_as_text_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    """Regions stand below each other, indented; csv holds the table that was asked for first."""
    assert main(["compile", str(BREAKS), "--first", "regions"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Compiled regions")
    columns = [line.index(f"{frame}/0") for frame, line in zip("2345", lines[2:6])]
    assert [column - columns[0] for column in columns] == [0, 2, 4, 6]
    assert main(["compile", str(BREAKS), "--first", "graphs", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert sum(int(row["count"]) for row in rows) == 24


@needs(CORPUS)
def test_long_tables_are_cut_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the first table the others show their first rows and how many more there are."""
    assert main(["compile", str(FIRST_CALL)]) == 0
    text = capsys.readouterr().out
    assert "more of 55" in text
    assert "backward graph" in text


@pytest.fixture(scope="module")
def demo_memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first rank of the demo trace."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    return sorted(folder.glob("*.json"))[0]


def test_the_table_that_comes_first(demo_memory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As text all tables stand below each other, the one asked for first."""
    assert main(["memory", str(demo_memory), "--first", "copies"]) == 0
    text = capsys.readouterr().out
    assert text.index("Copies: whole trace") < text.index("Memory: whole trace")


DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"


@needs(CORPUS)
def test_ranks_as_table_and_object(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has ranks, steps and collectives; --json and --format json are the same object."""
    assert main(["ranks", str(DLRM)]) == 0
    text = capsys.readouterr().out
    assert "Came last" in text and "Slowest rank" in text and "all_to_all" in text
    assert "residual 500 ns (median)" in text and "missing: ranks 4-7" in text
    assert main(["ranks", str(DLRM), "--json"]) == 0
    whole = flat(json.loads(capsys.readouterr().out))
    assert [rank["rank"] for rank in whole["ranks"]] == [2, 3, 1, 0], "the worst first"
    assert len(whole["collectives"]) == 8
    assert main(["ranks", str(DLRM), "--format", "json"]) == 0
    assert flat(json.loads(capsys.readouterr().out)) == whole
    assert main(["ranks", str(DLRM), "--format", "csv", "--sort", "kept_waiting_ns", "--rank", "1-3"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("rank,host") and [row.split(",")[0] for row in rows[1:]] == ["2", "3", "1"]


@needs(CORPUS)
def test_tables_tell_ranks_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """The devices of several ranks stand in one table, by rank."""
    devices = command_json(capsys, "breakdown", DLRM)["devices"]
    assert [device["rank"] for device in devices] == [0, 1, 2, 3]


def test_what_is_left_out_is_said_and_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables say on stderr which capture they speak of; --capture takes another, a wrong one is answered."""
    for capture, second in (("old", 1_600_000_000), ("new", 1_700_000_000)):
        for rank in (0, 1):
            path = write_events(
                tmp_path / f"{capture}_rank{rank}.json", [complete(1, 2, capture, "kernel", pid=0)]
            )
            os.utime(path, (second, second))
    assert main(["kernels", str(tmp_path), "--format", "csv"]) == 0
    output = capsys.readouterr()
    assert "left out: 1 other capture" in output.err and "new" in output.out and "old" not in output.out
    assert main(["kernels", str(tmp_path), "--capture", "2", "--format", "csv"]) == 0
    assert "old" in capsys.readouterr().out
    assert main(["kernels", str(tmp_path), "--capture", "9"]) == 64
    assert "there is no 9; there is 1 (2023-11-14" in capsys.readouterr().err


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


EVENTS = [
    complete(30, 5, "late", "kernel", pid="GPU 0", tid=7),
    complete(0, 100, "outer"),
    complete(10.5, 5, "inner", args={"Ev Idx": 4}),
    complete(50, 2, "last"),
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(write_events(tmp_path / "trace.json", EVENTS))


def test_json_and_csv_hold_exact_values(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Both list the same slices in order of time, with ids and times as in the file."""
    rows = command_json(capsys, "slices", path)["slices"]
    assert [row["name"] for row in rows] == ["outer", "inner", "late", "last"]
    assert rows[1] == {
        "name": "inner",
        "category": "cpu_op",
        "pid": 1,
        "tid": 1,
        "start_ns": 10_500,
        "duration_ns": 5000,
        "self_ns": 5000,
        "ordinal": 2,
        "lane": "thread 1",
        "unclosed": 0,
    }
    assert (rows[2]["pid"], rows[0]["self_ns"]) == ("GPU 0", 93_000)
    assert main(["slices", path, "--format", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert table == [{key: str(value) for key, value in row.items()} for row in rows]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["--where", "cat:kernel"], ["late"]),
        (["--where", "arg.'Ev Idx'=4"], ["inner"]),
        (["--where", "none such"], []),
        (["--from", "+14us", "--to", "+40us"], ["outer", "inner", "late"]),
        (["--where", "-outer", "--limit", "1"], ["inner"]),
    ],
)
def test_filter_range_and_limit(
    path: str, options: list[str], names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A filter, a stretch of time and a limit leave what they say."""
    assert [row["name"] for row in command_json(capsys, "slices", path, *options)["slices"]] == names


def test_a_table_says_how_many_there_are(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The table ends with the count, and with how many it left out."""
    assert main(["slices", path, "--limit", "3"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert (
        len(out) == 6 and out[2].startswith("outer") and out[-1] == "4 slices, 1 of them not listed (--limit)"
    )


def test_unclosed_slices_are_flagged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A begin without an end is marked in JSON and CSV: its time is not known."""
    path = tmp_path / "open.json"
    path.write_text(json.dumps([begin(0, "left open"), complete(1, 2, "done")]), encoding="utf-8")
    assert main(["slices", str(path), "--format", "csv", "--index-dir", str(tmp_path / "i")]) == 0
    rows = {row["name"]: row["unclosed"] for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows == {"left open": "1", "done": "0"}
    slices = command_json(capsys, "slices", path, "--index-dir", str(tmp_path / "i"))["slices"]
    assert {row["name"]: row["unclosed"] for row in slices} == {"left open": 1, "done": 0}


TABLE = Table.from_rows(
    TableSchema(
        "kernels",
        "Kernels",
        (
            Column("name", "name", "text"),
            *(Column(f"n{at}", f"number {at}") for at in range(6)),
            Column("share", "share", "share"),
        ),
    ),
    "whole trace",
    [
        {"name": name, **{f"n{at}": 10**at for at in range(6)}, "share": share}
        for name, share in (("gemm", 0.75), ("relu", 0.25))
    ],
    notes=["a note that says much more than fits into one line of a terminal"],
)


def test_bars_and_colours_are_for_terminals() -> None:
    """A coloured table has a bar behind each row; without colours the same text stands there alone."""
    coloured = table_text(TABLE, TableStyle(160, True))
    plain = table_text(TABLE, TableStyle(160))
    assert "\x1b[1m" in coloured and "█" * 6 in coloured and "█" * 7 not in coloured
    assert "\x1b" not in plain and "█" not in plain


def test_a_bar_is_as_long_as_its_share() -> None:
    """Each eighth of a cell more is an eighth of a cell more of bar, from none to a whole one."""
    steps = range(8 * BAR + 1)
    columns = (Column("name", "name", "text"), Column("share", "share", "share"))
    rows = [{"name": "a", "share": step / (8 * BAR)} for step in steps]
    lines = table_text(Table.from_rows(TableSchema("t", "T", columns), "all", rows), TableStyle(80, True))
    bars = [re.sub("\x1b\\[[0-9;]*m", "", line).partition("%")[2].strip() for line in lines.splitlines()[2:]]
    lengths = [sum(8 if cell == "█" else EIGHTHS.index(cell) for cell in bar) for bar in bars]
    assert lengths == [*steps]


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("sort", ["n5", "share"])
def test_the_sorted_column_stays(width: int, sort: str) -> None:
    """Whatever gives way, the column that rows are sorted by does not, and no line is too wide."""
    lines = table_text(TABLE, TableStyle(width), sort=sort).splitlines()
    heading = {"n5": "Number 5", "share": "Share"}[sort]
    assert heading in lines[1] and max(map(len, lines)) <= width


@pytest.mark.slow
@pytest.mark.parametrize("command", ["ops", "kernels", "slices", "steps", "memory", "launches", "breakdown"])
@for_files(
    "name",
    [
        *(
            "gpu/hta_a100_resnet_ddp_nccl.json.gz",
            "aiu/mlp_trace.json",
            "gpu/tl_torch_compile_triton.json.gz",
        ),
        *("cuda/gloo.pt.trace.json.gz", "cpu/torch_2.13_training.pt.trace.json.gz"),
    ],
)
def test_tables_of_real_traces_fit_80_columns(
    command: str,
    name: str,
    corpus_cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With COLUMNS=80 each line of each table has at most 80 characters, also into a pipe."""
    monkeypatch.setenv("COLUMNS", "80")
    path = file(name)
    assert main([command, str(path), "--index-dir", str(corpus_cache)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and [line for line in lines if len(line) > 80] == []


@needs(CORPUS)
@pytest.mark.parametrize("command", ["ops", "kernels", "slices", "range"])
def test_generated_kernels_are_told_apart_at_80_columns(
    command: str, corpus_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of an AIU that are named by long paths stand there by what differs, whole."""
    monkeypatch.setenv("COLUMNS", "80")
    path = CORPUS / "aiu" / "mlp_trace.json"
    assert main([command, str(path), "--index-dir", str(corpus_cache)]) == 0
    table = capsys.readouterr().out
    for name in ("sdsc_fused_mm_mul_silu_0", "sdsc_fused_mm_1", "sdsc_fused_sum_0"):
        assert f"{name} " in table
    assert "/tmp/" not in table


@needs(CORPUS)
@pytest.mark.slow
def test_what_ended_a_gap_fits_80_columns(tmp_path: Path) -> None:
    """The longest gaps say what ended each, also where the terminal is narrow; no heading comes twice."""
    path = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
    done = tracelane("idle", str(path), "--index-dir", str(tmp_path / "index"), COLUMNS="80")
    gaps = done.stdout.split("Longest gaps", 1)[1]
    assert "Ended by" in gaps and "ncclKernel" in gaps
    wide = tracelane("idle", str(path), "--index-dir", str(tmp_path / "index"), COLUMNS="300")
    headings = [heading for heading in _line_after(wide.stdout, "Idle time").split("  ") if heading.strip()]
    assert len(set(headings)) == len(headings) == 15


def test_moments_of_a_query_count_from_the_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`sql` prints times since the trace begins, none as none; JSON and CSV have the views' own ns."""
    begin = 1_700_000_000_000_000  # µs: as many traces have, since 1970
    trace = tmp_path / "t.json"
    trace.write_text(
        json.dumps([complete(begin + at, 5, f"k{at}", cat="kernel", pid=0, tid=1) for at in (0, 250)]),
        encoding="utf-8",
    )
    query = "select name, ts from kernels union all select 'none', null order by 1"
    assert main(["sql", str(trace), query]) == 0
    text = capsys.readouterr().out
    assert "+250 µs" in text and " d " not in text and f"@{begin}.000" in text
    assert next(line for line in text.splitlines() if line.startswith("none")).split() == ["none", "-"]
    assert main(["sql", str(trace), query, "--format", "csv"]) == 0
    assert f"k250,{(begin + 250) * 1000}" in capsys.readouterr().out


def _line_after(text: str, begun: str) -> str:
    lines = text.splitlines()
    return lines[next(number for number, line in enumerate(lines, 1) if line.startswith(begun))]


AIU = "aiu/spyre_torch_profiler/decode_bmm__upstream-main*.json"
BEFORE = "aiu/spyre_torch_profiler/decode_bmm__branch-baseline*.json"
LOG = "aiu_smi/PAIR2_decode_bmm_upstream_newyork_100ms.csv"
SECTIONS = ("Environment", "Steps", "Device time", "Findings", "Ops, as PyTorch prints them", "Kernels")


def test_sections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report has all sections, says how many iterations there are, and draws the one of median length."""
    assert main(["report", str(small_file(tmp_path))]) == 0
    text = capsys.readouterr().out
    for section in SECTIONS:
        assert f"\n## {section}\n" in text
    assert "Iterations: 2 (ProfilerStep#N" in text
    assert "## A picture of step 0" in text
    assert "aten::linear" in text
    assert "Telemetry" not in text
    assert text.count("- [ ] ") == 6


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report goes to a new file only."""
    out = tmp_path / "report.md"
    trace = str(small_file(tmp_path))
    assert main(["report", trace, "-o", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("# Performance report: small.json")
    assert main(["report", trace, "-o", str(out)]) == EXIT_USAGE
    assert "is there already" in capsys.readouterr().err


@needs(CORPUS)
def test_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundle has the step shown as a trace, its lines of the log, and nobody's name."""
    (trace,), (before,) = CORPUS.glob(AIU), CORPUS.glob(BEFORE)
    out = tmp_path / "issue.zip"
    arguments = ["report", str(trace), "--smi", str(CORPUS / LOG), "--baseline", str(before)]
    assert main([*arguments, "--bundle", str(out), "--redact"]) == 0
    capsys.readouterr()
    with zipfile.ZipFile(out) as packed:
        assert packed.namelist() == ["report.md", "summary.json", "telemetry-0.csv", "trace.json.gz"]
        packed.extractall(tmp_path)
        everything = packed.read("report.md") + packed.read("summary.json") + packed.read("telemetry-0.csv")
    assert b"adnan" not in everything
    assert b"/home/" not in everything
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "The log covers step 1 from end to end." in report
    assert "### Metrics" in report and "| kernels.time | " in report and "noise: " in report
    assert "| kernels.calls | 8 | 8 | 0 | +0.00% |" in report
    assert report.count("- [ ] ") == 7 and "of the earlier run: its date, its commit" in report
    assert json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))["command"] == "summary"
    rows = (tmp_path / "telemetry-0.csv").read_text(encoding="utf-8").splitlines()
    assert rows[1].startswith("ID,Date")
    assert len(rows) == 3
    cut = open_trace(tmp_path / "trace.json.gz", index_dir=tmp_path / "index")
    whole = open_trace(trace, index_dir=tmp_path / "index")
    names = {cut.indexes[0].string(int(n)) for n in cut.indexes[0].column("slices.name")}
    assert any(name.startswith("Torch-Compiled Region") for name in names)
    assert not any("adnan" in name for name in names)
    stamps = {int(start) for start in whole.indexes[0].column("slices.start")}
    assert {int(start) for start in cut.indexes[0].column("slices.start")} <= stamps
