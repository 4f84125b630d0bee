"""Which files belong together: ranks, captures and runs, from names and from what the files say."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, files, for_files, needs
from tests.events import complete
from tests.rank_files import rank_files
from tracelane.core import open_trace
from tracelane.core.base.errors import UnreadableError, UsageError
from tracelane.core.index.cache import locate
from tracelane.core.index.cached import IndexJob
from tracelane.core.index.captures import Choice, captures_of, choose, members_of, parsed_ranks, ranks_text
from tracelane.core.index.file_facts import file_facts
from tracelane.core.index.indexing import index_all
from tracelane.core.index.inputs import expanded
from tracelane.core.index.member import NO_FACTS, FileFacts, member_of
from tracelane.core.index.options import IndexOptions
from tracelane.core.read.source import current_source, open_source
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.ranks import ranks

DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
GLOO = CORPUS / "multirank" / "torch213_ddp_gloo_2ranks"


def write(path: Path, changed: int = 0, **keys: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**keys, "traceEvents": [complete(1, 2, path.name)]}), encoding="utf-8")
    if changed:
        os.utime(path, (changed, changed))
    return path


def facts_at(path: str | Path) -> FileFacts:
    return file_facts(open_source(path))


def ranked(rank: int, world: int) -> dict[str, Any]:
    return {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}


@pytest.mark.parametrize(
    ("name", "rank", "axes", "stamp_ns", "host"),
    [
        ("worker3_step_12.1694128201557.pt.trace.json.gz", 3, {}, 1694128201557_000_000, ""),
        ("ddp_rank1.json", 1, {}, None, ""),
        ("rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz", 34, {}, None, ""),
        ("graph_capture_rank_0.1773709679453551615.pt.trace.json.gz", 0, {}, 1773709679453551615, ""),
        (
            "dp1_pp0_tp3_dcp0_ep7_rank7.1773709679453551615.pt.trace.json.gz",
            7,
            {"DP": 1, "PP": 0, "TP": 3},
            1773709679453551615,
            "",
        ),
        ("1742039999.25-TP-1-DP-0.trace.json.gz", None, {"TP": 1, "DP": 0}, 1742039999_250_000_000, ""),
        ("node-7_2295057.1781947926439683971.pt.trace.json", None, {}, 1781947926439683971, "node-7"),
        ("tl_mi300_resnet_train_rank0of8.json.gz", 0, {}, None, ""),
        ("local_rank3_trace.json", None, {}, None, ""),
        ("allreduce_tp4.json", None, {}, None, ""),
        ("frank5.json", None, {}, None, ""),
        ("step_20260620-092806_rank2.json", 2, {}, 1781947686_000_000_000, ""),
    ],
)
def test_a_name_tells_rank_place_stamp_and_host(
    name: str, rank: int | None, axes: dict[str, int], stamp_ns: int | None, host: str
) -> None:
    """The names that torch, HTA, vLLM and SGLang give their files are understood, others tell nothing."""
    facts = member_of(Path("/runs/x") / name)
    assert (facts.rank, dict(facts.axes), facts.stamp_ns, facts.host) == (rank, axes, stamp_ns, host)


def test_a_file_says_its_rank_before_or_behind_its_events(tmp_path: Path) -> None:
    """The metadata is found at either end of a file, and a file without any tells nothing."""
    before = write(tmp_path / "a.json", **ranked(3, 8), host_name="pod-3")
    behind = tmp_path / "b.json"
    behind.write_text(
        '{"traceEvents": [%s], "distributedInfo": {"rank": 5, "world_size": 6}}' % ('{"ph": "X"},' * 9000),
        encoding="utf-8",
    )
    array = tmp_path / "c.json"
    array.write_text("[]", encoding="utf-8")
    assert facts_at(before) == FileFacts(3, 8, "pod-3")
    assert facts_at(behind) == FileFacts(5, 6)
    assert facts_at(array) == NO_FACTS._replace(has_events=False)


def test_what_the_file_says_counts_more_than_its_name(tmp_path: Path) -> None:
    """A worker's file of the second node has its own rank, whatever its name counts."""
    write(tmp_path / "worker0.json", **ranked(8, 16))
    write(tmp_path / "worker1.json", **ranked(9, 16))
    assert [member.rank for member in open_trace(tmp_path).members] == [8, 9]


