"""FLEX job traces of the AIU: work by names, pids as ranks, jobs as steps, cycle stamps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CORPUS, needs
from tests.events import Event, begin, complete, end, index_of, metadata, open_events, write_events
from tracelane.core.base.errors import UsageError
from tracelane.core.index.captures import captures_of, members_of
from tracelane.core.index.file_facts import file_facts
from tracelane.core.index.flex import is_flex
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.read.source import open_source
from tracelane.core.tables.device.breakdown import device_table
from tracelane.core.tables.device.device_state import device_states
from tracelane.core.tables.device.kernels import analyse_kernels, kernels
from tracelane.core.tables.doctor.doctor import analyse_doctor, doctor_exit_code
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.frame_columns import timed_work
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.host_columns import host_of
from tracelane.core.tables.ranks.rank_tables import analyse_ranks
from tracelane.core.tables.steps.attribution import scope_of_step
from tracelane.core.tables.steps.steps import steps
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.cycle_stamps import flex_stamps
from tracelane.core.trace.step_spans import step_spans

LANE = 15514734831341844875
"""A thread as FLEX numbers it: beyond 63 bits."""


def job(at: int, rank: int) -> list[dict[str, Any]]:
    """One job of 1000 µs: preparing, data in, two kernels, an exchange, data out."""
    parts = [
        (0, 1000, "Flex RoundTrip"),
        (10, 50, "addmm_MatMul Cmpt Prep"),
        (70, 100, "input DmaI"),
        (200, 300, "addmm_MatMul Cmpt Exec"),
        (520, 100, "relu Cmpt Exec"),
        (640, 80, f"SenRdmaSend_{rank} [sync=AllReduce_all_reduce_4_s3_r0x3_2]"),
        (800, 60, "output DmaO"),
    ]
    edges = [(ts, 1, n, name) for n, (ts, _, name) in enumerate(parts)]
    edges += [(ts + ns, 0, -n, name) for n, (ts, ns, name) in enumerate(parts)]
    return [
        (begin if opens else end)(at + ts, name=name, pid=rank, tid=LANE + (0 if number == 0 else 1))
        for ts, opens, number, name in sorted(edges, key=lambda edge: edge[:3])
    ]


def two_ranks(folder: Path) -> Trace:
    """Return a trace of two ranks in one file, with three jobs each."""
    events = [event for rank in (0, 3) for n in range(3) for event in job(2000 * n, rank)]
    return Trace([index_of(events, folder)])


def test_work_is_told_by_names(tmp_path: Path) -> None:
    """Computing, data and exchanges are device work of the rank that their pid is; preparing is none."""
    trace = two_ranks(tmp_path)
    assert is_flex(trace.indexes[0])
    devices = device_table(timed_work(Scope(trace)))
    assert [(device["rank"], device["label"], device["slices"]) for device in devices] == [
        (0, "AIU 0", 15),
        (3, "AIU 3", 15),
    ]
    for device in devices:
        assert (device["compute_ns"], device["comm_ns"], device["memory_ns"]) == (1_200_000, 240_000, 480_000)
    rows = {row["name"]: row for row in kernels(Scope(trace)).rows()}
    assert rows["addmm_MatMul Cmpt Exec"]["total_ns"] == 1_800_000
    assert not any("Prep" in name for name in rows)


def test_jobs_are_steps(tmp_path: Path) -> None:
    """Round trips that repeat are the steps of each rank, and work belongs to the one it runs in."""
    trace = two_ranks(tmp_path)
    table = steps(Scope(trace))
    assert len(table) == 6 and set(table.data["process"]) == {"0", "3"}
    assert set(table.data["device_busy_ns"]) == {640_000}
    parts = {"kernel": 400_000, "memcpy": 160_000, "communication": 80_000, "runtime": 50_000}
    assert {role: set(table.data[f"split_{role}_ns"]) for role in parts} == {
        role: {ns} for role, ns in parts.items()
    }
    assert set(table.data["cpu_busy_ns"]) == {50_000} and table.totals["shared_ns"] == 0
    spans = step_spans(trace)
    assert spans is not None and len(spans) == 3
    assert kernels(scope_of_step(Scope(trace), spans, 1)).totals["count"] == 10


def test_other_traces_are_not_flex(tmp_path: Path) -> None:
    """A file with categories is none, whatever its names; nor is one without FLEX's names."""
    named = index_of([begin(0, "x Cmpt Exec", cat="cpu_op"), end(5)], tmp_path / "a")
    plain = index_of([begin(0, "work"), end(5)], tmp_path / "b")
    assert not is_flex(named) and not is_flex(plain)


