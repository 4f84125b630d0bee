"""`tracelane TRACE`: the viewer on a terminal, a picture anywhere else, the line that shows a view again."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import signal
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.core.test_device_state import open_ranks
from tests.corpus import file, for_files
from tests.events import complete, open_events
from tests.small_index import L, S, write_index
from tests.tui.small_trace import MS, START
from tests.waiting import PATIENCE_S, wait_until
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.captures import Choice
from tracelane.core.index.store import Index
from tracelane.core.logs.overlay import LogOptions, open_overlay
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.commands import command_named
from tracelane.tui.cli.main import main
from tracelane.tui.cli.options import LOGS
from tracelane.tui.cli.trace_options import TraceOptions
from tracelane.tui.draw.glyphs import ASCII
from tracelane.tui.draw.palette import Depth
from tracelane.tui.session import Session, Viewport
from tracelane.tui.text.picture import picture, plain_picture
from tracelane.tui.view_line import view_line

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


def test_a_printed_picture_tells_waiting_from_work(
    tmp_path: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What waits for another rank is hatched in print as it is on the screen, also in the minimap."""
    open_ranks(tmp_path, 2, 2)
    paths = [str(tmp_path / f"rank{rank}.json") for rank in range(2)]
    assert main([*paths, "--index-dir", cache, "--width", "200"]) == 0
    lines = capsys.readouterr().out.splitlines()
    hatched = [line for line in lines if "░" in line]
    bar, minimap, *ranks = hatched
    assert "idle" in bar and minimap.startswith("device") and ranks, lines[:20]
    assert main(["report", *paths, "--index-dir", cache]) == 0
    assert "░" in capsys.readouterr().out


