"""Making room in the cache while others work in it: what a process or a command needs is never removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.events import SLICES, write_slices
from tests.tui.cli_process import tracelane
from tests.waiting import PATIENCE_S
from tracelane.core import open_trace
from tracelane.core.index.cached import keep_within, list_cache, remove_entry, touch
from tracelane.core.index.options import IndexOptions

LONG_AGO_S = 7200.0
pytestmark = pytest.mark.usefixtures("home")


def age(*names: str) -> None:
    """Let the indexes of files of these names have been opened hours ago, the first one first."""
    for entry in list_cache():
        if (name := Path(entry.path).name) in names:
            os.utime(entry.folder, (time.time() - LONG_AGO_S + names.index(name),) * 2)


def cached_names() -> set[str]:
    """Return the names of the files that have indexes."""
    return {Path(entry.path).name for entry in list_cache()}


def bytes_below(folder: Path) -> int:
    """Return the size of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def indexed(*paths: Path) -> int:
    """Index files, and return the bytes of the largest index."""
    for path in paths:
        open_trace(path).close()
    return max(entry.bytes for entry in list_cache())


def test_no_side_of_a_comparison_makes_room_for_another(tmp_path: Path) -> None:
    """B was opened before all others, and A needs room: the other one goes, which is said, and B stays."""
    new, old, other = (write_slices(tmp_path / f"{name}.json") for name in ("new", "old", "other"))
    size = indexed(old, other)
    age("old.json", "other.json")
    built = {entry.folder.stat().st_ino for entry in list_cache() if Path(entry.path) == old}
    done = tracelane("diff", str(new), str(old), "--cache-limit", str(2 * size + size // 2))
    assert done.returncode == 0, done.stderr
    assert f"the index of {other} (" in done.stderr and done.stderr.count(": removed the") == 1
    assert cached_names() == {"new.json", "old.json"}
    assert built < {entry.folder.stat().st_ino for entry in list_cache()}  # not rebuilt


@pytest.mark.slow
@pytest.mark.parametrize("command", [["check", "--baseline"], ["report", "--baseline"]])
def test_neither_does_a_baseline(tmp_path: Path, command: list[str]) -> None:
    """Also where the trace is opened first and the earlier run afterwards."""
    new, old, other = (write_slices(tmp_path / f"{name}.json") for name in ("new", "old", "other"))
    size = indexed(old, other)
    age("old.json", "other.json")
    more = ["--fail-above", "5%"] if command[0] == "check" else []
    limit = ["--cache-limit", str(2 * size + size // 2)]
    done = tracelane(command[0], str(new), *command[1:], str(old), *more, *limit)
    assert "Traceback" not in done.stderr and f"the index of {other} (" in done.stderr
    assert cached_names() == {"new.json", "old.json"}


@pytest.mark.slow
def test_no_file_of_a_folder_makes_room_for_another(tmp_path: Path) -> None:
    """Those that were indexed long ago stay while the new ones are indexed; what would not fit is refused."""
    folder = tmp_path / "run"
    folder.mkdir()
    files = [write_slices(folder / f"rank{rank}.json") for rank in range(4)]
    other = write_slices(tmp_path / "other.json")
    size = indexed(*files[:2], other)
    names = {path.name for path in files}
    age("rank0.json", "rank1.json", "other.json")
    done = tracelane("info", str(folder), "--cache-limit", str(4 * size + size // 2))
    assert done.returncode == 0 and f"the index of {other} (" in done.stdout, done.stderr
    assert cached_names() == names
    age(*names)
    write_slices(folder / "rank4.json")
    done = tracelane("info", str(folder), "--cache-limit", str(4 * size + size // 2))
    assert done.returncode == 1 and "rank4.json would take about" in done.stderr, done.stderr
    assert cached_names() == names


@pytest.mark.parametrize("stays", [(), ("old.json",)])
def test_what_is_read_next_stays(stays: tuple[str, ...], tmp_path: Path) -> None:
    """However little the cache may hold, the index whose key is named stays, and of the others none."""
    indexed(*(write_slices(tmp_path / f"{name}.json") for name in ("older", "old", "new")))
    age("older.json", "old.json", "new.json")
    assert all(entry.bytes == bytes_below(entry.folder) for entry in list_cache())
    (root,) = {entry.folder.parent.parent for entry in list_cache()}
    keys = [entry.key for entry in list_cache() if Path(entry.path).name in stays]
    (said,) = keep_within(1, root, "".join(keys))
    assert cached_names() == set(stays) and "the cache may hold 1 B: removed the index" in said


READER = """
import sys
from tracelane.core import open_trace
trace = open_trace(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
print(sum(row.count for lane in trace.lanes for row in trace.rows(lane)))
"""


def test_what_another_process_reads_stays(tmp_path: Path) -> None:
    """Though it was opened hours ago; it goes once nobody reads it."""
    read, idle, new = (write_slices(tmp_path / f"{name}.json") for name in ("read", "idle", "new"))
    size = indexed(read, idle)
    reader = subprocess.Popen(
        [sys.executable, "-c", READER, str(read)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    assert reader.stdout is not None and reader.stdout.readline() == "open\n"
    age("read.json", "idle.json")
    (entry,) = [entry for entry in list_cache() if Path(entry.path) == read]
    assert entry.in_use and not remove_entry(entry)
    done = tracelane("index", str(new), "--cache-limit", str(2 * size + size // 2))
    assert done.returncode == 0 and f"the index of {idle} (" in done.stderr, done.stderr
    assert cached_names() == {"read.json", "new.json"}
    assert reader.communicate("\n", timeout=PATIENCE_S)[0] == f"{SLICES}\n"
    assert remove_entry(entry) and cached_names() == {"new.json"}


def test_what_was_opened_since_it_was_listed_stays(tmp_path: Path) -> None:
    """Another process may open an index between the look at the cache and the removal."""
    indexed(write_slices(tmp_path / "trace.json"))
    age("trace.json")
    (entry,) = list_cache()
    touch(entry.folder)
    assert not remove_entry(entry) and len(list_cache()) == 1
    (entry,) = list_cache()
    assert remove_entry(entry) and list_cache() == []
    assert list(entry.folder.parent.iterdir()) == []  # its locks went, too


WORKER = """
import os, random, sys
from tracelane.core import open_trace
from tracelane.core.index.options import IndexOptions
limit, seed, *paths = sys.argv[1:]
order = random.Random(int(seed))
for _ in range(25):
    path = order.choice(paths)
    trace = open_trace(path, IndexOptions(cache_limit=int(limit)))
    rows = [row for lane in trace.lanes for row in trace.rows(lane)]
    names = {trace.name(row, at) for row in rows for at in (0, row.count - 1)}
    assert names == {os.path.basename(path)}, names
    folder = trace.indexes[0].folder
    trace.close()
    if os.path.isdir(folder):
        os.utime(folder, (order.random() * 1e9,) * 2)
print("done")
"""


@pytest.mark.slow
def test_processes_that_make_room_for_each_other_all_get_their_traces(tmp_path: Path) -> None:
    """Four of them open eight traces in a cache of five indexes, where each index is old at once."""
    paths = [write_slices(tmp_path / f"{number}.json") for number in range(8)]
    size = indexed(paths[0])
    limit = 5 * size + size // 2
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(limit), str(seed), *map(str, paths)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        for seed in range(4)
    ]
    for worker in workers:
        out, errors = worker.communicate(timeout=PATIENCE_S)
        assert (worker.returncode, out) == (0, "done\n"), errors
    open_trace(write_slices(tmp_path / "last.json"), IndexOptions(cache_limit=limit)).close()
    assert sum(entry.bytes for entry in list_cache()) <= limit