@needs(CORPUS)
def test_a_real_job(corpus_cache: Path) -> None:
    """All 17 slices of a public sample are kernels of AIU 0; findings have something to judge."""
    trace = open_trace([CORPUS / "aiu" / "sample_flex_3062_job_4.json"], index_dir=corpus_cache)
    (device,) = device_table(timed_work(Scope(trace)))
    assert (device["label"], device["slices"]) == ("AIU 0", 17)
    assert device["compute_ns"] == device["busy_ns"] > 0
    findings(Scope(trace))
    trace.close()


@pytest.mark.parametrize("pid", ["x", None, 2**70])
def test_pids_that_are_no_ranks(pid: Any, tmp_path: Path) -> None:
    """A pid that is no small number is no rank, and breaks nothing."""
    events = [begin(0, "a Cmpt Exec", pid=pid), end(9, pid=pid)]
    trace = Trace([index_of(events, tmp_path)])
    (device,) = device_table(timed_work(Scope(trace)))
    assert device["rank"] == 0 and device["busy_ns"] == 9_000


def jobs_of_ranks(folder: Path, ranks: dict[int, int]) -> Path:
    """Write a job trace of each rank, which comes so many µs late to its exchange, and return the folder."""
    folder.mkdir()
    for rank, late in ranks.items():
        events = []
        for at in range(0, 8000, 2000):
            for name, ts, dur in (
                ("Flex RoundTrip", 0, 1000),
                ("addmm_MatMul Cmpt Exec", 200, 300),
                ("SenRdmaSend_1 [sync=AllReduce_all_reduce_4_s3_r0x7_6]", 510 + late, 100 - late),
                ("SenRdmaRecv_0 [sync=AllReduce_all_reduce_4_s3_r0x7_6]", 620, 80),
            ):
                tid = LANE + (name != "Flex RoundTrip")
                attr = {"TS3": hex(at + ts), "TS4": str(at + ts + dur), "Power": "0x10"}
                events += [
                    begin(at + ts, name=name, pid=rank, tid=tid, attr=attr),
                    end(at + ts + dur, pid=rank, tid=tid),
                ]
        (folder / f"p-{rank}-job-4.json").write_text(json.dumps(events), encoding="utf-8")
    return folder


def test_jobs_of_several_ranks(tmp_path: Path) -> None:
    """In files of several ranks pids are ranks, and a sync group is a collective: the late rank is named."""
    trace = open_trace([jobs_of_ranks(tmp_path / "jobs", {3: 0, 5: 60, 6: 10})], index_dir=tmp_path / "i")
    assert [trace.rank(source) for source in range(3)] == [3, 5, 6]
    tables = analyse_ranks(Scope(trace))
    worst = next(iter(tables["ranks"].rows()))
    assert (worst["rank"], worst["last"]) == (5, 4)
    groups = {(row["name"], row["group"], len(row["ranks"])) for row in tables["collectives"].rows()}
    assert groups == {("all_reduce", "AllReduce_all_reduce_4_s3_r0x7_6", 3)}
    assert [device["rank"] for device in device_table(timed_work(Scope(trace)))] == [3, 5, 6]
    trace.close()


def test_jobs_of_one_rank_stay_together(tmp_path: Path) -> None:
    """Several jobs of one process are one trace, in which nothing is left out."""
    folder = jobs_of_ranks(tmp_path / "jobs", {2: 0})
    (folder / "p-2-job-5.json").write_bytes((folder / "p-2-job-4.json").read_bytes())
    trace = open_trace([folder], index_dir=tmp_path / "i")
    assert len(trace.indexes) == 2
    trace.close()


