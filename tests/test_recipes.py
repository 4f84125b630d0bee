"""The recipes of docs/recipes.md work as they stand there: each is followed in a copy of the code."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from tests.tui.small_file import small_file

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r'^```python (\S+?)(?: after "([^\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
RECIPES = {
    section.partition("\n")[0]: section
    for section in (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split("\n## ")[1:]
}
PRESS = """
import asyncio, sys
from tests.tui.driver import message, open_viewer, wait_until
from tracelane.core.trace import open_trace
from tracelane.tui.stage import Stage

async def main():
    async with open_viewer(open_trace(sys.argv[1])) as (app, pilot):
        app.run_command("count-lanes")
        await wait_until(pilot, lambda: message(app).endswith("lanes"), "the message")
        print(message(app))
        app.action_jump(0, 6)
        app.run_command("zoom-in-far")
        app.run_command("centre")
        thing, view = app.store.selected, app.session.viewport
        print((thing.start + thing.end) / 2 - (view.start + view.end) / 2)

asyncio.run(main())
"""
LOOK = """
import asyncio, sys
from tests.tui.driver import open_viewer, press_keys, wait_until_idle
from tracelane.core.trace import open_trace
from tracelane.tui.panels.table import TablePane

async def main():
    async with open_viewer(open_trace(sys.argv[1]), (120, 40)) as (app, pilot):
        app.action_jump(0, 6)
        app.run_command("lane-rows")
        await wait_until_idle(app, pilot)
        pane = app.main.query_one("#lane-rows", TablePane)
        print(pane.shown_table.numbers("count").tolist())
        await press_keys(app, pilot, "down", "enter")
        print(app.trace.name(app.store.selected.row, app.store.selected.index))
        app.action_jump(0, 10)
        await wait_until_idle(app, pilot)
        print(pane.shown_table.numbers("count").tolist())

asyncio.run(main())
"""
Run = Callable[..., str]


@pytest.fixture(scope="module")
def follow(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Run]:
    """Return what follows a recipe in a copy of the code, and returns what runs Python in that copy."""

    def followed(name: str) -> Run:
        home = tmp_path_factory.mktemp("copy")
        shutil.copytree(
            *(ROOT / "src" / "tracelane", home / "tracelane"),
            ignore=shutil.ignore_patterns("__pycache__"),
            copy_function=_copy_with_bytecode,
        )
        blocks = BLOCK.findall(RECIPES[name])
        assert blocks, name
        for file, line, text in blocks:
            path = home / "tracelane" / file
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            if not line and before not in ("", text):
                pytest.fail(f"{file} is in the tree: the recipe {name!r} is followed with its own", False)
            if text not in before:
                path.write_text(_with_block(before, line, text) if line else text, encoding="utf-8")

        def run(*arguments: str) -> str:
            environment = {**os.environ, "PYTHONPATH": f"{home}:{ROOT}", "HOME": str(home)}
            answer = subprocess.run(
                [sys.executable, *arguments],
                capture_output=True,
                encoding="utf-8",
                env=environment,
                check=False,
            )
            assert answer.returncode == 0, answer.stderr
            return answer.stdout

        return run

    return followed


def _copy_with_bytecode(file: str, copy: str) -> None:
    """Copy a file and what was compiled of it, which is good for a copy of the same time and size."""
    shutil.copy2(file, copy)
    if file.endswith(".py") and (compiled := Path(cache_from_source(file))).is_file():
        target = Path(cache_from_source(copy))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(compiled, target)


def _with_block(text: str, line: str, block: str) -> str:
    """Return a file with a block below its first line that contains some text."""
    lines = text.splitlines(keepends=True)
    at = next(number for number, each in enumerate(lines, 1) if line in each)
    return "".join((*lines[:at], block, *lines[at:]))


def _json(run: Run, *arguments: str) -> dict[str, list[dict[str, object]]]:
    """Return the rows of a command's tables by name."""
    tables = json.loads(run("-m", "tracelane", *arguments, "--json"))["tables"]
    return {name: table["rows"] for name, table in tables.items()}


def test_every_recipe_is_followed_here() -> None:
    """No recipe stands in the document without a test."""
    assert set(RECIPES) == {
        "Add an analysis",
        "Add a finding",
        "Add a log format or a column of a log",
        "Add a form of tables",
        "Add a viewer command",
        "Add a panel",
        "Add an overlay",
        "Add a dialect",
        "Add a producer",
        "Add from a package of your own",
    }


def test_new_files_pass_the_linter(tmp_path: Path) -> None:
    """Whoever copies a file finds `make check` as green as before."""
    pytest.importorskip("ruff")
    for number, section in enumerate(RECIPES.values()):
        for file, line, text in BLOCK.findall(section):
            if not line:
                (tmp_path / f"{number}_{Path(file).name}").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "ruff", "check", "--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert not done.returncode, done.stdout


