"""Help, completion and the manual page: every command is there, and its examples work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tracelane.core.demo.trace import write_demo
from tracelane.tui.cli.help import EXAMPLES, GROUPS, OTHERS, by_question
from tracelane.tui.cli.main import command_names, main


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's first rank as trace.json in a folder of its own, indexed."""
    folder = tmp_path_factory.mktemp("demo")
    write_demo(folder)[0].rename(folder / "trace.json")
    assert main(["index", str(folder / "trace.json"), "--index-dir", str(folder / "index")]) == 0
    return folder


def test_every_command_stands_in_one_group() -> None:
    """The groups of help name each command once, and no command stands among the others."""
    names = [name for group in GROUPS.values() for name in group]
    assert set(EXAMPLES) >= set(command_names())
    assert len(names) == len(set(names))
    assert OTHERS not in by_question(command_names())


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
    """Commands, options, terms, and steps, lanes and columns of the trace on the line are completed, also
    where no command stands before it; paths are files.
    """
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
    assert "plain,--smi" in complete("tracelane trace.json --sm", demo)
    assert "plain,cat:" in complete("tracelane kernels trace.json --where ca", demo)
    assert "plain,total_ns" in complete("tracelane kernels trace.json --sort tot", demo)
    assert "plain,duration" in complete("tracelane slices trace.json --sort du", demo)


def test_fish_gets_help_behind_a_tab(demo: Path) -> None:
    """What fish inserts ends at a tab, behind which the help stands."""
    words = {"_TRACELANE_COMPLETE": "fish_complete", "COMP_WORDS": "tracelane ker", "COMP_CWORD": "ker"}
    command = [sys.executable, "-m", "tracelane"]
    done = subprocess.run(
        command, env={**os.environ, **words}, cwd=demo, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("plain,kernels\tList the device work")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("help ke", {"kernels"}),
        ("help ", {*command_names()}),
        ("help cache cl", {"clear"}),
        ("help kernels --", set()),
        ("help trace", set()),
    ],
)
def test_help_completes_names_of_commands(
    shell: str,
    words: str,
    names: set[str],
    demo: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Behind `help` every shell gets commands, behind one of two words the second, and nothing else."""
    typed = f"tracelane {words}".split(" ")
    monkeypatch.chdir(demo)
    monkeypatch.setenv("_TRACELANE_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(typed))
    monkeypatch.setenv("COMP_CWORD", typed[-1] if shell == "fish" else str(len(typed) - 1))
    assert main([]) == 0
    answers = [line for line in capsys.readouterr().out.splitlines() if line]
    if shell == "zsh":  # kind, word and help on a line each
        assert answers[::3] == ["plain"] * len(names)
        assert {*answers[1::3]} == names
    else:
        separator = "," if shell == "bash" else "\t"
        assert {line.removeprefix("plain,").split(separator)[0] for line in answers} == names


def test_the_manual_page_names_all(capsys: pytest.CaptureFixture[str]) -> None:
    """The page is roff, and has every command and the exit codes."""
    assert main(["completion", "man"]) == 0
    page = capsys.readouterr().out
    assert page.startswith(".TH TRACELANE 1")
    assert re.findall(r"^\.SS tracelane (\S+)", page, re.MULTILINE) != []
    plain = page.replace("\\-", "-")
    assert {name for name in command_names() if f".SS tracelane {name} " in plain} == set(command_names())
