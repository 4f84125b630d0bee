"""What texts tell people to type: keys are asked of the table of commands, options and commands exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache

import click

from tracelane.tui.cli.main import command_names, tracelane
from tracelane.tui.commands.table import COMMANDS, key_text

from .rule import PROGRAM, Exempt, Rule, SourceFile

# -- options and commands -----------------------------------------------------------------------------------

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])(?: ('[^']*'|[^\s;,()]+))?")
COMMAND = re.compile(r"`tracelane ([a-z][a-z-]*)((?: [^`]*)?)`")
OF_OTHERS = "options of other programs"


@cache
def known_commands() -> Mapping[str, click.Command]:
    context = click.Context(tracelane)
    return {name: command for name in command_names() if (command := tracelane.get_command(context, name))}


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options, and those of the commands in it, by name."""
    inner = list(command.commands.values()) if isinstance(command, click.Group) else []
    options = [one for each in (command, *inner) for one in each.params if isinstance(one, click.Option)]
    return {name: one for one in options for name in one.opts}


@cache
def _all_options() -> frozenset[str]:
    options = {name for command in known_commands().values() for name in options_of(command)}
    return frozenset({"--help", "--version"} | options)


def _unknown_options(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No text of the program names an option that no command has, or a command with an option of another."""
    for node in file.of_kind(ast.Constant):
        if not isinstance(node.value, str):
            continue
        if not {name for name, _ in OPTION.findall(node.value)} <= _all_options():
            yield node.lineno, node.value
            continue
        for name, words in COMMAND.findall(" ".join(node.value.split())):
            command = known_commands().get(name)
            options = {option for option, _ in OPTION.findall(words)}
            if command is None or not options <= options_of(command).keys():
                yield node.lineno, node.value


# -- keys ---------------------------------------------------------------------------------------------------

SINGLE = {key for entry in COMMANDS for key in entry.keys if len(key) == 1}
NAMES = {key_text(key) for entry in COMMANDS for key in entry.keys} - SINGLE
WORDS = {"a", "I"}
"""Keys that are words of English."""
OF_PARTS = (
    r"^type to filter · ↑↓ choose · ",  # lists on top of the lanes
    r"Esc closes$",  # screens on top of the lanes
    r"^(↑ ↓|← →|↑ ↓ ← →|↑↓|↑↓←→|←→|Enter|Esc|Space|Tab)$|^PgUp, PgDn, Home and End too$",  # the arrows' part
    r"^Enter (goes there|shows it again|searches|groups|opens it|opens|on a call of the tree .*)$",
    r"; Enter (shows it again|goes there|opens another)$",  # the lists that these commands open
    r"^interrupted with ctrl\+c$| must be a text such as 'z,ctrl\+z'$",  # of a shell, of the settings
    r"^Enter: evidence, again: the next$|^; Enter: the next$|^ · Enter: $|^← → sort",  # tables
)
"""Texts with keys that a table, a list, a line to type in or a screen on top has of its own, or a shell: no
command is meant, and no setting changes them.
"""


def keys_named(text: str) -> list[str]:
    """Return the keys of commands that a sentence names by letters, as `o lists them` and `as with /` do."""
    if any(re.search(pattern, text) for pattern in OF_PARTS):
        return []
    start = r"(?:^|[;:·,] )"
    arrows = re.findall(start + r"((?:[←→↑↓] ?)+) ?[a-z]+", text)
    named = "|".join(re.escape(name) for name in sorted(NAMES) if "+" in name or name.startswith("Pg"))
    singles = "".join(map(re.escape, sorted(SINGLE - WORDS)))
    keys = [key for run in arrows for key in run.split()]
    keys += re.findall(rf"(?<!\w)({named})(?!\w)", text)
    keys += re.findall(start + r"(Enter|Esc|Tab|Home|End|Space) [a-z]+s\b", text)
    keys += re.findall(rf"{start}([{singles}]) (?:[a-z]{{3,}}s\b|in the|and [{singles}] )", text)
    keys += re.findall(rf"\b(?:as with|press|type) ([{singles}])(?=[ ;,.)]|$)", text)
    return keys


def _joined_texts(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of the strings that are no docstrings; what an f-string puts in is a ␀ there."""
    parts: set[int] = set()
    for node in file.nodes:
        if isinstance(node, ast.Expr):  # a docstring
            parts.add(id(node.value))
        elif isinstance(node, ast.JoinedStr) and id(node) not in parts:
            parts |= {id(part) for part in node.values}
            values = (part.value if isinstance(part, ast.Constant) else "␀" for part in node.values)
            yield node.lineno, "".join(map(str, values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.lineno, node.value


def _keys_in_letters(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No string of tui, nor of core, which the viewer shows too, names the key of a command by itself: write
    {search} for the key of the command `search`; what Enter does in a list is worded as in OF_PARTS.
    """
    for line, text in _joined_texts(file):
        if "{ " not in text and " " in text and (keys := keys_named(text)):
            yield line, f"{keys} in {text!r}"


WORD = re.compile(r"(?:^|(?<=[\s(]))([^\s\w():,;.…]|[A-Za-z0-9]|Space|Tab|ctrl\+\w)(?=:? [a-z])")
"""A character alone before a word, as in "z lists them"."""
NO_KEYS = ("a", "·", "-", "–", "=", "|", "±", "→", "+", "Δ", "%", "↑", "↓", "≈", "✓")
NO_KEY = (
    "1 ns per cell: no closer",
    "B without E: drawn to the end of the lane, marked",
    "E without B: shown as instants",
    "slices: X events with a usable time, and matched B/E pairs",
)


def _literal_keys(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Keys in texts come from the table, as `{search}`: a literal one is wrong once it is remapped."""
    if file.is_in(("tui/cli", "tui/commands", "tui/text")):
        return
    for node in file.nodes:
        if isinstance(node, ast.Expr) or _is_style_sheet(node):
            continue
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.Constant) or not isinstance(child.value, str):
                continue
            keys = [key for key in WORD.findall(child.value) if key not in NO_KEYS]
            if keys and not set(child.value) & set("\n\\"):
                yield child.lineno, f"{keys[0]} in {child.value!r}"


def _is_style_sheet(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "DEFAULT_CSS"


RULES = (
    Rule(
        "options and commands in texts exist",
        PROGRAM,
        _unknown_options,
        (
            ('say("name it with --traces FOLDER")', 0),
            ('say("name it with --trace-folder")', 1),
            ('say("`tracelane kernels --limit 3` lists them")', 0),
            ('say("`tracelane kernels --recount` lists them")', 1),
            ('say("`tracelane kernel` lists them")', 1),
        ),
        (
            Exempt("*.py", r"\b(nsys|rocpd|venv)\b|^--git-dir", OF_OTHERS),
            Exempt("core/capture/protocol.py", "", OF_OTHERS),
            Exempt("core/index/analyzer.py", "", OF_OTHERS),
            Exempt("tui/cli/completion.py", "", OF_OTHERS),
        ),
    ),
    Rule(
        "no text names a key in letters",
        ("tui", "core"),
        _keys_in_letters,
        (
            ('say("more than 8: o lists them")', 1),
            ('say(f"{count}: o lists them")', 1),
            ('say("{kernel} lists them")', 0),
            ('"""In the list; 2 shows all of them."""', 0),
        ),
    ),
    Rule(
        "keys in texts come from the table",
        ("tui",),
        _literal_keys,
        (
            ('say("z lists them")', 1),
            ('say("{zoom} lists them")', 0),
            ('DEFAULT_CSS = "a { b: c z lists }"', 0),
        ),
        tuple(Exempt("*.py", re.escape(text), "no key is meant") for text in NO_KEY),
    ),
)