def test_counters_of_cycles_are_numbers(tmp_path: Path) -> None:
    """TS1 to TS5 and Power are numbers, whether they stand as decimal or hexadecimal text."""
    trace = open_trace([jobs_of_ranks(tmp_path / "jobs", {0: 0})], index_dir=tmp_path / "i")
    table = kernels(Scope(trace), arguments=["TS3", "TS4", "Power"])
    rows = {row["name"]: row for row in table.rows()}
    row = rows["addmm_MatMul Cmpt Exec"]
    starts = [200 + at for at in range(0, 8000, 2000)]
    assert row["arg:TS3"] == sum(starts) and row["arg:TS4"] == sum(starts) + 4 * 300
    assert row["arg:Power"] == 64
    trace.close()


def ranks_in_one_file(path: Path, ranks: dict[int, int], *, documents: bool = False) -> Trace:
    """Write the job traces of ranks, each so many µs late, into one file: one array, or one after another."""
    folder = jobs_of_ranks(path / "jobs", ranks)
    parts = [json.loads((folder / f"p-{rank}-job-4.json").read_text(encoding="utf-8")) for rank in ranks]
    whole = (
        "\n".join(map(json.dumps, parts)) if documents else json.dumps([e for part in parts for e in part])
    )
    (path / "all.json").write_text(whole, encoding="utf-8")
    return open_trace([path / "all.json"], index_dir=path / "i")


@pytest.mark.parametrize("documents", [False, True])
def test_pids_of_one_file_are_ranks(documents: bool, tmp_path: Path) -> None:
    """Several pids in one file are ranks with steps, times and waits of their own; the late one is named."""
    trace = ranks_in_one_file(tmp_path, {0: 0, 2: 60, 7: 10}, documents=documents)
    tables = analyse_ranks(Scope(trace))
    rows = {row["rank"]: row for row in tables["ranks"].rows()}
    assert list(rows) == [2, 0, 7]
    assert {
        rank: (row["steps"], row["step_ns"], row["kernels"]) for rank, row in rows.items()
    } == dict.fromkeys(rows, (4, 1_000_000, 12))
    assert (rows[2]["last"], rows[2]["waited_ns"]) == (4, 0)
    assert (rows[0]["waited_ns"], rows[7]["waited_ns"]) == (4 * 60_000, 4 * 50_000)
    assert [row["ranks"] for row in tables["collectives"].rows()] == [[0, 2, 7]] * 4
    assert len(tables["imbalance"]) == 12 and set(tables["steps"].data["slowest"]) == {2}
    (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == "rank-imbalance"]
    assert finding.text.startswith("Rank 2 is last in 4 of 4 collectives: the other 2 ranks wait 440 µs")
    trace.close()


