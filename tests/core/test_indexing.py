"""The ingest child builds what one process builds, tells how it goes, and outlives nobody."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_S, children_of, is_alive, wait_until
from tracelane.core.base import children as child
from tracelane.core.base.errors import CacheError, Cancelled, UnreadableError
from tracelane.core.base.progress import Progress
from tracelane.core.index import indexing
from tracelane.core.index.cache import BUILDING, LOCK, IndexLocation, locate
from tracelane.core.index.cached import IndexJob
from tracelane.core.index.indexing import Indexing, ingest_index, opened_index
from tracelane.core.index.options import DEFAULT_OPTIONS, IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.read.source import Source, open_source

pytestmark = pytest.mark.slow

EVENT = '{{"ph":"X","cat":"cpu_op","name":"op{0}","pid":1,"tid":{1},"ts":{2},"dur":3.5{3}}}'


def trace_file(folder: Path, count: int, padding: int = 0) -> Path:
    path = folder / "t.json"
    events = ",\n".join(EVENT.format(n % 50, n % 4, 7 * n, " " * padding) for n in range(count))
    path.write_text(f'{{"traceEvents":[\n{events}\n]}}', encoding="utf-8")
    return path


def source_and_location(path: Path, folder: Path) -> tuple[Source, IndexLocation]:
    source = open_source(path)
    return source, locate(dict(source.fingerprint), folder)


def indexing_of(source: Source, location: IndexLocation, options: IndexOptions = DEFAULT_OPTIONS) -> Indexing:
    return Indexing([IndexJob.of(source, location)], options)


def opened(running: Indexing, source: Source, location: IndexLocation) -> Index:
    """Return the index once it is there."""
    while not running.poll(0.1):
        pass
    return opened_index(source, location.with_events(running.events))


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def test_a_process_builds_what_is_built_here(tmp_path: Path) -> None:
    """The index that the process commits is, byte for byte, the one that this process would write."""
    path = trace_file(tmp_path, 3000)
    source, location = source_and_location(path, tmp_path / "1")
    with closing(indexing_of(source, location)) as running:
        running.await_running()
        theirs = opened(running, source, location)
    (pid,) = running.pids
    ours = ingest_index(open_source(path), IndexOptions(tmp_path / "2"))
    assert contents(theirs.folder) == contents(ours.folder)
    assert not is_alive(pid)


def test_processes_go_on_while_nobody_polls(tmp_path: Path) -> None:
    """Of small files a process has more than one to do, so that a screen that is drawn holds up none."""
    jobs = []
    for number in range(4):
        (folder := tmp_path / str(number)).mkdir()
        jobs.append(IndexJob.of(*source_and_location(trace_file(folder, 10 + number), tmp_path / "index")))
    with closing(Indexing(jobs, IndexOptions(threads=1))) as running:
        wait_until(lambda: all(job.location.exists() for job in jobs), "all indexes")
        while not running.poll(0.1):
            pass
    assert sorted(running.written) == sorted(job.path for job in jobs)


def test_a_large_file_is_not_kept_for_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Orders ahead are of little text altogether: what takes long goes to whoever is done first."""
    monkeypatch.setattr(indexing, "AHEAD_BYTES", 1)
    given: list[int] = []
    send = child.Children.send

    def counted(children: child.Children, number: int, message: child.Message) -> None:
        given.extend([number] if "source" in message else [])
        send(children, number, message)

    monkeypatch.setattr(child.Children, "send", counted)
    jobs = []
    for number in range(4):
        (folder := tmp_path / str(number)).mkdir()
        jobs.append(IndexJob.of(*source_and_location(trace_file(folder, 10), tmp_path / "index")))
    with closing(Indexing(jobs, IndexOptions(threads=2))) as running:
        assert given == [0, 1]
        while not running.poll(0.1):
            pass
    assert len(given) == 4 and len(running.written) == 4


