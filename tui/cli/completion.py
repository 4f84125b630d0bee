"""Print a script with which a shell completes commands, options, lanes, steps and metrics; man: the
manual page.

Lanes and steps are those of the first trace on the line, once it has an index.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click
from click.shell_completion import get_completion_class, split_arg_string

from tracelane.core.base.errors import UsageError
from tracelane.core.base.output import print_fields, print_text

from .man import man_page

PROGRAM = "tracelane"
VARIABLE = "_TRACELANE_COMPLETE"
"""What the shell's function sets when it asks for completions."""


def run_completion(shell: str) -> None:
    commands = click.get_current_context().find_root().command
    assert isinstance(commands, click.Group)
    if shell == "man":
        print_text(man_page(commands), end="")
        return
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"this version of click knows no completion for {shell}")
    print_text(kind(commands, {}, PROGRAM, VARIABLE).source())


def answer_shell(
    instruction: str, commands: click.Group, with_command: Callable[[Sequence[str]], list[str]]
) -> int:
    """Answer the function of a shell that asks for completions; return the exit code."""
    shell, _, what = instruction.partition("_")
    kind = get_completion_class(shell)
    if kind is None or what not in ("source", "complete"):
        return 1
    if what == "complete":
        first = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:2]
        if (meaning := with_command(first)[0]) == "view":
            _name_view(shell, first)
        elif meaning == "--help" and first == ["help"]:
            commands = click.Group(PROGRAM, {"help": _names_alone(commands)})
    answering = kind(commands, {}, PROGRAM, VARIABLE)
    if what == "source":
        print_text(answering.source())
    else:
        print_fields(answering.complete())
    return 0


def _names_alone(command: click.Command) -> click.Command:
    """Return a command of which nothing is completed but the names of those in it."""
    texts: dict[str, Any] = {"help": command.help, "short_help": command.short_help, "add_help_option": False}
    if not isinstance(command, click.Group):
        return click.Command(command.name, **texts)
    ctx = click.Context(command)
    inner = {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}
    return click.Group(command.name, {name: _names_alone(one) for name, one in inner.items() if one}, **texts)


def _name_view(shell: str, first: Sequence[str]) -> None:
    """Put `view` between the program and a trace on the line, as the command line itself does."""
    line, cursor = os.environ.get("COMP_WORDS", ""), os.environ.get("COMP_CWORD", "")
    words = split_arg_string(line)
    if shell == "fish":  # says the word itself
        at = len(words) - bool(cursor)
    else:
        at = int(cursor) if cursor.isdecimal() else len(words)
    if at < 2 or not first or first[0].startswith("-"):
        return
    os.environ["COMP_WORDS"] = line.replace(words[0], f"{words[0]} view", 1)
    if shell != "fish":
        os.environ["COMP_CWORD"] = str(at + 1)
