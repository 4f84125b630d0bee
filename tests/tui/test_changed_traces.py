"""A trace that is cut, written anew, replaced, appended to or removed while it is read or viewed."""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import in_turn
from tests.events import every_phase
from tests.packings import zip_of
from tests.tui.cli_commands import BUG, CODES
from tests.tui.driver import open_viewer, press_keys, screen_text
from tests.tui.small_file import LONG_NAME, small_file
from tests.tui.test_every_command import SHORT_FORMS
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.opening import OpenedFiles
from tracelane.core.read.local_file import LocalFile
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

Change = Callable[[Path, bytes, bytes], object]


def replaced(path: Path, data: bytes) -> None:
    other = path.with_suffix(".other")
    other.write_bytes(data)
    os.replace(other, path)


CHANGES: dict[str, Change] = {
    "cut": lambda path, data, other: os.truncate(path, len(data) // 2),
    "emptied": lambda path, data, other: os.truncate(path, 0),
    "written anew": lambda path, data, other: path.write_bytes(other),
    "overwritten": lambda path, data, other: path.write_bytes(random.Random(1).randbytes(len(data))),
    "replaced": lambda path, data, other: replaced(path, other),
    "appended to": lambda path, data, other: path.write_bytes(data + b"\n" + data[:500]),
    "removed": lambda path, data, other: path.unlink(),
}
PACKINGS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("json", bytes),
    ("json.gz", gzip.compress),
    ("json.zip", zip_of),
)
SAID = ("has changed since it was indexed", "the trace file", "was written to while", "no such file")
LEFT_OUT = ("index", "history")
"""Commands whose answer has the time that they took, or that are given other files."""


def traces() -> tuple[bytes, bytes]:
    """Return a trace of some blocks, and another."""
    events = [{**event, "args": {"stream": 7, "why": "x" * 60}} for event in every_phase(3, 300)]
    return tuple(json.dumps({"traceEvents": each}).encode() for each in (events, every_phase(4, 400)))  # type: ignore[return-value]


