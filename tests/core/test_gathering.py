"""Several files whose indexes come one by one, and the trace of those that are there."""

from __future__ import annotations

import json
import os
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.rank_files import gathering_of, rank_file, rank_files
from tests.waiting import children_of, is_alive
from tracelane.core.base.children import ChildrenError
from tracelane.core.base.errors import TracelaneError, UnreadableError
from tracelane.core.index.opening import Gathering
from tracelane.core.index.options import IndexOptions
from tracelane.core.trace import open_trace, trace_of_opened, trace_so_far

pytestmark = pytest.mark.slow

WAIT_S = 0.1


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracelane.core.index.opening.SEVERAL_WORTH_IT", 1)


def begun(*paths: Path, index_dir: Path, force: bool = False) -> Gathering | None:
    return gathering_of(paths, IndexOptions(index_dir, force=force))


def done(gathering: Gathering | None) -> Gathering:
    """Wait until nothing else will come."""
    assert gathering is not None
    with closing(gathering):
        gathering.await_running()
        while not gathering.poll(WAIT_S):
            pass
        assert not any(map(is_alive, gathering._indexing.pids))  # nobody waits for work that will not come
    return gathering


@pytest.mark.slow
def test_all_come_and_make_the_trace_that_opening_makes(tmp_path: Path) -> None:
    """Indexes come from processes, and together they are what opening the folder gives."""
    folder = rank_files(tmp_path / "run", 5, late_us=30)
    gathering = done(begun(folder, index_dir=tmp_path / "index"))
    assert sorted(gathering.ready) == [0, 1, 2, 3, 4] and not gathering.failed
    progress = gathering.progress
    assert progress.done == progress.total == sum(path.stat().st_size for path in folder.iterdir())
    trace = trace_of_opened(gathering.all())
    direct = open_trace(folder, index_dir=tmp_path / "index")
    assert [index.folder for index in trace.indexes] == [index.folder for index in direct.indexes]
    assert trace.clocks == direct.clocks and trace.sources[0].notes == direct.sources[0].notes
    assert begun(folder, index_dir=tmp_path / "index") is None
    assert len(done(begun(folder, index_dir=tmp_path / "index", force=True)).ready) == 5


def test_what_is_indexed_is_there_at_once(tmp_path: Path) -> None:
    """Only the files that have no index yet are waited for."""
    folder = rank_files(tmp_path / "run", 3)
    open_trace(folder / "rank1.json", index_dir=tmp_path / "index").close()
    gathering = begun(folder, index_dir=tmp_path / "index")
    assert gathering is not None and gathering.ready == [1]
    assert sorted(done(gathering).ready) == [0, 1, 2] and gathering.ready[0] == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": "x", "b": ', "rank1.json: no trace events"),
        ('{"some": "configuration"}', "rank1.json: no trace events"),
        ("<html>", "rank1.json: is an HTML page"),
    ],
)
def test_what_is_no_trace_is_passed_by(tmp_path: Path, text: str, why: str) -> None:
    """In a folder a file that is no trace is named, and the others open."""
    folder = rank_files(tmp_path / "run", 3)
    (folder / "rank1.json").write_text(text, encoding="utf-8")
    gathering = done(begun(folder, index_dir=tmp_path / "index"))
    assert [gathering.members[number].rank for number in sorted(gathering.ready)] == [0, 2]
    trace = trace_of_opened(gathering.all())
    assert [member.rank for member in trace.members] == [0, 2]
    assert any(note.startswith("skipped ") and why in note for note in trace.sources[0].notes)


def test_where_nothing_is_a_trace(tmp_path: Path) -> None:
    """Where no file has an index in the end, why not is raised."""
    folder = tmp_path / "run"
    folder.mkdir()
    for rank in range(2):
        (folder / f"rank{rank}.json").write_text('{"a": "x", "b": ', encoding="utf-8")
    with pytest.raises(UnreadableError, match="no trace events"):
        done(begun(folder, index_dir=tmp_path / "index")).all()


