"""Opening large traces on a terminal: how far they are read, waited for, nothing left behind by quitting."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path

import pytest

from tests.core.test_indexing import trace_file
from tests.events import complete
from tests.tui.cli_process import on_terminal, tracelane
from tests.tui.small_file import events
from tests.waiting import PATIENCE_S, wait_until
from tracelane.core.base.output import ERASE
from tracelane.core.base.progress import Progress
from tracelane.core.index.cache import BUILDING
from tracelane.core.index.captures import Choice
from tracelane.core.index.indexing import SEVERAL_WORTH_IT, WORTH_IT
from tracelane.core.index.opening import resolve_files
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace
from tracelane.tui.cli import viewer
from tracelane.tui.cli.viewer import open_files
from tracelane.tui.terminal.taken_screen import TakenScreen
from tracelane.tui.text.progress import REFRESH_S, ProgressBar

from .cli_process import start_tracelane

EVENTS, MANY = 60_000, 5
"""Events of a trace, and so many times as many of one whose indexing is broken off: on a loaded machine, too,
it goes on when the viewer's first screen is there.
"""


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trace_file(tmp_path_factory.mktemp("endless"), MANY * EVENTS, padding=240)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = trace_file(tmp_path_factory.mktemp("large"), EVENTS, padding=240)
    assert path.stat().st_size > WORTH_IT
    return path


def processes_of(folder: Path) -> list[bytes]:
    """Return the command lines of processes that have to do with a folder's trace."""
    commands = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"tracelane.core" in (line := (entry / "cmdline").read_bytes()):
                opened = [str(file.readlink()) for file in (entry / "fd").iterdir()]
                if any(str(folder) in name for name in opened):
                    commands.append(line)
        except OSError:
            continue
    return commands


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "code"), [((("indexing", "\x03"), ("y/n", "y")), 130), ((("indexing", "q"),), 0)]
)
def test_quitting_leaves_nothing(
    endless: Path, tmp_path: Path, keys: tuple[tuple[str, str], ...], code: int
) -> None:
    """Q, and y after Ctrl+C, end the viewer while it indexes; no process and no half index is left."""
    played = on_terminal(
        *("view", str(endless), "--index-dir", str(tmp_path)), play=keys, TRACELANE_DECODER="python"
    )
    assert played.code == code
    wait_until(lambda: not processes_of(tmp_path))
    assert not list(tmp_path.rglob(f"{BUILDING}*"))
    for manifest in tmp_path.rglob("manifest*"):  # a fast machine may have committed it just before
        Index.open(manifest.parent).close()


@pytest.mark.slow
def test_the_trace_is_shown_when_it_is_there(large: Path, tmp_path: Path) -> None:
    """When the index is there the trace is shown in the same viewer."""
    played = on_terminal(
        "view",
        str(large),
        "--index-dir",
        str(tmp_path),
        play=(("view ", "q"),),  # how long the view is: there is none before
        size=(120, 30),
    )
    assert played.code == 0
    assert list(tmp_path.rglob("manifest*")) and not list(tmp_path.rglob(f"{BUILDING}*"))


