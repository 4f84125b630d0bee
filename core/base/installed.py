"""What is installed: how to get what is missing, in the way in which tracelane itself was installed, what
other packages add to it, by entry points (docs/recipes.md), and the commit that it was made from.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ADDED_ANALYSES, READERS = "tracelane.analyses", "tracelane.readers"
COMMIT_FILE = "COMMIT"
"""Lies where core and tui do: bundle/hatch_hook.py puts it into sdist and wheel; a checkout asks git."""


def install_hint(packages: str, environment: Path | None = None) -> str:
    """Return the command that adds packages to an environment, without one to that which runs: of pipx or uv
    by the file that each keeps there, else by pip.
    """
    home = Path(sys.prefix) if environment is None else environment
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject tracelane {packages}"
    if (home / "uv-receipt.toml").exists():
        return "uv tool install tracelane " + " ".join(f"--with {name}" for name in packages.split())
    return f"pip install {packages}"


def installation_folders() -> list[str]:
    """Return the folders of `sys.path` that packages are installed into: those of this Python, that in which
    tracelane lies, and what PYTHONPATH names by absolute paths.

    Never the current one, in which `python -c`, `python -m` and notebooks look for modules, too: it may be a
    folder of somebody's traces, whose code nobody meant to run.
    """
    import site

    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    own = [*site.getsitepackages(), str(Path(__file__).parents[3])]
    if site.ENABLE_USER_SITE and site.USER_SITE:
        own.append(site.USER_SITE)
    allowed = {os.path.realpath(folder) for folder in own}
    allowed |= {os.path.realpath(folder) for folder in named if os.path.isabs(folder)} - {_current_folder()}
    return [folder for folder in sys.path if os.path.isabs(folder) and os.path.realpath(folder) in allowed]


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


@cache
def _points(group: str) -> tuple[tuple[EntryPoint, str], ...]:
    """Return the entry points of a group by name, each with its package and that package's version."""
    # Looked up here in 2 ms of the 40 that every command would pay for importing importlib.metadata.
    folders = installation_folders()
    files = (file for folder in folders for file in Path(folder).glob("*.dist-info/entry_points.txt"))
    if not any(group.encode() in file.read_bytes() for file in files):
        return ()
    from importlib.metadata import distributions

    points, seen = list[tuple["EntryPoint", str]](), set[str]()
    for package in distributions(path=folders):
        if package.name not in seen:  # the first on the path is the one that is imported
            seen.add(package.name)
            title = f"{package.name} {package.version}"
            points += [(point, title) for point in package.entry_points if point.group == group]
    return tuple(sorted(points, key=lambda one: one[0].name))


@cache
def added(group: str) -> Mapping[str, Any]:
    """Return the objects of an entry point group by name; what cannot be loaded is warned of and left out."""
    objects: dict[str, Any] = {}
    for point, package in _points(group):
        try:
            objects[point.name] = point.load()
        except Exception as error:  # whatever somebody else's code raises
            warnings.warn(f"{group}: {point.value} of {package} cannot be loaded: {error!r}", stacklevel=2)
    return objects


def adding_packages() -> list[str]:
    """Return what other packages add, a line each: "example 1.0: analyses lane-count; readers spans". Nothing
    of them is loaded.
    """
    of: dict[str, dict[str, list[str]]] = {}
    for group in (ADDED_ANALYSES, READERS):
        for point, package in _points(group):
            of.setdefault(package, {}).setdefault(group.rpartition(".")[2], []).append(point.name)
    return [
        f"{package}: {'; '.join(' '.join((what, ', '.join(names))) for what, names in groups.items())}"
        for package, groups in sorted(of.items())
    ]


def commit_of(home: Path) -> str:
    """Return commit and date of what lies in a folder, as "d8a85cb of 2026-11-24"; "" where nothing says."""
    if (written := home / COMMIT_FILE).is_file():
        return written.read_text(encoding="utf-8").strip()
    if not (home / ".git").exists():
        return ""
    import subprocess

    try:
        command = ["git", "-C", str(home), "log", "-1", "--format=%h of %cs"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
