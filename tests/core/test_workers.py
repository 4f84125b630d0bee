"""Reading with several processes gives what one process reads, and leaves no process behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S, is_alive, wait_until
from tracelane.core.base.errors import CacheError, Cancelled
from tracelane.core.base.progress import Progress
from tracelane.core.ingest import child, parallel
from tracelane.core.ingest.child import Children, ChildrenError
from tracelane.core.ingest.ledger import add_counts, merge_problems
from tracelane.core.ingest.parallel import NotParallel, read_in_parallel, spread
from tracelane.core.ingest.reader import Reading, read_to_folder
from tracelane.core.ingest.source import open_source

from .part_rows import blocks, whole


@pytest.fixture(autouse=True)
def _by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are small: without this the starter would have read them before a worker is there."""
    monkeypatch.setattr(parallel, "SMALL", 0)


def events_text(seed: int, count: int) -> list[str]:
    """Return events of all sorts, decoys of separators in their strings and arguments among them."""
    rng = random.Random(seed)
    texts = []
    for number in range(count):
        event: dict[str, Any] = {
            "ph": rng.choice("XXXXsfbeCi"),
            "name": f"op{number % 50}",
            "pid": 1,
            "tid": number % 4,
        }
        event |= {
            "ts": rng.randrange(10**9) / 1000,
            "dur": rng.randrange(999),
            "id": number % 100,
            "cat": "cpu_op",
        }
        event["args"] = {"External id": number, "n": rng.random()}
        if rng.random() < 0.1:
            event["args"]["Call stack"] = '},\n{"ph": ' * rng.randrange(1, 40)
        if rng.random() < 0.05:
            event["args"]["list"] = [{"ph": 1}, {"ph": 2}] * rng.randrange(1, 30)
        texts.append(json.dumps(event) if rng.random() < 0.99 else "null")
    return texts


def test_order_of_reading() -> None:
    """Every range is read once, the last one first and the next ones far apart."""
    for count in (1, 2, 3, 8, 37):
        assert sorted(spread(count)) == list(range(count))
        assert spread(count)[0] == count - 1
    assert spread(9)[1:4] == [0, 4, 2]


def joined(texts: list[str]) -> str:
    return ",\n".join(texts)


def broken(texts: list[str]) -> list[str]:
    return [text.replace("op7", 'o"p') if number % 100 == 57 else text for number, text in enumerate(texts)]


NESTED = json.dumps([{"ph": 1}] * 9999)
FILES = {
    "object": lambda texts: f'{{"schema":1,"traceEvents":[\n{joined(texts)}\n],"baseTimeNanoseconds":7}}',
    "compact array": lambda texts: "[" + ",".join(texts).replace('": ', '":') + "]",
    "no end": lambda texts: f"[\n{joined(texts)},\n",
    "cut off": lambda texts: f'{{"traceEvents":[\n{joined(texts)[:-20]}',
    "keys behind": lambda texts: f'{{"traceEvents":[\n{joined(texts)}\n],"x":{NESTED}}}',
    "two documents": lambda texts: f'{{"traceEvents":[\n{joined(texts)}\n]}}\n[{joined(texts[:500])}]',
    "broken events": lambda texts: f'{{"traceEvents":[\n{joined(broken(texts))}]}}',
}