@pytest.mark.parametrize(
    ("prepare", "work", "wait", "spoken", "silent"),
    [
        (900, 40, 5, {"overhead-bound"}, {"device-bound", "aiu-waits"}),
        (60, 850, 5, {"device-bound"}, {"overhead-bound", "aiu-waits"}),
        (20, 60, 800, {"sync", "aiu-waits", "device-idle"}, {"overhead-bound", "host-hotspot"}),
    ],
)
@pytest.mark.parametrize("pids", [(0,), (1, 4)])
def test_what_the_host_does_is_judged(
    prepare: int,
    work: int,
    wait: int,
    spoken: set[str],
    silent: set[str],
    pids: tuple[int, ...],
    tmp_path: Path,
) -> None:
    """Preparing and waiting are calls of the host to the rules of findings, whole jobs are its steps."""
    events = []
    for pid in pids:
        for at in range(0, 4000, 1000):
            times = [("Flex RoundTrip", 0, 1000), ("mm Cmpt Prep", 10, prepare)]
            times += [("mm DmaI", prepare + 12, 4), ("mm Cmpt Exec", prepare + 20, work)]
            times += [("ScheduleWait", prepare + work + 25, wait)]
            for number, (name, ts, us) in enumerate(times):
                lane = {"pid": pid, "tid": LANE + number}
                events += [begin(at + ts, name=name, **lane), end(at + ts + us, **lane)]
    judged = findings(Scope(Trace([index_of(events, tmp_path)])))
    rules = {one.rule: one for one in judged.findings}
    assert spoken <= rules.keys() and not silent & rules.keys()
    for rule in spoken:
        assert (rules[rule].in_steps, rules[rule].of_steps) == (4, 4)
        assert rules[rule].of_part == ("" if len(pids) == 1 else f"rank {pids[0]}")
    assert not {"host-hotspot", "sync", "overhead-bound"} & dict(judged.not_judged).keys()


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (("model Cmpt Prep", 10, 7000), "; at the longest the host is in model Cmpt Prep"),
        (("model Cmpt Prep", 10, 700), "; the first work begins after 7.1 ms"),
    ],
)
def test_idle_at_the_start_has_a_cause(first: tuple[str, int, int], said: str, tmp_path: Path) -> None:
    """What a rank's host does before the first kernel is told, or else how long that is."""
    times = [
        ("Flex RoundTrip", 0, 10_000),
        first,
        ("mm Cmpt Exec", 7100, 1000),
        ("relu Cmpt Exec", 8200, 500),
    ]
    events = []
    for number, (name, ts, us) in enumerate(times):
        lane = {"pid": 0, "tid": LANE + number}
        events += [begin(ts, name=name, **lane), end(ts + us, **lane)]
    (text,) = [
        one.text
        for one in findings(Scope(open_events(tmp_path, events))).findings
        if one.rule == "device-idle"
    ]
    assert text == f"AIU 0 is busy in only 15.0 % of 10 ms{said}"


@needs(CORPUS)
def test_a_real_job_of_two_ranks(tmp_path: Path) -> None:
    """The public sample as two pids: each has the times of the sample, and nobody is said to wait."""
    job = json.loads((CORPUS / "aiu" / "sample_flex_3062_job_4.json").read_text(encoding="utf-8"))
    (tmp_path / "two.json").write_text(
        json.dumps([event | {"pid": pid} for pid in (0, 1) for event in job]), encoding="utf-8"
    )
    trace = open_trace([tmp_path / "two.json"], index_dir=tmp_path / "i")
    rows = list(analyse_ranks(Scope(trace))["ranks"].rows())
    sample = open_trace([CORPUS / "aiu" / "sample_flex_3062_job_4.json"], index_dir=tmp_path / "i")
    (alone,) = device_table(timed_work(Scope(sample)))
    assert [(row["rank"], row["kernels"], row["busy_ns"]) for row in rows] == [
        (rank, 17, alone["busy_ns"]) for rank in (0, 1)
    ]
    sample.close()
    assert "rank-imbalance" in dict(findings(Scope(trace)).not_judged)
    trace.close()


def test_ranks_of_one_file_have_clocks_of_their_own(tmp_path: Path) -> None:
    """Where the clock of a rank is off by seconds its collectives tell so, and the late rank is named."""
    folder = jobs_of_ranks(tmp_path / "jobs", {0: 0, 2: 60, 7: 10})
    events = [
        event for path in sorted(folder.iterdir()) for event in json.loads(path.read_text(encoding="utf-8"))
    ]
    moved = [event | {"ts": event["ts"] + (5_000_000 if event["pid"] == 7 else 0)} for event in events]
    (tmp_path / "all.json").write_text(json.dumps(moved), encoding="utf-8")
    trace = open_trace([tmp_path / "all.json"], index_dir=tmp_path / "i")
    assert dict(trace.clocks.offsets) == {(0, "7"): -5_000_000_000}
    assert trace.opening_span == trace.span and trace.span[1] - trace.span[0] == 7_000_000
    assert "moved by up to 5 s" in trace.indexes[0].notes[-1]
    rows = {row["rank"]: row for row in analyse_ranks(Scope(trace, clocks=trace.clocks))["ranks"].rows()}
    assert list(rows) == [2, 0, 7] and rows[7]["offset_ns"] == -5_000_000_000
    assert (rows[0]["waited_ns"], rows[7]["waited_ns"]) == (4 * 60_000, 4 * 50_000)
    trace.close()


