"""What a trace is about, as blocks of rows: what the panel shows while nothing is selected, and what is
printed as plain lines in reading order, for logs, programs and screen readers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_names
from tracelane.core.base.units import about_ns, count_of, format_bytes, format_count, format_share
from tracelane.core.tables.findings.finding import Evidence, Finding, Findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.overview.rows import Groups, OverviewRow
from tracelane.core.trace import Trace

from ..draw.verdict import STATES, StateShares, share_texts
from ..steps import StepMark, step_marks, usual_length

MAX_ROWS = 5
"""So many findings, kernels or operators are printed; a block has as many where there is room for no more."""
OUTLIER = 1.2
"""A step that takes so many times the median stands out."""
TITLES = {
    "work": "Device work",
    "idle": "Why devices are idle",
    "ranks": "Ranks, latest first",
    "compile": "Compilation",
    "memory": "Memory",
    "ops": "Operators, by their own time",
    "held": "Memory at the peak, by where it was allocated",
    "slices": "Slices, by their own time",
}
KEYS = {"compute": "kernel", "communication": "collective", "memory": "memcpy"}
"""The colours of kinds of device work."""
LATE = "late"
"""The colour of a rank for which others wait."""
COUNTED = {
    "events": "events",
    "slices": "slices",
    "instant_events": "instants",
    "counter_samples": "counter samples",
    "flow_events": "flow events",
    "metadata": "metadata events",
}
"""What of a file's report says how much is in it."""
GUIDE = (
    *("search", "details", "down", "next", "zoom-in", "zoom-out", "pan-left", "pan-right", "focus", "reset"),
    *("longest", "next-gap", "longest-gap", "launch", "kernel", "range", "panel-table", "panel-tree"),
    *("panel-findings", "fold", "pin", "preset", "mark", "copy", "command-line", "other-pane", "legend"),
    *("back", "maximise", "help", "close-or-quit"),
)
"""The commands that an overview with room to spare names."""

Target: TypeAlias = Evidence | Finding | str
"""What a row leads to: a place, a finding, or a panel by its name."""


class FactRow(NamedTuple):
    """One line of a block; a bar of some lengths has its second part hatched."""

    label: str
    value: str = ""
    share: str = ""
    note: str = ""
    bar: float = 0.0  # 0 to 1; of the longest of its block
    waited: float = 0.0  # of the bar
    key: str = ""  # its colour
    target: Target | None = None
    name: str = ""  # in full, where the label is short for it
    steps: tuple[StepMark, ...] = ()  # what the line is a strip of


class FactBlock(NamedTuple):
    """Rows under a title, the most telling first; what is `spare` is shown where lines would stay empty."""

    title: str
    rows: tuple[FactRow, ...]
    at_left: bool = False
    spare: bool = False


def fact_blocks(
    trace: Trace, groups: Groups, steps: Sequence[StepMark], findings: Findings | None
) -> Iterator[FactBlock]:
    """Yield what is known of a trace, block by block, the most telling first; what is spare comes last."""
    chief = next((name for name in ("work", "ops", "held", "slices") if name in groups), "ops")
    for name in dict.fromkeys((chief, "ops")):  # device work and operators are slices, too
        if name in groups:
            yield FactBlock(
                TITLES[name], tuple(_timed(name, groups[name])), at_left=True, spare=name != chief
            )
    if "idle" in groups:
        yield FactBlock(TITLES["idle"], tuple(map(_idle, groups["idle"])))
    if "ranks" in groups:
        yield FactBlock(TITLES["ranks"], tuple(_rank_rows(groups["ranks"])))
    if steps:
        ahead = groups.get("steps", ())
        yield FactBlock(_steps_title(steps, ahead), tuple(_step_rows(steps, is_ahead=bool(ahead))))
    if findings is not None and len(findings.losses) > 1:
        yield FactBlock("Also costs time", tuple(_finding_rows(findings)))
    for name in ("compile", "memory"):
        if name in groups:
            yield FactBlock(TITLES[name], tuple(_timed(name, groups[name])))
    yield contents_block(trace)


def _timed(group: str, rows: Sequence[OverviewRow]) -> Iterator[FactRow]:
    longest = max(1, *(row.amount for row in rows))
    for row, label in zip(rows, short_names([row.name for row in rows])):
        if group == "memory":
            yield FactRow(label, format_bytes(row.amount), target="memory")
            continue
        share, bar, target = format_share(row.share), row.amount / longest, row.evidence
        if group == "held":
            note = f"{count_of(row.calls, 'allocation')} of {row.text}"
            yield FactRow(label, format_bytes(row.amount), share, note, bar, 0.0, "cpu_op", target, row.name)
            continue
        waited = row.waited_ns / max(1, row.amount)
        note = f"waits {about_ns(row.waited_ns)} of it" if row.waited_ns else ""
        note = note or count_of(row.calls, "run" if group == "work" else "call")
        key = KEYS.get(row.kind, "kernel") if group == "work" else "cpu_op"
        yield FactRow(label, about_ns(row.amount), share, note, bar, waited, key, target, row.name)


def _idle(row: OverviewRow) -> FactRow:
    longest = 0 if row.evidence is None else row.evidence.end - row.evidence.start
    doing = f" in {short_names([row.text])[0]}" if row.text else ""
    note = f"longest {about_ns(longest)}{doing}"
    label, share = STATES[row.name][1], format_share(row.share)
    return FactRow(label, about_ns(row.amount), share, note, target=row.evidence)


