"""The map of many ranks: two rows of cells in each line, a rank or a few in each row, that show when ranks
work, when they wait for one that is late, and when they are that one.

Colours are by what takes most of a cell, as bright as the longest time of its kind in view allows: a late
rank is seen however short a wait is beside the view. Without shades textures say it, of both rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style

from tracelane.core.base.arrays import I64, AnyArray
from tracelane.core.base.safe_text import safe
from tracelane.core.tables.device.rank_activity import RankActivity

from ..session import Viewport
from .glyphs import Glyphs, fit
from .line import Line
from .palette import MAP_KINDS, Look, Palette
from .ranks import SLOWEST, RankNotes

UPPER, LOWER, BOTH = "▀▄█"
WORKS, WAITS, LATE = range(1, len(MAP_KINDS) + 1)
"""What a cell shows; 0 is nothing."""
BRIGHTEST = (0, 3, 5, 8)
"""Of each kind the brightest level: late ranks stand out of those that wait, these of those that work."""
LATE_SHARE = 0.5
"""A cell shows that a rank is late from this share of the time on that it waits itself."""


class MapCells(NamedTuple):
    """What ranks show in the W cells of a window: (kind, level) of each rank and cell, N x W."""

    activity: RankActivity
    works: I64
    waits: I64
    delays: I64
    most_works: int
    most_waits: int  # of one rank in one cell, ns; at least 1
    most_delays: int

    def of_ranks(self, sources: Sequence[int]) -> AnyArray:
        """Return what some ranks show together, as codes 16 * kind + level, one for each cell: they work and
        wait as they do in the mean, and are late as the latest of them.
        """
        rows = [self.activity.row_of[source] for source in sources if source in self.activity.row_of]
        if not rows:
            return np.zeros(self.works.shape[1], np.int64)
        works, waits = (values[rows].mean(axis=0) for values in (self.works, self.waits))
        delays = self.delays[rows].max(axis=0)
        amounts = (works / self.most_works, waits / self.most_waits, delays / self.most_delays)
        is_late = (delays > 0) & (delays >= LATE_SHARE * waits)
        kinds = np.where(is_late, LATE, np.where(waits > works, WAITS, WORKS))
        levels = np.zeros(len(kinds), np.int64)
        for kind, share in zip((WORKS, WAITS, LATE), amounts):
            of_kind = np.rint(BRIGHTEST[kind] * np.sqrt(share)).astype(np.int64)
            levels = np.where(kinds == kind, of_kind, levels)
        return np.where(levels > 0, 16 * kinds + levels, 0)


@lru_cache(maxsize=4)
def map_cells(activity: RankActivity, view: Viewport) -> MapCells:
    """Return what all ranks do in the cells of a window; worked out once per window."""
    cells = activity.in_cells(np.array(view.edges(), np.int64))
    return MapCells(activity, *cells, *(max(1, int(one.max(initial=0))) for one in cells))


def map_segments(
    line: Line, activity: RankActivity, view: Viewport, palette: Palette, glyphs: Glyphs
) -> list[Segment]:
    """Return the cells of a line of the map."""
    cells = map_cells(activity, view)
    halves = [cells.of_ranks([rank.source for rank in half]).tolist() for half in line.halves]
    upper, lower = halves[0], halves[1] if len(halves) > 1 else [0] * view.width
    segments = []
    for pair, run in groupby(zip(upper, lower)):
        text, style = _drawn(*pair, palette, glyphs)
        segments.append(Segment(text * len(list(run)), style))
    return segments


def _drawn(upper: int, lower: int, palette: Palette, glyphs: Glyphs) -> tuple[str, Style]:
    """Return the character of a cell of two rows, and its style."""
    if not upper and not lower:
        return " ", palette.blank
    if palette.shaded and not glyphs.ascii:
        if upper == lower:
            return " ", palette.map_cell(0, upper)
        return (UPPER, palette.map_cell(upper, lower)) if upper else (LOWER, palette.map_cell(lower, 0))
    is_late = upper // 16 == LATE, lower // 16 == LATE
    if any(is_late):
        return (BOTH if all(is_late) else UPPER if is_late[0] else LOWER), palette.accent_plain
    if WAITS in (upper // 16, lower // 16):
        return glyphs.shades[1], palette.style("collective", Look.FAINT)
    return " ", palette.blank


def half_cells(kind: int, palette: Palette, glyphs: Glyphs) -> tuple[str, Style]:
    """Return cells whose upper row shows a kind, as the legend has them, and their style."""
    text, style = _drawn(16 * kind + BRIGHTEST[kind], 0, palette, glyphs)
    return text * 3, style


def map_gutter_title(line: Line, notes: RankNotes, mark: str, room: int, glyphs: Glyphs) -> tuple[str, bool]:
    """Return the title of a line of the map, and whether it has the rank that the others wait for most: then
    that rank's name and how often it comes last, as there is room.
    """
    slowest = next((rank for rank in line.ranks if rank.source == notes.slowest), None)
    if slowest is None:
        return f"{mark} {line.title}", False
    name = f"{mark} {safe(slowest.title).partition(' · ')[0]}"
    note = notes.texts.get(slowest.source, "")
    texts = [f"{name} {note}", *(name + word for word in SLOWEST), f"{name} {glyphs.slowest}"]
    return next((text for text in texts if cell_len(text) <= room), fit(texts[-1], room, "")), True
