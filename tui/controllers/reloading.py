"""Leaving to open a trace anew that has changed or is damaged, another capture, other groups of ranks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import ClassVar

from tracelane.core.base.errors import DamagedIndexError, UnreadableError
from tracelane.core.index.arrivals import FolderNews
from tracelane.core.index.cache import discard
from tracelane.core.index.captures import ranks_text
from tracelane.core.index.changes import PERIOD_S, Change, Watch, changes_since, changes_text
from tracelane.core.index.inputs import STDIN, check_there, traces_in
from tracelane.core.logs.overlay import Overlay

from ..actions.scene import Refusal
from ..commands.table import command
from ..draw.header import WARNING, HeaderPiece
from ..keys import keys_text
from ..stage import Controller, Stage, does
from ..steps import pair_of
from ..view_state import GroupRanks, OpenCapture, Reopen, ShowAgainst
from ..widgets.prompt import Prompt
from ..widgets.table import ColumnView

TICK_S = 0.05
PATIENCE_S = 5.0
"""Seconds that a file system may take to answer after a key is pressed."""


def _is_gone(changes: Sequence[Change]) -> bool:
    """Tell whether files are not there any more, and no new ones that could be read instead."""
    return any(change.deleted for change in changes) and not any(change.is_new for change in changes)


GROUPINGS = {"host": "host", "tp": "tensor parallel", "pp": "pipeline parallel", "dp": "data parallel"}


class ReloadController(Controller):
    """Commands that open something in place of the trace, and what tells that there is a reason to."""

    watch_period_s: ClassVar[float] = PERIOD_S

    def __init__(self, app: Stage) -> None:
        super().__init__(app)
        # Columns that the first picture was drawn of, before there was an App, are being checked already.
        self.verification = self.store.trace.defer_checks()
        self.verification.tell(self._verified)
        self.attach()
        self._watch: Watch | None = None
        self._changes_seen: tuple[Change, ...] = ()

    def attach(self) -> None:
        """Have columns of the trace on show checked."""
        self.store.trace.defer_checks(self.verification)

    def begin_watch(self) -> None:
        trace, look = self.store.trace, changes_since
        if trace.folders:
            captured = [member for capture in trace.captures for member in capture.members]
            look = FolderNews(trace.folders, [str(one.path) for one in captured or trace.members]).look
        self._watch = Watch(trace.states_read(), self.watch_period_s, look)
        if self._watch.watches:
            self.app.set_interval(self.watch_period_s, self._look_at_changes)
        self.verification_changed()  # the thread may have been done before there was anybody to tell

    def close(self) -> None:
        if self._watch is not None:
            self._watch.close()
        self.verification.close()

    def reopen(self, error: DamagedIndexError) -> bool:
        """Leave to open the trace anew where its index is damaged and can be built again; tell whether so."""
        if isinstance(self.app.return_value, Reopen):
            return True
        readable = self._watch is None or self._watch.watches
        if error.folder is None or not readable or not self.app.can_go_on or not discard(error.folder):
            return False
        self.app.host.log.note(f"discarded: {error}")
        self.app.leave_for(Reopen(error))
        return True

    def _verified(self) -> None:
        """Show the result of the thread that checks the drawn columns."""
        with suppress(RuntimeError):  # the viewer is closing
            self.app.tell(self.verification_changed)

    def verification_changed(self) -> None:
        """Say in the header that all columns were checked; report damage."""
        if self.verification.damage is not None:
            self.app.report_error(self.verification.damage)
        if self.app.composed:
            self.app.header_changed()

    def header_notes(self) -> list[HeaderPiece]:
        """Return what the header says while columns that are drawn have not been checked, and of changed
        files.
        """
        pending = [HeaderPiece("unverified", WARNING)] if self.verification.pending else []
        return pending + ([HeaderPiece(self._news, WARNING)] if self._changes_seen else [])

    def _look_at_changes(self) -> None:
        changes = () if self._watch is None else self._watch.changes
        if changes == self._changes_seen or not self.app.composed:
            return
        before = self._news if self._changes_seen else ""
        self._changes_seen = changes
        self.app.header_changed()
        if before:
            self.app.withdraw(before)
        if changes:
            self.app.say(self._news, stays=True)

    @property
    def _news(self) -> str:
        news = changes_text(self._changes_seen)
        if _is_gone(self._changes_seen):
            return news  # what is not there cannot be read again
        keys = keys_text(command("reload"), self.app.config.keys)
        return f"{news}; {keys} reloads" if keys else f"{news}: type :reload"

    @does("reload")
    def do_reload(self) -> None:
        self.app.run_worker(self._reload(), group="reload", exclusive=True)

    async def _reload(self) -> None:
        """Leave to open the trace anew, if a file of it has changed since it was read."""
        watch = self._watch
        if self.store.trace.opens:  # a capture store, to which others may have written
            self.app.leave_for(Reopen())
            return
        if watch is None or not watch.watches:
            self.app.say("what came through a pipe cannot be read again")
            return
        looks, until = watch.looks, monotonic() + PATIENCE_S
        watch.look_now()
        while watch.looks == looks and monotonic() < until:
            await asyncio.sleep(TICK_S)
        if watch.looks == looks:
            self.app.say("the file system does not answer: nothing is reloaded")
        elif not watch.changes:
            self.app.say("nothing has changed since the trace was read")
        elif _is_gone(watch.changes):
            self.app.say(f"{changes_text(watch.changes)}: there is nothing to read again")
        else:
            self.app.leave_for(Reopen())

    # -- another one in its place -------------------------------------------------------------------------

    @does("rank-groups")
    def do_rank_groups(self) -> None:
        """List what the ranks of a store may be grouped by; choosing one draws them anew."""
        if not self.store.trace.opens:
            raise Refusal("ranks are grouped in the picture of a capture store: see tracelane collect --help")

        def choose(row: int) -> None:
            self.app.leave_for(GroupRanks(list(GROUPINGS)[row]))

        columns = [ColumnView("By", 0, lambda row: list(GROUPINGS.values())[row])]
        self.app.offer_rows("Groups of ranks", columns, len(GROUPINGS), "Enter groups", choose)

    @does("against")
    def do_against(self) -> None:
        """Ask for a run to show below this one, the traces in its folder being proposed; of two runs show the
        first alone again.
        """
        trace = self.store.trace
        if pair_of(trace) is not None:
            self.app.leave_for(ShowAgainst(""))
            return
        self._check_alone()
        own = Path(trace.files[0].path)
        others = [str(path) for path in traces_in(own.parent) if path != own]
        self.app.main.query_one(Prompt).ask("against", "against ", "a trace of another run", others)

    @does("against", typed=True)
    def show_against(self, text: str) -> None:
        path = os.path.expanduser(text)
        self._check_alone()
        try:
            check_there([path])
        except UnreadableError as error:
            raise Refusal(str(error)) from None
        self.app.leave_for(ShowAgainst(path))

    def _check_alone(self) -> None:
        """Raise Refusal where nothing can be shown below: of a store, with a log, of standard input."""
        trace = self.store.trace
        if trace.opens or isinstance(trace, Overlay) or trace.files[0].path == STDIN:
            log = ": :smi none removes the log" if isinstance(trace, Overlay) else ""
            raise Refusal(f"two runs are shown of traces in files, without logs{log}")

    @does("captures")
    def do_captures(self) -> None:
        captures = self.store.trace.captures
        if len(captures) < 2:
            raise Refusal("no other capture in this folder")
        open_capture = self.store.trace.open_capture
        columns = [
            ColumnView("", 1, lambda row: "*" if row == open_capture else ""),
            ColumnView("When", 24, lambda row: captures[row].when),
            ColumnView("Ranks", 12, lambda row: ranks_text(captures[row].ranks) or "none"),
            ColumnView("Files", 6, lambda row: f"{len(captures[row].members):,}", right=True),
            ColumnView("Missing", 16, lambda row: ranks_text(captures[row].missing)),
            ColumnView("Run", 0, lambda row: captures[row].run),
        ]

        def chosen(row: int) -> None:
            if row != open_capture:
                self.app.leave_for(OpenCapture(row + 1))

        self.app.offer_rows("Captures", columns, len(captures), "Enter opens it", chosen)
