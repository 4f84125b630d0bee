"""The user's settings."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.corpus import ROOT
from tests.tui.driver import message, open_viewer
from tracelane.core.base.private import config_path
from tracelane.core.tables.settings import check_settings
from tracelane.core.trace import Trace
from tracelane.tui.cli.main import main
from tracelane.tui.config import DARK_THEME, LIGHT_THEME, read_config


def test_absent_settings_are_the_defaults(tmp_path: Path) -> None:
    """No file, no folder, no home: defaults, and nothing to complain about."""
    for path in (None, tmp_path / "config.toml", tmp_path / "no" / "config.toml"):
        config = read_config(path)
        assert (config.theme, dict(config.keys), config.complaints) == (DARK_THEME, {}, ())


def test_settings_are_read(tmp_path: Path) -> None:
    """Theme and keys are taken over, what is not understood is complained about."""
    path = tmp_path / "config.toml"
    path.write_text(
        'theme = "light"\ncolour = 3\neighths = false\n[keys]\npin = "z,ctrl+z"\nfly = "f"\nhide = 7\n'
        '[cache]\nlimit = "20GiB"\n',
        encoding="utf-8",
    )
    config = read_config(path)
    assert config.theme == LIGHT_THEME
    assert config.eighths is False
    assert dict(config.keys) == {"pin": "z,ctrl+z"}
    assert [word for word in ("colour", "fly", "hide") if any(word in c for c in config.complaints)] == [
        "colour",
        "fly",
        "hide",
    ]


@pytest.mark.parametrize(
    ("setting", "word"),
    [('limit = "lots"', "'lots' is no size"), ("size = 3", "cache.size"), ("limit = 3", "")],
)
def test_the_cache_in_the_settings(tmp_path: Path, setting: str, word: str) -> None:
    """What is no size, or has another name than limit, is complained about."""
    path = tmp_path / "config.toml"
    path.write_text(f"[cache]\n{setting}\n", encoding="utf-8")
    complaints = read_config(path).complaints
    assert len(complaints) == bool(word) and word in "".join(complaints)


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe", b"[keys\n"])
def test_damaged_settings_do_not_stop(tmp_path: Path, content: bytes) -> None:
    """A damaged file is the defaults and one complaint that names it."""
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    config = read_config(path)
    assert config.theme == DARK_THEME
    assert len(config.complaints) == 1 and str(path) in config.complaints[0]


def test_where_settings_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_CONFIG_HOME wins; without a home there is no place, and no failure."""
    monkeypatch.setenv("XDG_CONFIG_HOME", "/c")
    assert config_path() == Path("/c/tracelane/config.toml")

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert config_path() is None


def samples() -> list[str]:
    """Return the settings that the documents show."""
    texts = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", texts, re.MULTILINE)
    tables = "|".join(("keys", "cache", "kernel-kinds", "queries", "peaks"))
    return [dedent(block) for block in blocks if re.search(rf"^    \[({tables})[.\]]", block, re.MULTILINE)]


@pytest.mark.parametrize("text", samples())
async def test_settings_in_the_documents_are_understood(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file_trace: Trace
) -> None:
    """Samples of the documents say nothing that is not understood, and no key twice."""
    (tmp_path / "tracelane").mkdir()
    (tmp_path / "tracelane" / "config.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    check_settings()
    async with open_viewer(file_trace, config=read_config(config_path())) as (app, _):
        assert not message(app)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[kernel-kinds]\ngemm = "^a', "(at "),
        ('[kernel-kinds]\ngemm = "("', "kernel-kinds.gemm"),
        ('[peaks."X"]\ngbs = "fast"', "peaks.X.gbs is not understood"),
        ('[peaks."X"]\nmatrix = 5', "peaks.X.matrix is not understood"),
        ('[peaks."X"]\nvector = { fp32 = -1 }', "peaks.X.vector is not understood"),
        ("[peaks]\nX = 5", "peaks.X must be a table"),
        ("peaks = 5", "peaks must be a table"),
        ("\xff", "UTF-8"),
    ],
)
def test_settings_that_mean_nothing_end_a_command(
    text: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    demo: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A table would say something else without a word: one line says what is wrong, with exit code 64."""
    (tmp_path / "tracelane").mkdir()
    (tmp_path / "tracelane" / "config.toml").write_bytes(text.encode("latin-1"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert main(["kernels", str(demo), f"--index-dir={tmp_path / 'index'}"]) == 64
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
