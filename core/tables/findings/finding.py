"""What a rule returns: a sentence, the time that it claims, and where to look."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from ...base.arrays import EMPTY, I64, U32, Intervals
from ...query.views import SliceId
from .leading import Leading

SHORT_CELLS = 60
"""What a line of 80 columns has for a sentence, beside the key that shows its place."""
NAME_CELLS = 30


def brief(name: str, cells: int = NAME_CELLS) -> str:
    """Return a name as a short sentence has room for it."""
    return name if len(name) <= cells else f"{name[: cells - 1]}…"


def short_wait(device: str, wait: str, doing: str) -> str:
    """Return who waits for what, and how long: "GPU 0 waits 6.7 ms for read_shard"."""
    cause = brief(doing, 28) if doing else "launches that come late"
    return f"{device[0].upper()}{device[1:]} waits {wait} for {cause}"


@dataclass(frozen=True)
class Evidence:
    """A place to look at: a slice, or (without one) a window; trace time in ns."""

    label: str
    start: int
    end: int
    slice: SliceId | None = None


@dataclass(frozen=True, eq=False)
class Observation:
    """What a rule reports for one source, before it is compared with other findings.

    `claim` is the time that the observation is about; `ns`, where given, is the part of it that counts as
    lost; `reach` is time that it explains without claiming it. The steps in which it occurs are those that
    launched `work`; without `work` those in which one of `times` lies; without either those that the claim
    overlaps.
    """

    text: str
    evidence: tuple[Evidence, ...]
    claim: Intervals = EMPTY
    ns: int | None = None
    reach: Intervals = EMPTY
    times: I64 | None = field(default=None, repr=False)
    work: U32 | None = field(default=None, repr=False)  # positions of device work, ascending
    helps: str = ""  # what helps, where that is not what mostly does
    short: str = ""  # the same in at most SHORT_CELLS: the culprit, and what it costs
    of_launches: float = 0.0  # the share of launches without work, or of time that a clock makes wrong

    @property
    def claimed_ns(self) -> int:
        """The claimed time in ns; overlapping parts count once."""
        return self.claim.length if self.ns is None else self.ns


@dataclass(frozen=True)
class NotJudged:
    """A rule that could not be checked, and which data the trace lacks."""

    reason: str


Outcome: TypeAlias = Observation | NotJudged | None
"""None: there is nothing of the kind."""
Kind: TypeAlias = Literal["loss", "headline", "note"]
"""Lost time; how the device was used as a whole; a fact for reading on. Only the first claims time."""
Need: TypeAlias = Literal["device", "host"]
"""Whose slices a rule cannot judge without."""


@dataclass(frozen=True)
class Finding:
    """One finding in full. `sources` are the files in which the rule holds; its text is about the first.

    `claimed_ns` is claimed by no other finding; `caused_ns` is what `caused_by` explains of the time.
    """

    rule: str
    title: str
    text: str
    evidence: tuple[Evidence, ...]
    claimed_ns: int
    share: float  # of the time looked at
    kind: Kind
    threshold: str
    origin: str
    helps: str
    in_steps: int
    of_steps: int
    sources: tuple[int, ...]
    short: str = ""  # the same in a few words: the culprit, and what it costs
    of_part: str = ""  # of several files or ranks the one spoken of: "rank 3", a file's name, "process 7"
    parts: int = 1  # in how many of them the rule holds
    caused_by: str = ""  # the rule of the finding that explains it
    caused_ns: int = 0
    of_launches: float = field(default=0.0, compare=False)
    """Of the calls that start work, but fills: whose work is missing. Of the time: that a clock makes wrong.
    Not stored.
    """

    @property
    def as_leading(self) -> Leading:
        """What a line says of it where it is the one to read first."""
        return Leading(
            self.title,
            self.text,
            self.short,
            self.rule,
            self.kind,
            self.claimed_ns,
            self.share,
            has_places=bool(self.evidence),
        )

    @property
    def note(self) -> bool:
        """Whether it is a fact for reading on."""
        return self.kind == "note"

    @property
    def recurrence(self) -> str:
        """In how many of the steps it occurs, in words."""
        if not self.of_steps:
            return "the trace has no steps"
        if self.of_steps == 1:
            return "in the only step" if self.in_steps else "outside the only step"
        return f"in {self.in_steps} of {self.of_steps} steps"


@dataclass(frozen=True)
class Findings:
    """All findings of a scope: losses by the time they cost, each followed by those that it explains;
    headlines, which stand first where no loss costs much; then notes; and what could not be judged.
    """

    scope: str
    findings: tuple[Finding, ...]
    not_judged: tuple[tuple[str, str], ...]  # rule, why

    @property
    def leading(self) -> Finding | None:
        """The finding to read first: the costliest loss, or the first headline where no loss costs much.
        Notes are facts for reading on, and none is read first.
        """
        return next((finding for finding in self.findings if not finding.note), None)

    @property
    def losses(self) -> tuple[Finding, ...]:
        return self.of_kind("loss")

    def of_kind(self, kind: Kind) -> tuple[Finding, ...]:
        """Return the findings of a kind: losses, how the devices were used as a whole, notes."""
        return tuple(finding for finding in self.findings if finding.kind == kind)


@dataclass(frozen=True)
class Baseline:
    """Another run of the same work: whether it is compiled, how many steps it has, their median wall time."""

    title: str
    compiled: bool
    steps: int
    length_ns: float | None  # of a step, in the median; None without steps
