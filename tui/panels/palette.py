"""The command palette: every command of the table, with its keys."""

from __future__ import annotations

from functools import partial
from typing import Protocol, cast

from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider

from ..commands import COMMANDS, Command


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
    """Textual's palette, but paging through a list in which nothing is left does nothing."""

    def _action_command_list(self, action: str) -> None:
        if self.query_one(CommandList).option_count:
            super()._action_command_list(action)
