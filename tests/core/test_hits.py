"""The filter language and what a search finds: against brute force over the events as plain JSON."""

from __future__ import annotations

import gzip
import itertools
import json
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import files, for_files, traces
from tests.events import complete, index_of
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import Cancelled, TracelaneError, UsageError
from tracelane.core.query.filter import Argument, Number, Text, TextTerm, Time, parse, quoted
from tracelane.core.query.hits import Hits
from tracelane.core.query.rowview import HitMarks
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import matches

MAX_BYTES = 200_000
"""Bytes of the corpus files that are looked through slice by slice."""
Facts = dict[str, Any]


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def above(key: str, least: float) -> Callable[[Facts], bool]:
    return lambda s: (n := number(s["args"].get(key))) is not None and n > least


QUERIES: list[tuple[str, Callable[[Facts], bool]]] = [
    ("mm", lambda s: "mm" in s["name"].lower()),
    ("AteN::", lambda s: "aten::" in s["name"].lower()),
    ("-a", lambda s: "a" not in s["name"].lower()),
    ("/^[a-z]+::/", lambda s: re.search("^[a-z]+::", s["name"]) is not None),
    ("cat:cpu_op", lambda s: "cpu_op" in s["cat"].lower().split(",")),
    ("cat:kernel -sdsc", lambda s: s["cat"].lower() == "kernel" and "sdsc" not in s["name"].lower()),
    ("lane:stream", lambda s: "stream" in s["lane"].lower()),
    ("-lane:/[0-9]/", lambda s: re.search("[0-9]", s["lane"]) is None),
    ("dur>=20us", lambda s: s["dur"] >= 20_000),
    ("dur<0.0015ms -dur=0", lambda s: 0 < s["dur"] < 1500),
    ("self>1us", lambda s: s["self"] > 1000),
    ("arg.correlation>100", above("correlation", 100)),
    ("arg.'Ev Idx'>5", above("Ev Idx", 5)),
    (
        "arg.'Ev Idx'=7 -aten::add",
        lambda s: number(s["args"].get("Ev Idx")) == 7 and "aten::add" not in s["name"],
    ),
    ("-arg.'Record function id'", lambda s: "Record function id" not in s["args"]),
    ("arg.name", lambda s: "name" in s["args"]),
    ("arg.data", lambda s: "data" in s["args"]),
    ("arg.'Concrete Inputs'", lambda s: "Concrete Inputs" in s["args"]),
]


def events_of(path: Path) -> list[Any] | None:
    raw = path.read_bytes()
    try:
        document = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
    except (ValueError, OSError, EOFError, RecursionError):
        return None
    return document.get("traceEvents") if isinstance(document, dict) else document


def facts_of(trace: Trace, events: list[Any]) -> dict[int, Facts]:
    """Return what is known of each slice by ordinal: times from the index, the rest from events."""
    index, facts = trace.indexes[0], {}
    every = np.arange(len(index.column("slices.start")))
    durations, own = index.duration(every).tolist(), index.self_time(every).tolist()
    ordinals = index.column("slices.ordinal").tolist()
    ends = dict(zip(index.column("ends.position").tolist(), index.column("ends.ordinal").tolist()))
    for row in index.rows[index.rows["kind"] == 0]:
        title = trace.lanes[int(row["lane"])].title
        for position in range(int(row["first"]), int(row["first"]) + int(row["count"])):
            event, args = events[ordinals[position]], {}
            for part in (event, events[ends[position]] if position in ends else {}):
                more = part.get("args", part.get("attr"))
                args.update(more if isinstance(more, dict) else {})
            name, cat = event.get("name", ""), event.get("cat", "")
            if isinstance(name, str) and isinstance(cat, str):
                times = {"dur": durations[position], "self": own[position]}
                facts[ordinals[position]] = {"name": name, "cat": cat, "args": args, "lane": title, **times}
    return facts


