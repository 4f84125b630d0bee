"""What shells and terminals ask of the command line: files, widths, pages, help, pagers, completion."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.corpus import CORPUS, file, needs
from tests.events import complete, write_events
from tests.tui.small_file import LONG_NAME, small_file
from tracelane.core.base.installed import install_hint
from tracelane.core.base.output import _pager
from tracelane.core.demo.trace import write_demo
from tracelane.core.sql.engines import has_duckdb
from tracelane.tui.cli.help import OTHERS, by_question, examples_of
from tracelane.tui.cli.main import command_names, main
from tracelane.tui.cli.streams import has_colours

from .cli_process import tracelane

LONG = "a_kernel_whose_name_is_long_" * 3


@pytest.fixture
def trace(tmp_path: Path) -> str:
    """A trace whose one kernel has a long name with markup in it."""
    events = [complete(1, 5, f"{LONG}<b>", pid=0, tid=7, cat="kernel", args={"stream": 7})]
    return str(write_events(tmp_path / "t.json", events))


def run(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(list(arguments)) == code
    return capsys.readouterr().out


def test_out_writes_what_would_be_printed(
    trace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """-o writes the same bytes to a file and prints nothing; a file that is there is not touched."""
    out = tmp_path / "k.json"
    printed = run(capsys, "kernels", trace, "--json")
    assert run(capsys, "kernels", trace, "--json", "-o", str(out)) == ""
    assert out.read_text(encoding="utf-8") == printed
    run(capsys, "kernels", trace, "--json", "-o", str(out), code=64)
    assert out.read_text(encoding="utf-8") == printed


def test_a_failure_leaves_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a command fails nothing is left of its file; a verdict is no failure."""
    out = tmp_path / "x.txt"
    run(capsys, "kernels", str(tmp_path / "none.json"), "-o", str(out), code=2)
    assert not out.exists()
    bad = tmp_path / "bad.json"
    sound = {"ph": "X", "name": "b", "ts": 1, "dur": 1, "pid": 1, "tid": 1}
    bad.write_text(json.dumps({"traceEvents": [{**sound, "ts": None}, sound]}), encoding="utf-8")
    run(capsys, "doctor", str(bad), "-o", str(out), code=1)
    assert out.read_text(encoding="utf-8")


