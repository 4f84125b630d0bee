"""A store in the viewer: a line per rank, the one waited for marked, Enter opens a rank and q comes back."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.events import complete
from tests.rank_files import rank_file, rank_files
from tests.store.test_store_tables import store_of
from tests.tui.cli_process import on_terminal, tracelane_here
from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.store.collect import collect, one_after_another, planned
from tracelane.core.store.groups import IDLE, LINE_CELLS, OTHER
from tracelane.core.store.opened import CaptureStore, open_store
from tracelane.core.store.picture import (
    WAITING,
    Lines,
    StoreAnswers,
    marked_ranks,
    opened_rank,
    picture_of_store,
    trace_path,
)
from tracelane.core.store.tables import STORE_TABLES, store_tables
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
LATE = 2


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Four ranks on two hosts, of which one comes 300 µs after the others to every collective."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(4):
        late = 300 if rank == LATE else 0
        events = [
            complete(1000 * n, 900, f"ProfilerStep#{n}", "user_annotation", pid=5, tid=5) for n in range(5)
        ]
        for n in range(5):
            events.append(complete(1000 * n + 100 + late, 500 - late, REDUCE, "kernel", pid=0, tid=7))
            events.append(complete(1000 * n + 700, 100, "gemm", "kernel", pid=0, tid=7))
        info = {"rank": rank, "world_size": 4}
        text = {"distributedInfo": info, "host_name": f"node{rank // 2}", "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(text), encoding="utf-8")
    return folder


def test_every_rank_has_a_line_and_the_one_waited_for_a_mark(traces: Path, tmp_path: Path) -> None:
    """Hosts are processes; what the others do while they wait is called so; steps stand on top."""
    store = open_store(str(store_of(traces, tmp_path / "store")))
    assert marked_ranks(store) == {LATE}
    trace = picture_of_store(store)
    assert [process.name for process in trace.processes] == ["steps of rank 0", "node1", "node0"]
    titles = [lane.title for lane in trace.lanes]
    assert titles == ["steps", "rank 2 ◀", "rank 3", "rank 0", "rank 1"]
    assert [trace.opens.get(lane.tid) for lane in trace.lanes] == [None, 2, 3, 0, 1]
    waiting = {
        lane.title
        for lane in trace.lanes
        for row in trace.rows(lane)
        if any("waits" in trace.name(row, at) for at in range(row.count))
    }
    assert waiting == {"rank 0", "rank 1", "rank 3"}
    assert len(trace.steps) == 5
    trace.close()


def test_tables_of_a_picture_speak_of_all_ranks(traces: Path, tmp_path: Path) -> None:
    """Analyses and findings come from the summaries, not from what is drawn; what needs traces says so."""
    store = open_store(str(store_of(traces, tmp_path / "store")))
    trace = picture_of_store(store)
    scope = Scope(trace)
    for name in STORE_TABLES:
        tables, stored = BY_NAME[name].run(scope), store_tables(store, name, {})
        assert list(tables.main.rows()) == list(stored.main.rows()) and len(tables.main)
    with pytest.raises(UsageError, match="ops needs traces"):
        BY_NAME["ops"].run(scope)
    assert isinstance(trace.answers, StoreAnswers)
    judged = trace.answers.findings()
    start, end = trace.span
    evidence = [each for finding in judged.findings for each in finding.evidence]
    assert evidence and all(each.slice is None for each in evidence)
    assert all(start <= each.start <= each.end <= end for each in evidence)
    trace.close()


def plain_runs(store: CaptureStore, number: int, cells: int) -> list[tuple[int, int, int, int]]:
    """Return what `Lines.runs` gives for one rank, cell by cell."""
    rank, offset = store.ranks[number], int(store.offsets[number])
    start, end = rank.span
    kinds, busy = (values.tolist() for values in rank.table("line").values())
    waiting = store.skew.waiting(store.skew.columns[number])
    runs: list[tuple[int, int, int, int]] = []
    for cell in range(cells):
        inside = range(-(-cell * LINE_CELLS // cells), -(-(cell + 1) * LINE_CELLS // cells))
        held = Counter(min(kinds[at], OTHER) for at in inside if busy[at] and kinds[at])
        kind = min(held, key=lambda kind: (-held[kind], kind)) if held else IDLE
        low, high = ((start + (end - start) * edge // cells + offset) for edge in (cell, cell + 1))
        waited = sum(
            max(0, min(to, high) - max(begin, low)) for begin, to in zip(waiting.starts, waiting.ends)
        )
        kind = WAITING if 2 * waited > high - low else kind
        if runs and runs[-1][1] == kind and runs[-1][3] == low:
            runs[-1] = (number, kind, runs[-1][2], high)
        elif kind != IDLE:
            runs.append((number, kind, low, high))
    return runs


@pytest.mark.slow
@pytest.mark.parametrize("cells", [512, 128, 100, 64])
def test_lines_of_ranks_are_those_of_each_alone(traces: Path, tmp_path: Path, cells: int) -> None:
    """Worked out for many ranks at once, as cell by cell: what runs longest, and where most is waiting."""
    store = open_store(str(store_of(traces, tmp_path / "store")))
    runs = list(Lines.of(store, range(4), cells).with_waiting(store.skew).runs())
    assert runs == [run for number in range(4) for run in plain_runs(store, number, cells)]
    assert {kind for _, kind, _, _ in runs} > {WAITING}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A store of four ranks in two tensor parallel groups."""
    folder = tmp_path / "pairs"
    for rank in range(4):
        path = rank_file(folder, rank, 4)
        text = json.loads(path.read_text(encoding="utf-8"))
        pair = [rank // 2 * 2, rank // 2 * 2 + 1]
        text["distributedInfo"]["pg_config"] = [{"pg_name": "1", "pg_desc": "mesh_tp", "ranks": pair}]
        path.write_text(json.dumps(text), encoding="utf-8")
    return store_of(folder, tmp_path / "store")


def test_ranks_are_grouped_by_their_parallel_layout(pairs: Path) -> None:
    """By tensor parallel groups where files tell them; where none tells it is said."""
    store = open_store(str(pairs))
    trace = picture_of_store(store, by="tp")
    assert [process.name for process in trace.processes[1:]] == ["TP ranks 0-1", "TP ranks 2-3"]
    trace.close()
    with pytest.raises(UsageError, match="no file says which ranks"):
        picture_of_store(store, by="pp")


@pytest.mark.slow
def test_a_picture_is_printed_where_there_is_no_terminal(traces: Path, tmp_path: Path) -> None:
    """With the notes on the rank that is waited for."""
    done = tracelane_here(str(store_of(traces, tmp_path / "store")), "--height", "20")
    assert done.returncode == 0
    assert "rank 3" in done.stdout and "rank 2 ◀: the others wait 4.5 ms for it" in done.stdout


@pytest.mark.slow
def test_enter_opens_the_rank_at_the_cursor_and_q_comes_back(traces: Path, tmp_path: Path) -> None:
    """Its own trace, in the viewer as ever; then all ranks again, and q leaves."""
    store = store_of(traces, tmp_path / "store")
    down = "\x1b[1;2B"
    play = (("Nothing selected", 3 * down + "\r"), ("thread 7", "q"), ("node1", "q"))
    played = on_terminal(str(store), play=play, size=(100, 50))
    assert played.code == 0


def test_a_rank_opens_from_its_index_or_its_trace(traces: Path, tmp_path: Path) -> None:
    """With an index in the store nothing else is needed; else the trace, where it lay when it was collected,
    or in a folder that is named; else one line.
    """
    folder = tmp_path / "store"
    plan = planned([str(traces)], str(folder), with_index=True)
    list(collect(plan, str(folder), one_after_another))
    store = open_store(str(folder))
    moved = traces.rename(tmp_path / "moved")
    trace = opened_rank(store, 1, tmp_path / "unpacked")
    assert [lane.slices for lane in trace.lanes] == [10, 5]
    assert "no such file" in str(trace.event_arguments(0, 3).problem)
    trace.close()
    trace = opened_rank(store, 1, tmp_path / "again", str(moved))
    assert trace.event_arguments(0, 3).problem is None
    trace.close()
    for index in (folder / "indexes").iterdir():
        index.unlink()
    with pytest.raises(UnreadableError, match=r"the trace of rank 1 is not there: name --traces"):
        opened_rank(store, 1, tmp_path / "none")
    trace = opened_rank(store, 1, tmp_path / "none", str(moved))
    assert [lane.slices for lane in trace.lanes] == [10, 5]
    trace.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["../secret.json", "/etc/passwd", "a/../../b", "", "a\0b", "x" * 9999])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    """A store that came from somebody else names no file outside of the traces' folder."""
    store = open_store(str(store_of(rank_files(tmp_path / "traces", 2), tmp_path / "store")))
    rank = store.ranks[0]
    hostile = type(rank)(rank.record, rank.shelf, rank.member, {**rank.facts, "name": name})
    with pytest.raises(UnreadableError, match="no name that a trace may have"):
        trace_path(store, hostile)


