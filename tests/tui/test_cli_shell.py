"""What shells and terminals ask of the command line: help, colours, pagers, completion."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.small_file import LONG_NAME, small_file
from tracelane.core.base.installed import install_hint
from tracelane.core.base.output import _pager
from tracelane.tui.cli.main import main
from tracelane.tui.cli.terminal import has_colours

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


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("pipx_metadata.json", "pipx inject tracelane fsspec s3fs"),
        ("uv-receipt.toml", "uv tool install tracelane --with fsspec --with s3fs"),
        ("pyvenv.cfg", "pip install fsspec s3fs"),
    ],
)
def test_hints_name_the_way_of_installing(mark: str, command: str, tmp_path: Path) -> None:
    """pipx and uv keep a file in their environments; elsewhere it is pip."""
    (tmp_path / mark).touch()
    assert install_hint("fsspec s3fs", tmp_path) == command


def test_help_is_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """`help kernels` is `kernels --help`, `help` alone `--help`."""
    printed = []
    for words in (["help", "kernels"], ["kernels", "--help"], ["help"], ["--help"]):
        assert main(words) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] and printed[2] == printed[3] and printed[0] != printed[2]


@pytest.mark.parametrize(
    ("options", "more", "is_coloured"),
    [
        ((), False, False),
        (("--color", "always"), False, True),
        (("--columns", "all", "--color", "never"), True, False),
    ],
)
def test_tables_in_pipes(
    options: tuple[str, ...],
    more: bool,
    is_coloured: bool,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They have the columns for which 160 characters have room, --columns all has all; no text is cut."""
    monkeypatch.setenv("FORCE_COLOR", "")
    monkeypatch.delenv("COLUMNS", raising=False)
    path, name = small_file(tmp_path), "kernel_of_many_words_" * 4
    path.write_text(path.read_text().replace(LONG_NAME, name))
    assert main(["kernels", str(path), *options]) == 0
    printed = capsys.readouterr().out
    assert ("Stdev" in printed) is more and ("--columns all" in printed) is not more
    assert ("\x1b[1m" in printed) is is_coloured and name in printed


@needs_corpus
@pytest.mark.parametrize(
    ("command", "path", "lead"),
    [
        (
            "ranks",
            "multirank/dlrm_8gpu_ranks0-3",
            "Rank 2 is last in 6 of 8 collectives: the other 3 ranks ",
        ),
        (
            "idle",
            "gpu/hta_a100_resnet_ddp_nccl.json.gz",
            "No stream of GPU 0 of rank 0 does anything for 509.725 ms, 76.4%",
        ),
    ],
)
def test_what_tables_come_to_is_said_first(
    command: str, path: str, lead: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who kept whom waiting, and for how long no stream did anything, stands before the tables."""
    assert main([command, str(CORPUS / path)]) == 0
    assert capsys.readouterr().out.startswith(lead)
