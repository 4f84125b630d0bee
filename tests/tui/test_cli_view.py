"""`tracelane TRACE`: the viewer on a terminal, a picture anywhere else."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from tests.waiting import PATIENCE_S, wait_until
from tracelane.tui.cli.main import main

from .cli_process import on_terminal, start_tracelane, tracelane, tracelane_here

NO_TEXTUAL = "sys.modules['textual'] = None"
ALTERNATE_SCREEN = "\x1b[?1049h"


@pytest.mark.slow
def test_picture_without_a_terminal(demo: Path, cache: str) -> None:
    """Into a pipe go lanes and a summary, without colours, without loading the viewer, and exit code 0."""
    done = tracelane(str(demo), "--index-dir", cache, "--height", "60", code=NO_TEXTUAL)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for text in ("AIU 0", "Stream 0", "ProfilerStep#4", "3,481 events"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("term", ["dumb", ""])
def test_picture_on_a_terminal_that_cannot_move_its_cursor(demo: Path, cache: str, term: str) -> None:
    """With TERM unset or dumb the picture is printed, though stdout is a terminal."""
    played = on_terminal(str(demo), "--index-dir", cache, TERM=term)
    assert played.code == 0
    assert "3,481 events" in played.screen and ALTERNATE_SCREEN not in played.screen


@pytest.mark.parametrize(("width", "height"), [(40, 8), (80, 24), (200, 60)])
def test_picture_has_the_size_asked_for(
    demo: Path, cache: str, width: int, height: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """No line is wider than --width, and the picture is no higher than --height."""
    arguments = ["--width", str(width), "--height", str(height), "--index-dir", cache]
    assert main([str(demo), *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    end = next(number for number, line in enumerate(lines) if "3,481 events" in line)
    assert end <= height
    assert max(map(len, lines[:end])) <= width


def test_window_and_lanes_are_chosen(demo: Path, cache: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--from and --to choose the time, --lanes the lanes: only what is asked for is drawn."""
    arguments = ["--index-dir", cache, "--height", "60"]
    assert main([str(demo), *arguments]) == 0
    everything = capsys.readouterr().out
    assert "step 3" in everything and "step 5" in everything
    assert main([str(demo), *arguments, "--from", "step:4"]) == 0
    step = capsys.readouterr().out
    assert "step 4" in step and "step 5" not in step
    assert main([str(demo), *arguments, "--lanes", "Stream"]) == 0
    streams = capsys.readouterr().out
    assert "Stream 0" in streams and "48284" not in streams and "48284" in everything


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "12"],
        ["--from", "step:99"],
        ["--from", "+2s", "--to", "+1s"],
        ["--to", "noon"],
        ["--from", "+99min"],
        ["--tz", "Nowhere"],
    ],
)
def test_times_that_mean_nothing_are_refused(
    demo: Path, cache: str, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A time that cannot be understood is wrong usage, told in one line."""
    assert main([str(demo), "--index-dir", cache, *options]) == 64
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("tracelane: ")


@pytest.mark.parametrize(
    "content", [None, b"", b"<!DOCTYPE html><html></html>", b"version https://git-lfs.github.com/spec/v1\n"]
)
def test_what_is_no_trace_ends_with_one_line(tmp_path: Path, content: bytes | None) -> None:
    """A missing file, an empty one, a web page, a Git LFS pointer: one line on stderr, exit code 2."""
    path = tmp_path / "trace.json"
    if content is not None:
        path.write_bytes(content)
    done = tracelane_here(str(path))
    assert done.returncode == 2
    assert done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("tracelane: ") and "Traceback" not in done.stderr


def test_directory_stands_for_its_traces(demo: Path, cache: str, tmp_path: Path) -> None:
    """A directory opens the traces in it; one without traces is refused."""
    done = tracelane_here(str(demo.parent), "--index-dir", cache)
    assert done.returncode == 0 and done.stdout.count("3,481 events") == 2
    assert tracelane_here(str(tmp_path)).returncode == 2


@pytest.mark.slow
def test_file_called_like_a_command(demo: Path, tmp_path: Path) -> None:
    """A trace called `info` opens as ./info and as `view info`."""
    (tmp_path / "info").write_bytes(demo.read_bytes())
    for arguments in (["./info"], ["view", "info"]):
        done = tracelane(*arguments, cwd=tmp_path)
        assert done.returncode == 0 and "3,481 events" in done.stdout, done.stderr


@pytest.mark.slow
def test_standard_input(demo: Path) -> None:
    """`-` reads the trace from standard input."""
    done = tracelane("-", stdin=demo)
    assert done.returncode == 0 and "3,481 events" in done.stdout, done.stderr


@pytest.mark.slow
def test_viewer_opens_on_a_terminal(demo: Path, cache: str) -> None:
    """On a terminal the viewer takes the screen, and Q leaves it with 0 and the screen given back."""
    played = on_terminal(str(demo), "--index-dir", cache, play=(("step 4", "q"),))
    assert played.code == 0
    assert ALTERNATE_SCREEN in played.screen and "\x1b[?1049l" in played.screen


@pytest.mark.slow
def test_keyboard_comes_back_after_standard_input(demo: Path) -> None:
    """A trace from standard input opens in the viewer, and the keyboard works."""
    played = on_terminal("-", stdin=demo, play=(("step 4", "q"),))
    assert played.code == 0 and ALTERNATE_SCREEN in played.screen


def test_ctrl_c_while_reading(tmp_path: Path) -> None:
    """Ctrl+C while a trace is read from standard input ends quietly with 130."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    source = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(pipe, os.O_WRONLY)
    os.set_blocking(source, True)
    os.write(writer, b'{"traceEvents": [\n')
    with start_tracelane("-", stdin=source) as process:
        wait_until(lambda: waiting_bytes(source) == 0, "the first bytes to be read")
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE_S)
    os.close(source)
    os.close(writer)
    assert process.returncode == 130, errors
    assert re.fullmatch(r"\s*", errors) and out == ""


def waiting_bytes(pipe: int) -> int:
    """Return how many bytes of a pipe nobody has read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.parametrize(
    ("play", "why"), [((("details", "\r"),), "Enter"), ((("", "w"),), "is there already")]
)
def test_no_key_of_a_test_depends_on_the_load(play: tuple[tuple[str, str], ...], why: str) -> None:
    """Enter as the first key, or a key that waits for what is on the screen anyway, is refused."""
    with pytest.raises(AssertionError, match=why):
        on_terminal("--version", play=play)
