"""A trace that is opened as the last time is on the screen before anything that draws is loaded."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.tui.slow_line import SlowLine
from tracelane.core.base.private import read_sealed_json, write_sealed_json
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.marks import Mark
from tracelane.core.index.version import DERIVED
from tracelane.core.trace import open_trace
from tracelane.tui.cli.viewer import open_files
from tracelane.tui.terminal.first_picture import SHOW
from tracelane.tui.terminal.taken_screen import NAME, TakenScreen
from tracelane.tui.view_state import keep_marks

SIZE = (100, 30)
NAME_OF_TRACE = "rank0.pt.trace.json"
TAKE = b"\x1b[?1049h"
RUN = "import sys\n{}\nfrom tracelane.tui.cli.main import main\nsys.exit(main(sys.argv[1:]))"
WITHOUT_DRAWING = 'sys.modules |= dict.fromkeys(("numpy", "rich.segment", "textual"))'


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first rank alone, which was looked at and left."""
    folder = tmp_path_factory.mktemp("left")
    write_demo(folder)
    seen(folder / NAME_OF_TRACE)
    return folder


@pytest.fixture
def trace(left: Path, tmp_path: Path) -> Path:
    """The same in a folder of its own."""
    return shutil.copytree(left, tmp_path / "left") / NAME_OF_TRACE


def viewer(
    trace: Path, *options: str, before: str = "", size: tuple[int, int] = SIZE, **more: str
) -> SlowLine:
    folder = str(trace.parent / "index")
    command = [sys.executable, "-c", RUN.format(before), "view", str(trace), "--index-dir", folder, *options]
    return SlowLine(command, size, environ={"COLORTERM": "truecolor", "LC_ALL": "C.UTF-8", **more})


def seen(trace: Path, *options: str) -> bytes:
    """Open a trace, move, and leave; return the first picture."""
    with viewer(trace, *options) as line:
        line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
        line.type("w")
        line.wait_for_quiet(0.5)
        line.type("q")
        assert line.wait_for_end() == 0
        return picture_in(line)


def picture_in(line: SlowLine) -> bytes:
    """Return what was drawn first on the other screen, empty where nothing was."""
    _, take, rest = line.received.partition(TAKE)
    return rest[: rest.index(SHOW.encode())] if take else b""


def shown_at_once(trace: Path, *options: str, size: tuple[int, int] = SIZE, **environ: str) -> bytes:
    """Return what is drawn where nothing that draws can be loaded; the terminal is as before afterwards."""
    with viewer(trace, *options, before=WITHOUT_DRAWING, size=size, **environ) as line:
        assert line.wait_for_end() == 1
        assert "1049" not in line.screen.modes and "numpy is missing" in line.screen.text
        return picture_in(line)


def test_at_once(trace: Path) -> None:
    """The view that was left is shown with nothing loaded, and is what is drawn then: it is drawn once."""
    picture = shown_at_once(trace)
    assert b"Stream 0" in picture
    with viewer(trace) as line:
        line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
        assert picture_in(line) == picture and line.received.count(TAKE) == 1
        assert line.received.count(b"Stream 0") == 1


def test_over_another_connection(trace: Path) -> None:
    """Over SSH it is there again, though each connection has other ports and terminals."""
    for port in ("1", "2"):
        with viewer(trace, SSH_CONNECTION=f"10.0.0.1 {port} 10.0.0.2 22", SSH_TTY=f"/dev/pts/{port}") as line:
            line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
            picture = picture_in(line)
    assert picture == shown_at_once(trace, SSH_CONNECTION="10.0.0.1 3 10.0.0.2 22", SSH_TTY="/dev/pts/3")
    assert shown_at_once(trace) == b""


def other_mark(trace: Path) -> None:
    opened = open_trace([trace], index_dir=trace.parent / "index")
    keep_marks(opened, [Mark(opened.span[0], opened.span[0], "here")])
    opened.close()


def other_view(trace: Path) -> None:
    for path in (trace.parent / "index" / "marks").glob("*.view.json"):
        path.write_text("{}", encoding="utf-8")


