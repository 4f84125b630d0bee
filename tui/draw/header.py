"""What the header says, in the first picture and in the viewer: what is open, how long, how busy it is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from tracelane.core.base.cached_per_object import cached_per_object
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import about_ns, count_of, format_count, format_ns
from tracelane.core.logs.more_sources import own_trace
from tracelane.core.query.views import rank_titles
from tracelane.core.tables.compare.run_pair import title_of_pair
from tracelane.core.trace import Trace

from ..read_report import read_report_state
from ..session import Session
from ..steps import pair_of, step_marks
from .glyphs import fit_middle

GAP = 2
"""Cells between two pieces."""
MIN_TITLE = 16
"""Cells of a title at least; of two runs half the line, as both names are needed."""
FEW_DEVICES = 3
"""So many devices are named each, with their share."""

WARNING = "bold yellow"


class HeaderPiece(NamedTuple):
    text: str
    style: str = ""


class DeviceShare(NamedTuple):
    """How much of its time a device worked, 0..1; None where its times are unknown."""

    device: str  # "GPU 0"
    rank: int | None  # None where the trace has no two ranks
    share: float | None
    is_estimate: bool = False
    of_ns: int | None = None  # from its first work to its last, where that is well below what is shown
    work_ns: int | None = None  # what its work takes, added up, where it is not known when it ran


def header_of(
    trace: Trace,
    session: Session,
    width: int,
    ellipsis: str,
    busy: Sequence[str] = (),
    notes: Sequence[HeaderPiece] = (),
) -> list[HeaderPiece]:
    """Return the pieces that fit, the title first: it is shortened before another piece is left out.

    Each of `busy` says the same of the devices, the longest text first: the first that fits stands.
    """
    state, is_well = read_report_state(trace.files)
    low, high = trace.opening_span
    steps = len(step_marks(trace, session.clocks, session.steps))
    pieces = [*notes, HeaderPiece(format_ns(high - low))]
    if not is_well:
        pieces.insert(len(notes), HeaderPiece(state, WARNING))
    if others := trace.slices_elsewhere + trace.marks_elsewhere:
        pieces.append(HeaderPiece(f"+ {format_count(others)} on another clock", WARNING))
    if steps:
        pieces.append(HeaderPiece(count_of(steps, "step")))
    title = " " + _title(trace)
    min_title = min(cell_len(title), MIN_TITLE if pair_of(trace) is None else width // 2)
    fitting = _fitting(pieces, width - min_title)
    used = sum(GAP + cell_len(piece.text) for piece in fitting)
    for text in busy:
        least = min(cell_len(title), max(min_title, width // 3))
        if least + used + GAP + cell_len(text) <= width or text == busy[-1]:
            fitting = _fitting([*fitting, HeaderPiece(text)], width - min_title)
            break
    used = sum(GAP + cell_len(piece.text) for piece in fitting)
    return [HeaderPiece(fit_middle(title, max(1, width - used), ellipsis).rstrip(), "bold"), *fitting]


def _fitting(pieces: Sequence[HeaderPiece], room: int) -> list[HeaderPiece]:
    fitting = []
    for piece in pieces:
        size = GAP + cell_len(piece.text)
        if size <= room:
            fitting.append(piece)
            room -= size
    return fitting


@cached_per_object()
def _title(trace: Trace) -> str:
    """Return what is open: a file, or the folder of several ranks and how many there are."""
    if (pair := pair_of(trace)) is not None:
        return safe(title_of_pair(pair))
    paths = [Path(source.path) for source in own_trace(trace).files]  # logs leave a trace its name
    if len(paths) == 1:
        return safe(paths[0].name)
    folders = {path.resolve().parent for path in paths}
    if len(rank_titles(trace.members)) == len(paths) and len(folders) == 1:
        return f"{len(paths)} ranks in {safe(folders.pop().name)}"
    return f"{safe(paths[0].name)} and {len(paths) - 1} more"


def elsewhere_text(trace: Trace) -> str:
    """Return what is said of events that stand on another clock than what the trace opens with."""
    low, high = trace.span
    what = f"{count_of(trace.slices_elsewhere + trace.marks_elsewhere, 'event')} on another clock hidden"
    return f"{what} (the trace would span {format_ns(high - low)}); {{reset}} shows all"


def busy_texts(devices: Sequence[DeviceShare]) -> list[str]:
    """Return what the header says of the devices' busy time, longest text first; nothing without devices."""
    known = sorted((one for one in devices if one.share is not None), key=lambda one: one.share or 0.0)
    if not known:
        names = dict.fromkeys(one.device for one in devices)
        if not 0 < len(names) <= FEW_DEVICES:
            return []
        text = f"{', '.join(names)} busy ?"
        work = [format_ns(one.work_ns) for one in devices if one.work_ns is not None]
        return [f"{text}, {work[0]} of work", text] if len(devices) == len(work) == 1 else [text]
    ranks = {one.rank for one in known}
    is_each = len(ranks) == len(known)  # a rank says which device it is
    if len(known) <= FEW_DEVICES:
        listed = [one for one in devices if one.share is not None]
        shares = [f"{_name(one, is_each)} {_percent(one)}" for one in listed]
        times = ["" if one.of_ns is None else f" of {about_ns(one.of_ns)}" for one in listed]
        texts = [f"{_name(one, is_each)} busy {_percent(one)}{time}" for one, time in zip(listed, times)]
        shorter = "busy: " + ", ".join(shares) if len(known) > 1 else f"busy {_percent(listed[0])}"
        return ["  ".join(texts), shorter]
    low, high = known[0], known[-1]
    what = "ranks" if is_each else "devices"
    least, most = _percent(low, 0), _percent(high, 0)
    if least == most:
        return [f"{len(known)} {what} busy {least}", f"busy {least}"]
    return [
        f"{len(known)} {what} busy {least} ({_name(low, is_each)}) to {most} ({_name(high, is_each)})",
        f"busy {least} ({_name(low, is_each)}) to {most}",
        f"busy {least} to {most}",
    ]


def _name(one: DeviceShare, is_each: bool) -> str:
    if one.rank is None:
        return one.device
    return f"rank {one.rank}" if is_each else f"rank {one.rank} {one.device}"


def _percent(one: DeviceShare, digits: int = 1) -> str:
    return f"{'≈' if one.is_estimate else ''}{100 * (one.share or 0.0):.{digits}f} %"