def test_several_jobs_of_several_ranks(tmp_path: Path) -> None:
    """Each job of a run is a capture of its own, with all ranks; none is taken for a rank."""
    folder = jobs_of_ranks(tmp_path / "jobs", {3: 0, 5: 60})
    for rank in (3, 5):
        content = (folder / f"p-{rank}-job-4.json").read_bytes()
        (folder / f"p-{rank}-job-11.json").write_bytes(content)
    captures = captures_of(members_of(sorted(folder.iterdir()), lambda path: file_facts(open_source(path))))
    assert {capture.ranks for capture in captures} == {(3, 5)} and len(captures) == 2
    for capture in captures:
        assert len({Path(member.path).name.partition("job")[2] for member in capture.members}) == 1


def test_waits_and_receives_by_other_names(tmp_path: Path) -> None:
    """What receives is work without a direction in its name; jobs and waits have other names, too."""
    events = []
    for at in range(0, 4000, 1000):
        for number, (name, ts, us) in enumerate(
            (
                ("Execute Graph", 0, 900),
                ("mm Cmpt Exec", 10, 100),
                ("SenRdmaReceive_8 [512B] [sync=AllGather_all_gather_1_s0_r1_0]", 120, 50),
                ("WaitForCompletionAndReturnStatus", 180, 700),
            )
        ):
            lane = {"pid": 0, "tid": LANE + number}
            events += [begin(at + ts, name=name, **lane), end(at + ts + us, **lane)]
    trace = Trace([index_of(events, tmp_path)])
    (device,) = device_table(timed_work(Scope(trace)))
    assert (device["compute_ns"], device["comm_ns"]) == (400_000, 200_000)
    assert len(steps(Scope(trace))) == 4
    assert {"aiu-waits", "sync"} <= {one.rule for one in findings(Scope(trace)).findings}


def test_a_second_late_rank_is_named(tmp_path: Path) -> None:
    """A rank that costs the others at least half as much as the worst is named beside it, others are not."""
    texts = []
    for number, late in enumerate(({0: 0, 1: 120, 2: 80, 3: 0}, {0: 0, 1: 120, 2: 10, 3: 0})):
        (tmp_path / str(number)).mkdir()
        folder = jobs_of_ranks(tmp_path / str(number) / "jobs", dict.fromkeys(late, 0))
        for rank in late:
            path = folder / f"p-{rank}-job-4.json"
            events = json.loads(path.read_text(encoding="utf-8"))
            for event in events:
                turn = int(event["ts"]) // 4000  # in the first two jobs rank 1 is late, in the others rank 2
                if (
                    event.get("name", "").startswith("SenRdmaSend")
                    and event["ph"] == "B"
                    and rank == 1 + turn
                ):
                    event["ts"] += late[rank]
            path.write_text(json.dumps(events), encoding="utf-8")
        trace = open_trace([folder], index_dir=tmp_path / "i")
        (finding,) = [one for one in findings(Scope(trace)).findings if one.rule == "rank-imbalance"]
        texts.append(finding.text)
        trace.close()
    assert "Rank 1 is last in 2 of 4 collectives" in texts[0]
    assert texts[0].endswith("; for rank 2, last to 2 of them, the others wait 480 µs")
    assert "; for" not in texts[1]


MHZ = 560
START = 0xFFFF_0000
"""The counter of cycles at the beginning: it wraps around after 117 µs."""
PHASES = {"DmaI": 0, "Cmpt Prep": 1, "Cmpt Exec": 2, "DmaO": 3}


def piece(
    ts: float, us: float, name: str, cycles_us: float | None = None, watts: float = 25, **attr: Any
) -> list[Event]:
    """Return a slice whose phase took its time, or another, by its stamps; the device draws an even power."""
    first = next((at for phase, at in PHASES.items() if name.endswith(phase)), 0)
    took = us if cycles_us is None else cycles_us
    # The stamp behind the phase stands at the end of the slice; all others follow without time between.
    times = [ts + us - took if at <= first else ts + us for at in range(5)]
    stamps = {f"TS{at + 1}": (START + round(time * MHZ)) % (1 << 32) for at, time in enumerate(times)}
    charge = round(times[3] * MHZ * watts * 512 / 12) % (1 << 32) or 1
    attr = {key: hex(value) for key, value in (stamps | {"Power": charge}).items()} | attr
    where = {"pid": 0, "tid": LANE}
    return [begin(ts, name=name, attr=attr, **where), end(ts + us, **where)]