@pytest.mark.corpus
@pytest.mark.slow
def test_the_only_trace_of_a_folder(large: Path, tmp_path: Path) -> None:
    """A folder with one trace in it opens as that trace does, and tells what else lies there."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / large.name).symlink_to(large)
    (folder / "next.pt.trace.json.tmp").write_text("{", encoding="utf-8")
    played = on_terminal(
        "view",
        str(folder),
        "--index-dir",
        str(tmp_path / "index"),
        TRACELANE_DECODER="python",
        play=(("indexing", ""), ("still being written", "q")),
        size=(120, 30),
    )
    assert played.code == 0


@pytest.mark.slow
def test_what_is_no_trace_is_said_after_leaving(tmp_path: Path) -> None:
    """A large file without events ends the viewer with a plain line and the exit code of unreadable input."""
    path = tmp_path / "no.json"
    path.write_text('{"a": "' + "x" * WORTH_IT + '", "b": ', encoding="utf-8")
    played = on_terminal("view", str(path), "--index-dir", str(tmp_path / "index"))
    assert played.code == 2
    assert "no.json: no trace events in it" in played.screen
    assert not list(tmp_path.rglob(f"{BUILDING}*"))


@pytest.mark.slow
def test_without_a_terminal_a_picture_is_printed(large: Path, tmp_path: Path) -> None:
    """Where stdout is no terminal the picture comes when the index is there."""
    done = tracelane("view", str(large), "--index-dir", str(tmp_path), "--width", "80", "--height", "12")
    assert done.returncode == 0
    assert f"{EVENTS:,} events" in done.stdout and "indexing" not in done.stdout + done.stderr


RANKS = 6
EVENTS_GATHERING = 15_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ranks(tmp_path_factory.mktemp("large") / "run", EVENTS_GATHERING)


@pytest.fixture(scope="module")
def endless_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ranks(tmp_path_factory.mktemp("endless") / "run", MANY * EVENTS_GATHERING)


def ranks(run: Path, count: int) -> Path:
    """Write the ranks of a run, of so many events each, and return its folder."""
    run.mkdir()
    events = [complete(7 * n, 3, f"op{n % 50}", args={"padding": " " * 200}) for n in range(count)]
    for rank in range(RANKS):
        info = {"rank": rank, "world_size": RANKS}
        path = run / f"rank{rank}.json"
        path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}), encoding="utf-8")
    assert sum(path.stat().st_size for path in run.iterdir()) > SEVERAL_WORTH_IT
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "code"),
    [
        ((("rank 5", "q"),), 0),  # has its place, once any rank has lanes
        ((("indexing", "q"),), 0),  # in the header, from the first screen on
        ((("of 6 ranks", "\x03"), ("y/n", "y")), 130),
    ],
)
def test_quitting_leaves_nothing_gathering(
    endless_folder: Path, tmp_path: Path, keys: tuple[tuple[str, str], ...], code: int
) -> None:
    """Q, and y after Ctrl+C, end the viewer while it indexes; no process and no half index is left."""
    played = on_terminal(
        "view", str(endless_folder), "--index-dir", str(tmp_path), play=keys, TRACELANE_DECODER="python"
    )
    assert played.code == code
    wait_until(lambda: not processes_of(tmp_path))
    assert not list(tmp_path.rglob(f"{BUILDING}*"))
    for manifest in tmp_path.rglob("manifest*"):  # some were there already
        Index.open(manifest.parent).close()


@pytest.mark.corpus
@pytest.mark.slow
def test_all_are_shown_in_the_end(folder: Path, tmp_path: Path) -> None:
    """When all indexes are there the whole trace is shown in the same viewer, and the next time at once."""
    for _ in range(2):
        played = on_terminal(
            "view",
            str(folder),
            "--index-dir",
            str(tmp_path),
            play=((f"{RANKS} ranks in", "q"),),
            size=(120, 30),
        )
        assert played.code == 0
    assert "waits" not in played.screen
    assert len(list(tmp_path.rglob("manifest*"))) == RANKS and not list(tmp_path.rglob(f"{BUILDING}*"))


@pytest.mark.slow
def test_without_processes_it_opens_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no process can be started the one that asks indexes, before the viewer starts."""
    monkeypatch.setattr(viewer, "take_keyboard", lambda: True)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    files = resolve_files([folder], Choice(), tmp_path)
    opened = open_files(files, "run", IndexOptions(tmp_path), TakenScreen())
    assert isinstance(opened, Trace) and len(opened.sources) == RANKS


WHOLE = json.dumps({"traceEvents": events()})


