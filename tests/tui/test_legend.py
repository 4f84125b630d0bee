"""The legend shows what the screen is drawn with: a change of a table of the drawing changes it."""

from __future__ import annotations

import pytest
from rich.text import Text

from tests.tui.fake_trace import LaneSpec, fake_trace
from tracelane.core.base.colours import FAMILIES
from tracelane.core.trace import Trace
from tracelane.tui.draw.glyphs import ASCII, UNICODE, Glyphs
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.runs import WHOLE, Run
from tracelane.tui.draw.segments import slice_segments
from tracelane.tui.draw.verdict import STATES
from tracelane.tui.panels.legend import legend_text

UNSAID = {
    "name",
    "many",  # said by the sample that it stands in
    "ellipsis",
    "filler",
    "edge",
    "single",
    "rule",
    "tick",
    "lefts",
    "separator",
    "thumb",
}
"""Characters that stand for nothing of their own, or do so only where there are no colours."""
EVERY_LOOK = [
    (depth, glyphs, dark) for depth in Depth for glyphs in (UNICODE, ASCII) for dark in (True, False)
]


@pytest.fixture
def trace() -> Trace:
    trace = fake_trace([LaneSpec("stream 7", slices=9)])
    trace.drawn_categories = ("kernel", "cpu_op", "")  # type: ignore[misc]
    return trace


def legend(trace: Trace, palette: Palette | None = None, glyphs: Glyphs = UNICODE) -> Text:
    return legend_text(trace, palette or Palette(Depth.TRUECOLOR), glyphs, 100)


def test_each_character_is_that_of_the_drawing(trace: Trace) -> None:
    """Another character in the table is another one in the legend; those that mean nothing are listed."""
    for name in set(Glyphs._fields) - UNSAID:
        other = UNICODE._replace(**{name: "".join("Q" for _ in getattr(UNICODE, name))})
        assert legend(trace, glyphs=other).plain != legend(trace).plain, name
        assert "Q" in legend(trace, glyphs=other).plain, name


@pytest.mark.parametrize(("depth", "glyphs", "dark"), EVERY_LOOK)
def test_each_colour_is_that_of_the_drawing(depth: Depth, glyphs: Glyphs, dark: bool, trace: Trace) -> None:
    """The samples of categories are as slices of them are drawn, in every look."""
    palette = Palette(depth, dark)
    drawn = legend(trace, palette, glyphs)
    for key in ("kernel", "cpu_op"):
        sample = slice_segments([Run(0, 3, key, "", 0, 1, WHOLE)], 3, palette, glyphs)
        text = Text.assemble(*((part.text, part.style) for part in sample), f" {key}")
        at = drawn.plain.index(text.plain)
        assert drawn[at : at + len(text.plain)].markup == text.markup


def test_another_colour_changes_it(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A family with another hue is drawn so in the legend, too."""
    before = legend(trace)
    monkeypatch.setitem(FAMILIES, "kernel", FAMILIES["memory"])
    assert legend(trace).markup != before.markup and legend(trace).plain == before.plain


def test_it_has_all_states_of_the_verdict(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each state that the bar can show stands there by its name, also one that is called otherwise later."""
    assert all(name in legend(trace).plain for _, name in STATES.values())
    monkeypatch.setitem(STATES, "compute", ("memcpy", "calculates"))
    assert "calculates" in legend(trace).plain