def job_stamps(*more: list[Event], exec_us: float | None = None) -> list[Event]:
    """Return data in, eight kernels, data out; one kernel's stamps may say another time."""
    parts = [piece(0, 20, "in DmaI"), *(piece(30 + 40 * at, 30, f"mm_{at} Cmpt Exec") for at in range(8))]
    if exec_us is not None:
        parts[4] = piece(30 + 40 * 3, 30, "mm_3 Cmpt Exec", exec_us)
    return [event for part in (*parts, piece(400, 20, "out DmaO"), *more) for event in part]


def opened(path: Path, events: list[Event]) -> Trace:
    path.mkdir(exist_ok=True)
    (path / "p-0-job-1.json").write_text(json.dumps(events), encoding="utf-8")
    return open_trace(path / "p-0-job-1.json", index_dir=path / "index")


def test_the_frequency_is_that_of_the_file(tmp_path: Path) -> None:
    """From the stamps of single phases, across a wrapped counter, and with one slice that disagrees."""
    stamps = flex_stamps(opened(tmp_path, job_stamps(exec_us=12)).indexes[0])
    assert stamps is not None and stamps.mhz == pytest.approx(MHZ, rel=1e-3)
    stated = stamps.stated_ns(stamps.mhz)
    assert stated.round(-2).tolist() == [20_000, *[30_000] * 3, 12_000, *[30_000] * 4, 20_000]


def test_doctor_names_slices_that_disagree_with_their_stamps(tmp_path: Path) -> None:
    """A line with how many, by how much and at which frequency; none where all agree, or nothing tells."""
    for name, events, count in (
        ("off", job_stamps(exec_us=12), 1),
        ("sound", job_stamps(), 0),
        ("few", job_stamps()[:4], 0),
    ):
        tables = analyse_doctor(Scope(opened(tmp_path / name, events)))
        rows = [row for row in tables["doctor"].rows() if row["rule"] == "cycle-stamps"]
        assert [row["count"] for row in rows] == [count] * bool(count), name
        assert doctor_exit_code(tables) == bool(count)
    (row,) = analyse_doctor(Scope(opened(tmp_path / "off", job_stamps(exec_us=12))))["doctor"].rows()
    assert row["text"] == "1 of 10 slices disagrees with its cycle stamps at 560 MHz, by up to 18 µs"
    assert row["evidence"][0]["label"] == "not as its stamps say: mm_3 Cmpt Exec"


def test_receiving_waits_until_the_peer_has_sent(tmp_path: Path) -> None:
    """TS1 to TS2 is waiting, the rest is not split; sending waits for nobody, nor does what has no stamps."""
    receive = piece(500, 100, "SenRdmaRecv_3_1 [4096B] [sync=AllReduce_1_s0_r0x3_2]")
    first = START + round(500 * MHZ)
    own = {"TS1": first, "TS2": first + 60 * MHZ, **dict.fromkeys(("TS3", "TS4", "TS5"), first + 100 * MHZ)}
    receive[0]["attr"] |= {key: hex(value % (1 << 32)) for key, value in own.items()}
    send = piece(700, 40, "SenRdmaSend_4 [4096B] [sync=AllReduce_1_s0_r0x3_2]")
    trace = opened(tmp_path / "stamped", job_stamps(receive, send))
    ((state,)) = (device_states(Scope(trace)),)
    times = state[0].ns
    assert times["collective_waiting"] == pytest.approx(60_000, abs=100)
    assert times["collective_unsplit"] == pytest.approx(80_000, abs=100) and times["collective_moving"] == 0
    table = {row["name"]: row for row in kernels(Scope(trace), arguments=["bytes", "peer"]).rows()}
    sent, received = (table[event["name"]] for event in (send[0], receive[0]))
    assert sent["arg:bytes"] == 4096 and sent["arg:peer"] is None and received["arg:peer"] == 3
    assert received["waited_ns"] == pytest.approx(60_000, abs=100) and sent["waited_ns"] == 0
    for event in receive:
        event.pop("attr", None)
    without = Scope(opened(tmp_path / "plain", job_stamps(receive, send)))
    (plain,) = device_states(without)
    assert plain.ns["collective_waiting"] == 0 and "waited_ns" not in kernels(without).data


