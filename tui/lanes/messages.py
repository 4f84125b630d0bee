"""What the timeline's widgets tell the App; rows and lines as they were drawn, times in ns of trace time.

A time is called `at`: Textual keeps the message's own time under `time`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..draw.line import Line
from ..session import RowKey
from ..widget_message import WidgetMessage


class TimelineMessage(WidgetMessage):
    """Something was done by mouse to the lanes or the strips above them."""


@dataclass
class Hovered(TimelineMessage):
    """The mouse came over something else: a place within a row as of SlicePressed; None: over no row. `waits`
    says why a device does nothing there.
    """

    row: RowKey | None
    index: int = -1
    waits: str = ""


@dataclass
class SlicePressed(TimelineMessage):
    """A cell of a row was clicked.

    `index` is the place within the row of what is drawn there (the longest of several), -1 for an empty cell;
    `chain` is 2 for a double click.
    """

    row: RowKey
    at: int
    cell: int
    index: int = -1
    chain: int = 1


@dataclass
class LanePressed(TimelineMessage):
    """The title of a line was clicked: it folds or unfolds."""

    line: Line


@dataclass
class TimeDragged(TimelineMessage):
    """A stretch of time was dragged over; `done` once the button is up."""

    a: int
    b: int
    done: bool = True


@dataclass
class TimePressed(TimelineMessage):
    """A time was clicked on the ruler."""

    at: int


@dataclass
class Zoomed(TimelineMessage):
    """The wheel asked for `factor` times the magnification, about a time."""

    factor: float
    at: int


@dataclass
class Panned(TimelineMessage):
    """The wheel asked to move the view by a share of its width."""

    share: float


@dataclass
class Scrolled(TimelineMessage):
    """The wheel asked to scroll the lanes by so many lines."""

    lines: int


@dataclass
class ViewMoved(TimelineMessage):
    """The minimap asked to centre the view on a time."""

    at: int


@dataclass
class TimeAreaResized(TimelineMessage):
    """The time area has another size: `cells` wide, `lines` high."""

    cells: int
    lines: int
