"""All commands with their options as a Markdown page, from the same texts as help."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import click

from .help import COMMON, EXAMPLES, EXIT_CODES, by_question, first_sentence

NOT_LISTED = frozenset({"-h", "--help"})


def commands_reference() -> str:
    """Return a section for each question that help is grouped by, then common options and exit codes."""
    from .main import tracelane

    ctx = click.Context(tracelane, info_name="tracelane")
    names = tracelane.list_commands(ctx)
    commands = {name: command for name in names if (command := tracelane.get_command(ctx, name)) is not None}
    groups = by_question(list(commands))
    parts = ["## All commands\n", _overview(groups, commands)]
    for title, group in groups.items():
        parts.append(f"## {title}\n")
        parts += (_command_section(name, commands[name], ctx) for name in group)
    parts += ["## Options of most commands\n", _common_options(commands, ctx)]
    parts += ["## Exit codes\n", exit_code_table()]
    return "\n".join(parts)


def exit_code_table() -> str:
    """Return all exit codes as a Markdown table."""
    rows = [f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()]
    return "".join(["| exit code | when |\n", "|---|---|\n", *rows])


def _overview(groups: Mapping[str, Sequence[str]], commands: Mapping[str, click.Command]) -> str:
    lines = ["| command | what it does |\n", "|---|---|\n"]
    for title, names in groups.items():
        lines.append(f"| **{title}** | |\n")
        lines += (
            f"| [`{name}`](#tracelane-{name}) | {_cell(first_sentence(commands[name]))} |\n" for name in names
        )
    return "".join(lines)


def _command_section(name: str, command: click.Command, parent: click.Context) -> str:
    ctx = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(ctx))
    examples = "".join(f"    {line}\n" for line in EXAMPLES.get(name, ()))
    parts = [f"### tracelane {name}\n", f"Usage: `tracelane {name} {usage}`\n"]
    parts += (_prose(paragraph) for paragraph in inspect.cleandoc(command.help or "").split("\n\n"))
    parts += [examples] if examples else []
    left_out = COMMON | NOT_LISTED
    own = [one for one in command.params if isinstance(one, click.Option) and not left_out & set(one.opts)]
    records = [record for one in own if (record := one.get_help_record(ctx)) is not None]
    if isinstance(command, click.Group):
        records += _inner_commands(name, command, ctx)
    return "\n".join([*parts, _records_table(records)] if records else parts)


def _inner_commands(name: str, group: click.Group, ctx: click.Context) -> list[tuple[str, str]]:
    """Return the commands inside a command, each with its own options behind it."""
    records = []
    for inner, command in group.commands.items():
        records.append((f"tracelane {name} {inner}", first_sentence(command)))
        own = click.Context(command, info_name=inner, parent=ctx)
        for one in command.params:
            record = one.get_help_record(own) if not NOT_LISTED & set(one.opts) else None
            records += [record] if record is not None else []
    return records


def _common_options(commands: Mapping[str, click.Command], ctx: click.Context) -> str:
    """Return the options that most commands have, each in the words of the first command that has it."""
    records: dict[str, tuple[str, str]] = {}
    for name, command in commands.items():
        own = click.Context(command, info_name=name, parent=ctx)
        for one in command.params:
            is_common = COMMON & set(one.opts) and not NOT_LISTED & set(one.opts)
            if is_common and (record := one.get_help_record(own)) is not None:
                records.setdefault(one.opts[-1], record)
    return _records_table([records[key] for key in sorted(records)])


def _records_table(records: Sequence[tuple[str, str]]) -> str:
    rows = [f"| `{_cell(option)}` | {_cell(text)} |\n" for option, text in records]
    return "".join(["| option | what it does |\n", "|---|---|\n", *rows])


def _prose(paragraph: str) -> str:
    """Return a paragraph of help; one whose line breaks matter (marked for click) stands as it is typed."""
    if paragraph.startswith("\b"):
        return "".join(f"    {line}\n" for line in paragraph.splitlines()[1:])
    return " ".join(paragraph.split()).replace("<", "&lt;") + "\n"


def _cell(text: str) -> str:
    """Return text that stands in one cell of a Markdown table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