def test_copies_under_other_names_are_ranks_of_their_own(tmp_path: Path) -> None:
    """Where files of one name say the same rank, their names count."""
    for rank in range(6):
        write(tmp_path / f"worker{rank}.json", **ranked(rank % 2, 2))
    assert [member.rank for member in open_trace(tmp_path).members] == list(range(6))


def test_captures_are_told_apart_and_the_newest_is_shown(tmp_path: Path) -> None:
    """Two captures whose stamps differ by some ms from rank to rank open as the newer one; a line says so."""
    for second in (1_700_000_000, 1_700_000_900):
        for rank in range(4):
            write(tmp_path / f"worker{rank}.{second * 1000 + 7 * rank}.pt.trace.json", **ranked(rank, 4))
    trace = open_trace(tmp_path)
    assert [member.rank for member in trace.members] == [0, 1, 2, 3]
    assert all("1700000900" in str(member.path) for member in trace.members)
    assert len(trace.captures) == 2 and trace.open_capture == 0
    assert "left out: 1 other capture" in trace.sources[0].notes[0]
    older = open_trace(tmp_path, choice=Choice(capture="2", ranks="1-2"))
    assert ["1700000000" in str(member.path) for member in older.members] == [True, True]
    assert [member.rank for member in older.members] == [1, 2]
    assert len(open_trace(tmp_path, choice=Choice(capture="all")).sources) == 8


def test_a_repeated_rank_begins_a_new_capture(tmp_path: Path) -> None:
    """Captures that follow each other within seconds are told apart by their ranks."""
    paths = [
        write(tmp_path / f"rank{rank}.{1_700_000_000 + 9 * n}.json") for n in range(3) for rank in (0, 1)
    ]
    captures = captures_of(members_of(paths, facts_at))
    assert [capture.ranks for capture in captures] == [(0, 1)] * 3
    assert captures[0].time_ns > captures[1].time_ns > captures[2].time_ns


def test_names_without_stamps_group_by_what_they_have_in_common(tmp_path: Path) -> None:
    """`old_rankN` are one capture and `new_rankN` another; the one changed last is shown."""
    for name, changed in (("old", 1_600_000_000), ("new", 1_700_000_000)):
        for rank in (1, 0):
            write(tmp_path / f"{name}_rank{rank}.json", changed + rank)
    trace = open_trace(tmp_path)
    assert [Path(member.path).name for member in trace.members] == ["new_rank0.json", "new_rank1.json"]


def test_places_in_the_parallel_layout_become_ranks(tmp_path: Path) -> None:
    """SGLang's TP and DP numbers count ranks along TP first, and a front end's file stays a host process."""
    for dp in (0, 1):
        for tp in (0, 1):
            write(tmp_path / f"1742039999.25-TP-{tp}-DP-{dp}.trace.json")
    write(tmp_path / "host_77.AsyncLLM.1742040000123456789.pt.trace.json")
    trace = open_trace(tmp_path)
    titles = [member.title for member in trace.members]
    assert titles[:4] == [f"rank {n} (TP {n % 2} DP {n // 2})" for n in range(4)]
    assert trace.members[4].rank is None


def test_runs_are_folders_and_a_folder_per_rank_is_none(tmp_path: Path) -> None:
    """Folders below the one asked for are runs, but `rank_0`, `rank_1` belong together."""
    for run, changed in (("first", 1_600_000_000), ("second", 1_700_000_000)):
        for rank in (0, 1):
            write(tmp_path / run / f"rank{rank}.json", changed)
    assert {Path(m.path).parent.name for m in open_trace(tmp_path).members} == {"second"}
    assert {Path(m.path).parent.name for m in open_trace(tmp_path, choice=Choice(run="FIRST")).members} == {
        "first"
    }
    for rank in (0, 1):
        write(tmp_path / "apart" / f"rank_{rank}" / "trace.json")
    assert [member.rank for member in open_trace(tmp_path / "apart").members] == [0, 1]