@pytest.mark.slow
@for_files("paths, least", [(traces(), (15, 2_000)), (files("**/*.json*"), (25, 10_000))])
def test_results_equal_brute_force(paths: list[Path], least: tuple[int, int], corpus_cache: Path) -> None:
    """For every small file and every query, the hits are those of testing each slice."""
    tried = hits_seen = 0
    for path in paths:
        if path.stat().st_size > MAX_BYTES or not (events := events_of(path)) or not isinstance(events, list):
            continue
        try:
            trace = open_trace(path, index_dir=corpus_cache)
        except TracelaneError:
            continue
        if len(trace.indexes) != 1 or trace.sources[0].read_report["events"] != len(events):
            continue
        facts = facts_of(trace, events)
        tried += 1
        for text, fits in QUERIES:
            hits = matches(trace, parse(text))
            ordinals = trace.indexes[0].column("slices.ordinal")[hits.positions[0]].tolist()
            expected = [ordinal for ordinal, facts_of_it in facts.items() if fits(facts_of_it)]
            assert sorted(o for o in ordinals if o in facts) == sorted(expected), (path.name, text)
            ns = trace.indexes[0].duration(hits.positions[0])
            assert (hits.count, hits.total_ns) == (len(ordinals), int(ns.sum()))
            hits_seen += hits.count
        trace.close()
    assert tried > least[0] and hits_seen > least[1]


def small(tmp_path: Path) -> Trace:
    """Two lanes; hits of `k` start at 10, 10, 30, 40, 40 µs, across lanes."""
    lane_a = {"pid": 1, "tid": 1}
    lane_b = {"pid": 2, "tid": 1}
    return Trace(
        [
            index_of(
                [
                    complete(0, 100, "outer", **lane_a),
                    complete(10, 5, "k1", "kernel", args={"bytes": 10, "grid": [2, 1, 1]}, **lane_a),
                    complete(30, 5, "k2", "kernel", args={"bytes": "2000000"}, **lane_a),
                    complete(40, 5, "k3", "kernel", args={"grid": [3, 1, 1]}, **lane_a),
                    complete(10, 50, "k4", "a,kernel,b", **lane_b),
                    complete(40, 3, "k5", **lane_b),
                    complete(70, 3, "other", **lane_b),
                ],
                tmp_path / "index",
            )
        ]
    )


def names(trace: Trace, hits: Hits) -> list[str]:
    index = trace.indexes[0]
    return index.strings(index.column("slices.name")[hits.positions[0]])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat:KERNEL", {"k1", "k2", "k3", "k4"}),
        ("name=k1", {"k1"}),
        ("name=K1", set()),
        ("K1", {"k1"}),
        ("arg.bytes>=10", {"k1", "k2"}),
        ("arg.bytes>1e6", {"k2"}),
        ("arg.bytes<=9.5", set()),
        ("arg.bytes>-1e300", {"k1", "k2"}),
        ("arg.bytes<1e300", {"k1", "k2"}),
        ("arg.bytes=10.5", set()),
        ("arg.bytes:0000", {"k2"}),
        ("arg.grid='[2,1,1]'", {"k1"}),
        ("arg.grid:'[3'", {"k3"}),
        ("k -arg.grid", {"k2", "k4", "k5"}),
        ("dur=3us", {"k5", "other"}),
        ("self>=30us", {"outer", "k4"}),
    ],
)
def test_terms_on_a_small_trace(tmp_path: Path, text: str, expected: set[str]) -> None:
    """Each kind of term picks the slices that it says."""
    trace = small(tmp_path)
    assert set(names(trace, matches(trace, parse(text)))) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nccl", "2 kernels, 12 µs; 3 annotations"),
        ("all", "3 slices, 13 µs; 3 annotations"),
        ("all cat:kernel", "2 kernels, 12 µs"),
        ("host_", "1 slice, 1 µs"),
        ("cat:user_annotation", "1 annotation, 20 µs"),
        ("nothing", "0 slices, 0 ns"),
    ],
)
def test_annotations_do_not_count_as_work(tmp_path: Path, text: str, said: str) -> None:
    """Of hits that are annotations over work that is hit too, the number is told, not the time."""
    events = [
        complete(0, 5, "nccl:all", "kernel"),
        complete(10, 7, "nccl:all", "kernel"),
        complete(0, 20, "nccl:all", "gpu_user_annotation"),
        complete(0, 20, "nccl:all", "user_annotation", tid=2),
        complete(0, 15, "nccl:all", "NVTX range", tid=3),
        complete(30, 1, "host_all"),
    ]
    trace = Trace([index_of(events, tmp_path / "index")])
    assert matches(trace, parse(text)).summed == said


