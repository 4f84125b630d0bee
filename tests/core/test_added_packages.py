"""What other packages add is found where packages are installed, never in the current folder; it is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus import in_turn
from tests.tui.small_file import small_file

MODULE = """
import pathlib
pathlib.Path({marker!r}).write_text("it ran")
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.registry import TIME
ROW = Analysis("planted", "planted_module:planted", "Planted", "Count nothing.")
class Reader:
    def fits(self, name, head):
        return False
def planted(scope):
    raise ValueError
"""
POINTS = """[tracelane.analyses]
planted = planted_module:ROW

[tracelane.readers]
odd = planted_module:Reader
"""


def plant(folder: Path, marker: Path, name: str = "planted-\x1b[31mtraces") -> None:
    """Make a folder look as if a package of a name were installed in it."""
    folder.mkdir(exist_ok=True)
    (folder / "planted_module.py").write_text(MODULE.format(marker=str(marker)), encoding="utf-8")
    package = folder / "planted-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
    )
    (package / "entry_points.txt").write_text(POINTS, encoding="utf-8")


def ran(folder: Path, *arguments: str, path: str | None = None) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = path
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


OPENED = "import tracelane; tracelane.open('small.json', index_dir='index').kernels()"
WAYS = {
    "-c": ("-c", OPENED),
    "a notebook": ("-c", f"import os, sys; sys.path.insert(0, os.getcwd()); {OPENED}"),
    "a script": ("script.py",),
    "-m": ("-m", "tracelane", "kernels", "small.json", "--index-dir", "index"),
    "--version": ("-m", "tracelane", "--version"),
    "--help": ("-m", "tracelane", "--help"),
    "doctor": ("-m", "tracelane", "doctor", "small.json", "--index-dir", "index"),
}
PATHS = (None, "", ".", os.pathsep, "HERE")
"""Values of PYTHONPATH; all but the first name the current folder."""


@pytest.mark.parametrize(("way", "path"), in_turn(WAYS, PATHS, 2))
@pytest.mark.slow
def test_nothing_is_found_in_the_current_folder(way: str, path: str | None, tmp_path: Path) -> None:
    """However Python is started in a folder that looks like one of packages, its code is not run."""
    folder, marker = tmp_path / "traces", tmp_path / "ran"
    plant(folder, marker)
    small_file(folder)
    (folder / "script.py").write_text(OPENED, encoding="utf-8")
    said = ran(folder, *WAYS[way], path=str(folder) if path == "HERE" else path)
    assert not marker.exists() and "planted" not in said


@pytest.mark.slow
def test_what_is_installed_is_found_and_named(tmp_path: Path) -> None:
    """--version and doctor name the packages that add something, what, and harmlessly; so does the list of
    commands.
    """
    installed, folder = tmp_path / "installed", tmp_path / "traces"
    plant(installed, tmp_path / "ran")
    folder.mkdir()
    path = small_file(folder)
    line = "planted-⟨U+001B⟩[31mtraces 1.0: analyses planted; readers odd"
    said = ran(folder, "-m", "tracelane", "--version", path=str(installed))
    assert f"added by {line}" in said and not (tmp_path / "ran").exists(), "it is named without being run"
    said = ran(folder, "-m", "tracelane", "doctor", str(path), "--index-dir", "index", path=str(installed))
    assert f"added by another package, {line}" in " ".join(said.split())
    assert "planted" in ran(folder, "-m", "tracelane", "--help", path=str(installed))
    assert "added by" not in ran(folder, "-m", "tracelane", "--version")


@pytest.mark.slow
def test_a_current_folder_that_is_gone_is_no_trouble(tmp_path: Path) -> None:
    """A folder that was removed while a shell stands in it ends no command."""
    folder = tmp_path / "gone"
    folder.mkdir()
    code = (
        "import os, sys; os.rmdir(os.getcwd()); from tracelane.tui.cli.main import main; main(['--version'])"
    )
    assert "index format" in ran(folder, "-c", code, path=str(tmp_path))