def test_profilers_folders_below_those_of_ranks_are_looked_into(tmp_path: Path) -> None:
    """A folder stands for traces up to three levels below it, where no level above has any; the folder that
    a profiler makes in that of a rank is none of its own run.
    """
    for rank in (0, 1):
        write(tmp_path / "run" / f"rank{rank}_ascend_pt" / "ASCEND_PROFILER_OUTPUT" / "trace_view.json")
    assert [member.rank for member in open_trace(tmp_path / "run").members] == [0, 1]
    deep = write(tmp_path / "deep" / "PROF_1" / "device_0" / "timeline" / "msprof.json")
    assert [member.path for member in open_trace(tmp_path / "deep").members] == [deep]
    write(tmp_path / "deeper" / "a" / "b" / "c" / "d" / "trace.json")
    with pytest.raises(UnreadableError, match="directory without traces"):
        open_trace(tmp_path / "deeper")
    near = write(tmp_path / "deeper" / "a" / "trace.json")
    assert [member.path for member in open_trace(tmp_path / "deeper").members] == [near]


def test_an_export_of_a_device_counts_once(tmp_path: Path) -> None:
    """What an export has whole is not opened in parts, too; its devices are ranks; tables are no traces."""
    for device in (0, 1):
        folder = tmp_path / "PROF_1" / f"device_{device}" / "timeline"
        for name in ("msprof", "task_time", "hccl", "step_trace"):
            write(folder / f"{name}_{device}_1_1.json")
        write(folder / "task_time_9_9.json")  # of another run of the export
        write(tmp_path / "PROF_1" / f"device_{device}" / "summary" / f"op_summary_{device}_1_1.csv")
    files = expanded([tmp_path])
    names = [Path(file).name for file in files]
    assert names == ["msprof_0_1_1.json", "task_time_9_9.json", "msprof_1_1_1.json", "task_time_9_9.json"]
    for name in ("msprof_20240101120000.json", "step_trace_20240101120003.json"):
        write(tmp_path / "PROF_2" / "output" / name)
    assert [Path(file).name for file in expanded([tmp_path / "PROF_2"])] == ["msprof_20240101120000.json"]
    wholes = [file for file, name in zip(files, names) if name.startswith("msprof")]
    assert [member.rank for member in members_of(wholes, lambda _: NO_FACTS)] == [0, 1]


def test_files_named_one_by_one_open_together_where_none_tells_a_rank(tmp_path: Path) -> None:
    """Who names two traces sees both, in the order given."""
    b, a = write(tmp_path / "b_9.1700000000.json"), write(tmp_path / "a_9.1600000000.json")
    assert [member.path for member in open_trace([b, a]).members] == [b, a]
    assert len(open_trace([str(tmp_path / "*.json")]).sources) == 1  # a pattern asks for the newest


@pytest.mark.parametrize(
    ("world", "there", "said"),
    [
        (8, (0, 1, 2, 3), "missing: ranks 4-7 of 8"),
        (4, (0, 1, 2, 3), ""),
        (None, (0, 1, 4), "missing: ranks 2-3"),
        (None, (1,), "missing: rank 0"),
        (None, (0, 1), ""),
    ],
)
def test_missing_ranks_are_named(
    tmp_path: Path, world: int | None, there: tuple[int, ...], said: str
) -> None:
    """Ranks that the files count on, or that leave holes, are named."""
    for rank in there:
        write(tmp_path / f"rank{rank}.json", **(ranked(rank, world) if world else {}))
    write(tmp_path / "front_end.json")
    notes = open_trace(tmp_path).sources[0].notes
    assert [note for note in notes if "missing" in note] == ([said] if said else [])


@pytest.mark.parametrize(
    ("choice", "why"),
    [
        (Choice(run="nowhere"), "no run is called"),
        (Choice(capture="7"), "there is no 7"),
        (Choice(capture="1999"), "there is no 1999"),
        (Choice(ranks="9"), "there is no rank 9; there is 0-1"),
        (Choice(ranks="3-1"), "no list of ranks"),
        (Choice(ranks="x"), "no list of ranks"),
    ],
)
def test_a_choice_that_leaves_nothing_says_what_there_is(tmp_path: Path, choice: Choice, why: str) -> None:
    """A wrong run, capture or rank is answered with those that exist."""
    paths = [write(tmp_path / f"rank{rank}.json") for rank in (0, 1)]
    with pytest.raises(UsageError, match=why):
        choose(captures_of(members_of(paths, facts_at)), choice)


def test_ranks_are_written_and_read_as_ranges() -> None:
    """Lists of ranks are short, and read back as they were."""
    assert ranks_text((0, 1, 2, 5, 7, 8)) == "0-2, 5, 7-8"
    assert parsed_ranks("0-2, 5, 7-8") == {0, 1, 2, 5, 7, 8}


