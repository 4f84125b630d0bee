"""A trace that is being written, or whose index is damaged: it is opened anew, in the same view."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import ClassVar

from tracelane.core.base.errors import DamagedIndexError
from tracelane.core.index.cache import discard
from tracelane.core.index.changes import PERIOD_S, Change, Watch, changes_text

from ..commands.table import command
from ..draw.header import HeaderPiece
from ..session_store import SessionStore
from ..stage import Stage
from .controller import Commands, Controller

TICK_S = 0.05
PATIENCE_S = 5.0
"""Seconds that a file system may take to answer after a key is pressed."""


class ReloadController(Controller):
    """The command that reloads, and what tells that there is a reason to."""

    watch_period_s: ClassVar[float] = PERIOD_S

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Start without files to watch."""
        super().__init__(app, store)
        # Columns that the first picture was drawn of, before there was an App, are being checked already.
        self.verification = store.trace.defer_checks()
        self.verification.tell(self._verified)
        self.attach()
        self._watch: Watch | None = None
        self._changes_seen: tuple[Change, ...] = ()

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "reload": self.do_reload,
        }

    def attach(self) -> None:
        """Have columns of the trace on show checked."""
        self.store.trace.defer_checks(self.verification)

    def begin_watch(self) -> None:
        """Begin to watch the files of the trace."""
        self._watch = Watch(self.store.trace.states_read(), self.watch_period_s)
        if self._watch.watches:
            self.app.set_interval(self.watch_period_s, self._look_at_changes)
        self.verification_changed()  # the thread may have been done before there was anybody to tell

    def close(self) -> None:
        """Stop watching files."""
        if self._watch is not None:
            self._watch.close()
        self.verification.close()

    def reopen(self, error: DamagedIndexError) -> bool:
        """Leave to open the trace anew where its index is damaged and can be built again; tell whether so."""
        if self.app.damage is not None:
            return True
        readable = self._watch is None or self._watch.watches
        if error.folder is None or not readable or not self.app.can_go_on or not discard(error.folder):
            return False
        self.app.host.log.note(f"discarded: {error}")
        self.app.damage = error
        self.app.wants_reload = True
        self.app.exit()
        return True

    def _verified(self) -> None:
        """Show the result of the thread that checks the drawn columns."""
        with suppress(RuntimeError):  # the viewer is closing
            self.app.call_from_thread(self.verification_changed)

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
        pending = [HeaderPiece("unverified", "warning")] if self.verification.pending else []
        return pending + ([HeaderPiece(self._news, "warning")] if self._changes_seen else [])

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
        if any(change.deleted for change in self._changes_seen):
            return news  # what is not there cannot be read again
        keys = self.app.keys_text_of(command("reload"))
        return f"{news}; {keys} reloads" if keys else f"{news}: type :reload"

    def do_reload(self) -> None:
        """Leave to open the trace anew, if a file of it has changed since it was read."""
        self.app.run_worker(self._reload(), group="reload", exclusive=True)

    async def _reload(self) -> None:
        """Leave to open the trace anew, if a file of it has changed since it was read."""
        watch = self._watch
        if self.store.trace.opens:  # a capture store, to which others may have written
            self.app.wants_reload = True
            self.app.exit()
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
        elif any(change.deleted for change in watch.changes):
            self.app.say(f"{changes_text(watch.changes)}: there is nothing to read again")
        else:
            self.app.wants_reload = True
            self.app.exit()
