"""Block stores are written beside the viewer, and leave nothing behind when it goes."""

from __future__ import annotations

import bz2
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import wait_until
from tracelane.core.index import blockstore as room
from tracelane.core.index.blockstore import SLOW, has_block_store, packing
from tracelane.core.index.cache import sweep
from tracelane.core.query.views import SliceId
from tracelane.core.trace import Trace, open_trace

WRITER = """
import sys, time
from pathlib import Path
from tracelane.core.base.private import make_private_folder
from tracelane.core.index.blockstore import NAME
from tracelane.core.index.cache import unfinished_folder
make_private_folder(Path(sys.argv[1]))
with unfinished_folder(Path(sys.argv[1]), NAME) as folder:
    (folder / "data").write_bytes(b"half")
    print(folder, flush=True)
    time.sleep(3600)
"""


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    path = tmp_path / "trace.json.bz2"
    events = [
        {
            "ph": "X",
            "name": f"op{i}",
            "pid": 1,
            "tid": 1,
            "ts": i,
            "dur": 1,
            "args": {"n": i, "text": "x" * 500},
        }
        for i in range(2000)
    ]
    path.write_bytes(bz2.compress(json.dumps({"traceEvents": events}).encode(), 1))
    return open_trace(path, index_dir=tmp_path / "indexes")


def test_arguments_become_quick(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the store is missing arguments come and say why they are slow; afterwards they are the same."""
    monkeypatch.setattr(room, "WORTH", 0)
    slice_id = SliceId(0, 1500)
    before = trace.arguments(slice_id)
    assert before.slow_reason == SLOW and before.begin["n"] == 1500
    with packing(trace.indexes):
        wait_until(lambda: has_block_store(trace.indexes[0]), "the block store")
    after = trace.arguments(slice_id)
    assert after.slow_reason is None and after.begin == before.begin


def test_what_a_killed_viewer_left_is_swept(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """After kill -9 half a store is never read, and goes when the next one is written."""
    monkeypatch.setattr(room, "WORTH", 0)
    derived = trace.indexes[0].folder / "derived"
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(derived)], stdout=subprocess.PIPE, encoding="utf-8"
    )
    assert writer.stdout is not None
    half = Path(writer.stdout.readline().strip())
    assert list(half.iterdir())
    sweep(derived)
    assert half.exists(), "it is being written"
    writer.kill()
    writer.communicate()
    assert not has_block_store(trace.indexes[0])
    with packing(trace.indexes):
        wait_until(lambda: has_block_store(trace.indexes[0]), "the block store")
    assert [path.name for path in derived.iterdir()] == [room.NAME]


def test_stopping_early_leaves_nothing_half(trace: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer that is closed at once leaves either a whole store or none."""
    monkeypatch.setattr(room, "WORTH", 0)
    with packing(trace.indexes):
        pass
    left = list((trace.indexes[0].folder / "derived").glob(".*"))
    assert left == []


def test_small_texts_are_not_worth_it(trace: Trace) -> None:
    """Nothing is started for a text that inflates in no time."""
    assert not room.worth_packing(trace.indexes[0])
