"""The command line's entry: commands, paths, missing files, odd values, and how failing looks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.tui.cli_commands import BUG, CODES, ENDLESS, commands
from tests.tui.small_file import small_file
from tests.waiting import PATIENCE_S
from tracelane.core.base.errors import CacheError, TracelaneError, UnreadableError, UsageError
from tracelane.core.capture.live import PACE
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.marks import read_object
from tracelane.tui.cli import main as entry
from tracelane.tui.cli.main import MEMORY_HINT, command_names, main, with_command

from .cli_process import tracelane, tracelane_here


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        (["trace.json"], ["view", "trace.json"]),
        (["./index"], ["view", "./index"]),
        (["-"], ["view", "-"]),
        (["--from", "+1ms", "t.json"], ["view", "--from", "+1ms", "t.json"]),
        (["info.json", "index"], ["view", "info.json", "index"]),
        (["info", "t.json"], ["info", "t.json"]),
        (["view", "info"], ["view", "info"]),
        (["--version"], ["--version"]),
        (["--help"], ["--help"]),
        (["--", "info"], ["view", "--", "info"]),
    ],
)
def test_view_is_inserted_before_paths(given: list[str], understood: list[str]) -> None:
    """Only an exact command, --help or --version in first place is not a trace to view."""
    assert with_command(given) == understood


@pytest.mark.parametrize(
    "arguments",
    [
        ["info"],
        ["view"],
        ["info", "a", "b"],
        ["--no-such-option"],
        ["view", "--width", "x", "t.json"],
        ["cache", "clear", "--older-than", "soon"],
        ["view", "--threads", "many", "t.json"],
        ["view", "--lanes", "(", "t.json"],
        ["view", "-", "-"],
    ],
)
def test_usage_errors_exit_64(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What the command line does not understand ends with 64 and something on stderr."""
    assert main(arguments) == 64
    captured = capsys.readouterr()
    assert captured.err and not captured.out and "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("kernels {trace} --lanes nosuch", "no lane title matches 'nosuch'"),
        ("kernels {trace} --runs nosuch", "no device work here has a name that matches 'nosuch'"),
        ("kernels - -", "standard input can be read once: give - once"),
        ("critical-path {folder} --start-rank 5", "there is no rank 5, but ranks 0-1"),
        ("critical-path {trace} --start-rank 5", "there is no rank 5, but rank 0"),
        ("critical-path {small} --start-rank 5", "there is no rank 5: no file names its rank"),
    ],
)
def test_what_is_not_there_is_said(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name, a rank or an input that is not there: what was looked for, and what there is, in one line."""
    write_demo(tmp_path / "demo")
    small = small_file(tmp_path)
    line = words.format(
        trace=tmp_path / "demo" / "rank0.pt.trace.json", folder=tmp_path / "demo", small=small
    )
    assert main([*line.split(), f"--index-dir={tmp_path / 'index'}"]) == 64
    assert capsys.readouterr().err == f"tracelane: {said}\n"


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (UnreadableError("x.json is empty"), 2, "tracelane: x.json is empty\n"),
        (UsageError("no such step"), 64, "tracelane: no such step\n"),
        (CacheError("no room"), 1, "tracelane: no room\n"),
        (PermissionError(13, "Permission denied", "out"), 1, "tracelane: out: Permission denied\n"),
        (MemoryError(), 1, f"tracelane: {MEMORY_HINT}\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
        (
            ValueError("two\nlines \x1b[31m"),
            1,
            "tracelane: this should not have happened: ValueError: two lines ⟨U+001B⟩[31m "
            "(TRACELANE_DEBUG=1 shows where)\n",
        ),
    ],
)
def test_every_failure_is_one_line(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A failure is told in one harmless line with its exit code; being interrupted says nothing."""

    @click.command()
    def failing() -> None:
        raise error

    monkeypatch.setattr(entry, "_let_go", lambda stream: None)
    monkeypatch.setattr(entry.tracelane, "get_command", lambda ctx, name: failing)
    assert main(["info"]) == code
    assert capsys.readouterr().err == text


def test_debug_shows_where(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """With TRACELANE_DEBUG=1 the traceback comes with the line."""

    @click.command()
    def failing() -> None:
        raise ValueError("oops")

    monkeypatch.setenv("TRACELANE_DEBUG", "1")
    monkeypatch.setattr(entry.tracelane, "get_command", lambda ctx, name: failing)
    assert main(["info"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_version() -> None:
    """--version names the installed package, whether it has its native core, and what it runs on."""
    from importlib.metadata import version

    from tracelane.core.native.library import native_library

    native = native_library()
    done = tracelane_here("--version")
    first, *others = [line for line in done.stdout.splitlines() if not line.startswith("  commit ")]
    assert (done.returncode, first) == (0, f"tracelane {version('tracelane')}")
    assert others[0] == f"  native core {f'no ({native.reason})' if native.functions is None else 'yes'}"
    names = [line.split()[0] for line in others[1:]]
    assert {"index", "Python", "click", "ijson", "numpy", "orjson", "rich", "textual"} <= set(names)
    assert f"  numpy {version('numpy')}" in others


def test_help_needs_neither_textual_nor_numpy() -> None:
    """--help answers without loading the viewer or the arrays."""
    code = "sys.modules.update(textual=None, numpy=None, rich=None)"
    done = tracelane("--help", code=code)
    assert done.returncode == 0, done.stderr


def test_missing_numpy_is_told_in_one_line(tmp_path: Path) -> None:
    """Without numpy one line says how to get the image's."""
    done = tracelane("info", "t.json", code="sys.modules['numpy'] = None", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1 and "--system-site-packages" in done.stderr


def test_closed_pipe_is_quiet() -> None:
    """A reader that goes away ends the command without a word."""
    program = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(['--help']))"
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=PATIENCE_S,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_pattern_that_matches_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a pattern matches counts as before."""
    here = small_file(tmp_path)
    assert main(["steps", str(tmp_path / "sm*.json")]) == 0
    expected = capsys.readouterr().out
    assert main(["steps", str(here)]) == 0
    assert capsys.readouterr().out == expected


def test_a_file_with_the_name_of_a_misspelt_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A word that is near a command's name, and one that help has, is a file where there is one."""
    monkeypatch.chdir(tmp_path)
    words = "kernel Kernels infoo findngs veiw mem sumary dif idel help version"
    for word in words.split():
        small_file(tmp_path).rename(tmp_path / word)
        assert main([word]) == 0
        capsys.readouterr()


def test_commands_are_not_near_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command is never taken for another one that is misspelt."""
    monkeypatch.chdir(tmp_path)
    assert len(command_names()) > 20
    for name in command_names():
        assert main([name, "--help"]) == 0


NUMBERS = (
    *("nan", "inf", "-inf", "1e999", "1e300", "-1e300", "1e-400", "-1", "0", "1e5"),
    *("1_000", "0x10", "\u0663", "1e30G", "NaNs"),
    *("9" * 400, "1" * 40, "-" + "9" * 30),
)
TIMES = (
    *["+1e300ms", "@1e300µs", "+nanms", "step:-1", "25:99:99", "1e300..2e300", ".."],
    "step:" + "9" * 30,
)
PAIRS = ("1=1e300", "0=nan", "0=" + "9" * 400, "kernels.calls=1e999", "kernels.calls=nan", "mark:")
TEXTS = ("", " ", "dur>1e300s", "dur>nan", "arg.n>" + "9" * 400, "(" * 2000, "[" * 2000, "\udcff", "\x1b[2J")
VALUES = (*NUMBERS, *TIMES, *PAIRS, *TEXTS)
SHARES = 12
WRITES = {"output", "out", "bundle", "log", "index_dir", "junit"}
"""Options that name files to write."""


def options() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (command, option, values) of every option with a value.

    Of an option that commands share the first gets all values, each of the others every twelfth.
    """
    commands_with: Counter[tuple[str, str | None]] = Counter()
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.is_flag and parameter.name not in WRITES:
                option = max(parameter.opts, key=len)
                before = commands_with[option, parameter.help]
                commands_with[option, parameter.help] += 1
                yield name, option, VALUES[before % SHARES :: SHARES] if before else VALUES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    small_file(folder)
    write_demo(folder / "demo")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "option", "values"),
    options(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_value_of_an_option_is_a_surprise(
    command: str,
    option: str,
    values: tuple[str, ...],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is given, the exit code is a documented one and what is wrong is said in one line."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("tracelane.tui.cli.capture.PACE", PACE._replace(listen_s=0))
    monkeypatch.setenv("KINETO_IPC_SOCKET_DIR", str(folder))
    trace = str(folder / "small.json")
    needed = {
        "diff": [trace, trace],
        "check": [trace, "--max", "kernels.calls=1"],
        "chain": [trace, "--name", "launch"],
        "cut": [trace, "--from", "step:0", "-o", str(folder / "cut.json"), "--force"],
        "demo": ["--out", str(folder / "made"), "--no-open"],
    }
    words = command.split()
    arguments = needed.get(command, [] if words[0] in ("cache", "capture") else [trace])
    more = ["--smi", str(folder / "demo" / "aiu-smi.log")] if option.startswith("--smi-") else []
    for value in values:
        ends = ["--", "true"] if command in ENDLESS else []
        code = main([*words, *arguments, *more, f"{option}={value}", *ends])
        out, errors = capsys.readouterr()
        assert code in CODES, (value, code)
        for text in (out, errors):
            assert BUG not in text and "Traceback" not in text, (value, errors)
        if code:
            said = [line for line in errors.splitlines() if line.startswith("tracelane: ")]
            assert len(said) <= 1, (value, errors)


DEEP = 100_000


@pytest.mark.parametrize(
    ("arguments", "name", "text", "code"),
    [
        (("check", "--limits", "{file}"), "limits.toml", "max = " + "[" * DEEP, 64),
        (("check", "--limits", "{file}"), "limits.toml", "[max]\n'kernels.calls' = " + "9" * 400, 64),
        (("diff", "{file}"), "old.json", '{"schema":2,"tables":' + "[" * DEEP, 2),
    ],
)
def test_files_nested_too_deeply_are_refused_in_one_line(
    arguments: tuple[str, ...],
    name: str,
    text: str,
    code: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Limits, marks and summaries that nobody wrote by hand end in a line that names the file."""
    file = folder / name
    file.write_text(text, encoding="utf-8")
    words = [word.format(file=file) for word in arguments]
    assert main([words[0], str(folder / "small.json"), *words[1:]]) == code
    errors = capsys.readouterr().err
    assert errors.startswith("tracelane: ") and errors.count("\n") == 1 and len(errors) < 400
    assert BUG not in errors


def test_deep_marks_are_refused_in_one_line(tmp_path: Path) -> None:
    """A file of marks that is nested too deeply is named."""
    path = tmp_path / "marks.json"
    path.write_text('{"marks":' + "[" * DEEP, encoding="utf-8")
    with pytest.raises(TracelaneError, match=r"marks\.json is not JSON"):
        read_object(path)


@pytest.mark.parametrize("command", ["info", "slices", "ops", "kernels", "view"])
def test_deep_identifiers_of_a_trace_are_shown_as_text(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process, thread or shape of a thousand brackets is what it says, and nothing fails."""
    deep = "[" * 5000 + "]" * 5000
    event = f'{{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"pid":{deep},"tid":{deep}'
    shapes = '{"ph":"X","cat":"cpu_op","name":"a","ts":9,"dur":2,"pid":1,"tid":1,"args":{"Input Dims":' + deep
    (tmp_path / "t.json").write_text(f'{{"traceEvents":[{event}}},{shapes}}}}}]}}', encoding="utf-8")
    more = {"info": ["--json"], "slices": ["--format", "json"], "ops": ["--group-by", "shape"]}.get(
        command, []
    )
    assert main([command, str(tmp_path / "t.json"), *more, "--index-dir", str(tmp_path / "index")]) == 0
    assert BUG not in capsys.readouterr().err