@pytest.mark.slow
def test_an_analysis(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """The analysis is a command with JSON, has its panel and its row in the documentation, and leaves no test
    red; times count from the trace's beginning.
    """
    run = follow("Add an analysis")
    rows = {row["category"]: row for row in _json(run, "categories", str(small_file(tmp_path)))["categories"]}
    assert rows["kernel"]["count"] == 2 and rows["kernel"]["total_ns"] == 61_000
    code = (
        "from tracelane.core.tables.registry import *; "
        "print(PANELS['category-sums'][1].title, analyses_table())"
    )
    assert "Categories" in (text := run("-c", code)) and "| `categories` |" in text
    tests = (
        "core/test_registry.py",
        "core/test_python_front.py::test_wrong_options_of_analyses_are_refused",
        "tui/test_cli_out.py::test_every_command_stands_in_one_group",
    )
    run("-m", "pytest", "-q", "-p", "no:cacheprovider", *(f"{ROOT}/tests/{name}" for name in tests))
    (row,) = _json(run, "stream-spans", str(small_file(tmp_path)))["stream_spans"]
    assert (row["count"], row["work_ns"], row["start_ns"]) == (2, 61_000, 60_000)


@pytest.mark.slow
def test_a_finding(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """The finding speaks of a trace whose kernel takes nearly all of its time."""
    run = follow("Add a finding")
    path = tmp_path / "long.json"
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 1, "ts": 0, "dur": 900}
    after = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 7, "tid": 7, "ts": 0, "dur": 1000}
    path.write_text(json.dumps({"traceEvents": [kernel, after]}), encoding="utf-8")
    (row,) = [row for row in _json(run, "findings", str(path))["findings"] if row["rule"] == "long-kernel"]
    assert "gemm takes most of the trace" in json.dumps(row)


