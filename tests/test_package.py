"""What is installed is what lies in the repository, and core stays free of the terminal."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def _tracked() -> set[str]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "core", "tui"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip("not a git checkout")
    return {name for name in done.stdout.split("\0") if name}


def test_wheel_holds_exactly_the_two_packages(tmp_path: Path) -> None:
    """The wheel's files are `git ls-files core tui` and its metadata, nothing else and nothing less."""
    tracked = _tracked()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("core", "tui"):
        (copy / name).mkdir()
    for name in sorted(tracked):
        target = copy / name
        if not (ROOT / name).is_file():
            pytest.skip(f"{name} is tracked but not in the working tree")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        (copy / name).write_bytes((ROOT / name).read_bytes())
    package = copy / "src" / "tracelane"
    package.mkdir(parents=True)
    for name in ("core", "tui"):
        (package / name).symlink_to(Path("../..") / name)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    built = subprocess.run(
        [*pip, "--wheel-dir", str(tmp_path), str(copy)],
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode and "setuptools" in built.stderr and "find a version" in built.stderr:
        pytest.skip("setuptools for building cannot be fetched here")
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {name.removeprefix("tracelane/") for name in names if name.startswith("tracelane/")}
    assert files == tracked
    assert all(name.startswith(("tracelane/", "tracelane-")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_core_runs_without_the_terminal() -> None:
    """Every module of core imports, and none brings in textual, rich or the viewer."""
    program = """
import importlib, pkgutil, sys
import tracelane.core as core
for module in pkgutil.walk_packages(core.__path__, "tracelane.core."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(sorted(name for name in sys.modules if name.split(".")[0] in ("textual", "rich")
             or name.startswith("tracelane.tui")))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
