"""First frame, print, SVG and HTML show of devices what the settled screen shows, or that it is unknown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rich.segment import Segment

from tests.core.test_device_state import open_ranks
from tests.corpus import for_files, traces
from tests.waiting import PATIENCE_S
from tracelane.core.base.errors import Cancelled, UnreadableError
from tracelane.core.export.timeline_svg import PictureFrame
from tracelane.core.tables.device.device_state import device_states
from tracelane.core.tables.device.states import state_cells
from tracelane.core.tables.findings.forms import saved_findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.tui import device_facts
from tracelane.tui.actions.view import first_session
from tracelane.tui.cli.main import main
from tracelane.tui.device_facts import DeviceFacts, stored_facts, stored_knowledge
from tracelane.tui.device_shares import counted_facts
from tracelane.tui.device_shares import device_facts as counted
from tracelane.tui.draw.colour import SURFACES
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import Line
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.fitting import fit_to_screen
from tracelane.tui.session import Session
from tracelane.tui.terminal.first_picture import Screen, first_picture
from tracelane.tui.text.picture import plain_picture

SIZE = (120, 40)
SCREEN = Screen(*SIZE, Depth.TRUECOLOR, SURFACES["tracelane-dark"], UNICODE, eighths=False)
FILLED = set(UNICODE.bars[1:] + UNICODE.lefts[1:] + UNICODE.shades[1:])
ENDINGS = (".json", ".gz", ".zip")
NO_TRACE = {"empty.json", "html_not_json.json"}
MAX_BYTES = 40 << 20
FILES = [
    path
    for path in traces("**/*")
    if path.name.endswith(ENDINGS) and path.name not in NO_TRACE and path.stat().st_size < MAX_BYTES
]

Cell = tuple[str, str, bool]


def cells(segments: list[Segment]) -> list[Cell]:
    """Return text, colours and whether it is filled of each cell."""
    blank = SCREEN.look.palette.blank.bgcolor
    return [
        (
            character,
            str(one.style),
            character in FILLED or (one.style is not None and one.style.bgcolor != blank),
        )
        for one in segments
        for character in one.text
    ]


def device_lines(trace: Trace, session: Session) -> Iterator[tuple[Layout, Line]]:
    """Yield the lines of a screen that show devices, as lanes, folded or as ranks."""
    layout = Layout(trace, session)
    for line in layout.visible(0, SIZE[1]):
        members = () if line is None else line.members or (() if line.lane is None else (line.lane.index,))
        if line is not None and any(number in trace.device_lanes for number in members):
            yield layout, line


def drawn(trace: Trace, session: Session, facts: DeviceFacts | None) -> list[list[Cell]]:
    """Return the cells of those lines, with what is known of them."""
    reader = RowReader(trace)
    reader.know(None if facts is None else facts.states)
    look = SCREEN.look if facts is None else SCREEN.look._replace(ranks=facts.notes)
    return [cells(line_segments(line, reader, session, look)) for _, line in device_lines(trace, session)]


@pytest.mark.slow
@for_files("path", FILES)
def test_what_is_known_is_what_will_be_known(path: Path, tmp_path: Path, corpus_cache: Path) -> None:
    """Cells of devices and ranks that change once it is known what those did were not filled before; and once
    it was counted, it is known in the first frame, and all is drawn as it was counted.
    """
    try:
        trace = open_trace(path, index_dir=corpus_cache)
    except UnreadableError:
        return
    facts = counted_facts(Scope(trace, clocks=trace.clocks))
    session = fit_to_screen(trace, first_session(trace, SIZE[0]), *SIZE, False).session
    before, after = drawn(trace, session, None), drawn(trace, session, facts)
    for was, now in zip(before, after, strict=True):
        titles = SCREEN.look.titles
        assert not [one for one, other in zip(was[titles:], now[titles:]) if one != other and one[2]]
    counted(Scope(trace, clocks=trace.clocks))
    saved_findings(Scope(trace, clocks=trace.clocks))
    stored = stored_facts(trace, trace.clocks)
    assert stored is not None
    assert drawn(trace, session, stored) == after
    assert (stored.notes, stored.spent, stored.shares) == (facts.notes, facts.spent, facts.shares)
    assert stored.troubles == facts.troubles
    known = stored_knowledge(trace, session.clocks)
    assert known.verdict is not None and known.verdict.is_counted and known.verdict.is_judged
    trace.close()


@pytest.mark.slow
@for_files("path", FILES)
def test_a_timeline_has_the_states_of_the_screen(path: Path, corpus_cache: Path) -> None:
    """In SVG and HTML devices do in each cell what they do on the settled screen."""
    try:
        trace = open_trace(path, index_dir=corpus_cache)
    except UnreadableError:
        return
    facts = counted_facts(Scope(trace, clocks=trace.clocks))
    begin, end = trace.opening_span
    edges = PictureFrame.of(begin, max(end, begin + 1), SIZE[0]).edges
    window = Scope(trace, clocks=trace.clocks, range=(begin, max(end, begin + 1)))
    of_screen = {id(one): one for one in facts.states.by_lane.values()}.values()
    by_device = {one.device.device: one for one in of_screen}
    for state in device_states(window) if by_device else ():
        one, other = state_cells([state], edges), state_cells([by_device[state.device.device]], edges)
        assert all(np.array_equal(*pair) for pair in zip(one, other))
    trace.close()


@pytest.fixture
def ranks(tmp_path: Path) -> list[str]:
    """The files of two ranks of which one waits for the other."""
    open_ranks(tmp_path, 2, 2)
    return [str(tmp_path / f"rank{rank}.json") for rank in range(2)]


def test_a_first_picture_is_the_printed_one(ranks: list[str], tmp_path: Path) -> None:
    """What the first picture draws of devices and ranks and says above them is what is printed."""
    trace = open_trace([Path(path) for path in ranks], index_dir=tmp_path / "index")
    session = first_session(trace, SIZE[0])
    unknown = first_picture(trace, session, SCREEN)
    assert "Counting" in unknown and UNICODE.shades[1] not in unknown
    counted(Scope(trace, clocks=trace.clocks))
    saved_findings(Scope(trace, clocks=trace.clocks))
    printed = plain_picture(trace, session, SIZE, known=stored_knowledge(trace, session.clocks))
    text = first_picture(trace, session, SCREEN)
    assert "Counting" not in text and UNICODE.shades[1] in text
    assert all(f" {line.split()[0]} " in text for line in printed.split("\n")[:2])


def test_what_takes_too_long_is_outlined(
    ranks: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A printed picture does not wait for ever: what is not counted by then is outlined, and it is said."""
    arguments = [*ranks, "--index-dir", str(tmp_path / "index"), "--width", "120"]
    monkeypatch.setattr("tracelane.tui.cli.view.MAX_WAIT_S", -1.0)
    assert main(arguments) == 0
    first, second, minimap, *rest = capsys.readouterr().out.splitlines()
    assert "not counted after 2 s" in first and "not known after 2 s" in second
    assert minimap.startswith("device")
    of_ranks = [line for line in rest if line.startswith(("▸ rank", " communication"))]
    assert of_ranks and not FILLED.intersection("".join(of_ranks))
    monkeypatch.setattr("tracelane.tui.cli.view.MAX_WAIT_S", PATIENCE_S)
    assert main(arguments) == 0
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert "idle" in first and "not known" not in second


@pytest.mark.parametrize("damage", ["cut", "other form", "other code", "too long"])
def test_what_is_not_ours_is_counted_anew(
    damage: str, ranks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged file, one of another form or of other code is not read; a long one is not written."""
    trace = open_trace([Path(path) for path in ranks], index_dir=tmp_path / "index")
    if damage == "too long":
        monkeypatch.setattr(device_facts, "MAX_BYTES", 10)
    counted(Scope(trace, clocks=trace.clocks))
    if damage == "cut":
        (path,) = (tmp_path / "index").glob(f"*/*/derived/{device_facts.NAME}-*.bin")
        path.write_bytes(path.read_bytes()[:-1])
    elif damage == "other form":
        monkeypatch.setattr(device_facts, "FORM", -1)
    elif damage == "other code":
        monkeypatch.setattr("tracelane.core.tables.frame.cached.code_hash", lambda: "other")
    assert stored_facts(trace, trace.clocks) is None
    moved = trace.clocks.shifted((0, ""), 1)
    assert stored_facts(trace, moved) is None
    with pytest.raises(Cancelled):
        counted(Scope(trace, clocks=trace.clocks, cancelled=lambda: True))
