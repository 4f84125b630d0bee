"""The manual page, from the same texts as help."""

from __future__ import annotations

import inspect
from importlib.metadata import version

import click

from .help import COMMON, EXAMPLES, EXIT_CODES, by_question

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
    lines += (f".PP\n.EX\n{_plain(line)}\n.EE\n" for line in EXAMPLES.get(name, ()))
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
