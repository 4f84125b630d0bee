"""The findings: looked for in the background after the first picture, shown in their panel, jumped to."""

from __future__ import annotations

from rich.text import Text

from tracelane.core.base.clock import Clocks
from tracelane.core.base.progress import CancelledCallback, never
from tracelane.core.base.units import format_ns
from tracelane.core.tables.findings.finding import Evidence, Finding, Findings
from tracelane.core.tables.findings.forms import stored_findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.worker import findings_by_worker

from ..actions import view
from ..draw.things import Thing, gap_thing_at
from ..draw.verdict import LEADS_ON, LISTS_KERNELS
from ..lanes.strips import Verdict
from ..panels.findings import FindingsPane
from ..panels.findings import banner as banner_text
from ..session import Session, Viewport
from ..stage import Controller, Recent, Stage, does, fills, hears
from ..widgets.table import VirtualTable
from ..widgets.text_pane import TextPane
from .panels import PanelController
from .selection import SelectionController

MAX_RANGES = 8
"""The number of ranges whose findings are held in memory."""
ROOM_FOR_LIST = 6
"""An empty panel with fewer lines lists no findings: the verdict has the first."""
NOTHING_SELECTED = "Nothing selected: {up} {down} choose a row, {details} selects what is at the cursor."
ROOM = 3
"""A window of evidence is zoomed to so that it takes this fraction (one part in so many) of the view."""

Key = tuple[tuple[int, int] | None, Clocks, str]
"""Range, clocks, name of the steps."""


