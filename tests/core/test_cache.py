"""Indexes come into their location whole or not at all, and are found again."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.events import write_slices
from tests.waiting import PATIENCE_S
from tracelane.core import open_trace
from tracelane.core.base.errors import CacheError, Cancelled, UsageError
from tracelane.core.index import cache, indexing
from tracelane.core.index.cache import IndexLocation, cache_root, index_key, locate
from tracelane.core.index.cached import (
    DEFAULT,
    UNLIMITED,
    cache_limit,
    clear_cache,
    evicted,
    limit_of,
    list_cache,
)
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index, checksum_of
from tracelane.core.index.version import MANIFEST
from tracelane.core.read.source import Source

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    return write_slices(tmp_path / "trace.json")


def committed(root: Path) -> list[Path]:
    return [path.parent for path in root.glob(f"**/v*/*/{MANIFEST}") if not path.parent.name.startswith(".")]


# -- where ---------------------------------------------------------------------------------------------------


def no_passwd_entry(_: int) -> None:
    raise KeyError("getpwuid(): uid not found")


@pytest.mark.parametrize(
    ("environment", "entry", "expected"),
    [
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/p", "/x/tracelane"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/h"}, "/p", "/h/.cache/tracelane"),
        ({"HOME": "/h"}, "/p", "/h/.cache/tracelane"),
        ({}, "/p", "/p/.cache/tracelane"),
        ({"HOME": ""}, "/p", "/p/.cache/tracelane"),
        ({}, None, None),
    ],
)
def test_the_cache_is_where_the_system_says(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], entry: str | None, expected: str | None
) -> None:
    """XDG_CACHE_HOME, HOME, the passwd entry, in this order; an unknown uid without HOME has none."""
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    known = SimpleNamespace(pw_dir=entry)
    monkeypatch.setattr(pwd, "getpwuid", no_passwd_entry if entry is None else lambda _: known)
    assert cache_root() == (None if expected is None else Path(expected))


def test_no_home_and_no_passwd_entry_still_opens(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A container with an arbitrary uid gets a private temporary folder, and is told."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", no_passwd_entry)
    trace = open_trace([trace_file])
    folder = trace.indexes[0].folder
    assert len(trace.lanes) == 1 and "--index-dir" in trace.sources[0].notes[0]
    assert folder.parent.stat().st_mode & 0o077 == 0


def test_an_unwritable_cache_falls_back_and_says_so(trace_file: Path, home: Path) -> None:
    """Where the cache's location is taken by something unwritable the trace opens from a temporary folder."""
    (home / ".cache").write_text("a file, not a folder", encoding="utf-8")
    trace = open_trace([trace_file])
    assert len(trace.lanes) == 1 and "cannot be written" in trace.sources[0].notes[0]


