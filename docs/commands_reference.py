"""All commands with their options as a Markdown page, from the same texts as help."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import click

from tracelane.tui.cli.help import COMMON, EXIT_CODES, by_question, examples_of, first_sentence

Record = tuple[str, str]
"""An option as help spells it, and what it does."""
WHERE_DIFFERENT = (
    "A command that means something else by one of these, or words it differently, lists it itself.\n"
)
NOT_LISTED = frozenset({"-h", "--help"})


def commands_reference() -> str:
    """Return a section for each question that help is grouped by, then common options and exit codes."""
    from tracelane.tui.cli.main import tracelane

    ctx = click.Context(tracelane, info_name="tracelane")
    names = tracelane.list_commands(ctx)
    commands = {name: command for name in names if (command := tracelane.get_command(ctx, name)) is not None}
    groups = by_question(list(commands))
    common = _common_options(commands, ctx)
    parts = ["## All commands\n", _overview(groups, commands)]
    for title, group in groups.items():
        parts.append(f"## {title}\n")
        parts += (_command_section(name, commands[name], ctx, common) for name in group)
    parts += [
        "## Options of most commands\n",
        WHERE_DIFFERENT,
        _records_table([common[key] for key in sorted(common)]),
    ]
    parts += ["## Exit codes\n", exit_code_table()]
    return "\n".join(parts)


def exit_code_table() -> str:
    rows = [f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()]
    return "".join(["| exit code | when |\n", "|---|---|\n", *rows])


def _overview(groups: Mapping[str, Sequence[str]], commands: Mapping[str, click.Command]) -> str:
    lines = ["| command | what it does |\n", "|---|---|\n"]
    help_of = {name: first_sentence(command.help or "") for name, command in commands.items()}
    for title, names in groups.items():
        lines.append(f"| **{title}** | |\n")
        lines += (f"| [`{name}`](#tracelane-{name}) | {_cell(help_of[name])} |\n" for name in names)
    return "".join(lines)


def _command_section(
    name: str, command: click.Command, parent: click.Context, common: Mapping[str, Record]
) -> str:
    """Return what a command does, with the options that are its own or mean something of their own here."""
    ctx = click.Context(command, info_name=name, parent=parent)
    usage = " ".join(command.collect_usage_pieces(ctx))
    examples = "".join(f"    {line}\n" for line in examples_of(name))
    parts = [f"### tracelane {name}\n", f"Usage: `tracelane {name} {usage}`\n"]
    parts += (_prose(paragraph) for paragraph in inspect.cleandoc(command.help or "").split("\n\n"))
    parts += [examples] if examples else []
    records = [record for key, record in _options(command, ctx) if common.get(key) != record]
    if isinstance(command, click.Group):
        records += _inner_commands(name, command, ctx)
    return "\n".join([*parts, _records_table(records)] if records else parts)


def _inner_commands(name: str, group: click.Group, ctx: click.Context) -> list[Record]:
    """Return the commands inside a command, each with its own options behind it."""
    records = []
    for inner, command in group.commands.items():
        records.append((f"tracelane {name} {inner}", first_sentence(command.help or "")))
        own = click.Context(command, info_name=inner, parent=ctx)
        records += (record for _, record in _options(command, own))
    return records


def _common_options(commands: Mapping[str, click.Command], ctx: click.Context) -> dict[str, Record]:
    """Return the options that most commands have, by their long names, in the words that most of them use."""
    records: dict[str, Counter[Record]] = {}
    for name, command in commands.items():
        own = click.Context(command, info_name=name, parent=ctx)
        for key, record in _options(command, own):
            if key in COMMON:
                records.setdefault(key, Counter())[record] += 1
    return {key: counts.most_common(1)[0][0] for key, counts in records.items()}


def _options(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, Record]]:
    for one in command.params:
        is_listed = isinstance(one, click.Option) and not NOT_LISTED & set(one.opts)
        if is_listed and (record := one.get_help_record(ctx)) is not None:
            yield max(one.opts, key=len), record


def _records_table(records: Sequence[Record]) -> str:
    rows = [f"| `{_cell(option)}` | {_cell(text)} |\n" for option, text in records]
    return "".join(["| option | what it does |\n", "|---|---|\n", *rows])


def _prose(paragraph: str) -> str:
    """Return a paragraph of help; one whose line breaks matter (marked for click) stands as it is typed."""
    if paragraph.startswith("\b"):
        return "".join(f"    {line}\n" for line in paragraph.splitlines()[1:])
    return " ".join(paragraph.split()).replace("<", "&lt;") + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