def test_what_was_named_must_be_there(tmp_path: Path) -> None:
    """A file that was named and cannot be opened is an error at once, before any process starts."""
    rank_files(tmp_path, 2)
    (tmp_path / "rank1.json").write_text("<html>", encoding="utf-8")
    before = set(children_of(os.getpid()))
    with pytest.raises(TracelaneError, match=r"rank1\.json"):
        begun(tmp_path / "rank0.json", tmp_path / "rank1.json", index_dir=tmp_path / "index")
    assert not set(children_of(os.getpid())) - before


def test_what_is_left_to_the_one_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Little work is not worth processes."""
    folder = rank_files(tmp_path / "run", 2)
    monkeypatch.setattr("tracelane.core.index.opening.SEVERAL_WORTH_IT", 1 << 30)
    assert begun(folder, index_dir=tmp_path / "index") is None


@pytest.mark.parametrize("executable", ["/nonexistent/python", "/bin/false"])
def test_without_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, executable: str) -> None:
    """Where no process can be started this is told before anything is waited for."""
    folder = rank_files(tmp_path / "run", 2)
    monkeypatch.setattr(sys, "executable", executable)

    def begin() -> None:
        gathering = begun(folder, index_dir=tmp_path / "index")
        assert gathering is not None
        with closing(gathering):
            gathering.await_running()

    with pytest.raises(ChildrenError):
        begin()


def test_sources_keep_their_numbers(tmp_path: Path) -> None:
    """A lane has the same source and is drawn the same whatever else has come by then."""
    folder = rank_files(tmp_path / "run", 3)
    open_trace(folder / "rank1.json", index_dir=tmp_path / "index").close()
    gathering = begun(folder, index_dir=tmp_path / "index")
    assert gathering is not None
    before = trace_so_far(gathering)  # a picture of what is there by now
    lanes = [(lane.source, lane.title, lane.slices) for lane in before.lanes]
    assert len(before.sources) == 3 and lanes and all(source == 1 for source, _, _ in lanes)
    now = trace_so_far(done(gathering))
    assert [(lane.source, lane.title, lane.slices) for lane in now.lanes if lane.source == 1] == lanes
    assert {lane.source for lane in now.lanes} == {0, 1, 2}
    assert not now.missing and now.opening_span == open_trace(folder, index_dir=tmp_path / "index").span


@pytest.mark.parametrize("there", [(0, 1), (1, 2), (2,)])
def test_clocks_stand_as_stamped(tmp_path: Path, there: tuple[int, ...]) -> None:
    """While files are missing wall times alone set the clocks, and time is that of the first that is."""
    folder = tmp_path / "run"
    bases = (1_700_000_000_000_000_000, 1_700_000_000_000_500_000, 1_700_000_000_000_200_000)
    for rank, base in enumerate(bases):
        path = rank_file(folder, rank, 3, begin_us=100.0 + rank)
        path.write_text(
            json.dumps({**json.loads(path.read_text(encoding="utf-8")), "baseTimeNanoseconds": base}),
            encoding="utf-8",
        )
    for rank in there:
        open_trace(folder / f"rank{rank}.json", index_dir=tmp_path / "index").close()
    gathering = begun(folder, index_dir=tmp_path / "index")
    assert gathering is not None
    with closing(gathering):
        trace = trace_so_far(gathering)
    assert trace.missing == {0, 1, 2}.difference(there)
    offsets = [trace.clocks.offset(source) for source in there]
    assert offsets == [bases[source] - bases[there[0]] for source in there]


def test_the_first_window_grows_with_what_comes(tmp_path: Path) -> None:
    """The opening span is that of the files that are there."""
    folder = tmp_path / "run"
    for rank in range(3):
        rank_file(folder, rank, 3, begin_us=100.0 + 20_000 * rank)
    index_dir = tmp_path / "index"
    spans = []
    for rank in range(2):
        open_trace(folder / f"rank{rank}.json", index_dir=index_dir).close()
        gathering = begun(folder, index_dir=index_dir)
        assert gathering is not None
        with closing(gathering):
            spans.append(trace_so_far(gathering).opening_span)
    assert spans == [(100_000, 20_000_000), (100_000, 40_000_000)]
