"""Help, completion and the manual page: every command is there, and its examples work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.help import EXAMPLES, GROUPS, OTHERS, by_question
from tracelane.tui.cli.main import command_names, main, tracelane

RUN = (
    "info",
    "slices",
    "tree",
    "range",
    "findings",
    "ops",
    "kernels",
    "steps",
    "breakdown",
    "idle",
    "launches",
)
"""Commands whose examples are run as they stand, on the demo's trace."""


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first rank as trace.json in a folder of its own, indexed."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)[0].rename(folder / "trace.json")
    assert main(["index", str(folder / "trace.json"), "--index-dir", str(folder / "index")]) == 0
    return folder


def command_of(name: str) -> click.Command:
    command = tracelane.get_command(click.Context(tracelane), name)
    assert command is not None
    return command


def test_every_command_stands_in_one_group() -> None:
    """The groups of help name each command once, and no command stands among the others."""
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    assert OTHERS not in by_question(command_names())


def test_every_command_has_two_examples() -> None:
    """Each command shows two examples, each of which click understands."""
    assert set(EXAMPLES) >= set(command_names())
    for name in command_names():
        for line in EXAMPLES[name]:
            words = shlex.split(line.removeprefix('eval "$(').removesuffix(')"').split("tracelane ", 1)[1])
            words = words[: words.index(">")] if ">" in words else words
            arguments = words[1:] if words[0] == name else words
            group = command_of(name)
            while isinstance(group, click.Group):
                inner = group.get_command(click.Context(group), arguments[0])
                assert inner is not None, line
                group, arguments = inner, arguments[1:]
            known = {option for param in group.params for option in (*param.opts, *param.secondary_opts)}
            assert {word for word in arguments if word.startswith("-")} <= known, line


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN)
def test_examples_run(name: str, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples end well on the demo's trace."""
    monkeypatch.chdir(demo)
    for line in EXAMPLES[name]:
        words = shlex.split(line)[1:]
        words = [
            str(tmp_path / word) if before == "-o" else word for before, word in zip(["", *words], words)
        ]
        assert main([*words, "--index-dir", str(demo / "index")]) == 0, line


def test_first_sentences_are_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of commands cuts no sentence off."""
    assert main(["--help"]) == 0
    listed = capsys.readouterr().out.partition("Options:")[2]
    assert listed and "..." not in listed


def test_short_help_leaves_out_what_all_commands_have(capsys: pytest.CaptureFixture[str]) -> None:
    """-h lists a command's own options, --help those of every command too; both show the examples."""
    assert main(["kernels", "-h"]) == 0
    short = capsys.readouterr().out
    assert main(["kernels", "--help"]) == 0
    long = capsys.readouterr().out
    assert "--runs" in short and "--cache-limit" not in short
    assert "--runs" in long and "--cache-limit" in long
    assert all(EXAMPLES["kernels"][0] in text for text in (short, long))


def complete(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    environment = {
        **os.environ,
        "_TRACELANE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    command = [sys.executable, "-m", "tracelane"]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_shell_completes(demo: Path) -> None:
    """Commands, options, and steps and lanes of the trace on the line are completed, and paths are files."""
    assert complete("tracelane ker", demo) == ["plain,kernels"]
    assert any(line.startswith("file,") for line in complete("tracelane tra", demo))
    assert "plain,--skip-first" in complete("tracelane kernels trace.json --skip", demo)
    indexed = [sys.executable, "-m", "tracelane", "index", "trace.json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(demo / "cache")}
    subprocess.run(indexed, env=environment, cwd=demo, check=True, capture_output=True)
    assert "plain,thread.48213..python." in complete("tracelane kernels trace.json --lanes thread", demo)
    assert main(["kernels", str(demo / "trace.json"), "--lanes", "thread.48213..python."]) == 0
    assert complete("tracelane kernels trace.json --step ", demo) == ["plain,3", "plain,4", "plain,5"]
    assert complete("tracelane kernels tra", demo) == ["file,tra"]
    assert "plain,kernels.time=" in complete("tracelane check trace.json --max kern", demo)
    assert "plain,kernels.time" in complete("tracelane history . --metric kern", demo)


def test_fish_gets_help_behind_a_tab(demo: Path) -> None:
    """What fish inserts ends at a tab, behind which the help stands."""
    words = {"_TRACELANE_COMPLETE": "fish_complete", "COMP_WORDS": "tracelane ker", "COMP_CWORD": "ker"}
    command = [sys.executable, "-m", "tracelane"]
    done = subprocess.run(
        command, env={**os.environ, **words}, cwd=demo, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("plain,kernels\tList the device work")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_a_shell_runs(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The script of a shell asks tracelane itself."""
    assert main(["completion", shell]) == 0
    assert "_TRACELANE_COMPLETE" in capsys.readouterr().out


def test_the_manual_page_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The page is roff, and has every command and the exit codes."""
    assert main(["completion", "man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH TRACELANE 1")
    assert re.findall(r"^\.SS tracelane (\S+)", page, re.MULTILINE) != []
    plain = page.replace("\\-", "-")
    assert {name for name in command_names() if f".SS tracelane {name} " in plain} == set(command_names())
