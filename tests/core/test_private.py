"""What others on the host may plant or read: the cache is for its owner alone, whatever lies in it."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.events import complete
from tests.rank_files import rank_files
from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.private import (
    FOREIGN,
    make_private_folder,
    open_private,
    read_private,
    read_sealed_json,
    sealed,
    unsealed,
    write_private,
    write_sealed_json,
)
from tracelane.core.export.marks import Mark, read_marks, read_named_marks, shelf, write_marks
from tracelane.core.index.cache import LOCK, cache_root, locate
from tracelane.core.index.cached import list_cache
from tracelane.core.index.store import Index
from tracelane.core.read.source import open_source
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.cli.viewer import first_start_notes
from tracelane.tui.session_log import SessionLog, default_log

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
SOMEBODY = 54321


@pytest.fixture
def trace_file(tmp_path: Path) -> Path:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps([complete(10 * n, 5, f"op{n % 3}") for n in range(40)]), encoding="utf-8")
    return path


@pytest.fixture(params=[0o000, 0o022, 0o777 if os.geteuid() == 0 else 0o077], ids=oct)
def _umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def root() -> Path:
    folder = cache_root()
    assert folder is not None
    return folder


def slices(trace: Trace) -> int:
    return int(trace.indexes[0].read_report["slices"])


@pytest.mark.usefixtures("_umask")
def test_modes_do_not_depend_on_the_umask(trace_file: Path) -> None:
    """All folders of the cache have mode 0700 and all files 0600: indexes, locks and what is derived."""
    trace = open_trace(trace_file)
    write_sealed_json(trace.indexes[0].folder / "derived" / "x.json", {"a": 1})
    paths = [root(), *root().rglob("*")]
    assert len(paths) > 30
    for path in paths:
        mode = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == mode, path


@pytest.mark.usefixtures("_umask")
def test_other_files_keep_the_umask(trace_file: Path, tmp_path: Path) -> None:
    """While an index is written, what other threads of the process write has the modes that its user set."""
    location = locate(dict(open_source(trace_file).fingerprint), tmp_path / "index")
    meanwhile, afterwards = tmp_path / "meanwhile", tmp_path / "afterwards"
    with pytest.raises(KeyboardInterrupt), location.building():
        meanwhile.touch()
        raise KeyboardInterrupt
    afterwards.touch()
    assert stat.S_IMODE(meanwhile.stat().st_mode) == stat.S_IMODE(afterwards.stat().st_mode)


@pytest.mark.usefixtures("_umask")
def test_folders_on_the_way_are_private(
    trace_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home without folders gets those of cache, data and state for its owner alone, whatever the umask."""
    home = tmp_path / "home"
    home.mkdir(0o700)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    trace = open_trace(trace_file)
    write_marks(shelf(trace, "marks"), [Mark(0, "x")])
    assert first_start_notes()
    log = default_log()
    assert log is not None
    SessionLog(log)
    paths = [path for path in home.rglob("*") if not path.is_symlink()]
    assert {"tracelane", "started", "viewer.log"} <= {path.name for path in paths}
    assert [path for path in paths if path.stat().st_mode & 0o077] == []


def test_a_cache_that_others_could_enter_is_closed(trace_file: Path) -> None:
    """Folders that an older version left open are for their owner alone again."""
    open_trace(trace_file)
    version = list_cache()[0].folder.parent
    root().chmod(0o755)
    version.chmod(0o777)
    other = trace_file.with_name("other.json")
    other.write_bytes(trace_file.read_bytes())
    open_trace(other)
    assert stat.S_IMODE(root().stat().st_mode) == stat.S_IMODE(version.stat().st_mode) == 0o700


@as_root
@pytest.mark.parametrize("what", ["index", "version"])
def test_an_index_of_another_user_is_not_used(trace_file: Path, what: str) -> None:
    """An index, or a folder with one, that somebody else owns counts as not there, and the trace opens."""
    folder = open_trace(trace_file).indexes[0].folder
    owned = folder if what == "index" else folder.parent
    os.chown(owned, SOMEBODY, SOMEBODY)
    trace = open_trace(trace_file)
    assert slices(trace) == 40
    assert FOREIGN in trace.sources[0].notes[0] and trace.sources[0].events == trace.sources[0].notes
    if what == "index":
        assert trace.indexes[0].folder == folder and folder.stat().st_uid == 0  # replaced by one of ours
        assert not open_trace(trace_file).sources[0].notes
    else:
        assert trace.indexes[0].folder != folder


