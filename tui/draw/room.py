"""Which parts of the screen give way when there is little room; plain numbers, for the first picture too."""

from __future__ import annotations

from typing import NamedTuple

HEADER_FROM = 4
"""Lines of screen from which on the header is shown."""
FOOTER_FROM = 3
MESSAGE_FROM = 18
"""Lines of screen from which on messages have a line of their own; on fewer they cover what is above."""
LOW_MESSAGE = 2
"""Lines that a message takes at most on lower screens; the command :messages shows all of it."""
MINIMAP_FROM = 14
VERDICT_FROM = 12
BAR_FROM = 20
"""From so many lines on verdict and minimap have both their lines, on lower screens one."""
MAX_STRIP = 2
SMALL_SCREEN = 30
"""Below this many lines the panel takes at most SMALL_PANEL lines."""
SMALL_PANEL = 8
EMPTY_PANEL = 2
ROOMY_SCREEN = 37
"""From so many lines beside header, message and footer on (a screen of 40) an empty panel keeps its room: the
overview has lines of its own, however deep the host's lanes are, and selecting does not move the lanes.
"""
MIN_LANES = 6
"""Lines that the panel leaves to the lanes; where it cannot, it is not shown."""


class Strips(NamedTuple):
    """Lines that the strips above the lanes ask for."""

    verdict: int = 1
    minimap: int = 1
    ruler: int = 1
    path: int = 0


class Room(NamedTuple):
    """Lines of a screen that each part takes, 0 where it is not shown; lanes take what they all leave."""

    header: int
    minimap: int
    verdict: int
    ruler: int
    path: int
    panel: int
    message: int
    footer: int

    def lanes(self, lines: int) -> int:
        """Return what the other parts leave to the lanes of a screen of so many lines."""
        return max(1, lines - sum(self))

    def with_spare(self, lines: int, lanes: int) -> Room:
        """Return the room with the panel taking what lanes of so many lines leave of the screen."""
        if not self.panel:
            return self
        return self._replace(panel=self.panel + max(0, self.lanes(lines) - lanes))

    def with_message(self, lines: int, message: int) -> Room:
        """Return the room with the panel so high that a message of so many lines, which covers the panel from
        below where it takes more than a line, leaves its first lines, as far as that leaves enough lanes.
        """
        most = self.panel + self.lanes(lines) - MIN_LANES
        panel = min(EMPTY_PANEL + message - 1, most) if message > 1 else 0
        return self._replace(panel=max(self.panel, panel)) if self.panel else self


def room_of(lines: int, panel_wanted: int, maximised: bool, empty: bool, strips: Strips) -> Room:
    """Share a screen's height out: the lanes come first, then footer, header, panel, minimap, verdict."""
    header, footer, message = (int(lines >= least) for least in (HEADER_FROM, FOOTER_FROM, MESSAGE_FROM))
    panel = panel_height(max(0, lines - header - message - footer), panel_wanted, maximised, empty)
    if maximised:
        return Room(header, 0, 0, 0, 0, panel, message, footer)
    most = MAX_STRIP if lines >= BAR_FROM else 1
    verdict = verdict_height(lines, strips.verdict)
    minimap = min(strips.minimap, most) * (lines >= MINIMAP_FROM)
    ruler = strips.ruler * (lines > FOOTER_FROM)
    path = strips.path * (lines >= VERDICT_FROM)
    others = header + minimap + verdict + ruler + path + message + footer
    panel = max(0, min(panel, lines - others - 1))  # a line of lanes stays
    return Room(header, minimap, verdict, ruler, path, panel, message, footer)


def verdict_height(lines: int, asked_lines: int) -> int:
    """Return how many lines the verdict takes of a screen or a printed picture of so many lines."""
    return min(asked_lines, MAX_STRIP if lines >= BAR_FROM else 1) * (lines >= VERDICT_FROM)


def panel_height(lines: int, asked_lines: int, maximised: bool, empty: bool = False) -> int:
    """Return how many lines the panel takes of what header, message and footer leave of the screen, 0: none.

    But on a roomy screen an empty panel takes no more than its tabs and one line that says how to fill it.
    """
    if maximised:
        return lines
    if empty and lines < ROOMY_SCREEN:
        height = EMPTY_PANEL
    elif lines < SMALL_SCREEN:
        height = min(asked_lines, SMALL_PANEL)
    else:
        height = max(asked_lines, lines // 4)
    height = min(height, lines - MIN_LANES)
    return height if height >= 2 else 0
