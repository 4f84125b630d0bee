"""Completions for shells, and the manual page."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import click
from click.shell_completion import (
    CompletionItem,
    ShellComplete,
    get_completion_class,
    split_arg_string,
)

from tracelane.core.base.errors import UsageError
from tracelane.core.base.numbers import whole_number
from tracelane.core.base.output import print_fields, print_text

from .help import COMMON, EXIT_CODES, by_question, examples_of

PROGRAM = "tracelane"
VARIABLE = "_TRACELANE_COMPLETE"
"""What the shell's function sets when it asks for completions."""


FISH = """\
function %(complete_func)s
    set -l words (commandline -cp | string collect)
    set -l word (commandline -ct | string collect)
    for line in (env %(complete_var)s=fish_complete COMP_WORDS=$words COMP_CWORD=$word %(prog_name)s)
        set -l fields (string split -m 2 \\t -- $line)
        switch $fields[1]
            case dir
                __fish_complete_directories $fields[2]
            case file
                __fish_complete_path $fields[2]
            case plain
                string join -- \\t $fields[2..]
        end
    end
end
complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""


class FishCompletion(ShellComplete):
    """Completion for fish whose script and answers do not change with click's version: that of click 8.4.0
    does not run, later ones cut help at a comma. A line has kind, word and help, with tabs between them.
    """

    name = "fish"
    source_template = FISH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the one to be completed, and that one, as fish has both."""
        words = split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        incomplete = "".join(split_arg_string(os.environ.get("COMP_CWORD", ""))[:1])
        if incomplete and words and words[-1] == incomplete:
            words.pop()
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Return a line of fish's answer."""
        return "\t".join([item.type, str(item.value), *([" ".join(item.help.split())] if item.help else [])])


def _completion_class(shell: str) -> type[ShellComplete] | None:
    return FishCompletion if shell == FishCompletion.name else get_completion_class(shell)


def run_completion(shell: str) -> None:
    commands = click.get_current_context().find_root().command
    assert isinstance(commands, click.Group)
    if shell == "man":
        print_text(man_page(commands), end="")
        return
    kind = _completion_class(shell)
    if kind is None:
        raise UsageError(f"this version of click knows no completion for {shell}")
    print_text(kind(commands, {}, PROGRAM, VARIABLE).source())


def answer_shell(
    instruction: str, commands: click.Group, with_command: Callable[[Sequence[str]], list[str]]
) -> int:
    """Answer the function of a shell that asks for completions; return the exit code."""
    shell, _, what = instruction.partition("_")
    kind = _completion_class(shell)
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
        at = whole_number(cursor) if cursor.isdecimal() else len(words)
    if at < 2 or not first or first[0].startswith("-"):
        return
    os.environ["COMP_WORDS"] = line.replace(words[0], f"{words[0]} view", 1)
    if shell != "fish":
        os.environ["COMP_CWORD"] = str(at + 1)


INTRODUCTION = """\
.TH TRACELANE 1 "" "tracelane {version}" "User Commands"
.SH NAME
tracelane \\- show profiler traces of any size in the terminal
.SH SYNOPSIS
.B tracelane
.RI [ COMMAND ]
.RI [ OPTIONS ]
.IR TRACE ...
.SH DESCRIPTION
"""


def man_page(group: click.Group) -> str:
    """Return the page as roff."""
    ctx = click.Context(group, info_name="tracelane")
    names = group.list_commands(ctx)
    commands = {name: command for name in names if (command := group.get_command(ctx, name)) is not None}
    parts = [INTRODUCTION.format(version=version("tracelane")), _text(group.help or "")]
    for title, some in by_question(list(commands)).items():
        parts.append(f".SH {_plain(title.upper())}\n")
        parts += (_command(name, commands[name], ctx) for name in some)
    parts.append(".SH OPTIONS OF MOST COMMANDS\n")
    common: dict[str, str] = {}
    for name, command in commands.items():
        own = click.Context(command, info_name=name, parent=ctx)
        for param in command.params:
            if COMMON & set(param.opts) and (record := param.get_help_record(own)) is not None:
                common.setdefault(param.opts[-1], _option(*record))
    parts += (common[key] for key in sorted(common))
    parts.append(".SH EXIT STATUS\n")
    parts += (_option(str(code), meaning) for code, meaning in EXIT_CODES.items())
    return "".join(parts)


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    ctx = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(ctx))
    lines = [f".SS {_plain(f'tracelane {name} {usage}')}\n", _text(command.help or "")]
    for param in command.params:
        is_own = isinstance(param, click.Option) and not COMMON & set(param.opts) and "-h" not in param.opts
        record = param.get_help_record(ctx) if is_own else None
        if record is not None:
            lines.append(_option(*record))
    lines += (f".PP\n.EX\n{_plain(line)}\n.EE\n" for line in examples_of(name))
    return "".join(lines)


def _option(names: str, text: str) -> str:
    return f".TP\n.B {_plain(names)}\n{_plain(' '.join(text.split()))}\n"


def _text(text: str) -> str:
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "".join(f".PP\n{_plain(' '.join(paragraph.split()))}\n" for paragraph in paragraphs)


def _plain(text: str) -> str:
    """Return text that roff prints as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga")
    return f"\\&{text}" if text.startswith((".", "'")) else text