@needs(CORPUS)
def test_the_ranks_of_real_captures_open_in_order(corpus_cache: Path) -> None:
    """The DLRM ranks open together in order and the four that are missing are named."""
    trace = open_trace(sorted(DLRM.iterdir(), reverse=True), index_dir=corpus_cache)
    assert [member.rank for member in trace.members] == [0, 1, 2, 3]
    assert trace.sources[0].notes[0] == "missing: ranks 4-7 of 8"


@for_files(
    "paths",
    [(GLOO,), *(tuple(files(f"cpu/torch_{release}_rank*.pt.trace*")) for release in ("2.13", "2.14"))],
)
def test_two_ranks_of_gloo_open_in_order(paths: tuple[Path, ...], corpus_cache: Path) -> None:
    """Each rank says which it is, of how many, and on which host, whichever is named first."""
    trace = open_trace(sorted(paths, reverse=True), index_dir=corpus_cache)
    members = [(member.rank, member.world, member.host) for member in trace.members]
    assert members == [(0, 2, "vm"), (1, 2, "vm")]


@needs(CORPUS)
@pytest.mark.slow
def test_files_indexed_side_by_side_get_the_same_indexes(tmp_path: Path) -> None:
    """Several processes write what one writes, and what is no trace is left to the one who asks."""
    traces = tmp_path / "traces"
    traces.mkdir()
    for rank in range(40):
        shutil.copy(DLRM / "worker2_step_12.1694128201554.pt.trace.json.gz", traces / f"rank{rank}.json.gz")
        (traces / f"rank{rank}.json.gz").touch()
    (traces / "rank9.json.gz").write_bytes(b"<html>")
    (traces / "rank8.json.gz").write_bytes(gzip.compress(b'{"a": "x", "b": '))
    paths = sorted(traces.iterdir())
    reports: list[tuple[int, int | None]] = []
    sources = [open_source(path) for path in paths if path.name != "rank9.json.gz"]
    indexed = index_all(
        [IndexJob.of(each, locate(dict(each.fingerprint), tmp_path / "cache")) for each in sources],
        IndexOptions(tmp_path / "cache", threads=2),
        progress=lambda progress: reports.append((progress.done, progress.total)),
    )
    assert len(indexed.written) == 38 and list(indexed.failed) == [str(traces / "rank8.json.gz")]
    refused = (traces / "rank8.json.gz").stat().st_size
    assert reports[-1][0] == reports[-1][1] == 38 * paths[0].stat().st_size + refused
    together = open_trace(traces, index_dir=tmp_path / "cache")
    alone = open_trace(paths[0], index_dir=tmp_path / "other")
    assert len(together.sources) == 38
    (note,) = [note for note in together.sources[0].notes if note.startswith("skipped ")]
    assert "rank8.json.gz" in note and "rank9.json.gz" in note
    for index in together.indexes[:3]:
        assert index.read_report == alone.indexes[0].read_report
        assert bytes(index.column("slices.start")) == bytes(alone.indexes[0].column("slices.start"))


def test_a_file_that_has_changed_is_looked_at_again(tmp_path: Path) -> None:
    """A source that was looked at a while ago is still what it was, or what its file has become."""
    path = rank_files(tmp_path / "run", 1) / "rank0.json"
    before = open_source(path)
    assert current_source(before) is before
    path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert current_source(before).size == before.size + 1


def workers(folder: Path, *processes: tuple[int, float, float]) -> Path:
    """Copy a real trace for each (pid, seconds later, seconds from then until it was written)."""
    (real,) = CORPUS.glob("aiu/spyre_torch_profiler/jamie_mlp__upstream*")
    whole = json.loads(real.read_bytes())
    folder.mkdir()
    for pid, later, until in processes:
        whole["baseTimeNanoseconds"] += round(later * 1e9)
        stamp = round(min(e["ts"] for e in whole["traceEvents"] if e.get("ts")) * 1000)
        stamp += whole["baseTimeNanoseconds"] + round(until * 1e9)
        path = folder / f"node-1_{pid}.{stamp}.pt.trace.json"
        path.write_text(json.dumps(whole), encoding="utf-8")
        whole["baseTimeNanoseconds"] -= round(later * 1e9)
    return folder


