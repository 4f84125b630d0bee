"""What help says besides options: commands by the question that they answer, exit codes; and --version."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracelane.core.base.output import print_text
from tracelane.core.base.safe_text import safe

from .commands import COMMANDS
from .options import HELD, LOGS, OPTIONS, VERDICT

if TYPE_CHECKING:
    from tracelane.core.tables.analysis import Analysis

GROUPS = ("Look", "While it runs", "Where does the time go?", "Several ranks", "Compare, and CI", "Files")
"""The questions that commands answer, in the order of help; each command names its own."""
OTHERS = "Others"
OWN = frozenset((*LOGS, *HELD, *VERDICT))
"""Options of the table that only few commands have."""
COMMON = frozenset(
    ("--help", *(name for key, option in OPTIONS.items() if key not in OWN for name in option.opts))
)
"""Options that most commands have: `-h` leaves them out, `--help` lists them."""
EXIT_CODES: Mapping[int, str] = {
    0: "done; a check or comparison holds",
    1: (
        "failed; or a limit is exceeded (`check`, `diff --fail-above`), `doctor` warns, `collect` could not "
        "read a rank, or a process of `capture` has not recorded; `watch` "
        "ends as the program does that it runs"
    ),
    2: "an input is missing, is no trace or cannot be read",
    3: (
        "two runs cannot be compared, as one recording lacks what the other has: lost work, unreadable "
        "events, the end of the file, a device, a metric (`check`, `diff`, `history`, `report --baseline`)"
    ),
    64: "the command line is wrong, or a limit names no metric",
    130: "interrupted with ctrl+c",
    141: "the program that reads the output closed it, as `head` does",
}
"""What every command ends with."""


def examples_of(name: str) -> Sequence[str]:
    """Return command lines that show what a command is good for."""
    return COMMANDS[name].examples if name in COMMANDS else _analysis(name).examples


def _analysis(name: str) -> Analysis:
    from tracelane.core.tables.registry import BY_NAME

    return BY_NAME[name.replace("-", "_")]


def by_question(names: Sequence[str]) -> dict[str, list[str]]:
    """Return commands by the question that they answer; every name stands in one group.

    Raises ValueError where a group names no command, or a row of the registry no group.
    """
    from tracelane.core.tables.registry import ANALYSES

    of_rows = [(row.name, row.group) for row in COMMANDS.values()]
    of_rows += [(row.command, row.group) for row in ANALYSES]
    groups = {title: [name for name, group in of_rows if group == title] for title in GROUPS}
    known = {name for group in groups.values() for name in group}
    titles = {group for _, group in of_rows if group}
    if unknown := known - {*names} | titles - {*groups}:
        raise ValueError(f"help names what there is not: {', '.join(sorted(unknown))}")
    groups[OTHERS] = [name for name in names if name not in known]
    return {title: group for title, group in groups.items() if group}


def help_text(name: str) -> str:
    """Return the help of a command."""
    return COMMANDS[name].help if name in COMMANDS else _analysis(name).help


def first_sentence(text: str) -> str:
    """Return the first sentence of a command's help, whole."""
    return " ".join(text.split("\n\n")[0].split())


def with_help(name: str, command: click.Command) -> click.Command:
    """Return a command with its help and examples, which takes -h for its own options alone."""
    command.help = help_text(name)
    examples = examples_of(name)
    if examples and not command.epilog:
        command.epilog = "\b\nExamples:\n" + "\n".join(f"  {line}" for line in examples)
    if not any("-h" in param.opts for param in command.params):
        command.params.append(
            click.Option(
                ["-h"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_short,
                help="Show the options of this command alone.",
            )
        )
    return command


def _print_short(ctx: click.Context, _: click.Parameter, is_given: bool) -> None:
    if not is_given or ctx.resilient_parsing:
        return
    formatter = ctx.make_formatter()
    command = ctx.command
    command.format_usage(ctx, formatter)
    command.format_help_text(ctx, formatter)
    left_out = COMMON | {"-h"}
    own = [one for one in command.params if isinstance(one, click.Option) and not left_out & set(one.opts)]
    records = [record for one in own if (record := one.get_help_record(ctx)) is not None]
    if records:
        with formatter.section("Options"):
            formatter.write_dl(records)
    command.format_epilog(ctx, formatter)
    print_text(formatter.getvalue() + "\n--help lists all options, those of every command too.")
    ctx.exit()


NEEDED = ("click", "ijson", "numpy", "orjson", "rich", "textual")
OPTIONAL = ("isal", "duckdb", "fsspec", "distributed")
"""Faster or further where they are installed."""


def version_text() -> str:
    """Return one line per part: tracelane, native core, index format, Python, and what it depends on."""
    import platform

    from tracelane.core.base.installed import adding_packages, commit_of
    from tracelane.core.index.version import FORMAT_VERSION
    from tracelane.core.native.library import native_library

    native = native_library()
    commit = commit_of(Path(__file__).resolve().parents[2])
    lines = {
        "tracelane": _installed("tracelane"),
        **({"commit": commit} if commit else {}),
        "native core": f"no ({native.reason})" if native.functions is None else "yes",
        "index format": FORMAT_VERSION,
        "Python": f"{platform.python_version()} on {platform.machine()}",
        **{package: _installed(package) for package in NEEDED},
        **{package: _installed(package, "not installed") for package in OPTIONAL},
    }
    first, *others = (f"{name} {value}" for name, value in lines.items())
    others += [f"added by {line}" for line in map(safe, adding_packages())]
    return "\n".join([first, *(f"  {line}" for line in others)])


def _installed(package: str, otherwise: str = "is missing") -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return otherwise
