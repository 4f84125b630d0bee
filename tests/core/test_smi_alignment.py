"""A log's time zone, lag and cards are proposed from when the trace's device was busy."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest

from tests.corpus import CORPUS, needs
from tracelane.core.base.arrays import I64
from tracelane.core.logs.clock_fit import ZONES, Proposal, propose
from tracelane.core.logs.log import TelemetryLog, open_log
from tracelane.core.logs.telemetry_tables import describe

FOLDER = CORPUS / "aiu_smi"
PAIRS: list[dict[str, Any]] = (
    json.loads((FOLDER / "PAIRS.json").read_text(encoding="utf-8")) if FOLDER.is_dir() else []
)
SECOND = 1_000_000_000
DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "gpu_memset")
HEADER = "ID,Date (YYYYMMDD),Time (HH:MM:SS),hostcpu %,pwr W,tempr C,busy %\n"
START = 1_781_947_920 * SECOND

pairs = pytest.mark.parametrize("pair", PAIRS, ids=lambda p: p["smi_log"][:5])


def device_busy(pair: dict[str, Any], categories: tuple[str, ...] = DEVICE_CATEGORIES) -> tuple[I64, I64]:
    trace = json.loads((CORPUS / "aiu" / "spyre_torch_profiler" / pair["trace"]).read_text(encoding="utf-8"))
    base = trace["baseTimeNanoseconds"]
    events = [
        (base + round(e["ts"] * 1000), base + round((e["ts"] + e["dur"]) * 1000))
        for e in trace["traceEvents"]
        if e.get("ph") == "X" and e.get("cat") in categories and e["pid"] == 0
    ]
    starts, ends = zip(*events)
    return np.array(starts), np.array(ends)


def proposal_for(pair: dict[str, Any], log: TelemetryLog, **options: Any) -> Proposal:
    window = (pair["trace_first_slice_ns"], pair["trace_last_end_ns"])
    return propose(log, {"0": device_busy(pair, **options)}, window)


@needs(CORPUS)
@pairs
@pytest.mark.parametrize("categories", [DEVICE_CATEGORIES, ("kernel",)], ids=["all", "kernels"])
def test_pairs_are_aligned(pair: dict[str, Any], categories: tuple[str, ...]) -> None:
    """Of each pair the time zone is exactly the true one and the lag within one sampling interval of it."""
    proposal = proposal_for(pair, open_log(FOLDER / pair["smi_log"]), categories=categories)
    assert proposal.utc_offset_s == pair["utc_offset_s"]
    assert abs(proposal.lag_s - pair["clock_skew_s"]) <= pair["interval_s"]
    assert proposal.confidence > 0.3
    traced = [str(d["smi_id"]) for d in pair["devices"] if d["is_the_traced_AIU"]]
    assert dict(proposal.device_of) == {traced[0]: "0"}


@needs(CORPUS)
@pairs
def test_rows_stand_where_they_were_printed(pair: dict[str, Any]) -> None:
    """With the proposed clock each row ends within one sampling interval of when it truly did."""
    log = open_log(FOLDER / pair["smi_log"])
    proposal = proposal_for(pair, log)
    true = np.array(pair["row_true_utc_ns"])
    assert log.devices
    for number, device in enumerate(log.devices.values()):
        error = device.end_ns + proposal.shift_ns - true[number :: len(log.devices)]
        assert np.abs(error).max() <= pair["interval_s"] * SECOND


def restamped(pair: dict[str, Any], folder: Path, zone: int, skew: float) -> TelemetryLog:
    """Write the pair's log as a host of another zone with a clock that runs ahead would have."""
    true = iter(pair["row_true_utc_ns"])
    lines = []
    for line in (FOLDER / pair["smi_log"]).read_text(encoding="utf-8").splitlines():
        if line[:1] not in "#I":
            local = datetime.fromtimestamp(next(true) / SECOND + zone + skew, UTC)
            if "," in line:
                cells = line.split(",")
                cells[1:3] = local.strftime("%Y%m%d"), local.strftime("%H:%M:%S")
                line = ",".join(cells)
            else:
                line = line[:4] + local.strftime("%Y%m%d  %H:%M:%S") + line[22:]
        lines.append(line)
    path = folder / "restamped.log"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return open_log(path)


