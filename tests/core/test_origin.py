"""Times of any size keep their differences: what they count from, and files whose `ts` is ns."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tracelane
from tests.boundary_times import WRITTEN, event_text
from tests.events import complete, write_events
from tests.reading import index_differences
from tracelane.core.base.units import TIME_LIMIT
from tracelane.core.index.indexing import cached_index, ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.index.ts_unit import looks_like_ns, time_notes
from tracelane.core.read.source import TsUnit, open_source
from tracelane.core.trace import open_trace

OFFSETS = (0, 1, 2_500, 8_000_000_123, 86_400 * 10**9, TIME_LIMIT - 10**6)
"""When events of a trace begin, in ns after its first one."""
FIRSTS = tuple(
    sign * first
    for sign in (1, -1)
    for first in (
        *(10**15, 4 * 10**15 * 1000, TIME_LIMIT, TIME_LIMIT + 3, 2 * 10**19),
        *(13_984_392_629_999_074 * 1000, 1_773_534_654_823_498_500 * 1000, (1 << 64) - 1, 10**25),
    )
)
"""What `ts` of a first event means, in ns."""
YEAR = 365 * 86_400 * 10**9
NOW = 1_790_000_000 * 10**9


def indexed(path: Path, folder: Path, unit: TsUnit = "us") -> Index:
    return ingest_index(open_source(path, ts_unit=unit), IndexOptions(folder))


@pytest.mark.slow
@pytest.mark.parametrize("form", WRITTEN)
def test_every_difference_is_exact(form: str, tmp_path: Path) -> None:
    """Wherever times begin, and however they are written, each lies from the first as in the file, in slices,
    instants and samples; both readers make the same index of them.
    """
    grain = 1000 if form == "integer" else 1
    for number, first in enumerate(FIRSTS):
        times = [(first + offset) // grain * grain for offset in OFFSETS]
        written = [WRITTEN[form](time) for time in times]
        texts = [event_text("X", text, WRITTEN[form](500 * grain)) for text in written]
        texts += [event_text("i", text, s="t") for text in written]
        texts += [event_text("C", text, args={"value": 1}) for text in written]
        path = tmp_path / f"{number}.json"
        path.write_text(f"[{', '.join(texts)}]", encoding="utf-8")
        index = indexed(path, tmp_path / "index")
        starts = [index.origin_ns + start for start in index.column("slices.start").tolist()]
        assert sorted(starts) == sorted(times), first
        assert set(index.durations_between(0, len(times)).tolist()) == {500 * grain}
        for column in ("instants.start", "samples.start"):
            assert sorted(index.origin_ns + one for one in index.column(column).tolist()) == sorted(times)
        assert not index.problems and (index.origin_ns == 0) == (max(map(abs, times)) <= TIME_LIMIT)
        index.close()
        assert index_differences(path, tmp_path) == []


@pytest.mark.parametrize("stray", ["0", "-1e16", "1e25", "99e15"])
def test_a_stray_time_moves_no_other(stray: str, tmp_path: Path) -> None:
    """Where most times are far from 0, those that are even further from them are clamped, and only those."""
    first = 1_773_534_654_823_498_500
    texts = [event_text("X", str(first + 7 * at), "5") for at in range(50)]
    path = tmp_path / "t.json"
    path.write_text(f"[{', '.join([event_text('X', stray, '5'), *texts])}]", encoding="utf-8")
    index = indexed(path, tmp_path / "index")
    starts = sorted(index.origin_ns + start for start in index.column("slices.start").tolist())
    assert set(starts) >= {(first + 7 * at) * 1000 for at in range(50)}
    assert [problem["count"] for problem in index.problems] == [1]
    index.close()
    assert index_differences(path, tmp_path) == []


def test_ordinary_times_count_from_0(tmp_path: Path) -> None:
    """One time beyond the limit among many does not move these."""
    texts = [event_text("X", str(1000 + at), "5") for at in range(50)]
    path = tmp_path / "t.json"
    path.write_text(f"[{', '.join([event_text('X', '1e16', '5'), *texts])}]", encoding="utf-8")
    index = indexed(path, tmp_path / "index")
    assert index.origin_ns == 0 and int(index.column("slices.start").min()) == 1_000_000
    index.close()


def test_the_unit_is_part_of_an_index(tmp_path: Path) -> None:
    """A trace read in ns has the times of the same trace written in µs, and an index of its own."""
    slices = [(1_773_534_654_823_498_501 + 1003 * at, 750 + at) for at in range(20)]
    us, ns = tmp_path / "us.json", tmp_path / "ns.json"
    us.write_text(
        json.dumps(
            [complete(f"{Decimal(start) / 1000}", f"{Decimal(dur) / 1000}") for start, dur in slices],
            default=str,
        ),
        encoding="utf-8",
    )
    write_events(ns, [complete(start, dur) for start, dur in slices])
    folder = tmp_path / "index"
    right = indexed(us, folder)
    assert cached_index(open_source(ns, ts_unit="ns"), folder) is None
    wrong = indexed(ns, folder)
    assert cached_index(open_source(ns, ts_unit="ns"), folder) is None
    own = indexed(ns, folder, "ns")
    assert (wrong.ts_unit, own.ts_unit, own.origin_ns) == ("us", "ns", 0)
    for name in ("slices.start", "slices.duration"):
        assert own.column(name).tolist() == right.column(name).tolist()
    assert wrong.column("slices.start").tolist() != own.column("slices.start").tolist()
    for index in (right, wrong, own):
        index.close()
    opened = tracelane.open(ns, ts_unit="ns", index_dir=folder)
    assert opened.info.start == slices[0][0]
    with pytest.raises(tracelane.TracelaneError, match="ts_unit is us or ns"):
        tracelane.open(ns, ts_unit="ps", index_dir=folder)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "base", "unit", "expected"),
    [
        (1_773_534_654_823_498_500, None, "us", True),  # ns since 1970
        (1_773_534_654_823_498_500, None, "ns", False),
        (1_773_534_654_823_498, None, "us", False),  # µs since 1970
        (13_984_392_629_999_074, None, "us", True),  # ns since boot, 161 days
        (400_000_000_000_000, None, "us", False),  # ns since boot for 5 days, or µs for 12 years
        (NOW // 1000 + 2 * YEAR // 1000, None, "us", False),  # a clock that is set wrong
        (30_000_000_000_000_000_000, None, "us", False),  # neither
        (5_000_000_000_000, 1_773_000_000 * 10**9, "us", False),  # 58 days after a base
        (900_000_000_000_000, 1_773_000_000 * 10**9, "us", True),  # 28 years after it
        (-5_000, None, "us", False),
    ],
)
def test_times_that_can_only_be_ns(
    first: int, base: int | None, unit: TsUnit, expected: bool, tmp_path: Path
) -> None:
    """It is said of times that lie in the future as µs and do not as ns, and of no others."""
    keys = {} if base is None else {"baseTimeNanoseconds": base}
    document = {**keys, "traceEvents": [complete(first + 10 * at, 5) for at in range(3)]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    index = indexed(path, tmp_path / "index", unit)
    assert looks_like_ns(index, NOW) == expected
    assert any("--ts-unit ns" in note for note in time_notes(index, NOW)) == expected
    index.close()


TICKS_A_YEAR, TICKS_NOW = YEAR // 100, NOW // 100
TICKS_1601, TICKS_YEAR_1 = 116_444_736_000_000_000, 621_355_968_000_000_000


@pytest.mark.parametrize(
    ("first", "more", "unit", "said"),
    [
        (TICKS_NOW + TICKS_1601, {}, "us", "ts looks like ticks of 100 ns since 1601: open the trace with "),
        (
            TICKS_NOW + TICKS_YEAR_1,
            {},
            "us",
            "ts looks like ticks of 100 ns since year 1: open the trace with ",
        ),
        (TICKS_NOW + TICKS_YEAR_1, {}, "100ns", ""),
        (TICKS_NOW - TICKS_A_YEAR, {}, "us", "ts looks like ns, or ticks of 100 ns: open the trace with "),
        (
            5_000,
            {"otherData": {"timeUnit": "100ns"}},
            "us",
            "timeUnit of the file is 100ns: open the trace with ",
        ),
        (
            5_000,
            {"ticksPerSecond": 10**7},
            "us",
            "ticksPerSecond of the file is 10,000,000: open the trace with ",
        ),
        (5_000, {"ticks_per_second": 10**6}, "us", ""),
        (
            5_000,
            {"ticksPerSecond": 2_400_000_000},
            "us",
            "ticksPerSecond of the file is 2,400,000,000, which is ",
        ),
        (
            5_000,
            {"otherData": {"time_unit": "cycles"}},
            "us",
            "time_unit of the file is cycles, which is not read",
        ),
        (5_000, {"displayTimeUnit": "ns"}, "us", ""),
    ],
)
def test_other_units_are_told_by_what_the_file_says(
    first: int, more: dict[str, Any], unit: TsUnit, said: str, tmp_path: Path
) -> None:
    """Ticks are told by the years that they count from, or by a key; where two units fit, both are said."""
    document = {**more, "traceEvents": [complete(first + 10 * at, 5) for at in range(3)]}
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    index = indexed(path, tmp_path / "index", unit)
    notes = " ".join(note for note in time_notes(index, NOW) if not note.startswith("times count from"))
    assert notes.startswith(said) and bool(notes) == bool(said)
    assert (
        index.column("slices.start")[1] - index.column("slices.start")[0]
        == 10 * {"us": 1000, "100ns": 100}[unit]
    )
    index.close()


def test_what_times_count_from_is_a_note(tmp_path: Path) -> None:
    """The header of a trace whose times count from elsewhere says from which `ts`."""
    path = write_events(tmp_path / "t.json", [complete(13_984_392_629_999_074 + at, 5) for at in (0, 5000)])
    trace = open_trace(path, index_dir=tmp_path / "index")
    assert "times count from ts 13,984,392,629,999,074" in trace.sources[0].notes[0]
    assert trace.span == (0, 5_005_000)
    trace.close()