def test_power_is_a_lane(tmp_path: Path) -> None:
    """In W, from the charge that the stamps count, below the device; a trace without stamps has none."""
    trace = with_cheap_lanes(opened(tmp_path, job_stamps()))
    (lane,) = [one for one in trace.lanes if one.source == 1]
    assert lane.title.endswith("power W")
    values = trace.computed.column("samples.value")
    assert len(values) == 9 and np.allclose(values, 25, rtol=0.01)
    bare = [{key: value for key, value in event.items() if key != "attr"} for event in job_stamps()]
    assert not [one for one in with_cheap_lanes(opened(tmp_path / "bare", bare)).lanes if one.source == 1]


@needs(CORPUS)
def test_the_public_sample(corpus_cache: Path) -> None:
    """557 MHz, all slices as their stamps say, 11 to 13 W; the one slice that stands twice is a duplicate."""
    trace = open_trace(CORPUS / "aiu/sample_flex_3062_job_4.json", index_dir=corpus_cache)
    stamps = flex_stamps(trace.indexes[0])
    assert stamps is not None and stamps.mhz == pytest.approx(557.05, abs=0.01)
    assert np.abs(stamps.stated_ns(stamps.mhz) - stamps.durations).max() < 2
    starts = trace.indexes[0].column("slices.start")[stamps.positions].astype(np.int64)
    *_, watts = stamps.watts(starts)
    assert watts.min() > 10.5 and watts.max() < 13
    rules = {row["rule"] for row in analyse_doctor(Scope(trace))["doctor"].rows()}
    assert rules == {"duplicate-starts"}


def test_ranks_whose_pids_are_all_0(tmp_path: Path) -> None:
    """Each process counts its devices from 0: the names of their files tell the ranks, where those differ."""
    folder = jobs_of_ranks(tmp_path / "jobs", {3: 0, 5: 60, 6: 10})
    for path in folder.iterdir():
        path.write_text(
            json.dumps([event | {"pid": 0} for event in json.loads(path.read_text(encoding="utf-8"))]),
            encoding="utf-8",
        )
    trace = open_trace([folder], index_dir=tmp_path / "i")
    assert [trace.rank(source) for source in range(3)] == [3, 5, 6]
    trace.close()


def prepared(overlapping: bool, by_device: bool, folder: Path) -> Trace:
    """Return a trace of four kernels of 100 µs at 500 MHz, each prepared for 200 µs before; the preparations
    overlap by half, or not, and their stamps say 200 µs, or another time.
    """
    rows = []
    for n in range(4):
        at = 1000 + (100 if overlapping else 400) * n
        run = 3000 + 300 * n
        stamps = [1, 1 + 50 * 500, 1 + (250 if by_device else 900) * 500, 0, 0]
        attr = {f"TS{k + 1}": hex(value) for k, value in enumerate(stamps)}
        rows.append((at, 200, 1 + n, f"mm_{n} Cmpt Prep", attr))
        attr = {f"TS{k + 1}": str(1 + value * 500) for k, value in enumerate((0, 20, 200, 300, 330))}
        rows.append((run, 100, 9, f"mm_{n} Cmpt Exec", attr))
    events = [(at, begin(at, name=name, pid=0, tid=tid, attr=attr)) for at, _, tid, name, attr in rows]
    events += [(at + us, end(at + us, pid=0, tid=tid)) for at, us, tid, *_ in rows]
    folder.mkdir()
    path = folder / "p-0-job-1.json"
    write_events(path, [event for _, event in sorted(events, key=lambda one: one[0])])
    return open_trace([path], index_dir=folder / "i")