def test_the_path_in_a_stored_index_is_not_followed(traces: Path, tmp_path: Path) -> None:
    """An index that came from somebody else may name any file or URL as its source: where a trace lies is
    said by the store and by --traces alone. A damaged index is rebuilt from the trace.
    """
    folder = tmp_path / "store"
    list(collect(planned([str(traces)], str(folder), with_index=True), str(folder), one_after_another))
    for original in (traces, folder):
        shutil.copytree(original, tmp_path / "other" / original.name)
    copied = open_store(str(tmp_path / "other" / "store"))
    trace = opened_rank(copied, 1, tmp_path / "unpacked")
    assert Path(str(trace.sources[0].path)).resolve() == tmp_path / "other" / "traces" / "rank1.json"
    assert trace.event_arguments(0, 3).problem is None
    trace.close()
    path = sorted((tmp_path / "other" / "store" / "indexes").iterdir())[1]
    path.write_bytes(path.read_bytes().replace(str(traces).encode(), str(traces).upper().encode()))
    trace = opened_rank(copied, 1, tmp_path / "damaged")
    assert [lane.slices for lane in trace.lanes] == [10, 5]
    trace.close()
    shutil.rmtree(tmp_path / "other" / "traces")
    with pytest.raises(UnreadableError, match="is damaged"):
        opened_rank(copied, 1, tmp_path / "again")


def test_archives_that_hold_anything_else_are_refused(traces: Path, tmp_path: Path) -> None:
    """Only plain files of an index are unpacked, and only into its folder."""
    import io
    import tarfile

    folder = tmp_path / "store"
    list(collect(planned([str(traces)], str(folder), with_index=True), str(folder), one_after_another))
    path = sorted((folder / "indexes").iterdir())[0]
    for name, kind in (
        ("../x.table", tarfile.REGTYPE),
        ("x.table", tarfile.SYMTYPE),
        ("x.py", tarfile.REGTYPE),
    ):
        body = io.BytesIO()
        with tarfile.open(fileobj=body, mode="w", encoding="utf-8") as archive:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
        path.write_bytes(body.getvalue())
        with pytest.raises(UnreadableError, match="which is no part of an index"):
            opened_rank(open_store(str(folder)), 0, tmp_path / f"unpacked{name[0]}{kind!r}")
    assert not (tmp_path / "x.table").exists()