@as_root
@pytest.mark.parametrize("what", ["indexes", "version"])
def test_indexes_of_another_user_are_said_once(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command over several files says it in one line; where ours took their place, the next is silent."""
    folder = rank_files(tmp_path / "ranks", 3)
    trace = open_trace(folder)
    owned = (
        [index.folder for index in trace.indexes] if what == "indexes" else [trace.indexes[0].folder.parent]
    )
    for path in owned:
        os.chown(path, SOMEBODY, SOMEBODY)
    assert main(["slices", str(folder), "--limit", "1"]) == 0
    assert capsys.readouterr().err.count(FOREIGN) == 1
    assert main(["slices", str(folder), "--limit", "1"]) == 0
    assert capsys.readouterr().err.count(FOREIGN) == (what == "version")


def test_a_link_in_the_place_of_an_index_is_not_followed(trace_file: Path, tmp_path: Path) -> None:
    """A planted link to another folder is replaced by an index, and what it leads to stays as it is."""
    folder = open_trace(trace_file).indexes[0].folder
    elsewhere = tmp_path / "elsewhere"
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)
    before = sorted(path.name for path in elsewhere.iterdir())
    trace = open_trace(trace_file)
    assert slices(trace) == 40 and not folder.is_symlink()
    assert sorted(path.name for path in elsewhere.iterdir()) == before


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_planted_lock_is_neither_followed_nor_waited_for(
    trace_file: Path, tmp_path: Path, kind: str
) -> None:
    """Where something else lies in the location of a lock, indexing continues without it."""
    location = locate({"size": 1})
    source = open_trace(trace_file)
    key = source.indexes[0].folder.name
    source.close()
    target = tmp_path / "target"
    for name in (f"{LOCK}{key}", f"{LOCK}{key}.build"):
        lock = location.folder.parent / name
        lock.unlink(missing_ok=True)
        if kind == "link":
            lock.symlink_to(target)
        elif kind == "pipe":
            os.mkfifo(lock)
        else:
            lock.mkdir()
    trace_file.touch()  # same contents, another time: indexed anew
    assert slices(open_trace(trace_file)) == 40
    assert not target.exists()


@as_root
def test_marks_of_another_user_are_not_read(trace_file: Path) -> None:
    """Marks in a file or folder of somebody else are refused by name, and nothing is written there."""
    trace = open_trace(trace_file)
    path = shelf(trace, "marks")
    assert path is not None
    write_marks(path, [Mark(1, 2, "ours")])
    for owned in (path, path.parent):
        os.chown(owned, SOMEBODY, SOMEBODY)
        with pytest.raises(TracelaneError, match="belongs to another user"):
            if owned == path:
                read_marks(path)
            else:
                write_marks(path, [])
        os.chown(owned, 0, 0)
    assert read_marks(path) == (Mark(1, 2, "ours"),)


@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "device"])
def test_what_is_planted_in_the_place_of_marks_is_not_read(
    trace_file: Path, tmp_path: Path, kind: str
) -> None:
    """A link, pipe, device or folder there is refused at once; writing replaces a link, not its target."""
    path = shelf(open_trace(trace_file), "marks")
    assert path is not None
    make_private_folder(path.parent)
    target = tmp_path / "target"
    target.write_text('{"marks": []}', encoding="utf-8")
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(target if kind == "link" else "/dev/zero")
    with pytest.raises(TracelaneError, match="cannot be read: it is"):
        read_marks(path)
    if kind == "link":
        write_marks(path, [Mark(1, 2)])
        assert read_marks(path) == (Mark(1, 2),) and target.read_text(encoding="utf-8") == '{"marks": []}'


@pytest.mark.usefixtures("_umask")
def test_marks_are_for_their_owner_alone(trace_file: Path, tmp_path: Path) -> None:
    """Their folder has mode 0700 and their files 0600; a link in the location of the folder is refused."""
    path = shelf(open_trace(trace_file), "marks")
    assert path is not None
    write_marks(path, [Mark(1, 2)])
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700 and stat.S_IMODE(path.stat().st_mode) == 0o600
    path.parent.rename(tmp_path / "elsewhere")
    path.parent.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TracelaneError, match="cannot be written"):
        write_marks(path, [])


def test_marks_that_a_user_names_may_be_anybodys(tmp_path: Path) -> None:
    """Marks to import may be a link to somebody else's file; a pipe or device is refused at once."""
    (tmp_path / "marks.json").write_text(
        '{"marks": [{"start_ns": 5, "end_ns": 9, "text": "a"}]}', encoding="utf-8"
    )
    if os.geteuid() == 0:
        os.chown(tmp_path / "marks.json", SOMEBODY, SOMEBODY)
    (tmp_path / "link").symlink_to("marks.json")
    assert read_named_marks(tmp_path / "link") == (Mark(5, 9, "a"),)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
        with pytest.raises(TracelaneError, match=f"{path} cannot be read: it is a"):
            read_named_marks(path)


@as_root
def test_a_lock_that_another_user_holds_holds_nobody_up(trace_file: Path) -> None:
    """A lock file of somebody else, held for good, does not keep an index from being built."""
    folder = open_trace(trace_file).indexes[0].folder
    lock = folder.parent / f"{LOCK}{folder.name}.build"
    os.chown(lock, SOMEBODY, SOMEBODY)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        (folder / "rows.table").unlink()
        assert slices(open_trace(trace_file)) == 40


def test_files_of_ours_alone_are_read(tmp_path: Path) -> None:
    """Neither a link, a pipe, a folder nor a file longer than it can be is read."""
    folder = tmp_path / "private"
    make_private_folder(folder)
    write_private(folder / "file", b"12345")
    assert read_private(folder / "file", 5) == b"12345"
    (folder / "link").symlink_to(folder / "file")
    os.mkfifo(folder / "pipe")
    for name, most in (("file", 4), ("link", 99), ("pipe", 99), (".", 99)):
        with pytest.raises(OSError):
            read_private(folder / name, most)
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]
    (tmp_path / "elsewhere").symlink_to(folder)
    with pytest.raises(OSError):
        make_private_folder(tmp_path / "elsewhere")


