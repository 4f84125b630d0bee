"""The first picture is there before Textual is loaded; at the first start three keys are said once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyte
import pytest

from tests.tui.cli_process import on_terminal
from tests.tui.driver import screen_text
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.version import DERIVED
from tracelane.core.trace import open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.cli.viewer import THREE_KEYS, first_start_notes
from tracelane.tui.config import DARK_THEME
from tracelane.tui.device_facts import NAME
from tracelane.tui.draw.colour import SURFACES
from tracelane.tui.draw.room import Room, Strips, room_of
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.session import Session, Viewport
from tracelane.tui.terminal.first_picture import SHOW
from tracelane.tui.view_state import Prepared
from tracelane.tui.widgets.bars import MessageLine

TAKE = b"\x1b[?1049h"
UNDRAWN = re.compile(rb"\x1b\[(?:[<>=?][0-9;$]*[a-zA-Z]|[0-9;?]*\$p)")
"""Sequences that draw nothing, and that pyte would write as text."""
STEP = 400
"""Bytes after which the screen is looked at."""
PANEL, BACKGROUND = (
    colour.removeprefix("#") for colour in (SURFACES[DARK_THEME].panel, SURFACES[DARK_THEME].background)
)
FACTS, JUDGED = (f"index/*/*/{DERIVED}/{name}-*" for name in (NAME, "findings"))
Cell: TypeAlias = tuple[str, str, str]
Cells: TypeAlias = list[list[Cell]]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first rank, indexed: two ranks are a line each."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)
    subprocess.run(_command(folder, "index"), check=True, capture_output=True)
    return folder


def _command(folder: Path, word: str, *options: str) -> list[str]:
    return tracelane_command(
        word, str(folder / "rank0.pt.trace.json"), "--index-dir", str(folder / "index"), *options
    )


class Seen:
    """What a terminal shows of what it was sent."""

    def __init__(self, size: tuple[int, int], lines: range) -> None:
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._lines = lines

    def feed(self, data: bytes) -> None:
        """Take what was sent."""
        self._stream.feed(UNDRAWN.sub(b"", data))

    @property
    def cells(self) -> Cells:
        """Texts and colours; a blank has no colour of its own."""
        rows = [[self._screen.buffer[y][x] for x in range(self._screen.columns)] for y in self._lines]
        return [[(c.data, c.bg, c.fg if c.data != " " else "") for c in row] for row in rows]


class Opening(NamedTuple):
    """What was sent up to the first picture, and until the last notice was closed; lines of the screen."""

    first: bytes
    data: bytes
    until_closed: int
    room: Room
    bottom: int  # the line of the panel's tabs, or of the footer


def open_demo(demo: Path, size: tuple[int, int], options: tuple[str, ...]) -> Opening:
    """Open the demo until nothing more is drawn, then close its notices."""
    command = _command(demo, "view", "--fresh", *options)
    with SlowLine(command, size, environ={"COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}) as line:
        line.wait_until(lambda: line.questions > 0, "the viewer's first frame")
        line.wait_until(lambda: bool(list(demo.glob(FACTS)) and list(demo.glob(JUDGED))), "facts stored")
        line.wait_for_quiet(0.5)
        until_closed = len(line.received)
        while "Esc message" in line.screen.text:  # notices are closed one after the other
            line.type("\x1b")
            line.wait_for_quiet(0.5)
        data = line.received
        line.type("q")  # which replaces the picture that is kept of this view
        assert line.wait_for_end() == 0
    panel = Session(Viewport(0, 1, 1), 0).panel_size
    room = room_of(size[1], panel, maximised=False, empty=True, strips=Strips(verdict=2, ruler=2))
    end = data.index(SHOW.encode()) + len(SHOW)
    whole = Seen(size, range(size[1] - room.footer))
    whole.feed(data[:end])
    panels = [y for y, row in enumerate(whole.cells) if {background for _, background, _ in row} == {PANEL}]
    assert data.count(TAKE) == 1
    bottom = panels[-1] if room.panel else size[1] - room.footer
    return Opening(data[:end], data, until_closed, room, bottom)


SIZES = [
    ((120, 40), ()),
    ((80, 24), ("--range", "step:4")),
    ((60, 12), ("--lanes", "Stream")),
    ((30, 5), ()),
]


@pytest.mark.slow
@pytest.mark.parametrize(("size", "options"), SIZES)
@pytest.mark.parametrize("is_warm", [False, True])
def test_the_viewer_goes_on_with_the_picture(
    demo: Path, is_warm: bool, size: tuple[int, int], options: tuple[str, ...]
) -> None:
    """Ruler and lanes of the first picture are the viewer's in text and colours, and never change until the
    first key but where a message lies over the lowest lanes. Where it is not known yet what devices did, what
    is outlined may change, and nothing else; once it is known, verdict and minimap are the viewer's, too.
    """
    for stored in [] if is_warm else [*demo.glob(FACTS), *demo.glob(JUDGED)]:
        stored.unlink()
    if is_warm and not [*demo.glob(FACTS)]:
        open_demo(demo, size, ())
    data = open_demo(demo, size, options)
    room = data.room
    top = room.header if is_warm else room.header + room.verdict + room.minimap
    seen = Seen(size, range(top, data.bottom))
    seen.feed(data.first)
    first = seen.cells
    if size[1] >= 12:
        assert "Stream" in "".join(text for row in first for text, *_ in row)
    if is_warm and room.verdict:
        offered = room.verdict - 1  # only the viewer says which key shows its place
        sentence = "".join(text for text, *_ in first[offered]).rstrip()
        assert sentence
        first[offered] = first[offered][: len(sentence)]
    was_outlined: Callable[[Cell], bool] = (lambda _: False) if is_warm else is_outlined
    rest = UNDRAWN.sub(b"", data.data[len(data.first) : data.until_closed])
    for start in range(0, len(rest), STEP):
        seen.feed(rest[start : start + STEP])
        assert same(seen.cells, first, was_outlined)
    seen.feed(data.data[data.until_closed :])
    assert same(seen.cells, first, was_outlined)


def same(now: Cells, before: Cells, was_outlined: Callable[[Cell], bool]) -> bool:
    """Tell whether no cell has changed but under messages, and where it was not known what to draw."""
    pairs = (pair for row in zip(now, before) for pair in zip(*row))
    return all(one == other or one[1] == PANEL or was_outlined(other) for one, other in pairs)


def is_outlined(cell: Cell) -> bool:
    """Tell whether nothing is filled where a cell is: it has the background of the screen."""
    return cell[1] == BACKGROUND


WITHOUT_TEXTUAL = """
import atexit, pathlib, sys
sys.modules["textual"] = None
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_text("\\n".join(sys.modules)))
from tracelane.tui.cli.main import main
sys.exit(main(sys.argv[2:]))
"""


NOT_YET = (
    *("core.base.pattern", "core.base.picture", "core.base.whole_file"),
    *("core.export.listing", "core.logs.overlay"),
    *("core.index.build", "core.index.column_files", "core.index.file_facts", "core.index.lanes"),
    *("core.query.filter", "core.query.flows", "core.query.hits", "core.query.rowview"),
    *("core.read.batch", "core.read.deflated", "core.read.json_text"),
    *("core.read.repair", "core.read.scan", "core.tables.device.gap", "core.tables.device.rank_activity"),
    *(f"core.tables.findings.{name}" for name in ("f", "judge", "host", "device")),
    *("core.tables.frame.frame", "core.tables.selection", "tui.cli.printing", "tui.device_shares"),
    *("tui.draw.rank_map", "tui.draw.things", "tui.panels", "tui.widgets."),
)
NOT_YET_OF_OTHERS = (
    *("textual.", "asyncio", "rich.console", "numpy.ma.", "numpy.typing"),
    *("tomllib", "decimal", "queue", "_hashlib"),
)
"""How the names of modules begin that only building an index, a key, an option or another trace needs."""


def test_what_the_picture_loads(demo: Path, tmp_path: Path) -> None:
    """It needs no Textual, nor what only the viewer needs; where the viewer cannot start, the terminal is
    given back, and the reason stands there.
    """
    loaded = tmp_path / "modules"
    _, _, _, *arguments = _command(demo, "view", "--fresh")
    with SlowLine([sys.executable, "-c", WITHOUT_TEXTUAL, str(loaded), *arguments], (100, 30)) as line:
        assert line.wait_for_end() == 1
        assert "Stream 0" in line.received.decode() and TAKE in line.received
        assert "1049" not in line.screen.modes and "textual" in line.screen.text
    modules = loaded.read_text(encoding="utf-8").split("\n")
    unwanted = (*(f"tracelane.{name}" for name in NOT_YET), *NOT_YET_OF_OTHERS)
    importing = "import numpy, sys; print(*sys.modules)"  # numpy 1 loads parts that numpy 2 loads when asked
    usual = subprocess.run(
        [sys.executable, "-c", importing], capture_output=True, encoding="utf-8", check=True
    ).stdout
    assert [name for name in modules if name.startswith(unwanted) and name not in usual.split()] == []


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of a user who never started the viewer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "tracelane"


def test_once(state: Path) -> None:
    """The first start says them, later ones do not."""
    assert first_start_notes() == (THREE_KEYS,)
    assert first_start_notes() == () and (state / "started").is_file()


def test_where_nothing_can_be_remembered(state: Path) -> None:
    """Nothing is said where the folder cannot be made: it would be said at every start."""
    state.parent.parent.joinpath("state").write_text("a file", encoding="utf-8")
    assert first_start_notes() == ()


@pytest.mark.slow
def test_on_the_screen(state: Path, tmp_path: Path) -> None:
    """The viewer shows them until a key closes them; keys are theirs all the same."""
    trace = str(small_file(tmp_path))
    environ = {"XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    assert on_terminal("view", trace, play=((THREE_KEYS[:24], "q"),), **environ).code == 0
    assert state.joinpath("started").is_file()


NOTES = ("the first note", "a second one that is so long that it takes two lines, " * 2, "third")


@pytest.mark.parametrize("lines", [24, 30, 50])
async def test_notices_hide_no_lane(tmp_path: Path, lines: int) -> None:
    """Of several notices one is shown at a time, the first one first, where no lane is drawn."""
    app = TracelaneApp(Prepared(open_trace([small_file(tmp_path)]), notes=NOTES))
    async with app.run_test(size=(80, lines)) as pilot:
        await pilot.pause()
        for number, note in enumerate(NOTES):
            line, lanes = app.main.query_one(MessageLine), app.main.query_one(LaneCanvas)
            assert app.message == note and line.display
            assert line.region.y >= lanes.region.bottom
            others = len(NOTES) - 1 - number
            assert (f"Esc closes, {others} more" if others else "Esc closes") in screen_text(app)
            assert "Esc message" in screen_text(app)
            await pilot.press("escape")
            await pilot.pause()
        assert "Esc message" not in screen_text(app)
        assert not app.message and not app.main.query_one(MessageLine).display
