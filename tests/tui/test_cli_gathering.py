"""Opening several large files on a terminal: those that are there first; quitting leaves nothing behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import thinned
from tests.events import complete
from tests.tui.cli_process import on_terminal
from tests.tui.test_cli_indexing import processes_of
from tests.waiting import wait_until
from tracelane.core.base import children as child
from tracelane.core.index.cache import BUILDING
from tracelane.core.index.choice import Choice
from tracelane.core.index.indexing import SEVERAL_WORTH_IT
from tracelane.core.index.opening import resolve_files
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.trace import Trace
from tracelane.tui.cli import viewing
from tracelane.tui.cli.viewing import open_files

pytestmark = pytest.mark.slow

RANKS = 6
EVENTS = 15_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("large") / "run"
    run.mkdir()
    events = [complete(7 * n, 3, f"op{n % 50}", args={"padding": " " * 200}) for n in range(EVENTS)]
    for rank in range(RANKS):
        info = {"rank": rank, "world_size": RANKS}
        path = run / f"rank{rank}.json"
        path.write_text(json.dumps({"distributedInfo": info, "traceEvents": events}))
    assert sum(path.stat().st_size for path in run.iterdir()) > SEVERAL_WORTH_IT
    return run


@pytest.mark.parametrize(
    ("keys", "code"),
    thinned(
        [
            ((("rank 5", "q"),), 0),  # has its place, once any rank has lanes
            ((("indexing", "q"),), 0),  # in the header, from the first screen on
            ((("of 6 ranks", "\x03"), ("y/n", "y")), 130),
        ],
        3,
    ),
)
def test_quitting_leaves_nothing(
    folder: Path, tmp_path: Path, keys: tuple[tuple[str, str], ...], code: int
) -> None:
    """Q, and y after Ctrl+C, end the viewer while it indexes; no process and no half index is left."""
    played = on_terminal(
        "view", str(folder), "--index-dir", str(tmp_path), play=keys, TRACELANE_DECODER="python"
    )
    assert played.code == code
    wait_until(lambda: not processes_of(tmp_path))
    assert not list(tmp_path.rglob(f"{BUILDING}*"))
    for manifest in tmp_path.rglob("manifest*"):  # some were there already
        Index.open(manifest.parent).close()


def test_all_are_shown_in_the_end(folder: Path, tmp_path: Path) -> None:
    """When all indexes are there the whole trace is shown in the same viewer, and the next time at once."""
    for _ in range(2):
        played = on_terminal(
            "view",
            str(folder),
            "--index-dir",
            str(tmp_path),
            play=((f"{RANKS} ranks in", "q"),),
            size=(120, 30),
        )
        assert played.code == 0
    assert "not indexed yet" not in played.screen
    assert len(list(tmp_path.rglob("manifest*"))) == RANKS and not list(tmp_path.rglob(f"{BUILDING}*"))


def test_without_processes_it_opens_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no process can be started the one that asks indexes, before the viewer starts."""
    monkeypatch.setattr(viewing, "take_keyboard", lambda: True)
    monkeypatch.setattr(child.sys, "executable", "/bin/false")
    files = resolve_files([folder], Choice(), tmp_path)
    opened = open_files(files, "run", IndexOptions(tmp_path))
    assert isinstance(opened, Trace) and len(opened.sources) == RANKS
