"""The user's settings file: where it lies, what stands in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def config_path(environment: Mapping[str, str] | None = None) -> Path | None:
    """Return where the settings lie, or None where there is no home directory (an unknown uid in a pod)."""
    environment = os.environ if environment is None else environment
    folder = environment.get("XDG_CONFIG_HOME", "")
    if os.path.isabs(folder):
        return Path(folder) / "tracelane" / "config.toml"
    try:
        home = Path.home()
    except RuntimeError:
        return None
    return home / ".config" / "tracelane" / "config.toml"


def settings_table(name: str) -> dict[str, Any]:
    """Return a table of the settings, empty where there is none or the file is damaged."""
    path = config_path()
    if path is None or not os.path.exists(path):
        return {}
    import tomllib  # most have no settings

    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found = values.get(name)
    return found if isinstance(found, dict) else {}