def test_large_files_are_left_to_a_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From some size on a process indexes, unless this is one that was made for it and is to read alone;
    progress reaches the caller.
    """
    path = trace_file(tmp_path, 20_000)
    started: list[int] = []

    class Counting(Indexing):
        def await_running(self) -> None:
            started.append(self.pids[0])
            super().await_running()

    monkeypatch.setattr(indexing, "Indexing", Counting)
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    ingest_index(open_source(path), IndexOptions(tmp_path / "1")).close()
    assert not started
    monkeypatch.setattr(indexing, "WORTH_IT", 1000)
    with monkeypatch.context() as made_for_it:
        for name, value in child.DECODING.items():
            made_for_it.setenv(name, value)
        ingest_index(open_source(path), IndexOptions(tmp_path / "1", threads=1, force=True)).close()
        assert not started
    ingest_index(open_source(path), IndexOptions(tmp_path / "2", threads=1)).close()
    assert len(started) == 1
    started.clear()
    seen: list[Progress] = []
    assert (
        ingest_index(open_source(path), IndexOptions(tmp_path / "3"), progress=seen.append).read_report[
            "slices"
        ]
        == 20_000
    )
    assert len(started) == 1 and seen
    assert ingest_index(open_source(path), IndexOptions(tmp_path / "3")).read_report["slices"] == 20_000
    assert len(started) == 1


@pytest.mark.parametrize("executable", ["/nonexistent/python", "/bin/false"])
def test_without_children_it_is_built_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str
) -> None:
    """Where no process can be started, or it ends at once, this process indexes by itself."""
    path = trace_file(tmp_path, 100)
    monkeypatch.setattr(indexing, "WORTH_IT", 1000)
    monkeypatch.setattr(sys, "executable", executable)
    assert ingest_index(open_source(path), IndexOptions(tmp_path)).read_report["slices"] == 100


def test_failures_reach_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no trace is refused as it would be here; a process that vanishes is told, never waited for."""
    monkeypatch.setattr(indexing, "WORTH_IT", 100)
    path = tmp_path / "no.json"
    path.write_text('{"broken": ' + " " * 1000, encoding="utf-8")
    with pytest.raises(UnreadableError, match=r"no\.json: no trace events"):
        ingest_index(open_source(path), IndexOptions(tmp_path))
    source, location = source_and_location(trace_file(tmp_path, 500), tmp_path)
    # Held back, so none is done already.
    with closing(indexing_of(source, location)) as running, location.exclusive():
        running.await_running()
        for _ in range(2):  # the first time it is started again
            first = running.pids
            os.kill(first[0], signal.SIGKILL)
            with pytest.raises(CacheError, match="was ended, with one thread too") if _ else nullcontext():
                while not running.poll(0.1) and running.pids == first:
                    pass
    assert not list(tmp_path.rglob(f"{BUILDING}*"))


def test_a_killed_process_is_started_again_with_one_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed once, as for want of memory, indexing is repeated, gives the same index, and says so."""
    source, location = source_and_location(trace_file(tmp_path, 5000), tmp_path)
    threads, send = list[int](), child.Children.send

    def noted(self: child.Children, number: int, message: dict[str, Any]) -> None:
        threads.extend([message["options"]["threads"]] if "options" in message else [])
        send(self, number, message)

    monkeypatch.setattr(child.Children, "send", noted)
    with closing(indexing_of(source, location, IndexOptions(threads=3))) as running:
        with location.exclusive():  # it waits for its turn: it cannot have ended before it is killed
            running.await_running()
            os.kill(running.pids[0], signal.SIGKILL)
        index = opened(running, source, location)
    assert threads == [3, 1]
    assert index.read_report["slices"] == 5000
    assert "was repeated with one thread" in index.events[0] and index.events[0] in index.notes
    assert not list(tmp_path.rglob(f"{BUILDING}*"))


def open_files(pid: int) -> list[str]:
    paths = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):  # closed meanwhile
            paths.append(str(link.readlink()))
    return paths


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's")
def test_want_of_memory_is_met_with_one_thread(tmp_path: Path) -> None:
    """Where a process may take no more memory one with one thread goes on, and the index says so."""
    source, location = source_and_location(trace_file(tmp_path, 5000), tmp_path)
    with closing(indexing_of(source, location, IndexOptions(threads=2))) as running:
        with location.exclusive():  # it waits for its turn: nothing is read before the limit is set
            (limited,) = running.pids
            lock = f"{LOCK}{location.key}.build"
            wait_until(lambda: any(path.endswith(lock) for path in open_files(limited)), "it to wait")
            pages = int(Path(f"/proc/{limited}/statm").read_text(encoding="utf-8").split()[0])
            resource.prlimit(limited, resource.RLIMIT_AS, (pages * resource.getpagesize(),) * 2)
        index = opened(running, source, location)
        assert running.pids != [limited]
    assert index.read_report["slices"] == 5000
    assert "was repeated with one thread" in index.events[0]
    assert not list(tmp_path.rglob(f"{BUILDING}*"))


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of other processes are Linux's")
def test_want_of_memory_while_it_starts(tmp_path: Path) -> None:
    """Whenever memory ends, while threads start or modules are loaded, an index comes of it."""
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        source, location = source_and_location(trace_file(folder, 5000), folder)
        with closing(indexing_of(source, location, IndexOptions(threads=2))) as running:
            running.await_running()
            pages = int(Path(f"/proc/{running.pids[0]}/statm").read_text(encoding="utf-8").split()[0])
            resource.prlimit(running.pids[0], resource.RLIMIT_AS, (pages * resource.getpagesize(),) * 2)
            assert opened(running, source, location).read_report["slices"] == 5000


def test_cancelling_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller that stops waiting ends the process, and its half index goes."""
    monkeypatch.setattr(indexing, "WORTH_IT", 1000)
    path = trace_file(tmp_path, 100_000)
    with pytest.raises(Cancelled):
        ingest_index(
            open_source(path),
            IndexOptions(tmp_path, decoder="python"),
            cancelled=lambda: bool(list(tmp_path.rglob(f"{BUILDING}*"))),
        )
    assert not list(tmp_path.rglob(f"{BUILDING}*"))
    assert not [pid for pid in children_of(os.getpid()) if is_indexer(pid)]


