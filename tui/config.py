"""The user's settings: `$XDG_CONFIG_HOME/tracelane/config.toml`; a bad file never stops the viewer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from tracelane.core.base.private import read_settings

DARK_THEME = "tracelane-dark"
LIGHT_THEME = "tracelane-light"


class Config(NamedTuple):
    """Settings with their defaults; `complaints` says in plain words what of the file was not understood."""

    theme: str = DARK_THEME
    eighths: bool | None = None  # slice edges in eighths of a cell; None: unless over SSH
    keys: Mapping[str, str] = MappingProxyType({})
    queries: Mapping[str, str] = MappingProxyType({})  # by name, in SQL
    complaints: tuple[str, ...] = ()


def read_config(path: Path | None) -> Config:
    """Read the settings; a missing file is the defaults, a damaged one the defaults and a complaint."""
    if path is None:
        return Config()
    try:
        values = read_settings(path)
    except FileNotFoundError:
        return Config()
    except ValueError as error:
        return Config(complaints=(f"{path}: {error}",))
    return _config_of(values, path)


def _config_of(values: dict[str, Any], path: Path) -> Config:
    from .commands.table import COMMANDS  # seven modules: no first picture needs them where there is no file

    complaints: list[str] = []
    theme = DARK_THEME
    eighths: bool | None = None
    keys: dict[str, str] = {}
    queries: dict[str, str] = {}
    known = {entry.id for entry in COMMANDS}
    for name, value in values.items():
        if name == "theme" and isinstance(value, str):
            theme = {"dark": DARK_THEME, "light": LIGHT_THEME}.get(value, value)
        elif name == "eighths" and isinstance(value, bool):
            eighths = value
        elif name == "cache" and isinstance(value, dict):
            complaints += _complaints_of_cache(value, path)
        elif name == "kernel-kinds" and isinstance(value, dict):
            from tracelane.core.tables.frame.kinds import patterns_of

            complaints += [f"{path}: {complaint}" for complaint in patterns_of(value)[1]]
        elif name == "peaks" and isinstance(value, dict):
            from tracelane.core.tables.device.peaks import peaks_of

            complaints += [f"{path}: {complaint}" for complaint in peaks_of(value)[1]]
        elif name == "keys" and isinstance(value, dict):
            for command_id, key in value.items():
                if command_id not in known:
                    complaints.append(f"{path}: no command is called {command_id!r}")
                elif not isinstance(key, str) or not key.strip():
                    complaints.append(f"{path}: keys of {command_id} must be a text such as 'z,ctrl+z'")
                else:
                    keys[command_id] = key
        elif name == "queries" and isinstance(value, dict):
            for title, query in value.items():
                if isinstance(query, str) and query.strip():
                    queries[title] = query
                else:
                    complaints.append(f"{path}: the query {title} must be a text such as 'select …'")
        else:
            complaints.append(f"{path}: {name!r} is not understood")
    return Config(theme, eighths, MappingProxyType(keys), MappingProxyType(queries), tuple(complaints))


def _complaints_of_cache(values: dict[str, Any], path: Path) -> list[str]:
    """Return what is wrong with the cache's settings, which are used where indexes are built."""
    from tracelane.core.index.cached import size_of

    complaints = [f"{path}: cache.{name} is not understood" for name in values if name != "limit"]
    limit = values.get("limit", "none")
    if size_of(str(limit)) is None:
        complaints.append(f"{path}: cache.limit = {limit!r} is no size: write '500M', '20G' or 'none'")
    return complaints
