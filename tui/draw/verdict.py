"""The verdict in two lines: the share of each state of the devices as one bar, and the costliest finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment

from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import about_ns, format_share
from tracelane.core.tables.findings.leading import Leading

from .glyphs import Glyphs, fit
from .line_context import LineContext, gutter
from .palette import Look, Palette
from .runs import FULL, LABEL_CELLS

UNRECORDED = "unrecorded"
"""The time of which the trace lacks a device's records."""
STATES = {
    "compute": ("kernel", "compute"),
    "collective_moving": ("collective", "collectives"),
    "collective_unsplit": ("collective", "collectives"),
    "copy": ("memcpy", "copies"),
    "prepare": ("overhead", "prepares"),
    "collective_waiting": ("collective", "waits for a peer"),
    "host_wait": ("", "idle: host late"),
    "kernel_wait": ("", "idle: between kernels"),
    "other": ("", "idle: unexplained"),
    "": ("", "idle: no work follows"),
    UNRECORDED: ("", "not recorded"),
}
"""The states, idle by its cause, in the order of the bar: their colour and what they are called."""
HATCHED = "collective_waiting"
ENDS = ("; ", ". ", ": ")
"""Where a sentence that is too long may end: what follows adds to it, or gives a reason or a conclusion."""

OFFER_CELLS = 19
"""Kept free behind a finding with places: its sentence stays the same whether a key offers one or not."""


MIN_SHARE = 0.005
LISTS_KERNELS = "device-bound"
"""The rule whose finding is about all kernels: not a place is shown, but their table."""
LEADS_ON = frozenset({LISTS_KERNELS, "against"})
"""Rules whose headlines lead on to something; others are about the whole, and no place shows that."""


class StateShares(NamedTuple):
    """What the devices of a trace did in the time looked at, added up."""

    devices: str  # "GPU 0", "4 devices"
    of_ns: int  # the time looked at, of each
    shares: Mapping[str, float]  # by the keys of STATES; they add up to 1
    is_estimate: bool = False


class VerdictFacts(NamedTuple):
    """What the verdict says, as far as it is known."""

    spent: StateShares | None = None
    is_counted: bool = False  # whether it is known what devices did, or that it cannot be known
    leading: Leading | None = None
    is_judged: bool = False  # whether it is known what to read first, or that there is nothing
    offer: str = ""  # what a key does with it
    missing: tuple[str, str] = ("Counting what devices did…", "Looking for what costs time…")
    """What is said until then."""


def verdict_lines(facts: VerdictFacts, lines: int, look: LineContext) -> list[list[Segment]]:
    """Return so many lines: the sentence last, the bar above it where there are two."""
    width = look.titles + look.area
    bar, sentence = (fit(f" {text}", width, look.glyphs.ellipsis) for text in facts.missing)
    first, last = ([Segment(text, look.palette.dim)] for text in (bar, sentence))
    if facts.spent is not None:
        first = bar_line(facts.spent, look)
    elif facts.is_counted:
        text = fit(" When the devices worked is not known", width, look.glyphs.ellipsis)
        first = [Segment(text, look.palette.dim)]
    if facts.is_judged:
        last = finding_line(facts.leading, facts.offer, look)
    return [first, last][2 - lines :]


def bar_line(shares: StateShares, look: LineContext) -> list[Segment]:
    """Return the bar under a title, exactly titles + area cells."""
    return [*gutter(safe(shares.devices), look), *_bar(shares, look)]


class StatePart(NamedTuple):
    """A part of the bar: one state, or several of one colour and name."""

    key: str  # its colour
    name: str
    is_hatched: bool
    states: tuple[str, ...]  # keys of STATES
    share: float = 0.0


def state_parts() -> list[StatePart]:
    """Return the parts that a bar can have, in their order."""
    parts: dict[tuple[str, str, bool], StatePart] = {}
    for state, (key, name) in STATES.items():
        alike = key, name, state == HATCHED
        part = parts.get(alike, StatePart(*alike, ()))
        parts[alike] = part._replace(states=(*part.states, state))
    return list(parts.values())


def bar_parts(shares: StateShares) -> list[StatePart]:
    """Return the parts that the bar has."""
    parts = (
        part._replace(share=sum(shares.shares.get(state, 0.0) for state in part.states))
        for part in state_parts()
    )
    return [part for part in parts if part.share]


def share_texts(shares: StateShares) -> list[str]:
    """Return what the bar says, in words; nothing of what is less than half a percent."""
    parts = (part for part in bar_parts(shares) if part.share >= MIN_SHARE)
    return [f"{part.name} {_percent(shares, part.share)}" for part in parts]


def _percent(shares: StateShares, share: float) -> str:
    return f"{'≈' if shares.is_estimate else ''}{100 * share:.0f} %"