def is_indexer(pid: int) -> bool:
    try:
        return indexing.MODULE.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


STARTER = """
import sys
from pathlib import Path
from tracelane.core.index.cache import locate
from tracelane.core.index.indexing import Indexing
from tracelane.core.index.cached import IndexJob
from tracelane.core.index.options import IndexOptions
from tracelane.core.read.source import open_source
source = open_source(sys.argv[1])
options = IndexOptions(decoder="python", threads=2)
job = IndexJob.of(source, locate(dict(source.fingerprint), Path(sys.argv[2])))
running = Indexing([job], options)
running.await_running()
print(running.pids[0], flush=True)
while not running.poll(1.0):
    pass
"""


def test_killing_the_starter_leaves_no_process_and_no_half_index(tmp_path: Path) -> None:
    """After kill -9 of whoever wanted the index its process ends, and what it wrote goes."""
    path = trace_file(tmp_path, 300_000, padding=160)
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(path), str(tmp_path / "ix")], stdout=subprocess.PIPE
    )
    try:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        wait_until(lambda: bool(list((tmp_path / "ix").rglob(f"{BUILDING}*"))))
        assert children_of(pid) == []
    finally:
        starter.kill()
        starter.wait()
    wait_until(lambda: not is_alive(pid))
    assert not list((tmp_path / "ix").rglob(f"{BUILDING}*"))
    assert not list((tmp_path / "ix").rglob("manifest*"))


def test_protocol(tmp_path: Path) -> None:
    """Each line is a JSON object; the first says ready, then the last of each file what has become of it."""
    no_trace = tmp_path / "no.json"
    no_trace.write_text('{"broken": ', encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", indexing.MODULE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdin is not None and process.stdout is not None

    def answers(*lines: dict[str, object]) -> list[dict[str, Any]]:
        """Write lines; return what is told until a file is done."""
        assert process.stdin is not None and process.stdout is not None
        process.stdin.writelines(json.dumps(line) + "\n" for line in lines)
        process.stdin.flush()
        told_lines = [json.loads(process.stdout.readline())]
        while "committed" not in told_lines[-1]:
            told_lines.append(json.loads(process.stdout.readline()))
        return told_lines

    def order(path: Path) -> dict[str, object]:
        source, location = source_and_location(path, tmp_path)
        source.close()  # the process inherits no open file
        return {"source": source.to_message(), "location": str(location.folder)}

    greeting = {"options": IndexOptions(tmp_path).to_message(), "stands_back": False}
    first, *between, last = answers(greeting, order(trace_file(tmp_path, 3000)))
    assert first == {"ready": True} and last == {"committed": True, "events": []}
    assert {message["progress"][0] for message in between} == {"reading", "index"}
    refused = answers(order(no_trace))[-1]
    assert refused["failed"] == "UnreadableError" and "no trace events" in refused["message"]
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    process.stdout.close()
