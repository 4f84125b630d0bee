"""The static picture: the viewer's drawing as text, at any size, in any locale."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from tests.corpus import CORPUS, needs_corpus
from tests.small_index import L, S, write_index
from tests.tui.small_trace import MS, START
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.draw.glyphs import ASCII
from tracelane.tui.session import Session, Viewport
from tracelane.tui.text.picture import picture, plain_picture

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
    coloured, plain = picture(trace, session, (100, 40)), picture(trace, session, (100, 40), colour=False)
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
    session = replace(session_of(trace), range=(20, 60))
    lines = picture(trace, session, (80, 24), glyphs=ASCII).plain.split("\n")
    assert all(line.isascii() for line in lines), lines
    assert {len(line) for line in lines} == {80}


@needs_corpus
@pytest.mark.parametrize("name", ODD)
def test_odd_traces(name: str, corpus_cache: Path) -> None:
    """Names with escapes, thousands of threads and depths: the grid holds, no control character gets out."""
    if not (CORPUS / name).exists():
        pytest.skip(f"{name} is not in the corpus")
    trace = open_trace([CORPUS / name], index_dir=corpus_cache)
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