def _bar(shares: StateShares, look: LineContext) -> Iterator[Segment]:
    parts = bar_parts(shares)
    for part, width in zip(parts, widths([one.share for one in parts], look.area)):
        percent = _percent(shares, part.share)
        texts = [f"{text} {percent}" for text in (part.name, *part.name.split(": "))]
        label = next((text for text in (*texts, percent) if len(text) + 1 + bool(part.key) <= width), "")
        yield part_segment(part, label, width, look.palette, look.glyphs)


def part_cells(shares: StateShares, area: int) -> list[tuple[StatePart, range]]:
    """Return the parts of the bar with the cells that each takes."""
    parts, end, cells = bar_parts(shares), 0, []
    for part, width in zip(parts, widths([one.share for one in parts], area)):
        cells.append((part, range(end, end + width)))
        end += width
    return cells


def part_text(shares: StateShares, part: StatePart) -> str:
    """Return in full what a part of the bar says: how much time it is, and of how much."""
    of = about_ns(shares.of_ns)
    ns = about_ns(round(part.share * shares.of_ns))
    return f"{part.name}: {_percent(shares, part.share)}, {ns} of {of}"


def widths(shares: Sequence[float], cells: int) -> list[int]:
    """Return how many of some cells each share takes, one at least; together all of them."""
    total = sum(shares) or 1.0
    rounded = [max(1, round(cells * share / total)) for share in shares]
    while rounded and (missing := cells - sum(rounded)):
        rounded[rounded.index(max(rounded))] += 1 if missing > 0 else -1
    return rounded


def part_segment(part: StatePart, label: str, width: int, palette: Palette, glyphs: Glyphs) -> Segment:
    """Return a part of the bar in so many cells, with a label or none."""
    key, text = part.key, f" {label}" if label else ""
    if part.is_hatched:
        return Segment(fit(text and f"{text} ", width, "", glyphs.shades[1]), palette.style(key, Look.FAINT))
    if not key:
        return Segment(fit(text, width, ""), palette.dim)
    if not palette.coloured:
        return Segment(
            "[" + fit(label, width - 2, "", glyphs.filler) + "]" if width > 1 else "|", palette.blank
        )
    filled = palette.inks(key) if width >= LABEL_CELLS and label else palette.fills(key)
    return Segment(fit(text, width, ""), filled[FULL])


def finding_line(finding: Leading | None, offer: str, look: LineContext) -> list[Segment]:
    """Return a line on a finding: as much of its sentence as fits, never cut within it, and behind it what a
    key does with it.
    """
    palette, width = look.palette, look.titles + look.area
    if finding is None:
        return [Segment(fit(" Nothing stands out", width), palette.dim)]
    tail = f"  {offer}" if offer else ""
    is_offered = finding.has_places and (finding.kind != "headline" or finding.rule in LEADS_ON)
    kept_free = OFFER_CELLS if is_offered else 0
    texts = sentences(finding)
    for room in (width - max(kept_free, cell_len(tail)), width):
        text = next((text for text in texts if cell_len(text) < room), texts[-1])
        if cell_len(text) < room:
            break
        tail = ""
    has_title = text.startswith(safe(finding.title))
    title = safe(finding.title) if has_title else text
    accent = palette.accent if has_title else palette.accent_plain
    parts = [
        Segment(fit(f" {title}", min(width, 1 + cell_len(title)), ""), accent),
        Segment(text[len(title) :], palette.ruler),
        Segment(tail, palette.dim),
    ]
    used = sum(part.cell_length for part in parts)
    return [*(part for part in parts if part.text), Segment(" " * max(0, width - used), palette.blank)]


def beginnings(text: str) -> list[str]:
    """Return a text and what it may end at instead, the longest first."""
    texts = {text}
    for end in ENDS:
        while end in text:
            text = text.rpartition(end)[0]
            texts.add(text)
    return sorted(texts, key=len, reverse=True)


def sentences(finding: Leading) -> list[str]:
    """Return what is said of a finding, the most telling first: its title and its sentence, that alone, the
    same in short and the beginning of that; without a short form the beginning of the sentence, and what it
    costs; its title.
    """
    title, texts = safe(finding.title), beginnings(safe(finding.text))
    if finding.short:
        shorter = beginnings(safe(finding.short))
        in_short = [words for short in shorter for words in (f"{title}: {short}", short)]
        return [f"{title}: {texts[0]}", texts[0], *in_short, title]
    said = [*(f"{title}: {text}" for text in texts), *texts]
    if finding.claimed_ns and finding.kind != "note":
        cost = about_ns(finding.claimed_ns)
        said += [f"{title}: {cost}, {format_share(finding.share)} of the time", f"{title}: {cost}"]
    return [*said, title]
