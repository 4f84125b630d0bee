"""A trace that is being written, or whose index is damaged: it is opened anew, in the same view."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import ClassVar

from rich.text import Text
from textual import work

from tracelane.core.base.errors import DamagedIndexError
from tracelane.core.index.cache import discard
from tracelane.core.index.changes import PERIOD_S, Change, Watch, changes_text, states_read
from tracelane.core.trace import Trace

from ..commands import command
from ..config import Config
from ..session import Session
from ..widgets.bars import Footer
from .base import Viewer

TICK_S = 0.05
PATIENCE_S = 5.0
"""So long a file system may take to answer when a key asks it."""


class Watching(Viewer):
    """The command that reloads, and what tells that there is a reason to."""

    watch_period_s: ClassVar[float] = PERIOD_S

    def __init__(self, trace: Trace, session: Session | None, config: Config) -> None:
        """Look after nothing yet."""
        super().__init__(trace, session, config)
        self.wants_reload = False
        """Whether the trace is to be opened anew, once the App has left."""
        self.damage: DamagedIndexError | None = None
        """Why its index was discarded, where that is the reason."""
        self._watch: Watch | None = None
        self._changes_seen: tuple[Change, ...] = ()

    def begin_watch(self) -> None:
        """Look after the files of the trace from now on."""
        self._watch = Watch(states_read(self.trace.indexes), self.watch_period_s)
        if self._watch.watches:
            self.set_interval(self.watch_period_s, self._look_at_changes)
        self.verification_changed()  # the thread may have been done before there was anybody to tell

    def on_unmount(self) -> None:
        """Look after nothing any more."""
        if self._watch is not None:
            self._watch.close()
        self.verification.close()

    def report_error(self, error: Exception) -> None:
        """Open the trace anew where its index is damaged; show any other error."""
        if not isinstance(error, DamagedIndexError) or error.folder is None:
            super().report_error(error)
        elif self.damage is None:
            readable = self._watch is None or self._watch.watches
            if not readable or not self.can_go_on or not discard(error.folder):
                super().report_error(error)
                return
            self.host.log.note(f"discarded: {error}")
            self.damage = error
            self.wants_reload = True
            self.exit()

    def verification_changed(self) -> None:
        """Say in the header that all columns were checked; report damage."""
        super().verification_changed()
        if self.composed:
            self.changes_seen()

    def verification_notes(self) -> list[Text]:
        """Return what the header says while columns that are drawn have not been checked."""
        return [Text("unverified", "bold yellow")] if self.verification.pending else []

    def _look_at_changes(self) -> None:
        changes = () if self._watch is None else self._watch.changes
        if changes == self._changes_seen or not self.composed:
            return
        told = self.main.query_one(Footer).message
        fresh = told == self._news if self._changes_seen else not told
        self._changes_seen = changes
        self.changes_seen()
        if fresh:  # nothing else is being said, or this, as it was before
            self.say(self._news if changes else "")

    def changes_seen(self) -> None:
        """Bring up to date what tells of changed files beside the timeline."""

    @property
    def _news(self) -> str:
        news = changes_text(self._changes_seen)
        if any(change.deleted for change in self._changes_seen):
            return news  # what is not there cannot be read again
        return f"{news}; {self.keys_shown(command('reload')) or 'reload'} reloads"

    def change_notes(self) -> list[Text]:
        """Return what the header says of changed files."""
        return [Text(self._news, "bold yellow")] if self._changes_seen else []

    @work(exclusive=True, group="reload")
    async def do_reload(self) -> None:
        """Leave to open the trace anew, if a file of it has changed since it was read."""
        watch = self._watch
        if watch is None or not watch.watches:
            self.say("what came through a pipe cannot be read again")
            return
        looks, until = watch.looks, monotonic() + PATIENCE_S
        watch.look_now()
        while watch.looks == looks and monotonic() < until:
            await asyncio.sleep(TICK_S)
        if watch.looks == looks:
            self.say("the file system does not answer: nothing is reloaded")
        elif not watch.changes:
            self.say("nothing has changed since the trace was read")
        elif any(change.deleted for change in watch.changes):
            self.say(f"{changes_text(watch.changes)}: there is nothing to read again")
        else:
            self.wants_reload = True
            self.exit()