@as_root
def test_what_another_user_owns_is_refused(tmp_path: Path) -> None:
    """A folder or file that is somebody else's is refused by name."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "file").touch()
    for name in ("theirs", "file"):
        os.chown(tmp_path / name, SOMEBODY, SOMEBODY)
    with pytest.raises(PermissionError, match="belongs to another user"):
        make_private_folder(tmp_path / "theirs")
    with pytest.raises(PermissionError, match="belongs to another user"):
        open_private(tmp_path / "file")


@pytest.mark.parametrize("at", range(14))
def test_a_sealed_value_is_what_was_written_or_none(tmp_path: Path, at: int) -> None:
    """Any changed byte is found; a whole value comes back as it was."""
    path = tmp_path / "folder" / "value.json"
    write_sealed_json(path, [1, 22])
    assert read_sealed_json(path) == [1, 22]
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="checksum"):
        read_sealed_json(path)
    with pytest.raises(ValueError, match="checksum"):
        unsealed(sealed(b"x")[:-1])


def test_deep_json_is_damage(tmp_path: Path) -> None:
    """A value nested too deeply to be read is an error with a sentence, in an index's manifest, too."""
    deep = b"[" * 100_000 + b"]" * 100_000
    path = tmp_path / "deep"
    path.write_bytes(sealed(deep))
    with pytest.raises(ValueError, match="nested too deeply"):
        read_sealed_json(path)
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "manifest.json").write_bytes(deep)
    with pytest.raises(Exception, match="damaged") as caught:
        Index.open(tmp_path / "index")
    assert "\n" not in str(caught.value)
