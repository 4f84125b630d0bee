"""Paths that lead nowhere are all named, and a misspelt command is told from a missing file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tui.small_file import small_file
from tracelane.tui.cli.main import command_names, main

GONE = "no such file or directory"


@pytest.mark.parametrize(
    "words",
    [
        "kernels HERE gone1.json gone2.json",
        "kernels gone1.json HERE gone2.json",
        "view HERE gone1.json gone2.json",
        "HERE gone1.json gone2.json",
        "gone1.json gone2.json",
        "ranks gone1.json gone2.json HERE",
        "steps HERE gone1.json gone2.json --rank 0",
        "diff gone1.json gone2.json",
        "diff gone1.json:step=4 gone2.json",
        "telemetry gone1.json --smi gone2.json",
        "telemetry HERE --smi gone1.json --smi gone2.json",
        "view HERE --smi gone1.json --marks gone2.json",
        "report HERE --smi gone1.json --baseline gone2.json",
    ],
)
def test_each_path_that_is_missing_is_named(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever else is there, nothing is counted without what was named: one line names all, exit code 2."""
    here, gone1, gone2 = small_file(tmp_path), tmp_path / "gone1.json", tmp_path / "gone2.json"
    line = words.replace("HERE", str(here))
    line = line.replace("gone1.json", str(gone1)).replace("gone2.json", str(gone2))
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert str(gone1) in captured.err and str(gone2) in captured.err
    assert captured.err.endswith(f": {GONE}\n") and str(here) not in captured.err


@pytest.mark.parametrize("kind", ["link", "inside a file", "pattern", "nothing"])
def test_other_ways_to_be_missing(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link to nothing, a path through a file and a pattern that nothing matches are missing too."""
    here = small_file(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    names = {
        "link": "link",
        "inside a file": f"{here.name}/x",
        "pattern": "x*.json",
        "nothing": "a.json",
    }
    assert main(["steps", str(here), str(tmp_path / names[kind])]) == 2
    assert capsys.readouterr().err == f"tracelane: {tmp_path / names[kind]}: {GONE}\n"


def test_a_pattern_that_matches_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a pattern matches counts as before."""
    here = small_file(tmp_path)
    assert main(["steps", str(tmp_path / "sm*.json")]) == 0
    expected = capsys.readouterr().out
    assert main(["steps", str(here)]) == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    ("word", "suggestion"),
    [
        ("kernel", "kernels"),
        ("Kernels", "kernels"),
        ("infoo", "info"),
        ("findngs", "findings"),
        ("veiw", "view"),
        ("mem", "memory"),
        ("sumary", "summary"),
        ("dif", "diff"),
        ("idel", "idle"),
        ("help", "--help"),
        ("version", "--version"),
    ],
)
def test_a_misspelt_command(
    word: str,
    suggestion: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A first word that is no file and near a command's name gets one line with it, and exit code 64; as the
    name of a file it is opened.
    """
    monkeypatch.chdir(tmp_path)
    assert main([word, "trace.json"]) == 64
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"did you mean `tracelane {suggestion}`?" in error
    small_file(tmp_path).rename(tmp_path / word)
    assert main([word]) == 0


@pytest.mark.parametrize(
    "word", ["kernel.json", "./kernel", "runs/kernel", "run2024", "x", "trace", "résumé"]
)
def test_a_missing_file(
    word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What has a / or a dot, or is like no command, is a file that is missing: exit code 2."""
    monkeypatch.chdir(tmp_path)
    assert main([word]) == 2
    assert capsys.readouterr().err == f"tracelane: {word}: {GONE}\n"


def test_commands_are_not_near_each_other(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A command is never taken for another one that is misspelt."""
    monkeypatch.chdir(tmp_path)
    assert len(command_names()) > 20
    for name in command_names():
        assert main([name, "--help"]) == 0


@pytest.mark.parametrize(
    "words", ["kernels HERE OTHER BROKEN", "view BROKEN HERE OTHER", "ranks OTHER BROKEN HERE"]
)
def test_a_named_file_that_is_no_trace_is_an_error(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Beside a good trace, other JSON and text are no empty ranks: one line names both, exit code 2."""
    here, other, broken = small_file(tmp_path), tmp_path / "other.json", tmp_path / "broken.json"
    other.write_text('{"schema": 2, "tables": {}}')
    broken.write_text("notes")
    line = words.replace("HERE", str(here)).replace("OTHER", str(other)).replace("BROKEN", str(broken))
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    for path in (other, broken):
        assert f"{path}: no trace events in it" in captured.err


@pytest.mark.parametrize(
    "words", ["kernels OTHER", "doctor OTHER", "check OTHER --max kernels.calls=1", "diff HERE OTHER"]
)
def test_what_is_no_trace_is_not_analysed(
    words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of JSON without events no command says that nothing is wrong, or too much: exit code 2."""
    other = tmp_path / "other.json"
    other.write_text('{"some": "configuration"}')
    line = words.replace("HERE", str(small_file(tmp_path))).replace("OTHER", str(other))
    assert main(line.split()) == 2
    assert capsys.readouterr().err == f"tracelane: {other}: no trace events in it\n"


@pytest.mark.parametrize(
    "text",
    ["# Notes\n\n[a link](notes.md), {a set}\n", "def main():\n    return [1, {2: x}]\n", "(c) [2026] {}"],
)
def test_prose_and_source_code_are_no_traces(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A text with brackets in which no event can be read ends a command with exit code 2."""
    other = tmp_path / "notes.md"
    other.write_text(text)
    assert main(["kernels", str(other)]) == 2
    assert capsys.readouterr().err == f"tracelane: {other}: no trace events in it\n"
