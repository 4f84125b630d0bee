"""The frame of device work: its rows, columns and groups, against plain loops and the standard library."""

from __future__ import annotations

import random
import re
import statistics as plain
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.events import complete, index_of
from tracelane.core.query.groups import Groups
from tracelane.core.tables.frame.frame import Frame
from tracelane.core.tables.frame.frame_columns import COLUMNS, GIVEN, MAKERS, NEVER, work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.text_column import TextColumn
from tracelane.core.trace import Trace


@pytest.fixture
def work(tmp_path: Path) -> Frame:
    """The work of two devices with two streams each: launches, copies, gaps, and work that overlaps."""
    chance = random.Random(5)
    events: list[dict[str, Any]] = []
    for number in range(60):
        at, args = number * 20, {"correlation": number, "stream": 7 + number % 2}
        events.append(complete(at, 5, "cudaLaunchKernel", "cuda_runtime", args={"correlation": number}))
        name, category = chance.choice([("gemm", "kernel"), ("Memcpy DtoH", "gpu_memcpy"), ("add", "kernel")])
        start, length = at + chance.randrange(60), chance.randrange(1, 40)
        events.append(
            complete(start, length, name, category, pid=number % 4 // 2, tid=args["stream"], args=args)
        )
    return work_of(Scope(Trace([index_of(events, tmp_path)])))


def values_of(work: Frame, key: str) -> list[Any]:
    """Return a column as Python values."""
    values: list[Any] = getattr(work, key).tolist()
    return values


@pytest.mark.parametrize("key", [*GIVEN, *COLUMNS])
def test_a_column_is_the_same_in_a_part(work: Frame, key: str) -> None:
    """Chosen rows have the values that they have in the whole, whichever is asked first."""
    rows = np.random.default_rng(7).permutation(len(work))[:25]
    first = values_of(work[rows], key)
    assert first == [values_of(work, key)[row] for row in rows.tolist()] == values_of(work[rows][:], key)


def test_order_on_a_stream(work: Frame) -> None:
    """`reach`, `before` and `gap` are what a loop over each stream finds, in a frame of some rows as well."""
    for frame in (work, work.separate(np.arange(0, len(work), 3))):
        rows = zip(*(values_of(frame, key) for key in ("stream", "start", "end", "position", "reach", "gap")))
        ends: dict[int, int] = {}
        for stream, start, end, _, reach, gap in sorted(rows):
            assert reach == ends.get(stream, NEVER)
            assert gap == max(0, start - ends.get(stream, start))
            ends[stream] = max(end, reach)
        known = frame[frame.reach != NEVER]
        at = [values_of(work, "position").index(position) for position in values_of(known, "before")]
        assert (work.end[at] == known.reach).all()


def test_a_column_put_in_place_holds_below(work: Frame) -> None:
    """What `plus` gives stands in all parts of it, and not where it was taken from."""
    other = work.plus(gap_class=np.full(len(work), 9))
    assert set(values_of(other[::2].top("dur", 5), "gap_class")) == {9}
    assert 9 not in values_of(work, "gap_class")
    with pytest.raises(AttributeError, match="no column 'gapp'"):
        work.gapp  # noqa: B018


# -- every verb, over rows made up ---------------------------------------------------------------------------

KEYS = ("device_row", "stream", "start", "dur", "name")
ROWS = st.lists(
    st.tuples(*map(st.integers, (0, 0, -60, 0), (2, 3, 60, 30)), st.sampled_from("abc")), max_size=25
)
"""Device, stream, start, ns and name of each row."""
BY = st.lists(st.sampled_from(("device_row", "stream", "name")), min_size=1, max_size=2, unique=True)
LARGE = st.sampled_from((1, 10**6, 1 << 54))


def frame_of(rows: list[tuple[Any, ...]]) -> Frame:
    """Return rows as a frame; names are numbered backwards, and every name is there twice."""
    columns = dict(zip(KEYS, (list(column) for column in zip(*rows)))) or {key: [] for key in KEYS}
    numbers = {key: np.array(columns[key], np.int64) for key in KEYS[:-1]}
    texts = ["c", "b", "a"] * 2
    codes = np.array([texts.index(name) + 3 * (at % 2) for at, name in enumerate(columns["name"])], np.int64)
    given = numbers | {"position": np.arange(len(rows)), "end": numbers["start"] + numbers["dur"]}
    scope: Any = Scope(None)  # type: ignore[arg-type]
    return Frame(scope, MAKERS, given | {"name": TextColumn(codes, texts)}, streams=tuple("0123"))


def plain_groups(rows: list[tuple[Any, ...]], keys: list[str]) -> list[list[int]]:
    """Return the row numbers of each group: by numbers, of names by the device that has them first."""
    met: list[str] = []
    for device in sorted({row[0] for row in rows}):
        names = {(at % 2, "cba".index(row[4]), row[4]) for at, row in enumerate(rows) if row[0] == device}
        met += [name for *_, name in sorted(names) if name not in met]
    numbers = [[met.index(row[4]) if key == "name" else row[KEYS.index(key)] for key in keys] for row in rows]
    order = sorted(range(len(rows)), key=numbers.__getitem__)
    return [list(group) for _, group in groupby(order, key=numbers.__getitem__)]


@given(ROWS, BY)
def test_rows_are_grouped_as_by_a_plain_loop(rows: list[tuple[Any, ...]], keys: list[str]) -> None:
    """Groups by one or two columns have the rows that a loop finds, in its order."""
    work, expected = frame_of(rows), plain_groups(rows, keys)
    groups = work.group(*keys)
    assert [values_of(part, "position") for part in groups.parts] == expected
    assert groups.size == len(expected)
    by_number = [values_of(part, "position") for part in work.by(keys[0])] if keys[0] != "name" else []
    assert not by_number or by_number == plain_groups(rows, keys[:1])
    slowest = [min(group, key=lambda row: (-rows[row][3], row)) for group in expected]
    assert values_of(work.plus(shorter=-work.dur).group(*keys).one_row("shorter"), "position") == slowest
    assert (work.each().size, work.together().size) == (len(rows), 1)


@given(ROWS, st.randoms(use_true_random=False))
def test_rows_are_chosen_as_from_a_list(rows: list[tuple[Any, ...]], chance: random.Random) -> None:
    """Rows by mask, number, rank, stream and start are those of a list; the time they cover is counted."""
    work, numbers = frame_of(rows), list(range(len(rows)))
    mask = np.array([chance.random() < 0.5 for _ in rows], np.bool_)
    assert values_of(work[mask], "position") == [at for at in numbers if mask[at]]
    assert values_of(work.separate(np.flatnonzero(mask)), "start") == [
        rows[at][2] for at in numbers if mask[at]
    ]
    assert values_of(work.top("dur", 3), "position") == sorted(numbers, key=lambda at: -rows[at][3])[:3]
    by_stream = sorted(numbers, key=lambda at: (rows[at][1], rows[at][2]))
    assert values_of(work.in_order(), "position") == by_stream
    covered = {ns for at in numbers if mask[at] for ns in range(rows[at][2], sum(rows[at][2:4]))}
    assert work.union(mask).length == len(covered)
    by_name = work.from_parts(lambda part: part.dur * 10, "stream")
    assert by_name.tolist() == [10 * row[3] for row in rows]
    chosen = np.array([row[4] in "ab" for row in rows], np.bool_)
    assert (work.named(re.compile("[ab]")) == chosen).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-50, 50), st.booleans()), min_size=1, max_size=25),
    LARGE,
)
def test_groups_answer_as_the_standard_library(rows: list[tuple[int, int, bool]], by: int) -> None:
    """Every question to groups has the answer of a loop over lists, for numbers of any size; an empty group
    has the answer that is promised.
    """
    codes, values, mask = (np.array(column) for column in zip(*rows))
    values *= by
    groups, least = Groups(codes, 5), -(1 << 60)
    answers = {
        "sums": groups.sums(values), "most": groups.most(values, least), "least": groups.least(values),
        "first": groups.first(), "longest": groups.longest(values), "counts": groups.counts,
        "masked": groups.counts_where(mask), "covered": groups.covered(values, values + np.abs(values)),
    }  # fmt: skip
    for number in range(5):
        own = [(at, value * by) for at, (code, value, _) in enumerate(rows) if code == number]
        numbers = [value for _, value in own]
        most, total = max(numbers, default=least), sum(numbers)
        spans = sorted((value, value + abs(value)) for value in numbers)
        reach = [max(end for _, end in spans[:at]) for at in range(1, len(spans))]
        covered = sum(end - begin for begin, end in spans)
        covered -= sum(max(0, min(end, high) - begin) for (begin, end), high in zip(spans[1:], reach))
        expected = {
            "sums": total, "most": most, "least": min(numbers, default=(1 << 63) - 1), "counts": len(own),
            "first": own[0][0] if own else len(rows), "covered": covered,
            "longest": next((at for at, value in own if value == most), 0),
            "masked": sum(hit and code == number for code, _, hit in rows),
        }  # fmt: skip
        assert {key: int(answer[number]) for key, answer in answers.items()} == expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 50)), max_size=25), LARGE)
