"""Tables of the code are values that mypy and an editor know, never texts that are read at import."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.corpus import ROOT

IMPORT_ALL = """
import functools, importlib, json, pathlib, pkgutil, re, sys
root, calls = pathlib.Path(sys.argv[1]), set()
rooms = ("core", "tui", "src", "docs", "packages", "bundle")
READS = {
    str: {"split", "rsplit", "splitlines", "partition", "rpartition"},
    re.Pattern: {"split", "match", "fullmatch", "findall", "finditer", "search", "sub"},
}

@functools.cache
def own(file):
    path = pathlib.Path(file).resolve()
    inside = path.is_relative_to(root) and path.relative_to(root)
    return str(inside) if inside and inside.parts[0] in rooms else ""

def note(frame, event, function):
    if event != "c_call":
        return
    names = next((names for kind, names in READS.items() if isinstance(function.__self__, kind)), ())
    if function.__name__ in names:
        if file := own(frame.f_code.co_filename):
            calls.add(f"{file}: {frame.f_code.co_name}")

sys.path[:0] = [f"{root}/{folder}" for folder in ("src", "docs", "packages/mcp", "bundle")]
sys.setprofile(note)
import tracelane
names = [one.name for one in pkgutil.walk_packages(tracelane.__path__, "tracelane.")]
for name in (*names, "commands_reference", "python_methods", "readme_figures", "notebook"):
    if not name.endswith("__main__"):
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:  # a package that an extra brings
            if str(error.name).startswith("tracelane"):
                raise
sys.setprofile(None)
print(json.dumps([len(names), sorted(calls)]))
"""
PROSE = {
    "core/base/installed.py: installation_folders": "PYTHONPATH, when packages that add something are sought",
    "core/python/methods.py: _help": "the first paragraph of an analysis' help is the start of a docstring",
    "tui/commands/table.py: _panel_commands": "a tab's title up to its comma begins the titles of its panels",
}
"""Texts that are cut at import, and why each is no table."""


@pytest.mark.slow
def test_no_table_is_read_from_text_at_import() -> None:
    """Importing every module of the code cuts up no text, but for those that are prose."""
    command = [sys.executable, "-c", IMPORT_ALL, str(ROOT)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    modules, calls = json.loads(done.stdout)
    assert modules > 300
    assert calls == sorted(PROSE)