def damaged(trace: Path) -> None:
    for path in (trace.parent / "index").glob(f"*/*/{DERIVED}/{NAME}"):
        path.write_bytes(path.read_bytes()[:-100])


def other_file(trace: Path) -> None:
    trace.write_text(trace.read_text(encoding="utf-8").replace("aten::mm", "aten::bmm", 1), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "options", "size", "environ"),
    [
        (other_mark, (), SIZE, {}),
        (other_view, (), SIZE, {}),
        (damaged, (), SIZE, {}),
        (other_file, (), SIZE, {}),
        (None, (), (90, 30), {}),
        (None, (), SIZE, {"COLORTERM": ""}),
        (None, ("--fresh",), SIZE, {}),
        (None, ("--range", "step:4"), SIZE, {}),
        (None, ("--force",), SIZE, {}),
    ],
)
def test_not_where_it_would_be_another(
    change: Callable[[Path], None] | None,
    options: tuple[str, ...],
    size: tuple[int, int],
    environ: dict[str, str],
    trace: Path,
) -> None:
    """What marks, views, files, sizes, colours or options have changed is not shown as it was."""
    assert shown_at_once(trace)
    if change is not None:
        change(trace)
    assert shown_at_once(trace, *options, size=size, **environ) == b""


def test_what_is_wrong_is_drawn_over(trace: Path) -> None:
    """A picture of other code stands there until the right one is drawn, which is kept then."""
    picture = seen(trace, "--fresh")
    with viewer(trace, "--fresh") as line:  # leaving has kept the picture of another view
        line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
    assert shown_at_once(trace, "--fresh") == picture
    (path,) = (trace.parent / "index").glob(f"*/*/{DERIVED}/{NAME}")
    subject, text = read_sealed_json(path)
    write_sealed_json(path, (subject, text.replace("Stream 0", "Stream X")))
    with viewer(trace, "--fresh") as line:
        line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
        assert b"Stream X" in line.received and "Stream X" not in line.screen.text
        assert "Stream 0" in line.screen.text and line.received.count(TAKE) == 1
    assert shown_at_once(trace, "--fresh") == picture


STANDING_STILL = """
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            import time
            time.sleep(600)
sys.meta_path.insert(0, Slow())
"""


def test_killed_behind_it(trace: Path) -> None:
    """A viewer that is killed while it loads leaves the terminal as it was, and it is said."""
    with viewer(trace, before=STANDING_STILL) as line:
        line.wait_for("Stream 0")
        os.kill(line.pid, signal.SIGKILL)
        line.wait_for_bytes("tracelane was ended by")
        assert "1049" not in line.screen.modes


def test_interrupted_behind_it(trace: Path) -> None:
    """Ctrl+C ends it as well, with nothing left on the screen."""
    with viewer(trace, before=STANDING_STILL) as line:
        line.wait_for("Stream 0")
        line.type("\x03")
        assert line.wait_for_end() == 130
        assert "1049" not in line.screen.modes and "Traceback" not in line.screen.text


def test_interrupted_as_the_guard_begins(trace: Path) -> None:
    """Ctrl+C in the moment in which the process that guards the terminal begins is no error in it."""
    interrupted = (
        "import os, signal\nos.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    )
    with viewer(trace, before=interrupted + STANDING_STILL) as line:
        line.wait_for("Stream 0")
        line.type("\x03")
        assert line.wait_for_end() == 130
        assert b"Traceback" not in line.received and b"Exception" not in line.received


def test_indexing_is_not_drawn_over_it(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an index turns out to be damaged the screen is given back before the file is read."""
    from tracelane.core.index.captures import Choice
    from tracelane.core.index.opening import resolve_files
    from tracelane.core.index.options import IndexOptions

    written: list[str] = []
    monkeypatch.setattr("tracelane.tui.terminal.taken_screen._write", written.append)
    shutil.rmtree(trace.parent / "index")
    options = IndexOptions(trace.parent / "index")
    screen = TakenScreen()
    for is_there in (False, True):
        screen.show("a picture")
        opened = open_files(resolve_files([trace], Choice(), None), "", options, screen)
        assert bool(screen.picture) == is_there
        opened.close()
