"""Where only byte code is installed everything works as it does beside its sources."""

from __future__ import annotations

import compileall
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.corpus import ROOT
from tracelane.core.demo.trace import demo_files, write_demo
from tracelane.core.tables.registry import ANALYSES
from tracelane.tui.cli.main import command_names

pytestmark = pytest.mark.slow

RUN_ALL = """
import contextlib, io, json, sys
from tests.waiting import PATIENCE_S
from tracelane.tui.cli import view
from tracelane.tui.cli.main import main
view.MAX_WAIT_S = PATIENCE_S  # a picture waits until all is counted
answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""
VIEW = """
import asyncio, sys
from tests.tui.driver import open_viewer
from tracelane.core.trace import open_trace

async def main():
    async with open_viewer(open_trace(sys.argv[1])) as (app, pilot):
        for key in ("?", "escape", "t", "w", "1"):
            await pilot.press(key)
        print(sys.modules["tracelane"].__file__)

asyncio.run(main())
"""
Answers = list[tuple[int, str, str]]


class Installed(NamedTuple):
    """Byte code without sources."""

    home: Path
    optimized: int

    def python(self, folder: Path, packages: Path, *words: str) -> str:
        """Return what Python prints that finds tracelane among some packages."""
        paths = f"{packages}{os.pathsep}{ROOT}"
        environment = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(folder / packages.name)}
        command = [sys.executable, *(["-OO"] if self.optimized else []), *words]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self, folder: Path, lines: Sequence[Sequence[str]]) -> tuple[Answers, Answers]:
        """Return how command lines are answered by byte code alone, and beside the sources."""
        compiled, sources = (
            [
                (code, out, err)
                for code, out, err in json.loads(
                    self.python(folder, packages, "-c", RUN_ALL, json.dumps(lines))
                )
            ]
            for packages in (self.home, ROOT / "src")
        )
        return compiled, sources


@pytest.fixture(scope="module", params=[0, 2], ids=["as it is", "without docstrings"])
def installed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The code as byte code alone, that of -OO too."""
    home = tmp_path_factory.mktemp("installed")
    compiled_before = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "tracelane", home / "tracelane", ignore=compiled_before)
    assert compileall.compile_dir(home, quiet=1, legacy=True, optimize=request.param)
    for source in home.rglob("*.py"):
        source.unlink()
    return Installed(home, request.param)


def test_help_is_the_same(installed: Installed, tmp_path: Path) -> None:
    """The list of commands, the help of each and completion need no source."""
    lines = [["--help"], ["help", "kernels"], ["completion", "bash"]]
    lines += [[name, option] for name in command_names() for option in ("-h", "--help")]
    compiled, sources = installed.answers(tmp_path, lines)
    assert compiled == sources
    assert all(code == 0 and text for code, text, _ in compiled)


def test_the_demo_and_all_commands_run(installed: Installed, tmp_path: Path) -> None:
    """The demo is written and drawn, every analysis answers, and what is exported is written."""
    (trace,) = (f"demo/{file.name}" for file in demo_files() if "rank0" in file.name and "json" in file.name)
    lines = [["demo", "--out", "demo"], ["view", "demo"], ["chain", trace, "--name", "mm"], ["slices", trace]]
    lines += [["sql", trace, "select count(*) from slices", "--engine", "sqlite"], ["telemetry", trace]]
    lines += [[row.command, trace, *form] for row in ANALYSES for form in ((), ("--json",))]
    lines += [["report", trace], ["diff", trace, trace]]
    compiled, sources = installed.answers(tmp_path, lines)
    assert [answer for answer in zip(lines, compiled, sources) if answer[1] != answer[2]] == []
    assert {code for code, _, _ in compiled} <= {0, 1}
    assert all(text for _, text, _ in compiled)


def test_the_viewer_opens(installed: Installed, tmp_path: Path) -> None:
    """Help, a panel and the details are shown by the byte code, whose module says where it lies."""
    (trace, *_) = write_demo(tmp_path)
    printed = installed.python(tmp_path, installed.home, "-c", VIEW, str(trace))
    assert printed.strip() == str(installed.home / "tracelane" / "__init__.pyc")


def test_results_of_other_code_are_not_taken(installed: Installed, tmp_path: Path) -> None:
    """Results are kept under a hash of the code, which another build of a module changes."""
    show = ("-c", "from tracelane.core.tables.frame.cached import code_hash; print(code_hash())")
    before = installed.python(tmp_path, installed.home, *show)
    assert installed.python(tmp_path, installed.home, *show) == before
    module = installed.home / "tracelane" / "core" / "tables" / "steps" / "steps.pyc"
    os.utime(module, ns=(0, module.stat().st_mtime_ns + 10**9))
    assert installed.python(tmp_path, installed.home, *show) != before