@pytest.mark.parametrize(
    ("overlapping", "by_device", "prepare_us", "host_us"),
    [(True, True, 500, 0), (False, True, 800, 0), (True, False, 0, 500)],
)
def test_preparing_is_the_devices_where_its_stamps_say_so(
    overlapping: bool, by_device: bool, prepare_us: int, host_us: int, tmp_path: Path
) -> None:
    """Slices as long as TS2 to TS3 are a state of the device, together where they overlap, and no work of the
    host; others are the host's.
    """
    trace = prepared(overlapping, by_device, tmp_path / "jobs")
    (state,) = device_states(Scope(trace))
    assert (state.ns["prepare"], state.ns["compute"]) == (prepare_us * 1000, 400_000)
    host = host_of(Scope(trace, source=0))
    assert host.union(np.ones(len(host), np.bool_)).length == host_us * 1000


SPANS_US = {"wait": None, "in": 20, "prepare": 180, "compute": 100, "out": 30}


@pytest.mark.parametrize("spelling", ["FLEX", "Spyre"])
def test_cycles_by_phase(spelling: str, tmp_path: Path) -> None:
    """Both spellings of the five stamps give the same phases; a stamp of 0 was not recorded."""
    if spelling == "FLEX":
        trace = prepared(False, True, tmp_path / "jobs")
    else:
        cycles = [1 + value * 500 for value in (0, 20, 200, 300, 330)]
        events: list[Event] = [metadata("process_labels", 0, labels="AIU 0")]
        for n, stamps in enumerate([*[cycles] * 4, [0] * 5, "not a list"]):
            args = {"cycles_ts": stamps}
            events.append(complete(400 * n, 100, f"mm_{n % 2} Exec", "kernel", pid=0, tid=1, args=args))
        trace = open_events(tmp_path, events)
    table = analyse_kernels(Scope(trace), column=["cycles"])["kernels"]
    for row in table.rows():
        for phase, us in SPANS_US.items():
            assert row[f"{phase}_cycles"] == (None if us is None else us * 500), (row["name"], phase)


def test_cycles_of_what_receives_are_waits(tmp_path: Path) -> None:
    """The time in which data comes in is, of a slice that receives, a wait for its peer."""
    attr = {f"TS{k + 1}": str(100 + 10 * k) for k in range(5)}
    name = "SenRdmaRecv_1 [sync=AllReduce_x]"
    path = write_events(tmp_path / "t.json", [begin(0, name=name, pid=0, attr=attr), end(9, pid=0)])
    (row,) = analyse_kernels(Scope(open_trace([path])), column=["cycles"])["kernels"].rows()
    assert (row["wait_cycles"], row["in_cycles"], row["out_cycles"]) == (10, None, 10)


def test_no_stamps_no_cycles(tmp_path: Path) -> None:
    """Cycles of a trace without stamps are an error of one line."""
    trace = open_events(tmp_path, [complete(0, 9, "k", "kernel", pid=0, tid=1)])
    with pytest.raises(UsageError, match="no kernel has the stamps"):
        analyse_kernels(Scope(trace), column=["cycles"])["kernels"].rows()


def test_pieces_of_a_transfer_may_overlap(tmp_path: Path) -> None:
    """What a device sends at once is no kernel that begins before the last has ended; other work is."""
    names = ("Set BcList", "Xseg to rank 0", "Data")
    for form, said in (("SenRdmaSend_1 - {} DmaO", []), ("SenRdmaSend_1 - {} Cmpt Exec", ["kernel-overlap"])):
        events = [
            {"ph": ph, "name": form.format(name), "pid": 0, "tid": 7, "ts": ts}
            for at, name in enumerate(names)
            for ph, ts in (("B", 10 * at), ("E", 10 * at + 25))
        ]
        (tmp_path / "job.json").write_text(json.dumps(events), encoding="utf-8")
        trace = open_trace(tmp_path / "job.json", index_dir=tmp_path / "index")
        rules = analyse_doctor(Scope(trace))["doctor"].texts("rule")
        assert [rule for rule in rules if rule == "kernel-overlap"] == said