@needs(CORPUS)
def test_processes_whose_spans_overlap_are_workers(tmp_path: Path) -> None:
    """Files of processes that ran at once are ranks of one run, by pid, though written minutes apart."""
    folder = workers(tmp_path / "run", (3003, 0, 2), (3001, 0.12, 90), (3002, 0.09, 300))
    trace = open_trace([folder], index_dir=tmp_path / "index")
    assert [trace.rank(source) for source in range(3)] == [0, 1, 2]
    assert [Path(s.path).name[7:11] for s in trace.sources] == ["3001", "3002", "3003"]
    assert len(trace.captures) == 1
    trace.close()


def collective_of(
    folder: Path,
    pid: int,
    start_us: float,
    stamp: int,
    late_us: float = 0,
    host: str = "node-1",
    end: str = "",
) -> None:
    """Write a worker's file whose base stands behind its events: three collectives that end together."""
    events = [
        complete(start_us + 1000 * n + late_us, 300 - late_us, "ncclDevKernel_AllReduce_f32", "kernel", pid=0)
        for n in range(3)
    ]
    trace = {"traceEvents": events, "baseTimeNanoseconds": 1_757_000_000 * 10**9}
    data = json.dumps(trace).encode()
    path = folder / f"{host}_{pid}.{stamp}.pt.trace.json{end}"
    path.write_bytes(gzip.compress(data) if end else data)


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(("host", "minutes"), [("node-1", 0), ("node-1", 7), ("7c1c3b0a2d3f", 7)])
def test_workers_are_compared_as_ranks(host: str, minutes: int, end: str, tmp_path: Path) -> None:
    """Whoever comes last is named by pid; the files may be written long after each other, and their base may
    stand behind the events.
    """
    folder = tmp_path / "run"
    folder.mkdir()
    written = 1_757_000_000 * 10**9 + 10**9
    for number, pid in enumerate((303, 301, 302)):
        late_us = 100 if pid == 302 else 0
        collective_of(folder, pid, 5000, written + number * minutes * 60 * 10**9, late_us, host, end)
    trace = open_trace([folder], index_dir=tmp_path / "index")
    assert len(trace.captures) == 1
    result = ranks(Scope(trace, clocks=trace.clocks))
    (first, *_) = result.worst_first
    assert Path(trace.sources[first.source].path).name.startswith(f"{host}_302.")
    assert first.kept_waiting_ns == 3 * 2 * 100_000 and first.rank == 1
    *_, said, worst, other, last = result.notes
    assert said.startswith("no file says its rank")
    assert worst.startswith(f"rank 1 is {host}_302.")
    assert {other[:6], last[:6]} == {"rank 0", "rank 2"}
    trace.close()


@needs(CORPUS)
def test_processes_one_after_another_are_captures(tmp_path: Path) -> None:
    """Processes that ran one after another, and one that was profiled twice, are captures of their own."""
    after = workers(tmp_path / "after", (3001, 0, 2), (3002, 10, 2))
    trace = open_trace([after], index_dir=tmp_path / "index")
    assert len(trace.captures) == 2 and len(trace.indexes) == 1
    trace.close()
    twice = workers(tmp_path / "twice", (3001, 0, 20), (3001, 10, 20))
    trace = open_trace([twice], index_dir=tmp_path / "index")
    assert len(trace.captures) == 2 and trace.rank(0) is None
    trace.close()


def test_kinetos_base_is_known_without_reading_the_end(tmp_path: Path) -> None:
    """Where the base is too far behind the events to be read it follows from the stamp, as Kineto sets it."""
    base, first_us = 225 * 7_889_238 * 10**9, 6_869_136_478_143
    start = base + first_us * 1000

    def start_of(stamp: int, ts: int) -> int | None:
        path = tmp_path / f"pod-1_77.{stamp}.pt.trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps({"traceEvents": [complete(ts, 5)]}).encode()))
        return facts_at(path).start_ns

    assert start_of(start + 90 * 10**9, first_us) == start
    assert start_of(start + 3601 * 10**9, first_us) is None, "counts from something else"
    long_ago = 7_889_238 * 10**6 + 5  # by a process that began in the quarter before
    assert start_of(base + 60 * 10**9, long_ago) == base + 5000
