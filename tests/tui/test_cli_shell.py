"""What shells and terminals ask of the command line: help, colours, pagers, completion."""

from __future__ import annotations

import pytest

from tracelane.core.base.output import _pager
from tracelane.tui.cli.completion import answer_shell
from tracelane.tui.cli.main import main
from tracelane.tui.cli.scoped import has_colours

COLOURS = (
    ({}, True, True),
    ({}, False, False),
    ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
    ({"FORCE_COLOR": "1"}, False, True),
    ({"CLICOLOR_FORCE": "1"}, False, True),
    ({"CLICOLOR_FORCE": "0"}, False, False),
    ({"CLICOLOR": "0"}, True, False),
    ({"TERM": "dumb"}, True, False),
)


@pytest.mark.parametrize(("environment", "is_terminal", "expected"), COLOURS)
def test_the_environment_says_whether_there_are_colours(
    environment: dict[str, str], is_terminal: bool, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO_COLOR, FORCE_COLOR, CLICOLOR_FORCE, CLICOLOR and TERM mean what they mean elsewhere."""
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert has_colours(is_terminal) is expected


@pytest.mark.parametrize(
    ("own", "common", "command"),
    [
        (None, "sh -c", ["sh", "-c"]),
        ("cat", "sh", []),
        ("", "sh", []),
        ("sh", "cat", ["sh"]),
        (None, "no-such-pager", []),
        (None, "'", []),
    ],
)
def test_the_environment_names_the_pager(
    own: str | None, common: str, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """TRACELANE_PAGER goes before PAGER; cat, nothing, and what is not there are no pager."""
    monkeypatch.delenv("TRACELANE_PAGER", raising=False)
    monkeypatch.setenv("PAGER", common)
    if own is not None:
        monkeypatch.setenv("TRACELANE_PAGER", own)
    assert _pager() == command


def test_help_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`help kernels` is `kernels --help`, `help` alone `--help`."""
    printed = []
    for words in (["help", "kernels"], ["kernels", "--help"], ["help"], ["--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and printed[2] == printed[3] and printed[0] != printed[2]


@pytest.mark.parametrize(
    ("words", "cursor", "expected"),
    [
        ("tracelane trace.json --sm", 2, "--smi"),
        ("tracelane kernels trace.json --by", 3, "--by"),
        ("tracelane kernels t.json --where ca", 4, "cat:"),
    ],
)
def test_what_is_completed(
    words: str,
    cursor: int,
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Options follow a trace without a command, too; a filter's terms are completed."""
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(cursor))
    assert answer_shell("bash_complete") == 0
    assert f"plain,{expected}" in capsys.readouterr().out.split()
