"""Commands print what the transcripts in tests/tui/transcripts say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import FOLDER, Exchange, exchanges, make_files, printed

TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.txt"))}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each transcript with the files that it names."""
    folders = {name: tmp_path_factory.mktemp(name) for name in TEXTS}
    for name, text in TEXTS.items():
        make_files(text, folders[name])
    return folders


@pytest.mark.parametrize(
    ("name", "exchange"),
    [
        pytest.param(name, one, id=f"{name}: {' '.join(one.words)}")
        for name, text in TEXTS.items()
        for one in exchanges(text)
    ],
)
def test_commands_print_what_is_written(
    name: str, exchange: Exchange, folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command prints its lines to stdout and stderr, and ends with its exit code."""
    monkeypatch.chdir(folders[name])
    monkeypatch.setenv("XDG_CACHE_HOME", str(folders[name] / "cache"))
    assert printed(exchange.words) == exchange.printed, f"{name}.txt:{exchange.line}"


def test_a_transcript_is_read_as_it_is_written() -> None:
    """Text around commands is none of them; an empty line within the output belongs to it."""
    text = "Why.\n\n    $ tracelane a 'b c'\n    one\n\n    two\n    [1]\n    $ tracelane\n    ! x\n\nMore.\n"
    first, second = exchanges(text)
    assert first == Exchange(3, ("a", "b c"), "    one\n\n    two\n    [1]")
    assert second == Exchange(8, (), "    ! x")