def test_statistics_are_the_standard_library_s(rows: list[tuple[int, int]], by: int) -> None:
    """Mean, median, p95, deviation, sum and extremes of each group, none of which is empty; of no group no
    value.
    """
    rows = [*((number, number) for number in range(3)), *rows] if rows else []
    groups = Groups(np.array([code for code, _ in rows], np.int64), 3 if rows else 0)
    values = np.array([value * by for _, value in rows], np.int64)
    answers = groups.statistics(values)
    assert [part.tolist() for part in groups.quantiles(values, 0.5)] == [answers["median_ns"].tolist()]
    for number, own in [(number, values[groups.codes == number].tolist()) for number in range(groups.size)]:
        assert values[answers["longest"][number]] == max(own)
        expected = {
            "count": len(own), "total_ns": sum(own), "min_ns": min(own), "max_ns": max(own),
            "mean_ns": plain.fmean(own), "median_ns": plain.median(own),
            "p95_ns": plain.quantiles(own * 2 if len(own) == 1 else own, n=20, method="inclusive")[-1],
            "stdev_ns": plain.stdev(own) if len(own) > 1 else np.nan,
        }  # fmt: skip
        given_answers = {key: answers[key][number] for key in expected}
        assert given_answers == pytest.approx(expected, nan_ok=True, rel=1e-9, abs=1e-6)
