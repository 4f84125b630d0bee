"""Times of any size: clamped once, by either reader, so that nothing behind them overflows."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.boundary_times import BOUNDARY_NS, WRITTEN, boundary_trace, event_text
from tests.corpus import thinned
from tests.events import complete, index_of
from tests.reading import index_differences
from tests.scanning import native, reference, scan_text
from tracelane.core.base.errors import DamagedIndexError, WrongIndexError
from tracelane.core.index import column_checks, lane_writer
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.query.groups import Groups
from tracelane.core.read.columns import TIME_LIMIT, TIME_LIMIT_TEXT, EventFlag
from tracelane.core.read.scanner import ScanText
from tracelane.core.read.source import open_source
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
    scans = [scan_text(scanner, text).batch for scanner in (native(), reference())]
    for batch in scans:
        (starts,) = [table["start"] for table in batch.tables.values() if len(table.get("start", ()))] or [[]]
        assert list(starts) == ([] if phase == "M" else [clamped(ns) for ns in exact])
        flags = [table["flags"] for table in batch.tables.values() if len(table.get("flags", ()))]
        for (beyond,) in [flags] if flags else []:
            assert [bool(one & EventFlag.CLAMPED) for one in beyond] == [ns != clamped(ns) for ns in exact]
    assert scans[0].problems == scans[1].problems


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITTEN)
def test_boundary_times_are_built(form: str, tmp_path: Path) -> None:
    """Events of every kind at and between all boundary times: both readers build the same sound index."""
    path = tmp_path / "t.json"
    path.write_bytes(boundary_trace(form))
    assert index_differences(path, tmp_path) == []
    index = ingest_index(open_source(path), IndexOptions(index_dir=tmp_path / "index"))
    assert index.verify() == []
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
    path.write_text(f"[{', '.join(far)}]")
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
            (folder / f"rank{rank}.json").write_text(text)
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
@pytest.mark.parametrize("start", thinned([TIME_LIMIT, 0, -TIME_LIMIT, -(10**25)], 4))
def test_every_table_answers(start: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No command ends in an error that was not foreseen, whatever the times."""
    commands = [[analysis.command] for analysis in ANALYSES]
    commands += [["info"], ["slices"], ["findings"], ["doctor"], ["summary"], ["report"], ["view"]]
    commands += [["sql", "select * from slices"], ["range", "--by", "lane"], ["ops", "--by", "step"]]
    for number, (other, duration) in enumerate(
        product((-TIME_LIMIT, 0, TIME_LIMIT), (0, TIME_LIMIT, 10**25))
    ):
        path = tmp_path / f"t{number}.json"
        path.write_bytes(device_trace(start, other, duration))
        for command, *options in commands:
            code = main([command, str(path), *options, "--index-dir", str(tmp_path / "index")])
            assert code == (1 if command == "doctor" and code == 1 else 0), (command, other, duration)
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

    def reversed_durations(self: lane_writer.LaneWriter, *arguments: Any) -> Any:
        kind = matched(self, *arguments)
        arguments[3]["duration"][:] *= -1
        return kind

    monkeypatch.setattr(lane_writer.LaneWriter, "_matched", reversed_durations)
    path = tmp_path / "t.json"
    path.write_text("[" + event_text("X", "1", "2") + "]")
    with pytest.raises(WrongIndexError, match=r"t\.json .*negative duration.*fault of tracelane.*report it"):
        ingest_index(open_source(path), IndexOptions(index_dir=tmp_path / "index", threads=1))


@pytest.mark.parametrize("is_new", [True, False])
def test_wrong_values_of_a_new_index_are_no_damage(
    is_new: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values that no index may hold are a fault of tracelane where it has just written them."""
    path = tmp_path / "t.json"
    path.write_text("[" + event_text("X", "1", "2") + "]")
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