def test_a_cache_that_cannot_even_be_looked_into(
    trace_file: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where asking for the cache's location itself fails, as below another's home, the trace still opens."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ("long" * 100)))  # refused by the system, also to root
    trace = open_trace([trace_file])
    assert len(trace.lanes) == 1 and "cannot be written" in trace.sources[0].notes[0]
    assert list_cache() == [] and clear_cache() == (0, 0, 0)


def test_nowhere_to_write_is_one_clear_line(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any writable folder the error names the way out."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(cache, "_trouble_writing", lambda *_, **__: "Read-only file system")
    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(CacheError, match="--index-dir"):
        open_trace([trace_file])


# -- coming back ---------------------------------------------------------------------------------------------


def test_reopening_does_not_read_the_trace(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time only the fingerprint's two ends of the file are looked at."""
    first = open_trace([trace_file])
    opens: list[str] = []
    monkeypatch.setattr(Source, "open", lambda self, offset=None: opens.append(self.path))
    monkeypatch.setattr(indexing, "_build", lambda *_: pytest.fail("indexed again"))
    second = open_trace([trace_file])
    assert opens == [] and second.indexes[0].folder == first.indexes[0].folder


@pytest.mark.parametrize("keep_time", [False, True])
def test_a_changed_trace_is_indexed_again(tmp_path: Path, keep_time: bool) -> None:
    """Another content of the same size is seen by its time, or by its ends where the time was kept."""
    path = write_slices(tmp_path / "t.json", name="aa")
    stamp = path.stat().st_mtime_ns
    assert open_trace([path]).name(open_trace([path]).row(0, 0), 0) == "aa"
    write_slices(path, name="bb")
    if keep_time:
        os.utime(path, ns=(stamp, stamp))
    trace = open_trace([path])
    assert trace.name(trace.row(0, 0), 0) == "bb"


def test_a_damaged_index_is_built_anew(trace_file: Path) -> None:
    """A cut column or manifest in the cache costs a rebuild, not an error."""
    folder = open_trace([trace_file]).indexes[0].folder
    for name in (MANIFEST, "slices.start.i8"):
        (folder / name).write_bytes((folder / name).read_bytes()[:-8])
        assert len(open_trace([trace_file]).lanes) == 1


def test_the_same_file_under_another_name_shares_its_index(trace_file: Path) -> None:
    """A moved or linked trace is the same trace; its arguments are read from where it is now."""
    first = open_trace([trace_file])
    other = trace_file.with_name("other.json")
    trace_file.rename(other)
    second = open_trace([other])
    assert second.indexes[0].folder == first.indexes[0].folder
    assert second.sources[0].path == str(other) and second.event_arguments(0, 3).problem is None


# -- failing -------------------------------------------------------------------------------------------------


def nothing_left(root: Path) -> bool:
    left = [p.name for p in root.glob("**/v*/*") if not p.name.startswith(cache.LOCK)]
    return not committed(root) and left == []


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_and_leaves_nothing(
    trace_file: Path, home: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """When a column cannot be written the error says so in one line, and no half index stays."""

    def full(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("tracelane.core.index.build._write_file", full)
    with pytest.raises(CacheError) as caught:
        open_trace([trace_file])
    assert "no space left" in str(caught.value) and "\n" not in str(caught.value)
    assert nothing_left(home)


LIMITED = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
from tracelane.core import open_trace
from tracelane.core.base.errors import CacheError
try:
    open_trace([sys.argv[1]])
except CacheError as error:
    print(error)
"""


def test_writes_that_really_fail_are_told(tmp_path: Path, home: Path) -> None:
    """With a system that refuses large files the build ends with the same line and leaves nothing."""
    path = write_slices(tmp_path / "large.json", 20000)
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, encoding="utf-8", check=False
    )
    assert ended.stdout.startswith("no space left in ") and ended.stdout.count("\n") == 1, ended.stderr
    assert nothing_left(home)


def test_cancelling_leaves_nothing(trace_file: Path, home: Path) -> None:
    """Cancelled reading raises Cancelled and leaves no folder behind."""
    with pytest.raises(Cancelled):
        open_trace([trace_file], cancelled=lambda: True)
    assert nothing_left(home)


KILLED = """
import os, sys, signal
import tracelane.core.index.build as build
from tracelane.core import open_trace
real = build._write_file
def die(path, raw):
    if path.name == "manifest.json":
        print("writing", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    real(path, raw)
build._write_file = die
open_trace([sys.argv[1]])
"""


def test_a_killed_build_is_never_opened_and_is_swept(trace_file: Path, home: Path) -> None:
    """What a killed process left is not taken for an index, and goes when the next one builds."""
    died = subprocess.run(
        [sys.executable, "-c", KILLED, str(trace_file)], capture_output=True, encoding="utf-8", check=False
    )
    assert died.returncode == -signal.SIGKILL and died.stdout == "writing\n"
    left = list(home.glob(f"**/{cache.BUILDING}*"))
    assert left and not committed(home) and list_cache() == []
    trace = open_trace([trace_file])
    assert len(trace.lanes) == 1 and not list(home.glob(f"**/{cache.BUILDING}*"))


OPEN = """
import sys, time
from tracelane.core import open_trace
import tracelane.core.index.indexing as indexing
real = indexing._build
def slow(*args):
    print("built", flush=True)
    time.sleep(0.7)
    real(*args)
indexing._build = slow
trace = open_trace([sys.argv[1]])
print(len(trace.lanes), trace.indexes[0].read_report["slices"])
"""


@pytest.mark.slow
def test_two_processes_at_once_build_one_index(trace_file: Path, home: Path) -> None:
    """The second waits for the first and opens what it built; both show the trace."""
    both = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, str(trace_file)], stdout=subprocess.PIPE, encoding="utf-8"
        )
        for _ in range(2)
    ]
    said = sorted(process.communicate(timeout=PATIENCE_S)[0] for process in both)
    assert said == ["1 50\n", "built\n1 50\n"]
    assert len(committed(home)) == 1


def test_a_waiting_process_can_be_cancelled(trace_file: Path) -> None:
    """Waiting for another builder ends when asked to."""
    location = locate({"size": 1})
    with location.exclusive():
        begin = time.monotonic()
        with pytest.raises(Cancelled), location.exclusive(lambda: time.monotonic() - begin > 0.2):
            pass


# -- listing and clearing ------------------------------------------------------------------------------------


def test_who_waited_for_a_lock_that_was_removed_locks_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index is removed with its locks while one process builds it and a second one waits: the second one
    keeps a third one out, as the third keeps out others.
    """
    location = locate({"size": 5})
    refused, entered, leave = threading.Event(), threading.Event(), threading.Event()
    try_lock = cache._try_lock

    def tried(descriptor: int, how: int) -> bool:
        is_locked = try_lock(descriptor, how)
        if not is_locked:
            refused.set()
        return is_locked

    def wait_and_hold() -> None:
        with location.exclusive():
            entered.set()
            leave.wait(PATIENCE_S)

    monkeypatch.setattr(cache, "_try_lock", tried)
    waiting = threading.Thread(target=wait_and_hold)
    with location.exclusive():
        waiting.start()
        assert refused.wait(PATIENCE_S)
        location.lock_file.with_name(f"{location.lock_file.name}.build").unlink()
    try:
        assert entered.wait(PATIENCE_S)
        with pytest.raises(Cancelled), location.exclusive(lambda: True):
            pass
    finally:
        leave.set()
        waiting.join(PATIENCE_S)


def test_of_two_builders_at_once_the_last_one_stays(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another index is put in the place between the look there and one's own: it gives way, whole."""
    open_trace(trace_file).close()
    (entry,) = list_cache()
    location, others = IndexLocation(entry.folder), [entry.folder.with_name("other")]
    shutil.copytree(entry.folder, others[0])
    doom = cache._doom

    def doomed(folder: Path) -> Path | None:
        gone = doom(folder)
        if others:
            os.rename(others.pop(), folder)
        return gone

    monkeypatch.setattr(cache, "_doom", doomed)
    with location.building() as folder:
        shutil.copytree(entry.folder, folder, dirs_exist_ok=True)
        (folder / "mine").touch()
    assert not others and (entry.folder / "mine").exists() and location.exists()
    assert {one.name for one in entry.folder.parent.iterdir() if not one.name.startswith(cache.LOCK)} == {
        entry.key
    }


def test_the_cache_is_listed_and_cleared(tmp_path: Path, home: Path) -> None:
    """Each index is listed with its trace; clearing removes all that nobody reads."""
    paths = [write_slices(tmp_path / f"t{i}.json", 10 + i) for i in range(3)]
    traces = [open_trace([path]) for path in paths]
    entries = list_cache()
    assert {entry.path for entry in entries} == {str(path) for path in paths}
    assert {entry.slices for entry in entries} == {10, 11, 12}
    assert all(entry.bytes > 0 and entry.current for entry in entries)
    assert [entry.in_use for entry in entries] == [True] * 3
    traces[0].close()
    traces[1].close()
    assert clear_cache()[0] == 2
    assert [entry.path for entry in list_cache()] == [str(paths[2])]
    assert clear_cache()[2] == 1
    assert traces[2].slice_at(traces[2].row(0, 0), 1) is not None
    traces[2].close()
    removed, size, remaining = clear_cache()
    assert (removed, remaining) == (1, 0) and size > 0 and nothing_left(home)


def test_clearing_by_age_and_of_other_formats(trace_file: Path) -> None:
    """Only what was not opened for so long goes; indexes of other formats are listed as not current."""
    open_trace([trace_file]).close()
    assert clear_cache(older_than=3600)[0] == 0
    folder = list_cache()[0].folder
    old = folder.parent.parent / "v0-old" / folder.name
    shutil.copytree(folder, old)
    os.utime(old, (1, 1))
    assert sorted(entry.current for entry in list_cache()) == [False, True]
    assert clear_cache(older_than=3600)[0] == 1
    assert [entry.current for entry in list_cache()] == [True]


def test_an_own_folder_is_used(trace_file: Path, home: Path, tmp_path: Path) -> None:
    """--index-dir keeps everything there and nothing in the cache."""
    trace = open_trace([trace_file], index_dir=tmp_path / "mine")
    assert trace.indexes[0].folder.is_relative_to(tmp_path / "mine") and not committed(home)
    assert len(list_cache(tmp_path / "mine")) == 1 and list_cache() == []


def test_keys_tell_fingerprints_apart() -> None:
    """The key depends on every part of the fingerprint and on nothing else."""
    one = {"size": 1, "mtime_ns": 2, "head": "a", "tail": "b"}
    assert index_key(one) == index_key(dict(reversed(one.items())))
    assert len({index_key({**one, key: 9}) for key in one}) == 4


def test_readers_keep_an_index_that_is_replaced(trace_file: Path) -> None:
    """An index replaced by force stays readable to whoever had it open, columns not yet mapped included."""
    first = open_trace([trace_file]).indexes[0]
    assert isinstance(first, Index)
    open_trace([trace_file], IndexOptions(force=True))
    assert first.column("slices.name").shape == first.column("slices.start").shape == (50,)


# -- how large, and whose ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", None),
        ("0", 0),
        ("500", 500),
        ("2k", 2048),
        ("1.5 MB", 1_572_864),
        ("20GiB", 20 << 30),
        ("1T", 1 << 40),
        ("none", UNLIMITED),
    ],
)
def test_the_limit_is_read(monkeypatch: pytest.MonkeyPatch, text: str, size: int | None) -> None:
    """TRACELANE_CACHE_LIMIT takes bytes, the usual units, none; nothing leaves it to the settings."""
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", text)
    assert cache_limit() == size


def test_the_settings_limit_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word of the environment the settings count, then the default; that is for the cache alone."""
    root = cache_root()
    assert root is not None
    assert (limit_of(root), limit_of(tmp_path)) == (DEFAULT, UNLIMITED)
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "tracelane" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('[cache]\nlimit = "3MiB"\n', encoding="utf-8")
    assert limit_of(root) == limit_of(tmp_path) == 3 << 20
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", "1k")
    assert limit_of(root) == 1024
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", "")
    settings.write_text('[cache]\nlimit = "lots"\n', encoding="utf-8")
    assert limit_of(root) == DEFAULT
    settings.write_text("[cache", encoding="utf-8")
    assert limit_of(root) == DEFAULT


def test_a_limit_that_is_no_size_is_told(trace_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong size is a line that says how to write one, before anything is built."""
    monkeypatch.setenv("TRACELANE_CACHE_LIMIT", "lots")
    with pytest.raises(UsageError, match="no size: write 500M"):
        open_trace(trace_file)
    assert not list_cache()


def test_what_was_opened_longest_ago_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a new index the oldest ones go until the rest fits, which is told; what is open or was opened
    within the last hour stays.
    """
    opened = [open_trace(write_slices(tmp_path / f"{n}.json", 50 + n)) for n in range(5)]
    keys = [trace.indexes[0].folder.name for trace in opened]
    for age, trace in zip((50_000, 40_000, 30_000, 20_000, 10), opened):
        os.utime(trace.indexes[0].folder, (time.time() - age,) * 2)
    for trace in opened[1:]:
        trace.close()
    one_index = max(entry.bytes for entry in list_cache())
    options = IndexOptions(cache_limit=4 * one_index + one_index // 2)
    newest = open_trace(write_slices(tmp_path / "new.json", 60), options)
    left = {entry.key for entry in list_cache()}
    assert left == {keys[0], keys[3], keys[4], newest.indexes[0].folder.name}  # 0 is open, 1 and 2 went
    assert [Path(one.path).name for one in evicted()] == ["1.json", "2.json"]
    assert all(0 < one.bytes <= one_index for one in evicted())
    (event,) = newest.indexes[0].events
    assert "1.json and 1 more" in event and "removed" in event and event in newest.sources[0].notes
    assert not opened[0].indexes[0].events


@pytest.mark.parametrize("used", ["now", "long ago"])
def test_what_would_not_fit_is_refused_before_it_is_built(tmp_path: Path, used: str) -> None:
    """An index larger than the limit, or than what fresh ones leave of it, is not built, and nothing goes."""
    first = open_trace(write_slices(tmp_path / "first.json", 50))
    size = list_cache()[0].bytes
    first.close()
    limit = 1000 if used == "long ago" else size + 1000
    if used == "long ago":
        os.utime(first.indexes[0].folder, (0, 0))
    with pytest.raises(CacheError, match=r"second\.json would take about .*--cache-limit.*--index-dir"):
        open_trace(write_slices(tmp_path / "second.json", 50), IndexOptions(cache_limit=limit))
    assert len(list_cache()) == 1
    assert open_trace(tmp_path / "second.json", IndexOptions(cache_limit=UNLIMITED)).indexes


def test_a_full_disk_is_told_before_anything_is_built(
    trace_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the disk has less left than the index takes, the cache is named, and what to do."""
    usage = shutil.disk_usage("/")._replace(free=100)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(CacheError, match=r"tracelane has 100 B left: free some \(tracelane cache clear"):
        open_trace(trace_file)
    assert not list_cache()


def test_an_index_of_the_other_byte_order_is_rebuilt(trace_file: Path) -> None:
    """An index that another machine wrote, every number the other way round, is rebuilt, not read."""
    first = open_trace(trace_file)
    folder, starts = first.indexes[0].folder, first.indexes[0].column("slices.start").tolist()
    manifest = json.loads((folder / MANIFEST).read_bytes())
    first.close()
    for name, entry in manifest["columns"].items():
        path = folder / f"{name}.{entry['dtype']}"
        if int(entry["length"]):
            np.fromfile(path, entry["dtype"]).byteswap().tofile(path)
    manifest["byte_order"] = "big" if sys.byteorder == "little" else "little"
    manifest["checksum"] = checksum_of(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CacheError, match="another byte order"):
        Index.open(folder)
    again = open_trace(trace_file)
    assert again.indexes[0].folder == folder
    assert again.indexes[0].manifest["byte_order"] == sys.byteorder
    assert again.indexes[0].column("slices.start").tolist() == starts


def test_a_folder_is_never_swept_while_its_writer_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder whose writer's file appears between two looks at it is not taken for abandoned."""
    building = tmp_path / f"{cache.BUILDING}key-new"
    building.mkdir()
    look = cache.in_use

    def writer_comes(path: Path) -> bool:
        is_used = look(path)
        (building / cache.WRITER).touch()
        return is_used

    monkeypatch.setattr(cache, "in_use", writer_comes)
    cache.sweep(tmp_path)
    assert building.is_dir()
