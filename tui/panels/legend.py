"""What colours and marks mean: the categories of this trace, and the characters of the drawing."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from rich.text import Text

from tracelane.core.base.colours import key_of
from tracelane.core.base.safe_text import safe
from tracelane.core.trace import Trace

from ..draw.glyphs import Glyphs
from ..draw.palette import Look, Palette
from ..draw.rank_map import LATE, WAITS, WORKS, half_cells
from ..draw.ranks import has_map
from ..draw.runs import FULL
from ..draw.segments import dots

CATEGORY_CELLS = 30
MAX_CATEGORIES = 200
GAP = 2


def legend_text(trace: Trace, palette: Palette, glyphs: Glyphs, width: int) -> Text:
    width = max(10, width)
    entries = []
    for category in trace.drawn_categories[:MAX_CATEGORIES]:
        text = Text(no_wrap=True, end="")
        if category:
            text.append("   ", palette.style(key_of(category, ""), Look.WHOLE))
            text.append(f" {safe(category)}")
        else:
            text.append(" no category: coloured by name")
        entries.append(text)
    if entries:
        collective = Text("   ", palette.style("collective", Look.WHOLE), no_wrap=True, end="")
        entries.append(Text.assemble(collective, " collectives, by name", no_wrap=True, end=""))
        blocking = Text("   ", palette.style("blocking", Look.WHOLE), no_wrap=True, end="")
        entries.append(Text.assemble(blocking, " calls that wait for a device", no_wrap=True, end=""))
    lines = _columns(entries, CATEGORY_CELLS, width)
    lines.append(Text(""))
    lines.append(_ink(palette, glyphs))
    many = palette.inks("kernel")[4]
    title, drawn, faint = palette.title, glyphs.bars, Look.FAINT
    marks = [
        (f"12 {glyphs.many} mm 28 %", many, "merged slices: count, name with most time (≈: of a sample)"),
        (f" {glyphs.folded_frames} ", title, "rows that repeat each other, as one"),
        (f" {glyphs.instant} ", palette.style("annotation", Look.MARK), "an instant"),
        (f" {glyphs.overlap} ", title, "row of slices that overlap without nesting"),
        (f" {glyphs.ragged} ", title, "a begin without its end"),
        (f" {glyphs.cursor} ", palette.cursor, "the cursor"),
        (f" {glyphs.selected} ", palette.accent, "the focused row"),
        (f" {glyphs.folded} ", title, "folded: a click opens it"),
        (f" {glyphs.pinned} ", title, "pinned"),
        (f" {glyphs.slowest} ", palette.accent, "the slowest rank: the others wait for it"),
        (
            f" {dots(0, 3, -1, -1)}{dots(4, 4, 3, 3)}",
            palette.style("counter", faint),
            "a counter between its extremes",
        ),
        (
            f" {drawn[3]}{drawn[6]}",
            palette.style("kernel", faint),
            "how busy a folded line is, and with what",
        ),
        (glyphs.shades[1] * 3, palette.style("collective", faint), "waits for a peer or another stream"),
        *_map_marks(trace, palette, glyphs),
        ("[x]", palette.style("annotation", Look.BRACKET), "an annotation of what is below"),
    ]
    meanings = [Text.assemble((mark, style), " ", text, no_wrap=True, end="") for mark, style, text in marks]
    lines.extend(_columns(meanings, max(map(len, meanings)), width))
    return Text("\n").join(lines)


def _map_marks(trace: Trace, palette: Palette, glyphs: Glyphs) -> Iterator[tuple[str, Style, str]]:
    """Yield what the colours, or textures, of the map of ranks mean, as it draws them."""
    if not has_map(trace):
        return
    said = {WORKS: "it works", WAITS: "it waits for another", LATE: "the others wait for it"}
    for kind, meaning in said.items():
        text, style = half_cells(kind, palette, glyphs)
        yield text, style, f"upper rank of a line: {meaning}"


def _ink(palette: Palette, glyphs: Glyphs) -> Text:
    text = Text(no_wrap=True, end="")
    text.append(" ")
    for level in range(1, FULL + 1):
        if palette.shaded:
            text.append(" ", palette.fills("kernel")[level])
        else:
            text.append(glyphs.shades[min(3, (level + 1) // 2)], palette.style("kernel", Look.FAINT))
    text.append(" ")
    text.append(glyphs.bars[1 : FULL + 1], palette.style("kernel", Look.BAR))
    how = "the brighter" if palette.shaded else "the denser"
    text.append(f" {how} or higher a cell, the more of its time is covered")
    return text


def _columns(entries: list[Text], size: int, width: int) -> list[Text]:
    columns = max(1, (width + GAP) // (size + GAP))
    height = -(-len(entries) // columns)
    lines = []
    for row in range(height):
        line = Text(no_wrap=True, end="")
        for column, entry in enumerate(entries[row::height]):
            line.append(" " * (column * (size + GAP) - line.cell_len))
            entry.truncate(size if columns > 1 else width, overflow="ellipsis")
            line.append_text(entry)
        lines.append(line)
    return lines