def _rank_rows(rows: Sequence[OverviewRow]) -> Iterator[FactRow]:
    longest = max(1, *(max(row.amount, row.waited_ns) for row in rows))
    for row in rows:
        is_late = row.amount > row.waited_ns
        note = f"{row.text}: others wait" if is_late else f"waits for others; {row.text}"
        ns = row.amount if is_late else row.waited_ns
        waited, key = float(not is_late), LATE if is_late else "collective"
        yield FactRow(row.name, about_ns(ns), "", note, ns / longest, waited, key, row.evidence)


def _steps_title(steps: Sequence[StepMark], ahead: Sequence[OverviewRow]) -> str:
    text = count_of(len(steps), "step")
    if len(steps) == 1:
        return text
    if ahead:
        enqueued, needed = about_ns(usual_length(steps)), about_ns(ahead[0].amount)
        return f"{text}, each enqueued in {enqueued} (median), of {needed} on the device"
    return f"{text}, in the median {about_ns(usual_length(steps))}"


def _step_rows(steps: Sequence[StepMark], *, is_ahead: bool) -> Iterator[FactRow]:
    """Yield a strip of the steps, and those that stand out; where a host runs ahead marks tell none."""
    usual = usual_length(steps)
    if len(steps) > 1:
        yield FactRow("", steps=tuple(steps))
        if is_ahead:
            return
    longest_first = sorted(steps, key=lambda step: step.start - step.end)
    outliers = [step for step in longest_first if step.end - step.start > OUTLIER * usual]
    for step in outliers[:MAX_ROWS] or longest_first[:1]:
        length = step.end - step.start
        more = f"{length / max(1, usual):.2f} times the median" if outliers else ""
        more = more or ("the longest" if len(steps) > 1 else "")
        evidence = Evidence(step.title, step.start, step.end)
        yield FactRow(step.title, about_ns(length), "", more, target=evidence)


def _finding_rows(findings: Findings) -> Iterator[FactRow]:
    for finding in findings.losses[1:]:
        cost = about_ns(finding.claimed_ns) if finding.claimed_ns else ""
        share = format_share(finding.share) if finding.claimed_ns else ""
        said = finding.short or finding.text
        yield FactRow(finding.title, cost, share, said, target=finding, name=f"{finding.title}: {said}")


def contents_block(trace: Trace) -> FactBlock:
    """Return how much of what the files hold, where there is room for it."""
    return FactBlock("What is in it", tuple(_contents(trace)), spare=True)


def _contents(trace: Trace) -> Iterator[FactRow]:
    """Yield how much of what the files hold."""
    for key, name in COUNTED.items():
        number = sum(int(source.read_report.get(key, 0)) for source in trace.sources)
        if number:
            yield FactRow(name, format_count(number))
    processes = [one for one in trace.processes if one.lanes]
    yield FactRow("process" if len(processes) == 1 else "processes", format_count(len(processes)))
    for process in processes[:MAX_ROWS]:
        slices = sum(trace.lanes[lane].slices for lane in process.lanes)
        note = f"slices in {count_of(len(process.lanes), 'lane')}"
        yield FactRow(process.title, format_count(slices), note=note)
    for name in [Path(source.path).name for source in trace.sources[:MAX_ROWS]]:
        if name:
            yield FactRow(name, "file")


# -- as plain lines -----------------------------------------------------------------------------------------


def overview_text(scope: Scope, spent: StateShares | None, groups: Groups, findings: Findings) -> str:
    """Return the verdict and what takes most time, a fact on each line; nothing depends on a terminal."""
    lines = [_title(scope.trace), *_verdict(spent, findings)]
    steps = step_marks(scope.trace, scope.clocks)
    blocks = [one for one in fact_blocks(scope.trace, groups, steps, None) if not one.spare]
    for block in sorted(blocks, key=lambda one: not one.at_left):
        rows = [row for row in block.rows[:MAX_ROWS] if not row.steps]
        heading = f"{block.title}, most time first" if block.title == TITLES["work"] else block.title
        lines += [f"{heading}:" if rows else heading, *map(_line, rows)]
    return "\n".join(safe(line) for line in lines)


def _line(row: FactRow) -> str:
    """Return "label: value, share, note", without what is not known."""
    said = ", ".join(text for text in (row.value, row.share, row.note) if text)
    return f"{row.label}: {said}"


def _title(trace: Trace) -> str:
    start, end = trace.opening_span
    steps = len(step_marks(trace, trace.clocks))
    length = f"{about_ns(end - start)} in {count_of(steps, 'step')}" if steps else about_ns(end - start)
    return f"{count_of(len(trace.files), 'file')}, {length}"


def _verdict(spent: StateShares | None, findings: Findings) -> Iterator[str]:
    if spent is not None:
        yield f"{spent.devices}, of {about_ns(spent.of_ns)}: {', '.join(share_texts(spent))}"
    said = [finding for finding in findings.findings if not finding.note]
    for number, finding in enumerate(said[:MAX_ROWS], 1):
        yield f"{number}. {finding.title}: {finding.text}{_cost(finding)}"
    if not said:
        yield "Nothing stands out"


def _cost(finding: Finding) -> str:
    if not finding.claimed_ns:
        return ""
    return f" ({about_ns(finding.claimed_ns)}, {format_share(finding.share)} of the time)"
