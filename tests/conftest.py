"""Fixtures for all tests: nobody's cache, config or terminal is touched."""

from __future__ import annotations

import atexit
import gc
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.flaky import LIST, flaky_tests, pardon

# As the commands do for themselves: nothing needs the threads that numpy would start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No test depends on how fast the machine is. Each run sees the same examples, so that no change is held up by
# what it did not bring; `--hypothesis-profile random` looks at others, as the weekly job does.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("random"), derandomize=True, database=None)
settings.load_profile("same")


COLLECTING = (20_000, 50, 10)
"""When the collector runs while tests do: as often as Python has it, it took a seventh of the time of the
viewer's tests, as each App leaves many objects that refer to each other.
"""
IN_MEMORY = Path("/dev/shm")
MIN_ROOM = 8 << 30
"""Bytes, four times what `make test` writes."""
OF_TESTS = "tests-of-"
"""How the folder there is called, before the number of the process that made it."""


def pytest_configure() -> None:
    """Take Ctrl+C again where the tests were started in the background, and write to memory where there is
    room: most tests index small files, and a file system on a disk takes as long for that as all else.

    A shell ignores Ctrl+C there, and so would each process that a test starts.
    """
    gc.set_threshold(*COLLECTING)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "TMPDIR" not in os.environ and _has_room_in_memory():
        _remove_memory_of_killed()
        folder = IN_MEMORY / f"{OF_TESTS}{os.getpid()}"
        folder.mkdir(mode=0o700)
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # it is looked for again


def pytest_unconfigure() -> None:
    """Give the memory back, whatever failed; multiprocessing removes what it made there afterwards."""
    folder = IN_MEMORY / f"{OF_TESTS}{os.getpid()}"
    with suppress(OSError):
        for entry in folder.iterdir():
            if not entry.name.startswith("pymp-"):
                shutil.rmtree(entry, ignore_errors=True) if entry.is_dir() else entry.unlink()
        folder.rmdir()


def _remove_memory_of_killed() -> None:
    """Remove the folders in memory of processes that ran tests and are no more."""
    with suppress(OSError):
        for folder in IN_MEMORY.glob(f"{OF_TESTS}*"):
            pid = folder.name.removeprefix(OF_TESTS)
            if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
                shutil.rmtree(folder, ignore_errors=True)


def _has_room_in_memory() -> bool:
    """Tell whether there is a file system in memory that has room and runs programs, and memory for it."""
    try:
        room = os.statvfs(IN_MEMORY)
        free = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    except OSError:
        return False
    is_writable = os.access(IN_MEMORY, os.W_OK | os.X_OK) and not room.f_flag & os.ST_NOEXEC
    known = 0 if free is None else int(free[1]) << 10
    return is_writable and min(room.f_bavail * room.f_frsize, known) >= MIN_ROOM


@pytest.hookimpl(tryfirst=True)  # before some are left out by their marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Pardon what tests/flaky.txt lists."""
    pardon(items, flaky_tests(LIST.read_text(encoding="utf-8")))


def pytest_collection_finish() -> None:
    """Leave what was collected out of later looks for garbage: thousands of tests refer to each other."""
    gc.freeze()


MAX_OPEN = 100
"""Files that tests may leave open until garbage is looked for: most systems allow a process 1,024."""


@pytest.fixture(scope="session")
def _open_files() -> list[int]:
    """How many files were open when garbage was looked for last: those of traces that many tests share."""
    return [0]


@pytest.fixture(autouse=True)
def _few_open_files(_open_files: list[int]) -> Iterator[None]:
    """Close the files of traces that nobody looks at any more, before there are too many of them. It takes as
    long as many tests, so it is done once they are MAX_OPEN more than the last time.
    """
    yield
    with suppress(OSError):  # where there is no such list
        if len(os.listdir("/proc/self/fd")) > _open_files[0] + MAX_OPEN:
            gc.collect()
            _open_files[0] = len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="session")
def corpus_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index folder for the whole run, whichever process: each corpus file is indexed once."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "indexes"
    shared.mkdir(exist_ok=True)
    return shared


MAX_NAME = 30
"""Characters of a test's name in the name of its folder."""


def new_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """Return a new folder; `mktemp` would look through those of all tests before, for the next number."""
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=factory.getbasetemp()))


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the test's own, in place of pytest's."""
    return new_folder(tmp_path_factory, re.sub(r"\W", "_", request.node.name)[:MAX_NAME])


STARTED = ("state", "tracelane", "started")
"""What a home has: what is said at the first start has a test of its own."""


@pytest.fixture(scope="session")
def _unused_homes() -> list[Path]:
    """Homes that no test has written to: most tests leave theirs as it was."""
    return []


def is_unused(home: Path) -> bool:
    return [*home.rglob("*")] == [home.joinpath(*STARTED[:depth]) for depth in (1, 2, 3)]


@pytest.fixture(autouse=True)
def _own_home(
    _unused_homes: list[Path], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if _unused_homes:
        home = _unused_homes.pop()
    else:
        home = new_folder(tmp_path_factory, "home")
        home.joinpath(*STARTED[:-1]).mkdir(parents=True)
        home.joinpath(*STARTED).touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
    monkeypatch.setenv("TEXTUAL_ANIMATIONS", "none")
    for name in ("NO_COLOR", "SSH_CONNECTION", "COLORTERM", "COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("locale.getencoding", lambda: "utf-8")  # what a screen can show, whatever the locale
    yield
    if is_unused(home):
        _unused_homes.append(home)


@pytest.fixture
def home(_own_home: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home below the test's own folder, with an empty cache where it is by default."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return folder


@pytest.fixture(autouse=True)
def _garbage_is_looked_for() -> Iterator[None]:
    """Undo what a command sets for a process of its own: traces that a test leaves would fill the memory."""
    yield
    gc.set_threshold(*COLLECTING)
    atexit.unregister(gc.freeze)
