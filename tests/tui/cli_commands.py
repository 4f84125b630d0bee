"""All commands of the command line, and the exit codes that they may end with."""

from __future__ import annotations

from collections.abc import Iterator

import click

from tracelane.tui.cli.main import tracelane

CODES = {0, 1, 2, 64}
ENDLESS = {"watch"}
"""Commands that go on until Ctrl+C, or until the program after -- ends; they have tests of their own."""
BUG = "should not have happened"
"""What is said of an error that nobody thought of."""


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command with the words that call it."""
    context = click.Context(tracelane)
    for name in tracelane.list_commands(context):
        command = tracelane.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            for inner, one in command.commands.items():
                yield f"{name} {inner}", one
        else:
            yield name, command