@needs(CORPUS)
@pytest.mark.slow
@pairs
@pytest.mark.parametrize(
    ("zone", "skew"),
    [(0, 0.0), (19800, 0.3), (20700, -1.4), (-12600, 2.0), (45900, 37.25), (-39600, -3.6), (50400, 0.08)],
)
def test_other_zones_and_skewed_clocks(pair: dict[str, Any], tmp_path: Path, zone: int, skew: float) -> None:
    """Half and three-quarter hours are found as well, and a clock that is off to within one interval."""
    log = restamped(pair, tmp_path, zone, skew)
    proposal = proposal_for(pair, log)
    assert proposal.utc_offset_s == zone
    assert abs(proposal.lag_s - skew) <= pair["interval_s"]


def log_with(
    folder: Path, busy: list[list[float]], interval: float, zone: int = 0, first: float = 0.0
) -> TelemetryLog:
    """Write a log of one card per list of busy shares, printed every `interval` s from START + first on."""
    lines = []
    for i in range(len(busy[0])):
        stamp = datetime.fromtimestamp(START // SECOND + first + (i + 1) * interval + zone, UTC)
        for card, shares in enumerate(busy):
            power = 20 + 50 * shares[i]
            lines.append(f"{card},{stamp:%Y%m%d,%H:%M:%S},1.0,{power:.1f},40.0,{100 * shares[i]:.0f}\n")
    path = folder / "made.csv"
    path.write_text(HEADER + "".join(lines), encoding="utf-8")
    return open_log(path)


def steps(seed: int, seconds: int) -> tuple[I64, I64, np.ndarray[Any, Any]]:
    """Return random busy intervals and their share of each 10 ms."""
    random = np.random.default_rng(seed)
    starts = np.sort(random.choice(seconds * 50, seconds * 4, replace=False)) * 20_000_000
    ends = starts + random.integers(1, 60, len(starts)) * 1_000_000
    fine = np.zeros(seconds * 1000)
    for a, b in zip(starts, ends):
        fine[a // 1_000_000 : b // 1_000_000] = 1
    return starts + START, ends + START, fine


@pytest.mark.parametrize("lag", [0.0, 0.4, -7.3, 61.0])
def test_long_logs_around_a_short_trace(tmp_path: Path, lag: float) -> None:
    """A card that is busy before and after the trace too is aligned by what lies within the trace."""
    starts, ends, fine = steps(5, 240)
    shares = fine.reshape(-1, 500).mean(axis=1).tolist()
    log = log_with(tmp_path, [shares], 0.5, zone=7200, first=lag)
    window = (START + 80 * SECOND, START + 160 * SECOND)
    inside = (starts >= window[0]) & (ends <= window[1])
    proposal = propose(log, {"p": (starts[inside], ends[inside])}, window)
    assert proposal.utc_offset_s == 7200
    assert abs(proposal.lag_s - lag) <= 0.5
    assert proposal.verdict == {0.0: "matches", 0.4: "matches", -7.3: "near", 61.0: "foreign"}[lag]
    assert proposal.confidence == 0 if lag == 61.0 else proposal.confidence > 0.3


@needs(CORPUS)
@pytest.mark.slow
@pairs
@pytest.mark.parametrize(
    ("skew", "verdict"),
    [
        (0.0, "matches"),
        (1.2, "matches"),
        (-14.0, "near"),
        (50.0, "near"),
        (-71.0, "foreign"),
        (140.0, "foreign"),
    ],
)
def test_the_further_the_clock_the_less_it_is_of_this_run(
    pair: dict[str, Any], tmp_path: Path, skew: float, verdict: str
) -> None:
    """A log matches up to two seconds, is near up to a minute, and foreign beyond, in any zone."""
    assert proposal_for(pair, restamped(pair, tmp_path, 19800, skew)).verdict == verdict


@needs(CORPUS)
@pairs
def test_logs_of_other_runs_are_foreign(pair: dict[str, Any]) -> None:
    """Of all logs and traces of the corpus those match that were recorded together, and no others do."""
    for other in PAIRS:
        log = open_log(FOLDER / other["smi_log"])
        assert (proposal_for(pair, log).verdict == "matches") == (other is pair)
        if other is not pair:
            assert proposal_for(pair, log).verdict == "foreign"
            assert "another run" in proposal_for(pair, log).reason


def test_a_zone_that_is_not_known_makes_a_log_near(tmp_path: Path) -> None:
    """Where several zones fit the log is used if one is given or this host's, else proposed."""
    starts = START + np.arange(0, 40, 2) * SECOND
    log = log_with(tmp_path, [[1.0, 0.0] * (4 * 1800)], 1.0, first=-7200)
    busy, window = {"p": (starts, starts + SECOND)}, (START, START + 40 * SECOND)
    assert propose(log, busy, window).verdict == "matches"  # UTC, which a host without a zone has
    assert propose(log, busy, window, host_offset_s=5 * 3600).verdict == "near"
    assert propose(log, busy, window, host_offset_s=5 * 3600, zone_s=3600).verdict == "matches"


PARTS = [(-20, 8), (-2, 8), (13, 40), (6, 18), (-20, 12), (22, 60)]
"""From when to when a log of a trace of 30 s is, s."""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("interval", [0.25, 1.0])
def test_a_log_of_a_part_of_the_trace(tmp_path: Path, part: tuple[int, int], interval: float) -> None:
    """A log that covers some of the trace is compared there: its cards and its clock are found, and cards
    that are said in another order are told apart at a given lag, too.
    """
    runs, folder = [steps(seed, 90) for seed in (21, 22)], tmp_path
    begin, window = 30 * SECOND, (START + 30 * SECOND, START + 60 * SECOND)
    busy = {}
    for name, (starts, ends, _) in zip("ab", runs):
        inside = (starts >= window[0]) & (ends <= window[1])
        busy[name] = starts[inside], ends[inside]
    rows = slice(*(round((edge + begin // SECOND) / interval) for edge in part))
    per_row = round(interval * 1000)
    shares = [fine[:90_000].reshape(-1, per_row).mean(axis=1)[rows].tolist() for _, _, fine in runs]
    log = log_with(folder, shares[::-1], interval, first=begin // SECOND + part[0])
    proposal = propose(log, busy, window, zone_s=0)
    assert (proposal.verdict, dict(proposal.device_of)) == ("matches", {"0": "b", "1": "a"})
    assert abs(proposal.lag_s) <= 1.0
    middle = 0.5 if interval == 1 else 0.0  # of whole seconds
    given = propose(log, busy, window, zone_s=0, lag_s=middle)
    assert (given.lag_s, dict(given.device_of)) == (middle, {"0": "b", "1": "a"})


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (-40.0, "it ends 9.75 s before the trace begins"),
        (70.0, "it begins 10.25 s after the trace has ended"),
    ],
)
@pytest.mark.parametrize("seed", range(4))
def test_a_log_beside_the_trace_is_foreign(tmp_path: Path, first: float, words: str, seed: int) -> None:
    """A log that ends before the trace or begins after it is not laid over it at a lag of chance."""
    starts, ends, _ = steps(1, 60)
    shares = np.random.default_rng(seed).random(60).tolist()
    log = log_with(tmp_path, [shares], 0.5, first=first)
    proposal = propose(log, {"p": (starts, ends)}, (START, START + 60 * SECOND), zone_s=0)
    assert proposal.verdict == "foreign" and proposal.lag_s == 0.0 and words in proposal.reason


def test_idle_cards_of_busy_devices_are_near(tmp_path: Path) -> None:
    """A log of cards that did nothing while the trace's devices worked is not used by itself; one of a trace
    without work is.
    """
    log = log_with(tmp_path, [[0.0] * 60], 1.0)
    starts, window = START + np.arange(0, 60, 2) * SECOND, (START, START + 60 * SECOND)
    assert propose(log, {"p": (starts, starts + SECOND)}, window).verdict == "near"
    assert propose(log, {"p": (starts[:1], starts[:1] + SECOND)}, window).verdict == "matches"


def test_a_card_that_did_other_work_is_near(tmp_path: Path) -> None:
    """A log at the time of the trace whose activity is not the trace's is not used by itself."""
    starts, ends, _ = steps(2, 60)
    other = np.random.default_rng(3).random(120).tolist()
    log = log_with(tmp_path, [other], 0.5)
    assert propose(log, {"p": (starts, ends)}, (START, START + 60 * SECOND)).verdict != "matches"


def test_the_zones_are_those_of_the_zone_database() -> None:
    """Every offset that a place has had since 2000 is tried, and no other."""
    offsets = set()
    for name in available_timezones():
        zone = ZoneInfo(name)
        for year in range(2000, 2027):
            for month in (1, 7):
                offset = datetime(year, month, 1, tzinfo=zone).utcoffset()
                assert offset is not None
                offsets.add(round(offset.total_seconds()))
    if not offsets:
        pytest.skip("this machine has no zone database")
    assert set(ZONES) == {offset for offset in offsets if offset % 900 == 0}


@pytest.mark.slow
def test_many_zones_overlap(tmp_path: Path) -> None:
    """A log of many hours overlaps at many zones; the activity tells which."""
    starts, ends, fine = steps(7, 60)
    shares = np.zeros(6 * 3600)
    shares[10_000 : 10_000 + 60] = fine.reshape(-1, 1000).mean(axis=1)
    log = log_with(tmp_path, [shares.tolist()], 1.0, zone=-18000, first=-10_000)
    proposal = propose(log, {"p": (starts, ends)}, (START, START + 60 * SECOND))
    assert proposal.utc_offset_s == -18000
    assert abs(proposal.lag_s) <= 1.0
    assert "fits best" in proposal.reason


def test_cards_and_processes_are_matched(tmp_path: Path) -> None:
    """Four cards in another order than four processes are told apart by their activity."""
    runs = [steps(seed, 30) for seed in range(4)]
    order = [2, 0, 3, 1]
    log = log_with(tmp_path, [runs[k][2].reshape(-1, 500).mean(axis=1).tolist() for k in order], 0.5)
    proposal = propose(log, {f"rank{k}": runs[k][:2] for k in range(4)}, (START, START + 30 * SECOND))
    assert dict(proposal.device_of) == {str(card): f"rank{k}" for card, k in enumerate(order)}
    assert proposal.lag_s == pytest.approx(0, abs=0.5)


def test_alike_cards_are_taken_in_order(tmp_path: Path) -> None:
    """Where nothing tells cards apart they belong to the processes in order, one each."""
    starts, ends, fine = steps(1, 30)
    shares = fine.reshape(-1, 500).mean(axis=1).tolist()
    log = log_with(tmp_path, [shares] * 3, 0.5)
    proposal = propose(log, dict.fromkeys(("a", "b", "c"), (starts, ends)), (START, START + 30 * SECOND))
    assert dict(proposal.device_of) == {"0": "a", "1": "b", "2": "c"}


def test_periodic_work_is_told_to_be_ambiguous(tmp_path: Path) -> None:
    """Equal steps fit at many lags: the nearest to none is taken, and the doubt is said."""
    starts = START + np.arange(0, 60, 2) * SECOND
    log = log_with(tmp_path, [[1.0, 0.0] * 30], 1.0)
    inside = slice(10, 20)
    proposal = propose(
        log, {"p": (starts[inside], starts[inside] + SECOND)}, (START + 20 * SECOND, START + 40 * SECOND)
    )
    assert abs(proposal.lag_s) <= 1.0
    assert proposal.confidence < 0.3
    assert "ambiguous" in proposal.reason


@pytest.mark.parametrize(
    ("shares", "first", "words"),
    [
        ([0.0] * 60, 0.0, "no activity"),
        ([0.5, 0.0] * 30, 40 * 86_400.0, "no time zone"),
        ([], 0.0, "no rows"),
    ],
)
def test_nothing_to_fit(tmp_path: Path, shares: list[float], first: float, words: str) -> None:
    """An idle log, one of another day and an empty one give no confidence, and say why."""
    log = log_with(tmp_path, [shares], 1.0, first=first)
    starts, ends, _ = steps(1, 60)
    proposal = propose(log, {"p": (starts, ends)}, (START, START + 60 * SECOND))
    assert words in proposal.reason
    assert proposal.confidence <= 0.1
    assert proposal.lag_s == 0.0


def test_a_trace_without_device_time(tmp_path: Path) -> None:
    """A trace of the host alone still gets its zone."""
    log = log_with(tmp_path, [[0.5, 0.0] * 30], 1.0, zone=3600)
    none = np.empty(0, np.int64)
    for busy in ({}, {"p": (none, none)}):
        proposal = propose(log, busy, (START + 10 * SECOND, START + 20 * SECOND))
        assert (proposal.utc_offset_s, proposal.lag_s) == (3600, 0.0)


@pytest.mark.parametrize("since_1970", [True, False])
def test_stamps_that_are_utc_have_no_zone(tmp_path: Path, since_1970: bool) -> None:
    """Stamps since 1970 need no zone; stamps that count from a log's own start begin with the trace."""
    starts, ends, fine = steps(3, 30)
    begin = START / SECOND if since_1970 else 0.0
    rows = "".join(
        f"{begin + (i + 1) / 2:.3f},{share}\n" for i, share in enumerate(fine.reshape(-1, 500).mean(axis=1))
    )
    path = tmp_path / "log.csv"
    path.write_text("timestamp,gpu_util (%)\n" + rows, encoding="utf-8")
    proposal = propose(open_log(path), {"p": (starts, ends)}, (START, START + 30 * SECOND))
    assert proposal.utc_offset_s == pytest.approx(0 if since_1970 else -START / SECOND)
    assert abs(proposal.lag_s) <= 0.5
    assert proposal.confidence > 0.3


@pytest.mark.parametrize("late", [0, 4, 13])
def test_a_log_with_a_time_of_its_own_has_any_lag(tmp_path: Path, late: int) -> None:
    """Stamps that count from the log's start are of this run wherever in the trace its activity fits well."""
    starts, ends, fine = steps(3, 60)
    rows = [f"{(i + 1) / 2:.3f},{share}\n" for i, share in enumerate(fine.reshape(-1, 500).mean(axis=1))]
    path = tmp_path / "log.csv"
    path.write_text("elapsed,gpu_util (%)\n" + "".join(rows), encoding="utf-8")
    window = (START + late * SECOND, START + 60 * SECOND)
    inside = (starts >= window[0]) & (ends <= window[1])
    proposal = propose(open_log(path), {"p": (starts[inside], ends[inside])}, window)
    assert proposal.verdict == "matches"
    assert proposal.utc_offset_s + proposal.lag_s == pytest.approx(-START / SECOND, abs=0.5)


@needs(CORPUS)
def test_description() -> None:
    """The description is JSON and has what the telemetry command promises."""
    pair = PAIRS[2]
    log = open_log(FOLDER / pair["smi_log"])
    description = json.loads(json.dumps(describe(log, proposal_for(pair, log))))
    assert (description["format"], description["utc_offset_s"], description["device_of"]) == (
        "text",
        7200,
        {"1": "0"},
    )
    assert description["rows"] + description["missing"] + description["unparsed"] == pair["device_rows"]
    assert {"name", "unit", "warning"} <= set(description["columns"][0])
    for key in ("path", "devices", "interval_s", "lag_s", "confidence", "reason"):
        assert key in description