@pytest.mark.parametrize(("chosen", "has_colours"), [("always", True), ("never", False), ("auto", False)])
def test_colours_into_a_pipe(
    chosen: str, has_colours: bool, demo: Path, cache: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--color always` colours a picture that goes into a pipe, and nothing else does."""
    assert main([str(demo), "--index-dir", cache, "--color", chosen]) == 0
    assert ("\x1b[" in capsys.readouterr().out) == has_colours


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


ODD = [
    "odd/ansi_bidi_names.json",
    "odd/many_threads_5000.json",
    "odd/deep_nesting_3000.json",
    "odd/id_types.json",
]
HARMLESS = set("\n")


def session_of(trace: Trace) -> Session:
    start, end = trace.opening_span
    return Session(Viewport(start, max(1, end - start), 1).resized(100), start)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (200, 50), (20, 4), (0, 0), (1000, 5)])
def test_any_size(trace: Trace, width: int, height: int) -> None:
    """The picture has at most its height, lines of exactly its width, and counts what does not fit."""
    lines = picture(trace, session_of(trace), (width, height)).plain.split("\n")
    assert len(lines) <= max(4, height)
    assert all(cell_len(line) == max(20, width) for line in lines)
    if height == 5:
        assert "more lane" in lines[-1] and "below" in lines[-1]


def test_colour_changes_no_layout(trace: Trace) -> None:
    """With and without colours the picture has the same lines; without, no style at all but bold."""
    session = session_of(trace)
    coloured, plain = picture(trace, session, (100, 40)), picture(trace, session, (100, 40), Depth.NONE)
    assert len(coloured.plain.split("\n")) == len(plain.plain.split("\n"))
    assert any(getattr(span.style, "bgcolor", None) for span in coloured.spans)
    assert not any(getattr(span.style, "color", None) for span in plain.spans)


def test_window_and_lanes_come_from_the_session(trace: Trace) -> None:
    """The session's window and :only decide what is seen."""
    session = Session(Viewport(START + 10 * MS, 10 * MS, 50), START + 12 * MS, only="main")
    text = plain_picture(trace, session, (120, 40))
    assert "ProfilerStep#1" in text and "ProfilerStep#2" not in text and "Stream" not in text
    assert "lanes hidden" in text


def test_ascii(tmp_path: Path) -> None:
    """With the ASCII set nothing else is written, and wide names keep the grid."""
    lane = L([S(0, 100, "层归一化"), S(100, 100, "é")], one_row=True, process_name="Zürich")
    write_index(tmp_path / "index", [lane])
    trace = Trace([Index.open(tmp_path / "index")])
    session = session_of(trace)._replace(range=(20, 60))
    lines = picture(trace, session, (80, 24), glyphs=ASCII).plain.split("\n")
    assert all(line.isascii() for line in lines), lines
    assert {len(line) for line in lines} == {80}


@for_files("name", ODD)
def test_odd_traces(name: str, corpus_cache: Path) -> None:
    """Names with escapes, thousands of threads and depths: the grid holds, no control character gets out."""
    if not file(name).exists():
        pytest.skip(f"{name} is not in the corpus")
    trace = open_trace([file(name)], index_dir=corpus_cache)
    text = picture(trace, session_of(trace), (100, 60)).plain
    assert all(character.isprintable() or character in HARMLESS for character in text)
    assert all(cell_len(line) == 100 for line in text.split("\n") if "more lines" not in line)


def test_folded_processes_are_told_apart(tmp_path: Path) -> None:
    """Where a folded process's title has no room for its number of lanes, it still says which one it is."""
    threads = [L([S(0, 100)], pid=str(pid), tid=str(thread)) for pid in (101, 202) for thread in range(60)]
    write_index(tmp_path / "i", threads)
    trace = Trace([Index.open(tmp_path / "i")])
    session = Session(Viewport(0, 100, 60), 0)
    for width, counted in ((80, False), (200, True)):
        lines = plain_picture(trace, session, (width, 12))
        assert "process 101" in lines and "process 202" in lines
        assert ("60 lanes" in lines) == counted


@pytest.fixture(scope="module")
def trace_line(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    folder = tmp_path_factory.mktemp("line")
    events = [complete(100 * n, 50, f"{'mm' if n % 2 else 'add'}{n}") for n in range(10)]
    return open_events(folder, events)


@pytest.mark.parametrize(
    ("search", "filter"),
    [
        ("mm", ""),
        ("", "cat:cpu_op 'a b'"),
        ("-mm dur>1ms", "-add"),
        ("--x", "/^-/"),
        ("'it''s'", "$HOME `x`"),
    ],
)
def test_search_and_filter_come_back(trace_line: Trace, search: str, filter: str) -> None:
    """The line's options, read as the shell and `view` read them, are the session's search and filter."""
    session = first_session(trace_line, 80)._replace(search=search, filter=filter)
    words = shlex.split(view_line(trace_line, session))
    assert words[:2] == ["tracelane", "view"]
    params = command_named("view").make_context("view", words[2:]).params
    assert (params["search"] or "", params["where"] or "") == (search, filter)


def test_logs_come_back_with_their_devices(tmp_path: Path) -> None:
    """The line lays the log over the same devices by the same clock, though another would be proposed."""
    write_demo(tmp_path)
    trace_line = open_trace(tmp_path / "rank0.pt.trace.json", index_dir=tmp_path / "index")
    options = LogOptions("+02:00", 7207.5, {"1": "0"})
    overlay = open_overlay(trace_line, [tmp_path / "aiu-smi.log"], options)
    words = shlex.split(view_line(overlay, first_session(overlay, 80)))
    params = command_named("view").make_context("view", words[2:]).params
    given = TraceOptions(**{name: params[name] for name in LOGS})
    again = open_overlay(trace_line, given.logs, given.log_options)
    assert again.placed[0].proposal.device_of == overlay.placed[0].proposal.device_of
    assert again.placed[0].proposal.device_of["1"] == "0"
    assert again.placed[0].proposal.shift_ns == overlay.placed[0].proposal.shift_ns


def test_all_captures_come_back(tmp_path: Path) -> None:
    """Files of several captures that are open together are asked for together."""
    paths = []
    for capture, second in (("old", 1_600_000_000), ("new", 1_700_000_000)):
        for rank in (0, 1):
            paths.append(tmp_path / f"{capture}_rank{rank}.json")
            paths[-1].write_text(json.dumps({"traceEvents": [complete(1, 2, capture)]}), encoding="utf-8")
            os.utime(paths[-1], (second, second))
    for choice in (Choice(capture="all"), Choice(capture="2")):
        trace_line = open_trace(tmp_path, choice=choice, index_dir=tmp_path / "index")
        words = shlex.split(view_line(trace_line, first_session(trace_line, 80)))
        params = command_named("view").make_context("view", words[2:]).params
        parsed = Choice(capture=params["capture"] or "")
        again = open_trace(params["traces"], choice=parsed, index_dir=tmp_path / "index")
        assert [source.path for source in again.sources] == [source.path for source in trace_line.sources]


def test_a_picture_tells_what_was_found_and_hidden(trace_line: Trace) -> None:
    """A line counts the hits and marks where they lie, another says what is hidden; it is no higher."""
    session = first_session(trace_line, 80)._replace(search="mm", filter="dur>1us -mm1")
    lines = plain_picture(trace_line, session, (80, 12)).split("\n")
    assert len(lines) <= 12
    hit_line = next(line for line in lines if line.startswith("4 found"))
    assert len(re.findall("▾+|v+", hit_line.split("│")[-1])) == 4
    assert "dur>1us -mm1: 1 of 10 slices hidden" in lines
    assert "mm1" not in "".join(line for line in lines if "[" in line)
