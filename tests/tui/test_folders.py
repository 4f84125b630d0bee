"""What lies in a folder beside its traces changes no answer."""

from __future__ import annotations

import gzip
import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from tests.rank_files import rank_files
from tests.tui.cli_commands import ENDLESS, commands
from tracelane.core import open_trace
from tracelane.core.index.captures import captures_of, members_of
from tracelane.core.index.member import NO_FACTS, FileFacts
from tracelane.tui.cli.main import main

NODES = [{"id": n, "name": f"aten::op{n}", "ctrl_deps": 1, "inputs": {"values": [[n]]}} for n in range(9000)]
FOREIGN: dict[str, bytes] = {
    "execution trace": json.dumps({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "nodes": NODES}).encode(),
    "configuration": b'{"learning_rate": 0.1, "ph": 7}',
    "list": json.dumps([{"step": n, "loss": 1 / (n + 1)} for n in range(50)]).encode(),
    "no events": b'{"traceEvents": []}',
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
    "page": b"<!DOCTYPE html><html><body>404</body></html>",
    "empty": b"",
    "blank": b" \n",
    "cut in the header": b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "na',
    "cut gzip": gzip.compress(b'{"traceEvents": [{"ph": "X"}]}')[:14],
    "binary": bytes(range(256)) * 8,
    "words": b"Traceback (most recent call last):\n",
}
NAMES = (
    "execution_trace_rank0.json",
    "rank7.json",
    "notes.json",
    "host_12.1769071195663459010.pt.trace.json",
)
OPTIONS: dict[str, tuple[str, ...]] = {
    "chain": ("--name=gemm_0",),
    "check": ("--max=kernels.calls=1",),
    "sql": ("select count(*) from slices",),
}
LEFT_OUT = {
    "view",
    "index",
    "collect",
    "cut",
    "diff",
    "export",
    "history",
    "summary",
    "report",
    "demo",
    "completion",
    "capture",
    *ENDLESS,
}
"""Commands that draw, write files, say how long it took, take two traces or none, or never end; of `collect`
tells tests/store/test_collect.py.
"""


def folder_with(folder: Path, name: str, data: bytes, *, newer: bool) -> Path:
    """Return a folder of two ranks and a foreign file that is newer or older than both."""
    rank_files(folder, 2)
    for number, path in enumerate(sorted(folder.iterdir())):
        os.utime(path, (1_700_000_000 + number,) * 2)
    (folder / name).write_bytes(data)
    os.utime(folder / name, (1_700_009_000 if newer else 1_600_000_000,) * 2)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_named_and_no_capture(kind: str, name: str, newer: bool, tmp_path: Path) -> None:
    """Only files with events form captures: the ranks open as without the file, which one note names."""
    folder = folder_with(tmp_path / "run", name, FOREIGN[kind], newer=newer)
    with closing(open_trace(folder, index_dir=tmp_path / "index")) as trace:
        assert [(member.rank, Path(member.path).name) for member in trace.members] == [
            (0, "rank0.json"),
            (1, "rank1.json"),
        ]
        assert len(trace.captures) == 1
        notes = trace.sources[0].notes
    assert [name in note for note in notes if note.startswith("skipped ")] == [True]
    assert not any("missing" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["execution trace", "page", "empty", "cut in the header"])
def test_every_command_answers_as_without_it(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code and answer of each command are those of the folder without the foreign file."""
    run = tmp_path / "run"
    rank_files(run, 2)
    names = [name for name, _ in commands() if name in OPTIONS or " " not in name]

    def answers() -> dict[str, tuple[int, str]]:
        done = {}
        for name in names:
            if name not in LEFT_OUT:
                code = main([name, str(run), *OPTIONS.get(name, ())])
                lines = capsys.readouterr().out.splitlines()
                done[name] = code, "\n".join(line for line in lines if "skipped" not in line)
        return done

    expected = answers()
    folder_with(run, "execution_trace_rank0.json", FOREIGN[kind], newer=True)
    actual = answers()
    assert len(expected) > 15 and any(code == 0 for code, _ in expected.values())
    assert {name: answer for name, answer in actual.items() if answer != expected[name]} == {}


def test_captures_that_interleave_are_told_apart() -> None:
    """A rank that wrote late, after another capture began to be written, belongs to its own by its span."""
    second = 10**9
    times = {  # when the recording began, and when the file was written
        "rank0_1700000011.json": 100,
        "rank0_1700000031.json": 120,
        "rank1_1700000035.json": 100,
        "rank1_1700000040.json": 120,
    }
    by_start = members_of(times, lambda path: FileFacts(start_ns=(1_699_999_900 + times[str(path)]) * second))
    groups = [[str(member.path) for member in capture.members] for capture in captures_of(by_start)]
    assert sorted(groups) == [
        ["rank0_1700000011.json", "rank1_1700000035.json"],
        ["rank0_1700000031.json", "rank1_1700000040.json"],
    ]
    unknown = captures_of(members_of(times, lambda path: NO_FACTS))
    assert len(unknown) == 3


def test_where_nothing_holds_events_the_reason_is_said(tmp_path: Path) -> None:
    """A folder without any trace ends as each of its files does."""
    (tmp_path / "rank0.json").write_bytes(FOREIGN["pointer"])
    (tmp_path / "rank1.json").write_bytes(FOREIGN["configuration"])
    assert main(["info", str(tmp_path)]) == 2
