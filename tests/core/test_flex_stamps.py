"""Cycle stamps of FLEX job traces: frequency, waiting for a peer, power, and what disagrees with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.core.test_flex import LANE, jobs_of_ranks
from tests.corpus import CORPUS, needs_corpus
from tests.events import Event, begin, end
from tracelane.core.logs.counters import with_cheap_lanes
from tracelane.core.tables.device_state import device_states
from tracelane.core.tables.doctor.doctor import analyse_doctor, doctor_exit_code
from tracelane.core.tables.flex_stamps import flex_stamps
from tracelane.core.tables.kernels import kernels
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import Trace, open_trace

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


def job(*more: list[Event], exec_us: float | None = None) -> list[Event]:
    """Return data in, eight kernels, data out; one kernel's stamps may say another time."""
    parts = [piece(0, 20, "in DmaI"), *(piece(30 + 40 * at, 30, f"mm_{at} Cmpt Exec") for at in range(8))]
    if exec_us is not None:
        parts[4] = piece(30 + 40 * 3, 30, "mm_3 Cmpt Exec", exec_us)
    return [event for part in (*parts, piece(400, 20, "out DmaO"), *more) for event in part]


def opened(path: Path, events: list[Event]) -> Trace:
    path.mkdir(exist_ok=True)
    (path / "p-0-job-1.json").write_text(json.dumps(events))
    return open_trace(path / "p-0-job-1.json", index_dir=path / "index")


def test_the_frequency_is_that_of_the_file(tmp_path: Path) -> None:
    """From the stamps of single phases, across a wrapped counter, and with one slice that disagrees."""
    stamps = flex_stamps(opened(tmp_path, job(exec_us=12)).indexes[0])
    assert stamps is not None and stamps.mhz == pytest.approx(MHZ, rel=1e-3)
    stated = stamps.stated_ns(stamps.mhz)
    assert stated.round(-2).tolist() == [20_000, *[30_000] * 3, 12_000, *[30_000] * 4, 20_000]


def test_doctor_names_slices_that_disagree_with_their_stamps(tmp_path: Path) -> None:
    """A line with how many, by how much and at which frequency; none where all agree, or nothing tells."""
    for name, events, count in (("off", job(exec_us=12), 1), ("sound", job(), 0), ("few", job()[:4], 0)):
        tables = analyse_doctor(Scope(opened(tmp_path / name, events)))
        rows = [row for row in tables["doctor"].rows() if row["rule"] == "cycle-stamps"]
        assert [row["count"] for row in rows] == [count] * bool(count), name
        assert doctor_exit_code(tables) == bool(count)
    (row,) = analyse_doctor(Scope(opened(tmp_path / "off", job(exec_us=12))))["doctor"].rows()
    assert row["text"] == "1 of 10 slices disagrees with its cycle stamps at 560 MHz, by up to 18 µs"
    assert row["evidence"][0]["label"] == "not as its stamps say: mm_3 Cmpt Exec"


def test_receiving_waits_until_the_peer_has_sent(tmp_path: Path) -> None:
    """TS1 to TS2 is waiting, the rest is not split; sending waits for nobody, nor does what has no stamps."""
    receive = piece(500, 100, "SenRdmaRecv_3 [4096B] [sync=AllReduce_1_s0_r0x3_2]")
    first = START + round(500 * MHZ)
    own = {"TS1": first, "TS2": first + 60 * MHZ, **dict.fromkeys(("TS3", "TS4", "TS5"), first + 100 * MHZ)}
    receive[0]["attr"] |= {key: hex(value % (1 << 32)) for key, value in own.items()}
    send = piece(700, 40, "SenRdmaSend_4 [4096B] [sync=AllReduce_1_s0_r0x3_2]")
    trace = opened(tmp_path / "stamped", job(receive, send))
    ((state,)) = (device_states(Scope(trace)),)
    times = state[0].ns
    assert times["collective_waiting"] == pytest.approx(60_000, abs=100)
    assert times["collective_unsplit"] == pytest.approx(80_000, abs=100) and times["collective_moving"] == 0
    table = {row["name"]: row for row in kernels(Scope(trace), arguments=["bytes"]).rows()}
    assert table["SenRdmaSend_4 [4096B] [sync=AllReduce_1_s0_r0x3_2]"]["arg:bytes"] == 4096
    for event in receive:
        event.pop("attr", None)
    (plain,) = device_states(Scope(opened(tmp_path / "plain", job(receive, send))))
    assert plain.ns["collective_waiting"] == 0


def test_power_is_a_lane(tmp_path: Path) -> None:
    """In W, from the charge that the stamps count, below the device; a trace without stamps has none."""
    trace = with_cheap_lanes(opened(tmp_path, job()))
    (lane,) = [one for one in trace.lanes if one.source == 1]
    assert lane.title.endswith("power W")
    values = trace.computed.column("samples.value")
    assert len(values) == 9 and np.allclose(values, 25, rtol=0.01)
    bare = [{key: value for key, value in event.items() if key != "attr"} for event in job()]
    assert not [one for one in with_cheap_lanes(opened(tmp_path / "bare", bare)).lanes if one.source == 1]


@needs_corpus
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
        path.write_text(json.dumps([event | {"pid": 0} for event in json.loads(path.read_text())]))
    trace = open_trace([folder], index_dir=tmp_path / "i")
    assert [trace.rank(source) for source in range(3)] == [3, 5, 6]
    trace.close()
