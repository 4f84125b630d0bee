"""Panel 2: the findings as a list, the chosen one in full beside it where there is room; the banner line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from rich.text import Text
from textual.app import ComposeResult

from tracelane.core.base.arrays import I64
from tracelane.core.base.safe_text import safe
from tracelane.core.base.units import count_of, format_count, format_ns
from tracelane.core.tables.findings.finding import Finding, Findings
from tracelane.core.tables.findings.forms import claim_text

from ..read_report import ReadReportRow
from ..text.findings import finding_lines, missing_lines
from ..widgets.bars import Bar
from ..widgets.table import ColumnView
from ..widgets.text_pane import TextPane, follow_size
from .table import TablePane

ROOMY = 14
"""From this many lines on, the chosen finding is shown in full below the list."""
LIST_SHARE = 2
"""In such a panel the list takes at most one part in so many of the lines."""


class FindingsPane(TablePane):
    """Scope line, list, and the finding under the cursor in full."""

    DEFAULT_CSS = """
    FindingsPane > .-hidden { display: none; }
    """

    nothing = "No findings"
    findings: Findings | None = None
    _origin = 0

    def compose(self) -> ComposeResult:
        yield Bar()
        yield self.table
        yield TextPane(id="findings-text", classes="-hidden")

    def on_mount(self) -> None:
        self.watch(self.table, "cursor", self._show_text, init=False)
        follow_size(self, self._fit)

    @property
    def finding(self) -> Finding | None:
        row = self.table.row
        return None if row is None or self.findings is None else self.findings.findings[row]

    def show_findings(self, findings: Findings, origin: int) -> None:
        """Show findings; evidence is told by the time since the origin."""
        self._origin = origin
        if findings is not self.findings:
            self.findings = findings
            self.table.show(finding_columns(findings), len(findings.findings))
        self.tell()
        self._fit()

    def _say_all(self) -> None:
        findings = self.findings
        if findings is None or not self._says_scope:
            return
        rules = len(findings.not_judged)
        missing = f"{count_of(rules, 'rule')} not checked for lack of data" if rules else ""
        enter = "Enter: evidence, again: the next" if self.has_focus_within else "{other-pane}: arrows here"
        self._put(findings.scope, enter, "{maximise}: in full", missing)

    def _fit(self) -> None:
        roomy = self.size.height >= ROOMY and self.findings is not None and bool(self.findings.findings)
        text = self.query_one(TextPane)
        text.set_class(not roomy, "-hidden")
        rows = self.table.row_count + 1
        self.table.styles.height = min(rows, self.size.height // LIST_SHARE) if roomy else "1fr"
        self._show_text()

    def _show_text(self) -> None:
        finding, pane = self.finding, self.query_one(TextPane)
        if finding is None or self.findings is None or pane.has_class("-hidden"):
            return
        width = max(20, self.size.width - 6)
        lines = list(finding_lines(finding, width, self._origin, threshold=True))
        text = Text(f"\n{finding.title}: {claim_text(finding)}\n", "bold")
        text.append("\n".join(lines), "not bold")
        missing = "\n".join(missing_lines(self.findings, width))
        pane.show(text.append(f"\n\n{missing}" if missing else "", "not bold dim"))


def finding_columns(findings: Findings) -> list[ColumnView]:
    rows = findings.findings

    def claims() -> I64:
        return np.array([0 if finding.note else finding.claimed_ns for finding in rows], np.int64)

    def width(least: int, text: Callable[[Finding], str]) -> int:
        return max(least, *(len(text(finding)) for finding in rows)) if rows else least

    return [
        ColumnView("Cost", width(11, _claim), lambda row: _claim(rows[row]), right=True, keys=claims),
        ColumnView("Of time", 7, lambda row: _share(rows[row]), right=True, keys=claims),
        ColumnView("Steps", width(7, _steps), lambda row: _steps(rows[row]), right=True),
        ColumnView("Finding", 0, lambda row: f"{_indent(rows[row])}{rows[row].title}: {rows[row].text}"),
    ]


def banner(findings: Findings, width: int, lines: int, key: str) -> Text | None:
    """Return what the empty panel tells of the findings in so many lines, None where nothing is found; `key`
    shows all of them.
    """
    losses = findings.losses
    if not losses:
        return None
    text_lines = [_line([(f"{key} Findings, costliest first", "bold")], width)]
    for finding in losses[: lines - 1]:
        text_lines.append(
            _line(
                [(f"{_claim(finding):>11}  {_indent(finding)}{finding.title}: ", ""), (finding.text, "dim")],
                width,
            )
        )
    return Text("\n").join(text_lines)


def _line(parts: list[tuple[str, str]], width: int) -> Text:
    line = Text(no_wrap=True)
    for text, style in parts:
        line.append(safe(text), style)
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _indent(finding: Finding) -> str:
    """Return what stands before a finding that the one above explains."""
    return "  " if finding.caused_by else ""


def _claim(finding: Finding) -> str:
    if finding.kind != "loss":
        return finding.kind
    return format_ns(finding.claimed_ns) if finding.claimed_ns else "-"


def _share(finding: Finding) -> str:
    return "" if finding.note or not finding.claimed_ns else f"{finding.share:.0%}"


def _steps(finding: Finding) -> str:
    return f"{finding.in_steps}/{finding.of_steps}" if finding.of_steps else ""


def read_report_columns(rows: Sequence[ReadReportRow]) -> list[ColumnView]:
    def counted(count: int | None) -> str:
        return "" if count is None else format_count(count)

    what = max([len("what"), *(len(row.what) for row in rows)])
    count = max([len("count"), *(len(counted(row.number)) for row in rows)])
    columns = [
        ColumnView("What", min(16, what), lambda row: rows[row].what),
        ColumnView("Count", count, lambda row: counted(rows[row].number), right=True),
        ColumnView("", 0, lambda row: rows[row].text),
    ]
    if any(row.offset is not None for row in rows):
        columns.insert(2, ColumnView("First at byte", 14, lambda row: counted(rows[row].offset), right=True))
    if any(row.source for row in rows):
        columns.insert(0, ColumnView("File", 24, lambda row: rows[row].source))
    return columns