def walked(trace: Trace, hits: Hits, forward: bool) -> list[tuple[str, int]]:
    index, visited = trace.indexes[0], []
    hit = hits.next(-(1 << 60)) if forward else hits.previous(1 << 60)
    while hit is not None and len(visited) < 100:
        visited.append((index.string(int(index.column("slices.name")[hit.position])), hit.rank))
        lane = int(index.rows[index.row_of(hit.position)]["lane"])
        time = index.start(hit.position) + int(hits.offsets[0][lane])
        step = hits.next if forward else hits.previous
        hit = step(time, hit.source, hit.position)
    return visited


def test_hits_are_walked_in_time_order(tmp_path: Path) -> None:
    """Next and previous go by start and then by row, with each hit's place; clocks move lanes in it."""
    trace = small(tmp_path)
    hits = matches(trace, parse("/^k/"))
    forth = [("k1", 1), ("k4", 2), ("k2", 3), ("k3", 4), ("k5", 5)]
    assert walked(trace, hits, True) == forth
    assert walked(trace, hits, False) == forth[::-1]
    moved = matches(trace, parse("/^k/"), Clocks().shifted((0, "2"), -20_000))
    assert [name for name, _ in walked(trace, moved, True)] == ["k4", "k1", "k5", "k2", "k3"]
    after = hits.next(30_000)
    assert after is not None and after.rank == 3, "a hit that starts at the time itself is the next one"


def test_hits_of_several_files_are_walked_in_time_order(tmp_path: Path) -> None:
    """Next and previous go from file to file by start, then by file; each hit knows its place among all."""
    starts = ([10, 30, 30, 80], [5, 30, 60], [30, 70, 90])
    trace = Trace(
        [
            index_of(
                [complete(ts, 1, f"k{ts}", tid=tid) for tid, ts in enumerate(own)], tmp_path / str(number)
            )
            for number, own in enumerate(starts)
        ]
    )
    hits = matches(trace, parse("/^k/"))
    expected = sorted((ts * 1000, number) for number, own in enumerate(starts) for ts in own)
    for step in (hits.next, hits.previous):
        time, source, position = (-1, -1, -1) if step == hits.next else (1 << 40, -1, -1)
        walk, ranks = [], []
        while (hit := step(time, source, position)) is not None:
            source, position = hit.source, hit.position
            time = int(trace.indexes[source].column("slices.start")[position])
            walk.append((time, source))
            ranks.append(hit.rank)
        order = 1 if step == hits.next else -1
        assert walk == expected[::order]
        assert ranks == [*range(1, len(expected) + 1)][::order]


def test_hits_by_row_and_cell(tmp_path: Path) -> None:
    """Rows know their hits by index, cells how many hits touch them, `where` which positions match."""
    trace = small(tmp_path)
    index, hits = trace.indexes[0], matches(trace, parse("/^k/"))
    by_row = {
        (
            row.number,
            index.string(int(index.column("slices.name")[int(index.rows[row.number]["first"]) + at])),
        )
        for lane in trace.lanes
        for row in trace.rows(lane)
        for at in hits.in_row(0, row.number).tolist()
    }
    assert sorted(name for _, name in by_row) == ["k1", "k2", "k3", "k4", "k5"]
    assert hits.cells([0, 10_000, 20_000, 40_000, 60_000, 90_000]).tolist() == [0, 2, 2, 3, 0]
    mask = hits.where(index, np.arange(7))
    assert mask.sum() == 5 and not mask[int(index.position_of(0) or 0)]


def test_a_search_can_be_stopped(tmp_path: Path) -> None:
    """When nobody waits any more the search ends by Cancelled."""
    with pytest.raises(Cancelled):
        matches(small(tmp_path), parse("k"), cancelled=lambda: True)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    rng = np.random.default_rng(7)
    events = [
        complete(int(ts), int(dur), f"n{int(name)}", pid=int(lane) % 3, tid=int(lane))
        for ts, dur, name, lane in zip(
            rng.integers(0, 5000, 400),
            rng.integers(0, 300, 400),
            rng.integers(0, 9, 400),
            rng.integers(0, 7, 400),
        )
    ]
    return Trace([index_of(events, tmp_path_factory.mktemp("marks") / "index")])


def brute(trace: Trace, hits: Hits, rows: range, edges: list[int], clocks: Clocks) -> list[bool]:
    index = trace.indexes[0]
    spans = []
    for position in hits.positions[0].tolist():
        number = index.row_of(position)
        if number in rows:
            lane = trace.lanes[int(index.rows[number]["lane"])]
            start = index.start(position) + clocks.offset(0, lane.pid)
            spans.append((start, start + max(1, int(index.duration([position])[0]))))
    return [any(s < b and e > a for s, e in spans) for a, b in itertools.pairwise(edges)]