class Moment:
    """When a file changes: once its index is open, or at the Nth time that something of it is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.change: Callable[[], object] | None = None
        self.reads, self.at = 0, 0
        opened, read_into = OpenedFiles.all, os.preadv

        def all_opened(files: OpenedFiles, *, strictly: bool = False) -> Any:
            result = opened(files, strictly=strictly)
            if not self.at:
                self.come()
            return result

        def counted(*arguments: Any) -> int:
            self.reads += 1
            if self.reads == self.at:
                self.come()
            return read_into(*arguments)

        monkeypatch.setattr(OpenedFiles, "all", all_opened)
        monkeypatch.setattr("tracelane.core.read.local_file.os.preadv", counted)

    def come(self) -> None:
        change, self.change = self.change, None
        if change is not None:
            change()


def _contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


Answer = tuple[int, str, dict[str, bytes]]
"""Exit code, output, files written."""


class Trial:
    """A command on a trace that changes meanwhile."""

    def __init__(self, folder: Path, words: list[str], number: int, moment: Moment) -> None:
        ending, pack = PACKINGS[number % len(PACKINGS)]
        self.data, self.other = map(pack, traces())
        self.trace, self.out, self.index = folder / f"t.{ending}", folder / "out", folder / "index"
        still = folder / f"still.{ending}"
        still.write_bytes(self.other)
        line = [word.format(trace=self.trace, still=still, out=self.out / "x") for word in words]
        self.line = [*line, "--index-dir", str(self.index)]
        self.moment = moment
        self.errors = ""

    def write(self) -> None:
        self.trace.write_bytes(self.data)
        os.utime(self.trace, ns=(0, len(self.data)))

    def answer(self, at: int = 0, *, is_indexed: bool = False) -> Answer:
        """Run the command; `at`: which read changes the file, 0 for when the index is open."""
        for folder in (self.out, *([] if is_indexed else [self.index])):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        self.moment.reads, self.moment.at = 0, at
        out, errors = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(errors):
            code = main(self.line)
        self.errors = errors.getvalue()
        return code, out.getvalue(), _contents(self.out)

    def problem(self, change: str, choose: random.Random, *, is_indexed: bool) -> str:
        """Return what is wrong with an answer of a file that changed, "" where nothing is."""
        self.write()
        before = self.answer()
        at = 0 if is_indexed else choose.randint(3, max(3, self.moment.reads))
        self.write()
        self.moment.change = lambda: CHANGES[change](self.trace, self.data, self.other)
        changed = self.answer(at, is_indexed=is_indexed)
        self.moment.change, errors = None, self.errors
        code, text, _ = changed
        if code not in {*CODES, 3} or BUG in errors or "Traceback" in errors:
            return f"{code}: {errors[-300:]}"
        if changed == before or any(words in errors + text for words in SAID) or changed == self.answer():
            return ""
        return f"{code}: an answer of neither state: {errors[-200:]}"


COMMANDS = [
    *(words for words in chain(*SHORT_FORMS.values()) if words[0] not in (*LEFT_OUT, "diff")),
    ["diff", "{trace}", "{still}"],
    ["diff", "{still}", "{trace}", "--json"],
]
WHEN = list(product(CHANGES, (True, False)))
"""Each change once the index is open, and while the file is read."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "when"),
    [
        pytest.param(
            number, when, id=f"{COMMANDS[number][0]}-{number}-{when[0]}{'' if when[1] else ', read'}"
        )
        for number, when in in_turn(range(len(COMMANDS)), WHEN, 1)
    ],
)
def test_commands_answer_of_one_state(
    command: int, when: tuple[str, bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command, in every form of exports, answers of the file before or after, or says what happened."""
    (change, is_indexed), words = when, COMMANDS[command]
    trial = Trial(tmp_path, words, command, Moment(monkeypatch))
    problem = trial.problem(change, random.Random(change), is_indexed=is_indexed)
    assert not problem, f"{' '.join(words)}: {problem}"


@pytest.mark.parametrize("change", ["cut", "emptied", "overwritten"])
def test_a_source_is_of_one_state(change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of more than one chunk that is cut or overwritten between two reads is refused, in one line, and
    leaves no index that is taken for its own.
    """
    data, _ = traces()
    path = tmp_path / "t.json"
    path.write_bytes(data)
    read_into, reads = LocalFile.read_into, 0

    def changing(file: LocalFile, buffer: memoryview, offset: int) -> int:
        nonlocal reads
        reads += 1
        size = read_into(file, buffer, offset)
        if reads == 4:  # its ends were looked at before
            CHANGES[change](path, data, data)
        return size

    monkeypatch.setattr(LocalFile, "read_into", changing)
    with pytest.raises(UnreadableError, match="was written to while it was read: open it again"):
        open_trace(path, index_dir=tmp_path / "index")
    assert not list((tmp_path / "index").glob("*/*/manifest.json"))


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
async def test_the_viewer_goes_on(change: str, tmp_path: Path) -> None:
    """Whatever becomes of the file, details, searches among arguments and panels go on, and say it."""
    path = small_file(tmp_path)
    data = path.read_bytes()
    async with open_viewer(open_trace(path, index_dir=tmp_path / "index"), (120, 40)) as (app, pilot):
        CHANGES[change](path, data, data.replace(LONG_NAME.encode(), b"other"))
        for text in ("name=launch", "arg.correlation=5", "arg.unknown=5"):
            await press_keys(app, pilot, "slash", *text, "enter")
            await press_keys(app, pilot, "enter", "n", "escape")
        for key in ("2", "3", "4", "escape", "right", "plus", "v", "space"):
            await press_keys(app, pilot, key)
        assert app.is_running and app.return_code is None
        assert screen_text(app).strip()
