"""A source is opened once, whatever a command asks of it; while it is indexed it is opened no second time."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from tests.corpus import in_turn
from tests.events import complete
from tests.opens import counted_opens
from tests.rank_files import rank_files
from tests.tui.cli_commands import ENDLESS
from tests.tui.small_file import events
from tracelane.core.index.opening import MAX_OPEN
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import command_names, main

WITHOUT_TRACE = ("cache", "capture", "completion", "demo", "history", *ENDLESS)
MORE = {
    "chain": "--name aten::linear",
    "check": "--max trace.span=3600s",
    "collect": "--out OUT",
    "cut": "--from +0ms --to +1ms --out OUT.json",
    "diff": "TRACE",
    "export": "--out OUT.folded",
    "report": "--out OUT.md",
    "sql": "select|count(*)|from|slices",
}
"""What commands need besides a trace; | stands for a blank."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "name"),
    [
        (ending, name)
        for name, ending in in_turn(sorted({*command_names()} - {*WITHOUT_TRACE}), ("json", "json.gz"), 1)
    ],
)
def test_a_command_opens_its_trace_once(
    ending: str, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first command, which indexes a trace, opens it once, packed or not, and so does each later one; a
    side that is named twice is opened twice.
    """
    text = json.dumps({"traceEvents": events()}).encode()
    trace = tmp_path / f"trace.{ending}"
    trace.write_bytes(gzip.compress(text) if ending == "json.gz" else text)
    for turn in ("indexing", "indexed"):
        line = MORE.get(name, "").replace("OUT", str(tmp_path / turn)).replace("TRACE", str(trace))
        words = [name, str(trace), *(word.replace("|", " ") for word in line.split())]
        with counted_opens(tmp_path / f"hook-{turn}") as counts:
            code = main(words)
        assert code in (0, 1), capsys.readouterr().err
        assert counts[trace.resolve()] == (2 if name == "diff" else 1), turn


@pytest.mark.slow
def test_a_process_that_indexes_opens_nothing_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A large file is read, and its text packed beside the index, through what was opened to look at it."""
    trace = tmp_path / "large.json.gz"
    names = random.Random(1)
    many = [complete(n * 10, 5, f"{names.getrandbits(256):x}") for n in range(40_000)]
    trace.write_bytes(gzip.compress(json.dumps({"traceEvents": many}).encode(), 1))
    for turn in ("indexing", "indexed"):
        with counted_opens(tmp_path / f"hook-{turn}") as counts:
            assert main(["index", str(trace)]) == 0, capsys.readouterr().err
        assert counts[trace.resolve()] == 1, turn


@pytest.mark.parametrize("count", [3, MAX_OPEN + 1])
def test_files_of_a_folder_are_opened_once(count: int, tmp_path: Path) -> None:
    """Each file of a folder is looked at once, to say which belong together; of many none stays open until it
    is read.
    """
    folder = rank_files(tmp_path / "run", count)
    for turn, most in (("indexing", 1 if count <= MAX_OPEN else 2), ("indexed", 1)):
        with counted_opens(tmp_path / f"hook-{turn}") as counts:
            open_trace(folder, index_dir=tmp_path / "index").close()
        assert {counts[path.resolve()] for path in folder.iterdir()} == {most}, turn