@pytest.mark.slow
def test_a_log_format(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """The log is known as its tool's, and its power is power."""
    run = follow("Add a log format or a column of a log")
    log = tmp_path / "log.csv"
    log.write_text(
        "timestamp,device,npu_watts\n2026-06-20T09:32:01Z,0,70\n2026-06-20T09:32:02Z,0,80\n", encoding="utf-8"
    )
    read = "import sys; from tracelane.core.logs.log import open_log; log = open_log(sys.argv[1])"
    printed = run("-c", f"{read}; print(log.tool, [(c.kind.value, c.watts) for c in log.columns])", str(log))
    assert printed.strip() == "npu-smi [('power', 1.0)]"


@pytest.mark.slow
def test_a_form(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """Every command has the form: those of analyses, with one of their own, and those that are none."""
    run = follow("Add a form of tables")
    path = str(small_file(tmp_path))
    for arguments, first in (
        (("kernels",), "kernels:"),
        (("tree",), "tree:"),
        (("slices",), "slices:"),
        (("chain", "--name", "aten::linear"), "links:"),
        (("check", "--min", "kernels.calls=1"), "limits:"),
    ):
        lines = run("-m", "tracelane", arguments[0], path, *arguments[1:], "--format", "yaml").splitlines()
        assert lines[0].startswith("origin_ns: ") and lines[1] == first and lines[2].startswith('- {"')
    lines = run("-m", "tracelane", "steps", path, "--format", "yaml").splitlines()
    moment = json.loads(lines[2].removeprefix("- "))["start_ns"] + int(lines[0].split()[1])
    listed = run("-m", "tracelane", "steps", path, "--format", "csv").splitlines()
    cells = dict(zip(listed[0].split(","), listed[1].split(",")))
    assert moment == int(cells["start_ns"]) + int(cells["origin_ns"])


@pytest.mark.slow
def test_a_viewer_command(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """A controller's command and a move do what they say, and stand in the table of keys."""
    run = follow("Add a viewer command")
    said, off_middle = run("-c", PRESS, str(small_file(tmp_path))).splitlines()
    assert re.fullmatch(r"\d+ lanes", said) and abs(float(off_middle)) <= 1  # ns
    assert "Say how many lanes" in run(
        "-c", "from tracelane.tui.commands.table import *; print(commands_table())"
    )


@pytest.mark.slow
def test_a_panel(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """It lists the rows of the lane in focus, Enter leads to one, and it follows to another lane."""
    printed = follow("Add a panel")("-c", LOOK, str(small_file(tmp_path))).splitlines()
    assert printed == ["[2, 2, 2]", "aten::linear", "[2]"]


UNDERLINED = """
from tests.tui.test_overlays import styles_of

bare, with_baseline = styles_of(), styles_of(baseline=(30_000, 60_000))
under = [not a.underline and bool(b.underline) for a, b in zip(bare, with_baseline)]
print("".join("_" if one else "." for one in under))
"""


@pytest.mark.slow
def test_an_overlay(follow: Callable[[str], Run]) -> None:
    """The overlay draws in its cells, and in no others."""
    printed = follow("Add an overlay")("-c", UNDERLINED).strip()
    assert printed == "." * 30 + "_" * 30 + "." * 40


@pytest.mark.slow
def test_a_dialect(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """A launch of the new runtime is paired with the kernel that it names by its correlation."""
    run = follow("Add a dialect")
    path = tmp_path / "npu.json"
    launch = {"ph": "X", "cat": "npu_runtime", "name": "npuLaunch", "pid": 7, "tid": 7, "ts": 10, "dur": 5}
    kernel = {"ph": "X", "cat": "npu_kernel", "name": "gemm", "pid": 0, "tid": 1, "ts": 20, "dur": 9}
    labels = {"ph": "M", "name": "process_labels", "pid": 0, "args": {"labels": "NPU 0"}}
    events = [{**event, "args": {"correlation": 4}} for event in (launch, kernel)]
    path.write_text(json.dumps({"traceEvents": [labels, *events]}), encoding="utf-8")
    (row,) = _json(run, "launches", str(path))["launches"]
    assert row["name"] == "npuLaunch" and row["kernels"] == 1


@pytest.mark.slow
def test_a_producer(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """Queues are the device's work, the lane of iterations gives the steps; a wait is no kernel: one for
    a peer counts in the time of what communicates.
    """
    run = follow("Add a producer")
    names = [
        ("process_name", 0, "Example NPU 3"),
        ("thread_name", 1, "Queue 1"),
        ("thread_name", 2, "Queue 2"),
        ("thread_name", 3, "Iterations"),
        ("thread_name", 4, "Queue 3"),
    ]
    events = [
        {"ph": "M", "name": kind, "pid": 5, "tid": tid, "args": {"name": text}} for kind, tid, text in names
    ]
    for at in (0, 100):
        slices = (
            *(("gemm", 1, at, 40), ("wait_event", 1, at + 40, 20), ("wait_peer", 4, at + 45, 20)),
            *(("excomm::reduce", 2, at + 40, 30), (f"iteration {at}", 3, at, 90)),
        )
        events += [
            {"ph": "X", "name": name, "pid": 5, "tid": tid, "ts": ts, "dur": dur}
            for name, tid, ts, dur in slices
        ]
    path = tmp_path / "example.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    kernels = {row["name"]: row["total_ns"] for row in _json(run, "kernels", str(path))["kernels"]}
    assert kernels == {"gemm": 80_000, "excomm::reduce": 60_000}
    assert len(_json(run, "steps", str(path))["steps"]) == 2
    (state,) = _json(run, "breakdown", str(path))["states"]
    assert (state["label"], state["compute_ns"]) == ("Example NPU 3", 80_000)
    assert (state["collective_waiting_ns"], state["collective_unsplit_ns"]) == (40_000, 20_000)


@pytest.mark.slow
def test_a_package(follow: Callable[[str], Run], tmp_path: Path) -> None:
    """An installed package's analysis is a command and a method, its reader's files open like any trace; what
    cannot be loaded is left out with a warning.
    """
    name = "Add from a package of your own"
    run = follow(name)
    (block,) = re.findall("^```toml\n(.*?)^```$", RECIPES[name], re.MULTILINE | re.DOTALL)
    groups = tomllib.loads(block)["project"]["entry-points"]
    groups["tracelane.analyses"]["broken"] = "no_such_module:ROW"
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{key} = {value}" for key, value in points.items()))
    ]
    home = Path(run("-c", "import tracelane; print(tracelane.__path__[0])").strip()).parent
    installed = home / "tracelane_example-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: tracelane-example\nVersion: 1.0\n", encoding="utf-8"
    )
    (installed / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = tmp_path / "run.spans"
    path.write_text("#spans\nouter 0 10.5\ninner 2 3\n", encoding="utf-8")
    for packed in (path, path.with_suffix(".spans.gz")):
        packed.write_bytes(path.read_bytes() if packed == path else gzip.compress(path.read_bytes()))
        assert [row["slices"] for row in _json(run, "lane-count", str(packed))["lanes"]] == [2]
        rows = _json(run, "slices", str(packed))["slices"]
        assert [(row["name"], row["duration_ns"]) for row in rows] == [("outer", 10_500), ("inner", 3_000)]
    code = "import sys, tracelane; print(len(tracelane.open(sys.argv[1]).lane_count()))"
    assert run("-W", "ignore", "-c", code, str(path)).strip() == "1"
    warned = run(
        "-W", "always", "-c", "import sys; sys.stderr = sys.stdout; import tracelane.core.tables.registry"
    )
    assert "no_such_module:ROW of tracelane-example 1.0 cannot be loaded" in warned
