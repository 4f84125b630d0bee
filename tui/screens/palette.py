"""The command palette: every command of the table, with its keys."""

from __future__ import annotations

from functools import partial
from typing import Protocol, cast

from textual import on
from textual.await_complete import AwaitComplete
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.widgets import Button, Input

from ..commands import COMMANDS, Command
from .answer import answer_once


class Commanded(Protocol):
    """The App, as far as the palette needs it."""

    def run_command(self, command_id: str) -> None:
        """Do a command."""
        ...

    def keys_shown(self, entry: Command) -> str:
        """Return a command's keys as text."""
        ...


class CommandProvider(Provider):
    """Offers the commands; finding looks in titles, help and ids."""

    @property
    def _commanded(self) -> Commanded:
        return cast(Commanded, self.app)

    def _help(self, entry: Command) -> str:
        keys = self._commanded.keys_shown(entry)
        return f"{keys} — {entry.help}" if keys else entry.help

    async def discover(self) -> Hits:
        """Offer all of them, in the table's order."""
        for entry in COMMANDS:
            call = partial(self._commanded.run_command, entry.id)
            yield DiscoveryHit(entry.title, call, help=self._help(entry))

    async def search(self, query: str) -> Hits:
        """Offer those that match."""
        matcher = self.matcher(query)
        for entry in COMMANDS:
            score = max(matcher.match(entry.title), 0.9 * matcher.match(f"{entry.id} {entry.help}"))
            if score > 0:
                call = partial(self._commanded.run_command, entry.id)
                yield Hit(score, matcher.highlight(entry.title), call, help=self._help(entry))


class Commands(CommandPalette):
    """Textual's palette, answered once, in which keys that page through a list of no lines do nothing."""

    def dismiss(self, result: None = None) -> AwaitComplete:
        """Go away; a palette that is not on top has been answered already."""
        return answer_once(self, lambda: super(Commands, self).dismiss(result))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.prevent_default()  # textual's own handler would do the command again
        self._select_or_command(event)

    def _select_or_command(self, event: Input.Submitted | Button.Pressed | None = None) -> None:
        if self.is_current:
            super()._select_or_command(event)
        elif event is not None:
            event.stop()

    def _action_command_list(self, action: str) -> None:
        options = self.query_one(CommandList)
        if options.option_count and options.scrollable_content_region.area:
            super()._action_command_list(action)
