"""What notes, messages and findings tell people to type can be typed, and works where it was said."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import click
import pytest

from tests.core.test_steps import around, passes
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.registry import ANALYSES
from tracelane.tui.cli.main import command_names, main, tracelane

ROOT = Path(__file__).resolve().parent.parent.parent
OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])(?: ('[^']*'|[^\s;,()]+))?")
COMMAND = re.compile(r"`tracelane ([a-z][a-z-]*)((?: [^`]*)?)`")
OTHERS = re.compile(r"\b(nsys|rocpd|venv)\b|^--git-dir")
FILES = (
    "core/base/installed.py",
    "core/capture/protocol.py",
    "core/index/analyzer.py",
    "tui/cli/completion.py",
)
"""Texts, and files, that speak of options of other programs."""


@cache
def _commands() -> Mapping[str, click.Command]:
    context = click.Context(tracelane)
    return {name: command for name in command_names() if (command := tracelane.get_command(context, name))}


def _options(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options, and those of the commands in it, by name."""
    inner = list(command.commands.values()) if isinstance(command, click.Group) else []
    options = [one for each in (command, *inner) for one in each.params if isinstance(one, click.Option)]
    return {name: one for one in options for name in one.opts}


def _texts() -> Iterator[tuple[str, str]]:
    """Yield each text of the program with the file and line where it stands, those of f-strings in parts."""
    for path in (path for room in ("core", "tui") for path in sorted((ROOT / room).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "--" in node.value + "--":
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


@pytest.mark.slow
def test_options_and_commands_in_texts_exist() -> None:
    """No text of the program names an option that no command has, or a command with an option of another."""
    known = {"--help", "--version"} | {name for command in _commands().values() for name in _options(command)}
    seen = 0
    for where, text in _texts():
        if OTHERS.search(text) or where.startswith(FILES):
            continue
        named = {name for name, _ in OPTION.findall(text)}
        assert named <= known, where
        seen += len(named)
        for name, words in COMMAND.findall(" ".join(text.split())):
            assert name in _commands() or name in ("TRACE", "STORE"), where
            options = {option for option, _ in OPTION.findall(words)}
            assert options <= set(_options(_commands()[name])), where
    assert seen > 100


def _notes(capsys: pytest.CaptureFixture[str], command: str, *words: str) -> list[str]:
    """Return what a command says below its tables: as JSON, and as text."""
    if main([command, *words, "--json"]) not in (0, 1):  # it has nothing to say of this trace
        return []
    notes: list[str] = json.loads(capsys.readouterr().out)["notes"]
    main([command, *words])
    return [*notes, *filter(OPTION.search, capsys.readouterr().out.splitlines())]


def _cases() -> list[tuple[str, str]]:
    commands = [*(row.command for row in ANALYSES), "slices", "telemetry"]
    return [(trace, command) for trace in ("demo", "small", "doubtful", "called") for command in commands]


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A path by name: the demo, a small trace, one whose steps are doubtful, and one whose have numbers."""
    folder = tmp_path_factory.mktemp("traces")
    doubtful = [*passes(5), *around(5, "it's {}", "user_annotation", 90, 2300)]
    doubtful += around(5, "in the back {}", "user_annotation", 3500, 1500)
    called = [*passes(5), *around(5, "epoch 3 batch {}", "user_annotation")]
    for name, events in (("doubtful", doubtful), ("called", called)):
        (folder / f"{name}.json").write_text(json.dumps(events), encoding="utf-8")
    paths = {name: str(folder / f"{name}.json") for name in ("doubtful", "called")}
    return {**paths, "demo": str(write_demo(folder / "demo")[0]), "small": str(small_file(folder))}


@pytest.mark.slow
@pytest.mark.parametrize(("trace", "command"), _cases())
def test_what_notes_suggest_works(
    trace: str, command: str, traces: Mapping[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each option in a note is one of the command that says it, or that it names; with a value that is no
    placeholder it is accepted, on the trace of which it was said.
    """
    words = [traces[trace], "--index-dir", str(Path(traces[trace]).parent / "index")]
    options = _options(_commands()[command])
    for note in _notes(capsys, command, *words):
        others = [other for other, _ in COMMAND.findall(note)]
        for name, value in OPTION.findall(COMMAND.sub("", note)):
            if others and name not in options:
                assert any(name in _options(_commands()[other]) for other in others), note
                continue
            assert name in options, note
            if options[name].is_flag or value.isupper() or (not value and name == "--limit"):
                continue
            given = shlex.split(value)[0] if value else ""
            assert main([command, *words, name, given]) in (0, 1), f"{note!r}: {capsys.readouterr().err}"
            capsys.readouterr()
        for other, rest in COMMAND.findall(note):
            placed = [words[0] if word in ("TRACE", "A", "B") else word for word in shlex.split(rest)]
            placed += [] if words[0] in placed else [words[0]]
            assert main([other, *placed, *words[1:]]) in (0, 1), f"{note!r}: {capsys.readouterr().err}"
            capsys.readouterr()