@pytest.mark.parametrize("starter", [False, True])
@pytest.mark.parametrize("form", FILES)
def test_many_processes_read_what_one_reads(
    tmp_path: Path, form: str, starter: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events, their order, arguments, books, keys around them and problems do not depend on who read what."""
    if starter:
        monkeypatch.setattr(parallel, "SMALL", 1 << 20)
    path = tmp_path / "t.json"
    path.write_text(FILES[form](events_text(1, 3000)))
    source = open_source(path)
    reading = Reading(source, block_size=4096)
    parts = list(reading)
    alone = whole(parts)
    result = read_in_parallel(source, tmp_path, workers=2, part_size=30_000, block_size=4096)
    assert len(result.parts) > 10 or form == "broken events"  # where ranges had to be joined
    together = whole(result.parts)
    for key in alone:
        assert together[key] == alone[key], key
    assert result.envelope == reading.envelope
    problems = merge_problems([*(part.problems for part in parts), reading.problems])
    assert [(p.kind, p.offset) for p in result.problems] == [(p.kind, p.offset) for p in problems]
    assert result.counts == add_counts([alone["counts"], {p.kind: p.count for p in reading.problems}])
    text = path.read_bytes()
    ends = 0
    for offset, length, ordinal, count, repaired in blocks(result.parts):
        assert offset >= ends
        ends = offset + length
        if not repaired:
            assert len(json.loads(b"[" + text[offset:ends] + b"]")) == count, ordinal


def test_small_and_packed_sources_are_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is started for a small file; a large one goes to workers; either way the result is the same."""
    path = tmp_path / "t.json"
    path.write_text(FILES["object"](events_text(2, 2000)))
    source = open_source(path)
    started: list[int] = []
    original = parallel.Children

    def counting(count: int, **options: Any) -> Children:
        started.append(count)
        return original(count, **options)

    monkeypatch.setattr(parallel, "Children", counting)
    first, second = tmp_path / "1", tmp_path / "2"
    first.mkdir(), second.mkdir()
    alone = read_to_folder(source, first, workers=2)
    assert started == []
    monkeypatch.setattr(child, "PARALLEL_FROM", 1000)
    together = read_to_folder(source, second, workers=2)
    assert started == [2]
    assert whole(alone.parts) == whole(together.parts)
    assert together.sequential_because == ""
    read_to_folder(source, tmp_path, workers=1)
    assert len(started) == 1


def test_without_children_it_is_read_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started, or it fails at once, one process reads and says why."""
    path = tmp_path / "t.json"
    path.write_text(FILES["object"](events_text(3, 500)))
    source = open_source(path)
    monkeypatch.setattr(child, "PARALLEL_FROM", 1000)
    for executable in ("/nonexistent/python", "/bin/false"):
        monkeypatch.setattr(child.sys, "executable", executable)
        result = read_to_folder(source, tmp_path, workers=2)
        assert result.events == 500
        assert "process" in result.sequential_because
        assert sorted(file.name for file in tmp_path.glob("part-*")) == [
            part.path.name for part in result.parts
        ]


def test_failures_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that takes nothing, and a request to stop, end all workers and raise here."""
    path = tmp_path / "t.json"
    path.write_text(FILES["object"](events_text(4, 2000)))
    source = open_source(path)
    with pytest.raises(CacheError, match="cannot write"):
        read_in_parallel(source, tmp_path / "missing", workers=2, part_size=30_000, block_size=4096)
    pids: list[int] = []
    original = Children.receive

    def receive(self: Children, *wait: float) -> Any:
        pids[:] = self.pids
        return original(self, *wait)

    monkeypatch.setattr(Children, "receive", receive)
    with pytest.raises(Cancelled):
        read_in_parallel(source, tmp_path, workers=2, cancelled=lambda: bool(pids))
    assert pids and not any(is_alive(pid) for pid in pids)


def test_a_killed_worker_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that vanishes makes the reading fall back, instead of waiting for ever."""
    path = tmp_path / "t.json"
    path.write_text(FILES["object"](events_text(5, 2000)))
    original = Children.receive

    def receive(self: Children, *wait: float) -> Any:
        os.kill(self.pids[0], signal.SIGKILL)
        return original(self, *wait)

    monkeypatch.setattr(Children, "receive", receive)
    with pytest.raises(NotParallel, match="worker"):
        read_in_parallel(open_source(path), tmp_path, workers=2, part_size=30_000)


def test_workers_end_with_their_starter() -> None:
    """A worker whose standard input ends, because its starter was killed, ends too, whatever it is doing."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", child.MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdin is not None
    assert json.loads(process.stdout.readline()) == {"ready": True}
    process.stdin.close()
    process.stdout.close()
    assert process.wait(PATIENCE_S) != 0


def test_closing_is_final() -> None:
    """After the with-block no worker lives, and sending to it is an error."""
    with Children(1, {}) as children:
        (pid,) = children.pids
        children.receive()
    wait_until(lambda: not is_alive(pid), "the worker's end")
    with pytest.raises((ChildrenError, ValueError)):
        children.send(0, {})


def test_progress_counts_all_workers(tmp_path: Path) -> None:
    """The bytes told by all workers together rise to about the size of the file."""
    path = tmp_path / "t.json"
    path.write_text(FILES["object"](events_text(6, 3000)))
    source = open_source(path)
    seen: list[Progress] = []
    read_in_parallel(source, tmp_path, workers=2, part_size=30_000, block_size=4096, progress=seen.append)
    assert [one.done for one in seen] == sorted(one.done for one in seen)
    assert 0.95 * source.size < seen[-1].done <= source.size
    assert seen[-1].events == 3000