@pytest.mark.parametrize("text", ["n3", "dur>200us", "n", "none"])
@pytest.mark.parametrize("clocks", [Clocks(), Clocks().shifted((0, "1"), 123_456)])
def test_touched_cells_are_those_with_a_hit(trace: Trace, text: str, clocks: Clocks) -> None:
    """For one lane, several and all, the marked cells are those that a hit overlaps, clocks moved or not."""
    hits = matches(trace, parse(text), clocks)
    marks = HitMarks(hits)
    for edges in (list(range(0, 5_400_000, 40_000)), list(range(1_000_000, 1_000_200, 7))):
        for lanes in ([trace.lanes[0]], list(trace.lanes)[2:5], list(trace.lanes)):
            spans = [(0, lane.rows.start, lane.rows.stop) for lane in lanes]
            touched = [brute(trace, hits, lane.rows, edges, clocks) for lane in lanes]
            expected = [any(column) for column in zip(*touched)]
            for _ in range(2):
                assert marks.touched(spans, edges).tolist() == expected


MEANINGS = [
    ("nccl", TextTerm("name", Text("in", "nccl"))),
    ("-nccl", TextTerm("name", Text("in", "nccl"), negated=True)),
    ("-", TextTerm("name", Text("in", "-"))),
    ("'two words'", TextTerm("name", Text("in", "two words"))),
    ("'it''s'", TextTerm("name", Text("in", "it's"))),
    ("aten::mm", TextTerm("name", Text("in", "aten::mm"))),
    ("self::run", TextTerm("name", Text("in", "self::run"))),
    ("/a b|c/", TextTerm("name", Text("regex", "a b|c"))),
    (r"/a\/b/i", TextTerm("name", Text("regex", r"a\/b", True))),
    ("name='all of this'", TextTerm("name", Text("is", "all of this"))),
    ("cat:kernel", TextTerm("cat", Text("is", "kernel", True))),
    ("-cat:/gpu_.*/", TextTerm("cat", Text("regex", "gpu_.*"), negated=True)),
    ("lane:'stream 0'", TextTerm("lane", Text("in", "stream 0"))),
    ("dur>1ms", Time("dur", Number(">", Fraction(10**6)))),
    ("self<=0.5us", Time("self", Number("<=", Fraction(500)))),
    ("dur=0", Time("dur", Number("=", Fraction(0)))),
    ("dur>=1.5µs", Time("dur", Number(">=", Fraction(1500)))),
    ("arg.bytes>1e6", Argument("bytes", Number(">", Fraction(10**6)))),
    ("arg.'External id'=7", Argument("External id", Number("=", Fraction(7)), Text("is", "7"))),
    ("arg.dtype='7'", Argument("dtype", None, Text("is", "7"))),
    ("arg.dtype:half", Argument("dtype", None, Text("in", "half"))),
    ("arg.dtype", Argument("dtype")),
]


@pytest.mark.parametrize(("text", "term"), MEANINGS)
def test_a_term_means(text: str, term: object) -> None:
    """Every form of a term reads as what it says, alone and among others."""
    assert parse(text).terms == (term,)
    assert parse(f"  one {text}\ttwo ").terms == (
        TextTerm("name", Text("in", "one")),
        term,
        TextTerm("name", Text("in", "two")),
    )


REFUSED = [
    ("", "nothing to search for"),
    ("   ", "nothing to search for"),
    ("/model/layers.0", "no closing /"),
    ("/(/", "not a regular expression"),
    ("dur>1", "ns, us, ms or s"),
    ("dur>1h", "ns, us, ms or s"),
    ("dur>fast", "names no time"),
    ("dur:5ms", "is no comparison"),
    ("dur > 1ms", "has blanks around it"),
    ("arg.", "needs the argument's name"),
    ("arg.bytes>many", "needs a number"),
    ("arg.bytes>1e999", "too large"),
    ("lane:", "has no text"),
    ("'open", "not closed"),
    ("''", "has no text"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    """A text that means nothing is refused in one line that says what to write."""
    with pytest.raises(UsageError, match=why) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["plain", "it's", "a 'b' \"c\"", "-x", "/y/", "''"])
def test_a_quoted_name_reads_back(name: str) -> None:
    """What `quoted` writes is read as the very text."""
    assert parse("name=" + quoted(name)).terms == (TextTerm("name", Text("is", name)),)
