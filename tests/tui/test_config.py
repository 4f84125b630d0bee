"""The user's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracelane.core.base.private import config_path
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