def test_nothing_is_cut_in_a_pipe(
    trace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names are whole in a pipe; with COLUMNS=80 no line is wider, and the total is still there."""
    assert LONG in run(capsys, "kernels", trace)
    assert LONG in run(capsys, "slices", trace)
    monkeypatch.setenv("COLUMNS", "80")
    lines = run(capsys, "kernels", trace).splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:1] == ["Name"] and {"Count", "Total", "Share"} <= set(lines[1].split())


class Texts(HTMLParser):
    """Collects the texts of cells, and all tags."""

    def __init__(self, page: str) -> None:
        """Read a page."""
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        """Take a text."""
        self.texts.append(data)


@pytest.mark.parametrize("command", ["kernels", "slices", "breakdown"])
def test_html_is_a_page_of_its_own(trace: str, capsys: pytest.CaptureFixture[str], command: str) -> None:
    """HTML is one page that loads nothing, in which names of the trace are text."""
    page = run(capsys, command, trace, "--format", "html")
    parsed = Texts(page)
    assert page.startswith("<!DOCTYPE html>") and {"html", "table", "td"} <= parsed.tags
    assert not {"script", "img", "link"} & parsed.tags and "<b>" not in "".join(page.split("<div><b>")[2:])
    if command == "slices":
        assert f"{LONG}<b>" in parsed.texts


@pytest.mark.parametrize(
    ("text", "is_right"),
    [("30", True), ("30us", True), ("0.03ms", True), ("3e4ns", True), ("30 parsecs", False)],
)
def test_times_take_units(trace: str, capsys: pytest.CaptureFixture[str], text: str, is_right: bool) -> None:
    """A time may say its unit; what is none is refused before the trace is read."""
    run(capsys, "idle", trace, "--kernel-wait", text, code=0 if is_right else 64)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first rank as trace.json in a folder of its own, indexed."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)[0].rename(folder / "trace.json")
    assert main(["index", str(folder / "trace.json"), "--index-dir", str(folder / "index")]) == 0
    return folder


def test_every_command_stands_in_one_group() -> None:
    """The groups of help name each command once, and no command stands among the others."""
    groups = by_question(command_names())
    names = [name for group in groups.values() for name in group]
    assert all(map(examples_of, command_names()))
    assert len(names) == len(set(names))
    assert OTHERS not in groups


def test_first_sentences_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of commands cuts no sentence off."""
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Options:")[2]
    assert listed and "..." not in listed


def test_short_help_leaves_out_what_all_commands_have(capsys: pytest.CaptureFixture[str]) -> None:
    """-h lists a command's own options, --help those of every command too; both show the examples."""
    assert main(["kernels", "-h"]) == 0
    short = capsys.readouterr().out
    assert main(["kernels", "--help"]) == 0
    long = capsys.readouterr().out
    assert "--runs" in short and "--cache-limit" not in short
    assert "--runs" in long and "--cache-limit" in long
    assert all(examples_of("kernels")[0] in text for text in (short, long))


def complete_help(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_TRACELANE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    command = [sys.executable, "-m", "tracelane"]
    done = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, encoding="utf-8", check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_shell_completes(demo: Path) -> None:
    """Commands, options, terms, and steps, lanes and columns of the trace on the line are completed, also
    where no command stands before it; paths are files.
    """
    assert complete_help("tracelane ker", demo) == ["plain,kernels"]
    assert any(line.startswith("file,") for line in complete_help("tracelane tra", demo))
    assert "plain,--skip-first" in complete_help("tracelane kernels trace.json --skip", demo)
    indexed = [sys.executable, "-m", "tracelane", "index", "trace.json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(demo / "cache")}
    subprocess.run(indexed, env=environment, cwd=demo, check=True, capture_output=True)
    assert "plain,thread.48213..python." in complete_help("tracelane kernels trace.json --lanes thread", demo)
    assert main(["kernels", str(demo / "trace.json"), "--lanes", "thread.48213..python."]) == 0
    assert complete_help("tracelane kernels trace.json --step ", demo) == ["plain,3", "plain,4", "plain,5"]
    assert complete_help("tracelane kernels tra", demo) == ["file,tra"]
    assert "plain,kernels.time=" in complete_help("tracelane check trace.json --max kern", demo)
    assert "plain,kernels.time" in complete_help("tracelane history . --metric kern", demo)
    assert "plain,--smi" in complete_help("tracelane trace.json --sm", demo)
    assert "plain,cat:" in complete_help("tracelane kernels trace.json --where ca", demo)
    assert "plain,total_ns" in complete_help("tracelane kernels trace.json --sort tot", demo)
    assert "plain,duration" in complete_help("tracelane slices trace.json --sort du", demo)


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("tracelane telemetry trace.json --smi smi", "file,smi"),
        ("tracelane trace.json --marks ", "file,"),
        ("tracelane check trace.json --baseline a", "file,a"),
        ("tracelane --fresh tra", "file,tra"),
        ("tracelane --from step:3 trace.json --agai", "plain,--against"),
        ("tracelane -- info tra", "file,tra"),
        ("tracelane kernels --format=cs", "plain,csv"),
        ("tracelane cache cl", "plain,clear"),
    ],
)
def test_click_completes_by_itself(
    line: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What names a file is completed as one, choices are, and options of `view` behind a trace without it."""
    monkeypatch.setenv("_TRACELANE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == [answer]


def test_fish_gets_all_help_behind_a_tab(demo: Path) -> None:
    """What fish inserts ends at a tab, behind which all help stands, with its commas, under any click."""
    words = {
        "_TRACELANE_COMPLETE": "fish_complete",
        "COMP_WORDS": "tracelane info --fo",
        "COMP_CWORD": "--fo",
    }
    command = [sys.executable, "-m", "tracelane"]
    done = subprocess.run(
        command, env={**os.environ, **words}, cwd=demo, capture_output=True, encoding="utf-8", check=True
    )
    assert "plain\t--force\tRead the trace again even if it has an index.\n" in done.stdout
    words |= {"COMP_WORDS": "tracelane info --col", "COMP_CWORD": "--col"}
    done = subprocess.run(
        command, env={**os.environ, **words}, cwd=demo, capture_output=True, encoding="utf-8", check=True
    )
    assert re.search("^plain\t--color\t[^\t]*(auto: on a terminal)", done.stdout, re.MULTILINE)


FISH_LINES = {
    "tracelane kern": ["kernels"],
    "tracelane info --forc": ["--force"],
    "tracelane tra": ["trace.json"],
    "tracelane info tra": ["trace.json"],
    "tracelane help cache cl": ["clear"],
    "tracelane kernels --where 'a\nb' --fo": ["--force", "--format"],
}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("fish"), reason="no fish here")
def test_fish_completes_with_our_script(demo: Path) -> None:
    """fish runs the script without an error, and completes commands, options, files, and lines of two."""
    script = subprocess.run(
        [sys.executable, "-m", "tracelane", "completion", "fish"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    ).stdout
    program = f"function tracelane; {sys.executable} -m tracelane $argv; end\n"
    script = script.replace(" tracelane)", f" {sys.executable} -m tracelane)", 1)
    lines = "".join(f'complete -C "{line}"; echo -- {number}\n' for number, line in enumerate(FISH_LINES))
    (demo / "script.fish").write_text(program + script + lines, encoding="utf-8")
    environment = {**os.environ, "HOME": str(demo), "XDG_CONFIG_HOME": str(demo)}
    done = subprocess.run(
        ["fish", "--no-config", "script.fish"],
        env=environment,
        cwd=demo,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stderr == ""
    answers = re.split(r"^\d+\n", done.stdout.replace("-- ", ""), flags=re.MULTILINE)
    names = [[line.split("\t")[0] for line in answer.splitlines()] for answer in answers]
    assert dict(zip(FISH_LINES, names)) == FISH_LINES


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("help ke", {"kernels"}),
        ("help ", {*command_names()}),
        ("help cache cl", {"clear"}),
        ("help kernels --", set()),
        ("help trace", set()),
    ],
)
def test_help_completes_names_of_commands(
    shell: str,
    words: str,
    names: set[str],
    demo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind `help` every shell gets commands, behind one of two words the second, and nothing else."""
    typed = f"tracelane {words}".split(" ")
    monkeypatch.chdir(demo)
    monkeypatch.setenv("_TRACELANE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(typed))
    monkeypatch.setenv("COMP_CWORD", typed[-1] if shell == "fish" else str(len(typed) - 1))
    assert main([]) == 0
    answers = [line for line in capsys.readouterr().out.splitlines() if line]
    if shell == "zsh":  # kind, word and help on a line each
        assert answers[::3] == ["plain"] * len(names)
        assert {*answers[1::3]} == names
    else:
        separator = "," if shell == "bash" else "\t"
        kind = "plain," if shell == "bash" else "plain\t"
        assert {line.removeprefix(kind).split(separator)[0] for line in answers} == names


COLOURS = (
    ({}, True, True),
    ({}, False, False),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ({"FORCE_COLOR": "1"}, False, True),
    ({"CLICOLOR_FORCE": "1"}, False, True),
    ({"CLICOLOR_FORCE": "0"}, False, False),
    ({"CLICOLOR": "0"}, True, False),
    ({"TERM": "dumb"}, True, False),
)


@pytest.mark.parametrize(("environment", "is_terminal", "expected"), COLOURS)
def test_the_environment_says_whether_there_are_colours(
    environment: dict[str, str], is_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM mean what they mean elsewhere."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_colours(is_terminal) is expected


@pytest.mark.parametrize(
    ("own", "common", "command"),
    [
        (None, "sh -c", ["sh", "-c"]),
        ("cat", "sh", []),
        ("", "sh", []),
        ("sh", "cat", ["sh"]),
        (None, "no-such-pager", []),
        (None, "'", []),
    ],
)
def test_the_environment_names_the_pager(
    own: str | None, common: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRACELANE_PAGER goes before PAGER; cat, nothing, and what is not there are no pager."""
    monkeypatch.delenv("TRACELANE_PAGER", raising=False)
    monkeypatch.setenv("PAGER", common)
    if own is not None:
        monkeypatch.setenv("TRACELANE_PAGER", own)
    assert _pager() == command


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("pipx_metadata.json", "pipx inject tracelane fsspec s3fs"),
        ("uv-receipt.toml", "uv tool install tracelane --with fsspec --with s3fs"),
        ("pyvenv.cfg", "pip install fsspec s3fs"),
    ],
)
def test_hints_name_the_way_of_installing(mark: str, command: str, tmp_path: Path) -> None:
    """pipx and uv keep a file in their environments; elsewhere it is pip."""
    (tmp_path / mark).touch()
    assert install_hint("fsspec s3fs", tmp_path) == command


def test_help_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`help kernels` is `kernels --help`, `help` alone `--help`."""
    printed = []
    for words in (["help", "kernels"], ["kernels", "--help"], ["help"], ["--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and printed[2] == printed[3] and printed[0] != printed[2]


@pytest.mark.parametrize(
    ("options", "more", "is_coloured"),
    [
        ((), False, False),
        (("--color", "always"), False, True),
        (("--columns", "all", "--color", "never"), True, False),
    ],
)
def test_tables_in_pipes(
    options: tuple[str, ...],
    more: bool,
    is_coloured: bool,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have the columns for which 160 characters have room, --columns all has all; no text is cut."""
    monkeypatch.setenv("FORCE_COLOR", "")
    monkeypatch.delenv("COLUMNS", raising=False)
    path, name = small_file(tmp_path), "kernel_of_many_words_" * 4
    path.write_text(path.read_text(encoding="utf-8").replace(LONG_NAME, name), encoding="utf-8")
    assert main(["kernels", str(path), *options]) == 0
    printed = capsys.readouterr().out
    assert ("Stdev" in printed) is more and ("--columns all" in printed) is not more
    assert ("\x1b[1m" in printed) is is_coloured and name in printed


@needs(CORPUS)
@pytest.mark.parametrize(
    ("command", "path", "lead"),
    [
        (
            "ranks",
            "multirank/dlrm_8gpu_ranks0-3",
            "Rank 2 is last in 6 of 8 collectives: the other 3 ranks ",
        ),
        (
            "idle",
            "gpu/hta_a100_resnet_ddp_nccl.json.gz",
            "No stream of GPU 0 of rank 0 does anything for 509.725 ms, 76.4%",
        ),
    ],
)
def test_what_tables_come_to_is_said_first(
    command: str, path: str, lead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who kept whom waiting, and for how long no stream did anything, stands before the tables."""
    assert main([command, str(file(path))]) == 0
    assert capsys.readouterr().out.startswith(lead)


@pytest.mark.slow
@pytest.mark.skipif(not has_duckdb(), reason="DuckDB is not installed")
@pytest.mark.parametrize("out", ["slices.parquet", "slices.sqlite"])
def test_nothing_but_the_file_is_said(out: str, demo: Path, tmp_path: Path) -> None:
    """No library that writes complains when the process ends."""
    done = tracelane("export", str(demo), "-o", str(tmp_path / out))
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith(str(tmp_path / out))