def write_at_once(path: Path, text: str) -> None:
    """Write a file in one step: a program that watches it never sees it empty or half written."""
    new = path.with_name("new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


def test_it_opens_when_it_is_complete(tmp_path: Path) -> None:
    """Each reason to wait is said once; what is shown at the end is the complete trace."""
    path, live = tmp_path / "t.pt.trace.json", tmp_path / "t.pt.trace.json.tmp"
    with start_tracelane("view", str(path), "--wait", "--index-dir", str(tmp_path / "index")) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting: {path} is not there yet (Ctrl+C ends)\n"
        write_at_once(live, WHOLE[:1000])
        expected = f"waiting: {path} is still called {live.name}, 1000 B by now (Ctrl+C ends)\n"
        assert process.stderr.readline() == expected
        write_at_once(live, WHOLE)
        live.rename(path)
        out, rest = process.communicate(timeout=PATIENCE_S)
        assert "21 events" in out
        assert [line.split(" is ")[1].split(",")[0] for line in rest.splitlines()] == ["being written"]
        assert process.returncode == 0


def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    """Ctrl+C ends the wait with its own exit code and without a word more."""
    path = tmp_path / "t.json"
    with start_tracelane("view", str(path), "--wait") as process:
        assert process.stderr is not None
        assert "is not there yet" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
        assert process.stderr.read() == ""


def test_a_file_still_being_written_says_so(tmp_path: Path) -> None:
    """Without --wait a `.tmp` opens with what is there, and the summary says what it is."""
    live = tmp_path / "t.json.tmp"
    live.write_text(WHOLE[: WHOLE.rindex("}, {")], encoding="utf-8")
    with start_tracelane("view", str(live), "--index-dir", str(tmp_path / "index")) as process:
        out, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0
        assert "t.json.tmp is still being written" in out and "--wait" in out


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        """It is one."""
        return True


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return its time."""
        return self.now


@pytest.mark.parametrize(
    ("progress", "elapsed", "present", "absent"),
    [
        (Progress("reading", 0, 200_000_000), 0.0, ["reading t.json", "0 %"], ["MB/s", "left"]),
        (Progress("reading", 50_000_000, 200_000_000), 2.0, ["25 %", "25 MB/s", "6 s left"], []),
        (Progress("reading", 200_000_000, 200_000_000), 2.0, ["100 %", "100 MB/s", "0 s left"], []),
        (Progress("reading", 10**6, 10**9), 1.0, ["0 %", "1 MB/s", "16:39 min left"], []),
        (Progress("reading", 5_000_000, None), 0.1, ["5 MB"], ["%", "left"]),
        (Progress("reading", 5_000_000, None, 1234), 1.0, ["5 MB/s", "1,234 events"], ["%", "left"]),
    ],
)
def test_line_says_how_far(progress: Progress, elapsed: float, present: list[str], absent: list[str]) -> None:
    """Percent, rate and time left are right, and left out where they are not known."""
    line = ProgressBar("t.json", Terminal()).line(progress, elapsed)
    assert all(part in line for part in present), line
    assert not any(part in line for part in absent), line


def test_draws_rarely_and_cleans_up() -> None:
    """At most ten times a second, one line over the other, and nothing is left on the screen."""
    stream, clock = Terminal(), Clock()
    with ProgressBar("t.json", stream, clock) as bar:
        for step in range(1000):
            bar(Progress("reading", step, 1000))
            clock.now += REFRESH_S / 50
    drawn = stream.getvalue()
    assert 15 <= drawn.count(ERASE) <= 25
    assert drawn.endswith(ERASE) and "\n" not in drawn


def test_quiet_without_a_terminal() -> None:
    """A log file gets no bar."""
    stream = io.StringIO()
    with ProgressBar("t.json", stream) as bar:
        bar(Progress("reading", 1, 2))
    assert stream.getvalue() == ""


def test_hostile_names_stay_text() -> None:
    """A file name with an escape sequence does not reach the terminal as one."""
    stream = Terminal()
    with ProgressBar("\x1b[2Jt.json", stream) as bar:
        bar(Progress("reading", 1, 2))
    assert "\x1b[2J" not in stream.getvalue()