class FindingsController(Controller):
    def __init__(self, app: Stage, panels: PanelController, selection: SelectionController) -> None:
        super().__init__(app)
        self.panels = panels
        self.selection = selection
        self._by_range: Recent[Key, Findings] = Recent(MAX_RANGES)
        self._offered: tuple[object, ...] | None = None  # what is seen while Enter shows the next place
        self._looked_at: tuple[Findings, int, int] | None = None  # findings, row, evidence shown last

    @does("details")
    def do_details(self) -> None:
        """Show the first finding's place where nothing else was looked at yet, then its next; else what
        lies at the cursor.
        """
        finding = self._first if self.is_offered else None
        if finding is None or not finding.evidence:
            self.selection.do_details()
        else:
            self.show_first()

    @property
    def is_offered(self) -> bool:
        """Whether Enter shows a place of the first finding."""
        session = self.store.session
        untouched = not self.store.now.has_moved and session.selection is None
        return self._first is not None and (untouched or _seen(session) == self._offered)

    @property
    def _first(self) -> Finding | None:
        findings = self._by_range.get(self._whole)
        leading = findings.leading if findings is not None else None
        # Other headlines' figures need the room of an offer.
        is_shown = leading is not None and (leading.kind != "headline" or leading.rule in LEADS_ON)
        return leading if is_shown else None

    @property
    def of_whole(self) -> Findings | None:
        """The findings of the whole trace, None as long as they are not known."""
        return self._by_range.get(self._whole)

    def show_finding(self, finding: Finding) -> None:
        """Show a finding's first place, its next if that is shown."""
        findings = self.of_whole
        if findings is not None and finding in findings.findings and finding.evidence:
            self._show_next(findings, findings.findings.index(finding))

    @hears(Verdict.Pressed)
    def show_first(self, _: Verdict.Pressed | None = None) -> None:
        """Show the first finding's first place, its next if that is shown."""
        findings = self._by_range.get(self._whole)
        if findings is None or self._first is None or not self._first.evidence:
            return
        if self._first.rule == LISTS_KERNELS:
            self.panels.show("kernels")
            return
        self._show_next(findings, self._row_to_show(findings, findings.findings.index(self._first)))
        self.store.show(self.store.session._replace(panel="details"))
        self._offered = _seen(self.store.session)
        self.offer()

    def _row_to_show(self, findings: Findings, first: int) -> int:
        """Return the row of the finding shown last as long as it has more places; then that of the next."""
        last = self._looked_at
        if last is None or last[0] is not findings or _seen(self.store.session) != self._offered:
            return first
        rows = [row for row, one in enumerate(findings.findings) if one.evidence and not one.note]
        _, row, number = last
        if row not in rows or number + 1 < len(findings.findings[row].evidence):
            return row
        return rows[(rows.index(row) + 1) % len(rows)]

    def offer(self) -> None:
        """Say on the verdict whether Enter shows its place."""
        text = ""
        if self.is_offered and self._first is not None and self._first.evidence:
            text = "{details} shows it" if self._offered is None else "{details}: next place"
            text = "{details}: kernels" if self._first.rule == LISTS_KERNELS else text
            text = self.app.with_keys(text)
        self.app.main.query_one(Verdict).offer(text)

    def look_for_findings(self) -> None:
        """Begin with the whole trace: those stored beside the index at once, else away from the screen."""
        key = self._whole
        stored = stored_findings(self._scope(key))
        if stored is not None:
            self._have_findings(key, stored)
        else:
            self._find(key)

    @property
    def _whole(self) -> Key:
        """The key of the whole trace under the present clocks, those of logs aside; what the trace answers
        itself does not depend on them.
        """
        own = self.store.own_trace
        clocks = self.store.own_clocks if own.answers is None else own.clocks
        return None, clocks, self.store.session.steps

    def _scope(self, key: Key, cancelled: CancelledCallback = never) -> Scope:
        return Scope(self.store.own_trace, key[0], clocks=key[1], steps=key[2], cancelled=cancelled)

    def _find(self, key: Key) -> None:
        self.app.jobs.ask(
            "findings",
            lambda cancelled: findings_by_worker(self._scope(key, cancelled)),
            lambda findings: self._have_findings(key, findings),
        )

    def _have_findings(self, key: Key, findings: Findings) -> None:
        self._by_range.put(key, findings)
        if key == self._whole and self.app.composed:
            leading = findings.leading
            self.app.main.query_one(Verdict).judge(None if leading is None else leading.as_leading)
            self.offer()
        waiting = self.store.session.panel == "findings" or (
            self.store.session.panel == "details" and self.store.session.selection is None
        )
        if self.panels.shows_panel and waiting:
            self.panels.fill()

    @fills("findings")
    def fill(self) -> None:
        pane = self.app.main.query_one(FindingsPane)
        key = (self.store.session.range, *self._whole[1:])
        findings = self._by_range.get(key)
        if findings is None:
            pane.say("looking…")
            self._find(key)
        else:
            pane.show_findings(findings, self.store.trace.span_at(self.store.session.clocks)[0])

    def banner(self) -> Text:
        """Return what the details say where nothing is selected: how to select something, and where there is
        room the findings.
        """
        findings = self._by_range.get(self._whole)
        pane = self.app.main.query_one("#details", TextPane)
        hint, height = Text(self.app.with_keys(NOTHING_SELECTED), "dim"), pane.size.height
        if findings is None or height < ROOM_FOR_LIST:
            return hint
        key = self.app.with_keys("{panel-findings}")
        text = banner_text(findings, pane.text_width, height - 2, key)
        return hint if text is None else Text.assemble(hint, "\n\n", text)

    @hears(VirtualTable.RowChosen, "findings-rows")
    def chosen(self, message: VirtualTable.RowChosen) -> None:
        """Go to a finding's evidence; again: to its next."""
        findings = self.app.main.query_one(FindingsPane).findings
        if findings is None:
            return
        if self.app.maximised:
            self.app.maximised = False
            self.app.main.set_focus(message.table)
        self._show_next(findings, message.row)

    def _show_next(self, findings: Findings, row: int) -> None:
        """Show the first place of a finding, the next where one of its places was shown last."""
        evidence = findings.findings[row].evidence
        last = self._looked_at
        again = last is not None and last[0] is findings and last[1] == row
        number = (last[2] + 1) % len(evidence) if last is not None and again else 0
        self._looked_at = findings, row, number
        self.show_place(evidence[number])
        more = "; Enter: the next" if len(evidence) > 1 else ""
        length = format_ns(evidence[number].end - evidence[number].start)
        is_named = self.store.session.panel == "findings" or findings.findings[row] == self._first
        title = "" if is_named else f"{findings.findings[row].title}, "
        self.app.say(f"{title}{number + 1} of {len(evidence)}: {evidence[number].label}, {length}{more}")

    def show_place(self, evidence: Evidence) -> None:
        """Select a slice, or the gap that a window is, and make it the view's middle, the cursor at its
        start.
        """
        gap = None if evidence.slice is not None else self._gap_at(evidence)
        if evidence.slice is not None:
            self.app.jump(evidence.slice)
        elif gap is not None:
            self.store.select(gap)
        session = self.store.session
        span = max(ROOM * (evidence.end - evidence.start), session.viewport.width)
        start = evidence.start - (span - (evidence.end - evidence.start)) // 2
        limits = view.limits(self.store.trace, session.clocks)
        viewport = Viewport(start, span, session.viewport.width).kept_within(limits)
        if evidence.slice is None and gap is None:
            session = session._replace(selection=None)
        self.store.go(session._replace(viewport=viewport, cursor=evidence.start))

    def _gap_at(self, evidence: Evidence) -> Thing | None:
        """Return the shortest gap in a device lane's work that holds a window; None where none does."""
        trace, clocks = self.store.trace, self.store.session.clocks
        lanes = [trace.lanes[number] for number in sorted(trace.device_lanes)]
        rows = (trace.row(lane, 0) for lane in lanes if lane.slices)
        gaps = (gap_thing_at(trace, clocks, row, evidence.start) for row in rows)
        around = [gap for gap in gaps if gap and gap.start <= evidence.start and evidence.end <= gap.end]
        return min(around, key=lambda gap: gap.end - gap.start, default=None)


def _seen(session: Session) -> tuple[object, ...]:
    """Return what a move changes."""
    return session.selection, session.cursor, session.viewport.start, session.viewport.span, session.panel
