"""The user's settings file: its path and its contents."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .private import read_regular, reason_of

MOST_BYTES = 1 << 20
"""No settings file is longer."""


def config_path() -> Path | None:
    """Return where the settings lie, or None where there is no home directory (an unknown uid in a pod)."""
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(folder):
        return Path(folder) / "tracelane" / "config.toml"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".config" / "tracelane" / "config.toml"


def read_settings(path: Path) -> dict[str, Any]:
    """Return what a settings file holds; FileNotFoundError, or ValueError that says what is wrong."""
    import tomllib  # most have no settings

    try:
        text = read_regular(path, MOST_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except OSError as error:
        raise ValueError(f"cannot be read: {reason_of(error)}") from None
    try:
        return tomllib.loads(text.decode())
    except UnicodeDecodeError:
        raise ValueError("cannot be read: it is not UTF-8") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def settings_table(name: str) -> dict[str, Any]:
    """Return a table of the settings, empty where there is none or the file is damaged."""
    path = config_path()
    if path is None or not os.path.exists(path):
        return {}
    try:
        table = read_settings(path).get(name)
    except (OSError, ValueError):
        return {}
    return table if isinstance(table, dict) else {}
