"""Times of any size: clamped once by either reader, and sums of them exact or at the limit of int64."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.boundary_times import BOUNDARY_NS, WRITTEN, boundary_trace, event_text
from tests.corpus import thinned
from tests.events import Event, complete, index_of, write_events
from tests.reading import index_differences
from tests.sambatune import write_report
from tests.scanning import scan_text, scanners
from tests.tui.small_file import small_file
from tracelane.core.base.arrays import MAX, MIN, add_at, added_up, sum_of, sums_between
from tracelane.core.base.errors import DamagedIndexError, WrongIndexError
from tracelane.core.base.units import TIME_LIMIT, TIME_LIMIT_TEXT
from tracelane.core.demo.trace import write_demo
from tracelane.core.index import column_checks, lane_writer
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.index.workers import Worker
from tracelane.core.query.groups import Groups
from tracelane.core.read.batch import EventFlag, Table
from tracelane.core.read.scan_reference import ScanText
from tracelane.core.read.source import open_source
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

INT64 = np.iinfo(np.int64)


def clamped(ns: int) -> int:
    return max(-TIME_LIMIT, min(TIME_LIMIT, ns))


def as_written(form: str) -> list[int]:
    """Return the ns that are written in a form; integers have whole µs."""
    return [ns // 1000 * 1000 if form == "integer" else ns for ns in BOUNDARY_NS]


def test_no_sum_or_difference_of_two_times_overflows() -> None:
    """The limit leaves room for both, and for stamps of this century."""
    assert INT64.min < -2 * TIME_LIMIT and INT64.max > 2 * TIME_LIMIT
    assert TIME_LIMIT > 4 * 10**18
    years = int(TIME_LIMIT / (365.25 * 86400e9))
    assert f"±{years} years (2^{TIME_LIMIT.bit_length()} - 1 ns)" == TIME_LIMIT_TEXT


@pytest.mark.parametrize("phase", "XBEbeCsftiM")
@pytest.mark.parametrize("form", WRITTEN)
def test_both_scanners_clamp_at_the_limit(form: str, phase: str) -> None:
    """A time stands in the columns exactly as far as the limit, and is flagged beyond it."""
    write = WRITTEN[form]
    exact = as_written(form)
    events = [event_text(phase, write(ns), id=1, args={"value": 1}) for ns in BOUNDARY_NS]
    text = ScanText.of(",".join(events).encode())
    scans = [scan_text(scanner, text).batch for scanner in scanners()]
    for batch in scans:
        (starts,) = [table["start"] for table in batch.tables.values() if len(table.get("start", ()))] or [[]]
        assert list(starts) == ([] if phase == "M" else [clamped(ns) for ns in exact])
        flags = [table["flags"] for table in batch.tables.values() if len(table.get("flags", ()))]
        for (beyond,) in [flags] if flags else []:
            assert [bool(one & EventFlag.CLAMPED) for one in beyond] == [ns != clamped(ns) for ns in exact]
    assert all(batch.problems == scans[0].problems for batch in scans)


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITTEN)
def test_boundary_times_are_built(form: str, tmp_path: Path) -> None:
    """Events of every kind at and between all boundary times: both readers build the same sound index."""
    path = tmp_path / "t.json"
    path.write_bytes(boundary_trace(form))
    assert index_differences(path, tmp_path) == []
    index = ingest_index(open_source(path), IndexOptions(index_dir=tmp_path / "index"))
    index.check(*index.manifest["columns"])
    count = index.length("slices.start")
    assert count > 3 * len(BOUNDARY_NS) ** 2 / 2
    starts, durations = index.column("slices.start"), index.durations_between(0, count)
    ends = [start + duration for start, duration in zip(starts.tolist(), durations.tolist())]
    assert min(durations) >= 0 and min(index.self_time(range(count))) >= 0
    assert min(starts) == -TIME_LIMIT and max(ends) == TIME_LIMIT
    names = index.strings(index.column("slices.name"))
    plain = [start for start, name in zip(starts.tolist(), names) if name == "no duration"]
    assert sorted(plain) == sorted(map(clamped, as_written(form)))
    index.close()


@pytest.mark.parametrize("pairs", ["BE", "X"])
def test_the_span_is_clamped_as_slices_are(pairs: str, tmp_path: Path) -> None:
    """What `info` says of the first and the last moment is what the lanes draw, also beyond the limit."""
    far = [event_text(phase, "1e19" if phase == "E" else "-1e19", dur="3e19") for phase in pairs]
    path = tmp_path / "t.json"
    near = [event_text("i", "0", s="t") for _ in far]
    path.write_text(f"[{', '.join([*near, *far])}]", encoding="utf-8")
    index = ingest_index(open_source(path), IndexOptions(index_dir=tmp_path / "index"))
    drawn = int(index.lanes["start"].min()), int(index.lanes["end"].max())
    assert (index.manifest["start_ns"], index.manifest["end_ns"]) == drawn == (-TIME_LIMIT, TIME_LIMIT)
    index.close()


def test_limit_in_docs_and_messages(tmp_path: Path) -> None:
    """What is clamped is said with the limit, by the read report as by the doctor's documentation."""
    index = index_of([complete(10**17, 1)], tmp_path)
    (problem,) = index.problems
    assert TIME_LIMIT_TEXT in problem["message"]
    docs = (Path(__file__).resolve().parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^\| `clamped-times`.*$", docs, re.MULTILINE)
    assert TIME_LIMIT_TEXT in row


@pytest.mark.slow
def test_time_bases_of_any_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A base that is no time counts as absent, and no difference of two carries a time beyond the limit."""
    collective = {
        "cat": "kernel",
        "name": "ncclDevKernel_AllReduce",
        "args": {"Collective name": "allreduce"},
    }
    for number, (base, ns) in enumerate(zip(BOUNDARY_NS, reversed(BOUNDARY_NS), strict=True)):
        folder = tmp_path / str(number)
        folder.mkdir()
        for rank in (0, 1):
            facts = f'"baseTimeNanoseconds": {base if rank else -base}, "distributedInfo": {{"rank": {rank}}}'
            events = [event_text("X", WRITTEN["exponent"](at), "5", **collective) for at in (ns, 0)]
            text = f'{{{facts}, "traceEvents": [{", ".join(events)}]}}'
            (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")
        for command in ("info", "ranks", "view"):
            assert main([command, str(folder), "--index-dir", str(folder / "index")]) == 0, (base, command)
        trace = open_trace(folder, IndexOptions(index_dir=folder / "index"))
        for source, index in enumerate(trace.indexes):
            offset = trace.clocks.offset(source)
            assert int(index.lanes["start"].min()) + offset >= -TIME_LIMIT
            assert int(index.lanes["end"].max()) + offset <= TIME_LIMIT
        trace.close()
    assert "should not have happened" not in capsys.readouterr().err


# -- tables --------------------------------------------------------------------------------------------------


def device_trace(start: int, other: int, duration: int) -> bytes:
    """Return a trace of every kind of work that tables look at, at two times."""
    first, second, dur = map(WRITTEN["float"], (start, other, duration))
    device: dict[str, Any] = {"cat": "kernel", "pid": 0, "tid": 7}
    number = {"stream": 7, "device": 0}
    shape = {"Collective name": "allreduce", "In msg nelems": 10}
    memory = {"Addr": 1, "Device Type": 1, "Device Id": 0}
    events = [
        event_text("X", first, dur, name="aten::mm", args={"External id": 1}),
        event_text("X", first, dur, name="cudaLaunchKernel", cat="cuda_runtime", args={"correlation": 7}),
        event_text("X", second, dur, name="cudaLaunchKernel", cat="cuda_runtime", args={"correlation": 8}),
        event_text("X", first, dur, name="k", args=number | {"correlation": 7}, **device),
        event_text("X", second, dur, name="k", args=number | {"correlation": 8}, **device),
        event_text("X", second, dur, name="ncclKernel_AllReduce", args=number | shape, **device | {"tid": 8}),
        event_text(
            "X", first, dur, name="Memcpy HtoD", **device | {"cat": "gpu_memcpy", "tid": 9}, args=number
        ),
        event_text("X", first, dur, name="ProfilerStep#1", cat="user_annotation"),
        event_text("X", second, dur, name="ProfilerStep#2", cat="user_annotation"),
        event_text("i", first, name="[memory]", args=memory | {"Bytes": 5, "Total Allocated": 5}),
        event_text("i", second, name="[memory]", args=memory | {"Bytes": -5, "Total Allocated": 0}),
        event_text("C", first, name="c", args={"v": 1}),
        event_text("X", first, dur, name="compile_fx", cat="dynamo_timed"),
        event_text("B", first, tid=2),
        event_text("E", second, tid=2),
    ]
    return ("[" + ",".join(events) + "]").encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "other", "duration"),
    product(
        (TIME_LIMIT, 0, -TIME_LIMIT, -(10**25)),
        (-TIME_LIMIT, 0, TIME_LIMIT),
        (0, TIME_LIMIT, 10**25),
    ),
)
def test_every_table_answers(
    start: int, other: int, duration: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No command ends in an error that was not foreseen, whatever the times."""
    commands = [[analysis.command] for analysis in ANALYSES]
    commands += [["info"], ["slices"], ["findings"], ["doctor"], ["summary"], ["report"], ["view"]]
    # DuckDB's errors end a process whose C code is checked by sanitizers.
    commands += [
        ["sql", "select * from slices", "--engine=sqlite"],
        ["range", "--by", "lane"],
        ["ops", "--by", "step"],
    ]
    path = tmp_path / "t.json"
    path.write_bytes(device_trace(start, other, duration))
    for command, *options in commands:
        code = main([command, str(path), *options, "--index-dir", str(tmp_path / "index")])
        assert code == (1 if command == "doctor" and code == 1 else 0), command
    assert "should not have happened" not in capsys.readouterr().err


def test_sums_stay_at_the_limits() -> None:
    """Sums of groups are exact, or stand at the limit that they went beyond; what is covered always fits."""
    durations = [2 * TIME_LIMIT] * 3 + [TIME_LIMIT, TIME_LIMIT, 1] + [-2 * TIME_LIMIT] * 2 + [7]
    groups = Groups(np.array([2, 0, 2, 1, 1, 1, 0, 3, 4]), 6)
    exact = [sum(n for n, code in zip(durations, groups.codes) if code == group) for group in range(6)]
    sums = groups.sums(np.array(durations))
    assert sums.tolist() == [max(INT64.min, min(INT64.max, value)) for value in exact]
    several = Groups(np.array([0, 0, 1]), 2)
    assert several.statistics(np.array([2 * TIME_LIMIT] * 3))["total_ns"].tolist() == [
        INT64.max,
        2 * TIME_LIMIT,
    ]
    assert several.statistics(np.array([2 * TIME_LIMIT] * 3))["mean_ns"].tolist() == [2.0**63] * 2
    starts, ends = np.array([-TIME_LIMIT, -TIME_LIMIT, 0]), np.array([TIME_LIMIT, TIME_LIMIT, 5])
    assert several.covered(starts, ends).tolist() == [2 * TIME_LIMIT, 5]


# -- an index that was just written is not damaged -----------------------------------------------------------


def test_a_negative_duration_is_never_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A builder that makes one says that it is at fault, of which file, and how to report that."""
    matched = lane_writer.LaneWriter._matched

    def reversed_durations(self: lane_writer.LaneWriter, worker: Worker, lanes: range, events: Table) -> Any:
        kind = matched(self, worker, lanes, events)
        events["duration"][:] *= -1
        return kind

    monkeypatch.setattr(lane_writer.LaneWriter, "_matched", reversed_durations)
    path = tmp_path / "t.json"
    path.write_text("[" + event_text("X", "1", "2") + "]", encoding="utf-8")
    with pytest.raises(WrongIndexError, match=r"t\.json .*negative duration.*fault of tracelane.*report it"):
        ingest_index(open_source(path), IndexOptions(index_dir=tmp_path / "index", threads=1))


@pytest.mark.parametrize("is_new", [True, False])
def test_wrong_values_of_a_new_index_are_no_damage(
    is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that no index may hold are a fault of tracelane where it has just written them."""
    path = tmp_path / "t.json"
    path.write_text("[" + event_text("X", "1", "2") + "]", encoding="utf-8")
    options = IndexOptions(index_dir=tmp_path / "index", threads=1)
    index = ingest_index(open_source(path), options)
    if not is_new:
        index.close()
        index = ingest_index(open_source(path), options)

    def refuse(name: str, values: object, columns: object) -> None:
        raise ValueError(f"{name} is not what it should be")

    monkeypatch.setitem(column_checks._SPECIAL, "slices.start", refuse)  # type: ignore[index]
    with pytest.raises(WrongIndexError if is_new else DamagedIndexError, match=r"slices\.start is not"):
        index.column("slices.start")
    index.close()


def test_damage_of_a_new_index_is_damage(tmp_path: Path) -> None:
    """Bytes that are other than those that were written are never the builder's fault."""
    index = index_of([complete(0, 1)], tmp_path)
    index.is_new = True
    file = index.folder / "slices.start.i8"
    file.write_bytes(bytes(byte ^ 255 for byte in file.read_bytes()))
    again = Index.open(index.folder)
    again.is_new = True
    with pytest.raises(DamagedIndexError, match="checksum"):
        again.column("slices.start")


RUNTIME = {"cat": "cuda_runtime"}
BY_LIMITS = {"kernel_wait_ns", "other_ns", "host_wait_ns"}
"""Columns whose rows are chosen by a number of ns: they do not grow with the times."""


# -- sums ---------------------------------------------------------------------------------------------------


def within(value: int) -> int:
    return max(MIN, min(MAX, value))


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_sums_equal_python_s(size: int) -> None:
    """Sums of numbers of any size are Python's, or at the limit that these are beyond."""
    chance = np.random.default_rng(size)
    for top in (5, 1 << 31, 1 << 32, 1 << 53, TIME_LIMIT, MAX):
        values = chance.integers(-top - 1, top, size, endpoint=True)
        for sample in (values, np.abs(values // 2), np.full(size, top), np.full(size, -top - 1)):
            exact = sample.tolist()
            assert sum_of(sample) == sum_of(exact) == within(sum(exact))
            begins = np.unique(chance.integers(0, size, 3) * (np.arange(3) > 0))
            ends = [*begins[1:].tolist(), size]
            sums = [within(sum(exact[low:high])) for low, high in zip(begins.tolist(), ends)]
            assert added_up(sample, begins).tolist() == sums
            assert sums_between(sample, begins, np.array(ends)).tolist() == sums
            at = chance.integers(0, 3, size)
            added = np.zeros(4, np.int64)
            add_at(added, at, sample)
            assert added.tolist() == [within(sum(np.array(exact, object)[at == n])) for n in range(4)]
            add_at(added, at, np.maximum(sample, 0))
            assert min(added) >= MIN and (not (sample >= 0).all() or min(added) >= 0)
    assert sum_of(np.zeros(0, np.int64)) == sum_of([]) == 0


# -- tables -------------------------------------------------------------------------------------------------


def nanoseconds(value: Any) -> int:
    return int(Decimal(str(value)) * 1000)


def stretched(path: Path) -> int:
    """Write beside a trace one over all of time, `long.json`: each time so many times as far from the middle.
    Return how many.
    """
    document = json.loads(path.read_bytes(), parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    timed = [event for event in events if "ts" in event and event["ph"] != "M"]
    times = [(nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))) for event in timed]
    first, last = min(start for start, _ in times), max(start + length for start, length in times)
    factor, middle = 2 * TIME_LIMIT // (last - first), (first + last) // 2
    for event, (start, length) in zip(timed, times):
        event["ts"] = f"{(start - middle) * factor}e-3"
        if "dur" in event:
            event["dur"] = f"{length * factor}e-3"
    facts = {"distributedInfo": document.get("distributedInfo", {})} if isinstance(document, dict) else {}
    text = json.dumps({**facts, "traceEvents": events}, default=float)
    path.with_name("long.json").write_text(text, encoding="utf-8")
    return factor


def write_crowd(folder: Path) -> Path:
    """Write a trace whose threads, steps, devices and streams all run at a time, each most of the time."""
    events: list[Event] = []
    for pid, tid, step in product((1, 2), (1, 2, 3), range(3)):
        at, number = 1000 * step + 10 * tid, 100 * pid + 10 * tid + step
        events.append(complete(at, 900, f"ProfilerStep#{step}", pid=pid, tid=tid, cat="user_annotation"))
        events.append(complete(at + 2, 890, "aten::mm", pid=pid, tid=tid, args={"External id": number}))
        args = {"correlation": number, "stream": tid, "device": pid, "External id": number, "bytes": 1 << 61}
        events.append(complete(at + 3, 880, "cudaLaunchKernel", pid=pid, tid=tid, args=args) | RUNTIME)
        for name, category in (
            ("gemm", "kernel"),
            ("nccl_AllReduce", "kernel"),
            ("Memcpy HtoD", "gpu_memcpy"),
        ):
            lane = {"pid": 10 + pid, "tid": f"{category} {name} {tid}", "cat": category}
            events.append(complete(at + 20, 870, name, args=args) | lane)
        memory = {"Addr": number, "Bytes": 1 << 62, "Device Type": 1, "Device Id": 0}
        instant = {"ph": "i", "name": "[memory]", "pid": pid, "tid": tid, "ts": at + 5, "args": memory}
        events.append(instant)
    return write_events(folder / "crowd.json", events)


def forms(analysis: Analysis) -> Iterator[list[str]]:
    """Yield the options that each form of an analysis has."""
    yield []
    for option in analysis.options:
        name = f"--{option.name.replace('_', '-')}"
        if option.choices:
            yield from ([name, choice] for choice in option.choices[1:])
        elif option.default is False:
            yield [name]


def columns(answer: Any) -> Iterator[tuple[str, list[int | float]]]:
    """Yield (table and column, ascending) of all numbers in the tables of JSON."""
    for name, table in answer["tables"].items():
        for column in table["columns"]:
            values = [row[column["name"]] for row in table["rows"]]
            yield (
                f"{name}.{column['name']}",
                sorted(value for value in values if isinstance(value, (int, float)) and value is not True),
            )


def _checked(short: Any, long: Any, factor: int) -> Iterator[str]:
    """Yield what is wrong with the numbers of a stretched trace, beside those of the trace."""
    before = dict(columns(short))
    for name, values in columns(long):
        was, key = before[name], name.partition(".")[2]
        if any(isinstance(value, int) and not MIN <= value <= MAX for value in values):
            yield f"{name}: {values} is beyond int64"
        if key != "parent" and values and values[0] < 0 and not (was and was[0] < 0):
            yield f"{name}: {was} became {values}"
        if key.endswith("_ns") and key not in BY_LIMITS and len(was) == len(values):
            for value, one in zip(values, was):
                expected = min(one * factor, MAX)
                if one > 1000 and abs(value - expected) > expected / 1000:
                    yield f"{name}: {value} instead of {expected}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", thinned(["crowd", "demo", "report", "every phase"], 2))
def test_totals_of_stretched_traces(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a trace over all of time each table has the numbers of the trace itself, so many times as great, or
    the limit.
    """
    make = {
        "demo": lambda: write_demo(tmp_path)[0],
        "report": lambda: write_report(tmp_path),
        "every phase": lambda: small_file(tmp_path),
        "crowd": lambda: write_crowd(tmp_path),
    }[kind]
    path = make()
    factor = stretched(path)
    wrong, answers = [], 0
    for command in ([analysis.name, *form] for analysis in ANALYSES for form in forms(analysis)):
        shapes = []
        for file in (path, path.with_name("long.json")):
            name, *options = command
            code = main([name, str(file), *options, "--json", "--index-dir", str(tmp_path / "index")])
            out, err = capsys.readouterr()
            assert "should not have happened" not in err, (command, err)
            shapes.append(json.loads(out) if out else None)
            assert code in (0, 1, 2, 64), (command, code)
        if all(shapes):
            answers += 1
            wrong += [f"{' '.join(command)}: {what}" for what in _checked(shapes[0], shapes[1], factor)]
    assert not wrong, "\n".join(wrong[:20])
    assert answers > len(ANALYSES)
