"""The user's settings: `$XDG_CONFIG_HOME/tracelane/config.toml`; a bad file never stops the viewer."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .commands import COMMANDS

DARK_THEME = "tracelane-dark"
LIGHT_THEME = "tracelane-light"


@dataclass(frozen=True)
class Config:
    """Settings with their defaults; `complaints` says in plain words what of the file was not understood."""

    theme: str = DARK_THEME
    eighths: bool | None = None  # slice edges in eighths of a cell; None: unless over SSH
    keys: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    complaints: tuple[str, ...] = ()


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


def read_config(path: Path | None) -> Config:
    """Read the settings; a missing file is the defaults, a damaged one the defaults and a complaint."""
    if path is None:
        return Config()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return Config()
    except (OSError, UnicodeDecodeError) as error:
        return Config(complaints=(f"{path}: cannot be read: {error}",))
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        return Config(complaints=(f"{path}: {error}",))
    return _config_of(values, path)


def _config_of(values: dict[str, Any], path: Path) -> Config:
    complaints: list[str] = []
    theme = DARK_THEME
    eighths: bool | None = None
    keys: dict[str, str] = {}
    known = {entry.id for entry in COMMANDS}
    for name, value in values.items():
        if name == "theme" and isinstance(value, str):
            theme = {"dark": DARK_THEME, "light": LIGHT_THEME}.get(value, value)
        elif name == "eighths" and isinstance(value, bool):
            eighths = value
        elif name == "keys" and isinstance(value, dict):
            for command_id, key in value.items():
                if command_id not in known:
                    complaints.append(f"{path}: no command is called {command_id!r}")
                elif not isinstance(key, str) or not key.strip():
                    complaints.append(f"{path}: keys of {command_id} must be a text such as 'z,ctrl+z'")
                else:
                    keys[command_id] = key
        else:
            complaints.append(f"{path}: {name!r} is not understood")
    return Config(theme, eighths, MappingProxyType(keys), tuple(complaints))
