"""Opening a large trace on a terminal: how far it is read, and nothing left behind by quitting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.test_indexing import trace_file
from tests.corpus import thinned
from tests.tui.cli_process import on_terminal, tracelane
from tests.waiting import wait_until
from tracelane.core.index.cache import BUILDING
from tracelane.core.index.indexing import WORTH_IT
from tracelane.core.index.store import Index

pytestmark = pytest.mark.slow

EVENTS = 60_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = trace_file(tmp_path_factory.mktemp("large"), EVENTS, padding=240)
    assert path.stat().st_size > WORTH_IT
    return path


def processes_of(folder: Path) -> list[bytes]:
    """Return the command lines of processes that have to do with a folder's trace."""
    commands = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"tracelane.core" in (line := (entry / "cmdline").read_bytes()):
                opened = [str(file.readlink()) for file in (entry / "fd").iterdir()]
                if any(str(folder) in name for name in opened):
                    commands.append(line)
        except OSError:
            continue
    return commands


@pytest.mark.parametrize(
    ("keys", "code"), thinned([((("indexing", "\x03"), ("y/n", "y")), 130), ((("indexing", "q"),), 0)], 2)
)
def test_quitting_leaves_nothing(
    large: Path, tmp_path: Path, keys: tuple[tuple[str, str], ...], code: int
) -> None:
    """Q, and y after Ctrl+C, end the viewer while it indexes; no process and no half index is left."""
    played = on_terminal(
        *("view", str(large), "--index-dir", str(tmp_path)), play=keys, TRACELANE_DECODER="python"
    )
    assert played.code == code
    wait_until(lambda: not processes_of(tmp_path))
    assert not list(tmp_path.rglob(f"{BUILDING}*"))
    for manifest in tmp_path.rglob("manifest*"):  # a fast machine may have committed it just before
        Index.open(manifest.parent).close()


def test_the_trace_is_shown_when_it_is_there(large: Path, tmp_path: Path) -> None:
    """When the index is there the trace is shown in the same viewer."""
    played = on_terminal(
        "view",
        str(large),
        "--index-dir",
        str(tmp_path),
        play=(("details", "q"),),
        size=(120, 30),
    )
    assert played.code == 0
    assert list(tmp_path.rglob("manifest*")) and not list(tmp_path.rglob(f"{BUILDING}*"))


def test_the_only_trace_of_a_folder(large: Path, tmp_path: Path) -> None:
    """A folder with one trace in it opens as that trace does, and tells what else lies there."""
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / large.name).symlink_to(large)
    (folder / "next.pt.trace.json.tmp").write_text("{")
    played = on_terminal(
        "view",
        str(folder),
        "--index-dir",
        str(tmp_path / "index"),
        TRACELANE_DECODER="python",
        play=(("indexing", ""), ("still being written", "q")),
        size=(120, 30),
    )
    assert played.code == 0


def test_what_is_no_trace_is_said_after_leaving(tmp_path: Path) -> None:
    """A large file without events ends the viewer with a plain line and the exit code of unreadable input."""
    path = tmp_path / "no.json"
    path.write_text('{"a": "' + "x" * WORTH_IT + '", "b": ')
    played = on_terminal("view", str(path), "--index-dir", str(tmp_path / "index"))
    assert played.code == 2
    assert "no.json: no trace events in it" in played.screen
    assert not list(tmp_path.rglob(f"{BUILDING}*"))


def test_without_a_terminal_a_picture_is_printed(large: Path, tmp_path: Path) -> None:
    """Where stdout is no terminal the picture comes when the index is there."""
    done = tracelane("view", str(large), "--index-dir", str(tmp_path), "--width", "80", "--height", "12")
    assert done.returncode == 0
    assert f"{EVENTS:,} events" in done.stdout and "indexing" not in done.stdout + done.stderr
