"""Arguments are read from the source on demand, looked for there, and kernels grouped by them."""

from __future__ import annotations

import gc
import gzip
import json
import os
import subprocess
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import file, files, for_files, traces
from tests.events import complete
from tests.forms import zipped
from tracelane.core.base.errors import Cancelled, TracelaneError, UnreadableError, UsageError
from tracelane.core.index.blocks import reads_anywhere
from tracelane.core.native.library import native_library
from tracelane.core.query import scan, scan_child
from tracelane.core.query.args import argument_values, arguments_in
from tracelane.core.query.filter import Argument, parse
from tracelane.core.query.scan import holding, needles_of, term_for
from tracelane.core.query.views import SliceId
from tracelane.core.read.source import Source
from tracelane.core.tables.device.kernels import instances, kernels
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import find, matches

EVENTS = [
    {
        "ph": "X",
        "name": f"e{i}",
        "cat": "cpu_op",
        "pid": 1,
        "tid": 1,
        "ts": i * 10,
        "dur": 5,
        "args": {"n": i},
    }
    for i in range(3000)
] + [
    {"ph": "B", "name": "pair", "pid": 2, "tid": 1, "ts": 1, "attr": {"from": "begin", "both": 1}},
    {"ph": "E", "pid": 2, "tid": 1, "ts": 9, "args": {"to": "end", "both": 2}},
    {"ph": "X", "name": "none", "pid": 2, "tid": 1, "ts": 20, "dur": 1},
    {"ph": "X", "name": "list", "pid": 2, "tid": 1, "ts": 30, "dur": 1, "args": [1, 2]},
    {"ph": "i", "name": "mark", "pid": 2, "tid": 1, "ts": 40, "args": {"m": 1}},
]
TEXT = json.dumps({"traceEvents": EVENTS})


FORMS = {
    "plain": TEXT.encode,
    "bom": lambda: b"\xef\xbb\xbf" + TEXT.encode(),
    "indented": lambda: json.dumps({"traceEvents": EVENTS}, indent=2).encode(),
    "lines": lambda: "\n".join(json.dumps(event) for event in EVENTS).encode(),
    "gzip": lambda: gzip.compress(TEXT.encode()),
    "zip": lambda: zipped(trace=TEXT.encode()),
    "utf-16": lambda: TEXT.encode("utf-16"),
}


def opened(folder: Path, raw: bytes, name: str = "trace.json") -> Trace:
    path = folder / name
    path.write_bytes(raw)
    return open_trace([path], index_dir=folder / "cache")


def check(trace: Trace) -> None:
    for ordinal in (0, 1, 1499, 2999):
        arguments = trace.arguments(SliceId(0, ordinal))
        assert (arguments.begin, arguments.problem) == ({"n": ordinal}, None)
        assert arguments.event is not None and arguments.event["name"] == f"e{ordinal}"
    pair = trace.arguments(SliceId(0, 3000))
    assert pair.begin == {"from": "begin", "both": 1} and pair.end == {"to": "end", "both": 2}
    assert pair.merged == {"from": "begin", "to": "end", "both": 2}
    assert trace.arguments(SliceId(0, 3002)).begin == {}
    assert trace.arguments(SliceId(0, 3003)).begin == {"args": [1, 2]}
    assert trace.event_arguments(0, 3004).begin == {"m": 1}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_come_from_every_form(tmp_path: Path, form: str) -> None:
    """Begin and end arguments, `attr`, lists and none at all come out alike, however the file is packed."""
    trace = opened(tmp_path, FORMS[form]())
    check(trace)
    is_deflated = form in ("gzip", "zip")
    slow = form == "utf-16" or (is_deflated and native_library().functions is None)
    assert (trace.arguments(SliceId(0, 5)).slow_reason is not None) == slow
    assert reads_anywhere(trace.indexes[0]) != slow


def test_only_one_block_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a plain source one range of the file is read, of the size of a block."""
    many = json.dumps({"traceEvents": EVENTS * 5}).encode()
    trace = opened(tmp_path, many)
    ranges: list[int] = []
    real = Source.read_range

    def counted(self: Source, offset: int, length: int) -> bytes:
        ranges.append(length)
        return real(self, offset, length)

    monkeypatch.setattr(Source, "read_range", counted)
    assert trace.arguments(SliceId(0, 7)).begin == {"n": 7}
    assert len(ranges) == 1 and ranges[0] < 600_000


def test_events_of_a_repaired_block_have_their_arguments(tmp_path: Path) -> None:
    """Where a block is no JSON, its events still have their own arguments, not a neighbour's."""
    text = TEXT.replace('"args": {"n": 17}', '"args": {"n": 17, "bad": NaN}').replace('"e23"', '"e\x01"', 1)
    trace = opened(tmp_path, text.encode())
    for ordinal in (16, 18, 22, 23, 24, 2999):
        assert trace.arguments(SliceId(0, ordinal)).begin == {"n": ordinal}
    assert trace.arguments(SliceId(0, 17)).begin["n"] == 17


def changed(path: Path) -> None:
    path.write_text(TEXT.replace('"n": 5}', '"n": 6}'), encoding="utf-8")


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


TROUBLES = {
    "changed": (changed, "has changed"),
    "touched": (touched, "has changed"),
    "gone": (Path.unlink, "no such file"),
    "emptied": (lambda path: path.write_bytes(b""), "empty"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_source_that_changed_or_went_is_told(tmp_path: Path, trouble: str) -> None:
    """Nothing is raised and nothing wrong is shown: the answer says what happened."""
    trace = opened(tmp_path, TEXT.encode())
    act, words = TROUBLES[trouble]
    act(tmp_path / "trace.json")
    arguments = trace.arguments(SliceId(0, 5))
    assert arguments.begin == {} and arguments.problem is not None
    assert words in arguments.problem and "\n" not in arguments.problem


def test_unknown_ordinals_have_no_arguments(tmp_path: Path) -> None:
    """An ordinal beyond the trace is answered, not raised."""
    trace = opened(tmp_path, TEXT.encode())
    arguments = trace.event_arguments(0, 10**6)
    assert arguments.begin == {}
    assert arguments.problem == "no block of the source holds the event"


EVENTS_SCAN = 6000
MAX_BYTES = 20_000


def scan_trace(folder: Path) -> Trace:
    """Slices of two lanes in many blocks; `n` counts them, every 100th is `rare`."""
    events = [
        complete(
            10 * n, 5, f"s{n % 7}", tid=n % 2, args={"n": n, "text": "x" * 200 + ("rare" * (n % 100 == 0))}
        )
        for n in range(EVENTS_SCAN)
    ]
    events += [
        {"ph": "B", "name": "pair", "ts": 1, "pid": 9, "tid": 9, "args": {"n": -1, "begin": 1}},
        {"ph": "E", "name": "pair", "ts": 99999, "pid": 9, "tid": 9, "args": {"n": -2}},
    ]
    events.insert(0, events.pop(-2))  # far from its end event
    (folder / "t.json").write_text(json.dumps({"traceEvents": events}, indent=0), encoding="utf-8")
    return open_trace(folder / "t.json", index_dir=folder / "index")


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return scan_trace(tmp_path_factory.mktemp("scan"))


@pytest.fixture
def in_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_child, "WORTH", 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("arg.n=17", 1),
        ("arg.n>=5990", 10),
        ("arg.text:RARE lane:1", 0),
        ("arg.text:rare arg.n<1000", 10),
        ("arg.n=-2", 1),
        ("arg.n=-1", 0),
        ("arg.begin -arg.n=-1", 1),
        ("-arg.n -arg.text", 0),
        ("-arg.text:rare s1", sum(n % 7 == 1 and n % 100 != 0 for n in range(EVENTS_SCAN))),
    ],
)
def test_a_process_of_its_own_finds_the_same(trace: Trace, in_child: None, text: str, count: int) -> None:
    """What a child finds is what is found without one."""
    hits = matches(trace, parse(text))
    assert hits.count == count
    index = trace.indexes[0]
    job = scan_child.ScanJob(
        index, parse(text), tuple(lane.title for lane in trace.lanes), "", (0,) * 3, None
    )
    own = sorted(int(p) for step in scan_child.here(job) for p in step.positions)
    assert hits.positions[0].tolist() == own


def test_the_window_comes_first_and_hits_come_as_they_are_found(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With every block a step, the first hits lie in the window, shares grow, hits are never taken back."""
    monkeypatch.setattr(scan, "REPORT_SECONDS", 0.0)
    window = 40_000_000, 41_000_000
    steps = list(find(trace, parse("s arg.n>=0"), window=window, every=-1.0))  # at once, however many hits
    assert len(steps) > 3 and steps[-1].share == 1 and steps[-1].hits.count == EVENTS_SCAN
    index = trace.indexes[0]
    first = {index.start(p) for p in steps[0].hits.positions[0].tolist()}
    assert any(window[0] <= start < window[1] for start in first)
    assert min(first) > index.start(0), "the first block of the file is not the first that is read"
    for before, after in pairwise(steps):
        assert before.share <= after.share
        assert set(before.hits.positions[0].tolist()) <= set(after.hits.positions[0].tolist())


def running() -> str:
    own = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, encoding="utf-8", check=False
    )
    return "".join(line for line in own.stdout.splitlines() if "scan_child" in line)


@pytest.mark.slow
def test_a_child_ends_with_its_search(trace: Trace, in_child: None) -> None:
    """Stopped, given up half way or finished, a search leaves no process behind."""
    answers = iter([False, False, True])
    with pytest.raises(Cancelled):
        matches(trace, parse("arg.n"), cancelled=lambda: next(answers))
    assert running() == ""
    steps = find(trace, parse("arg.n"), every=-1.0)
    next(steps)
    del steps
    gc.collect()
    assert running() == ""


def test_without_processes_the_search_is_done_here(
    trace: Trace, in_child: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a process cannot be started, or dies, all is found all the same."""
    monkeypatch.setattr(scan_child, "MODULE", "tracelane.core.nothing_of_the_kind")
    assert matches(trace, parse("arg.n<100")).count == 101


def test_a_source_that_changed_is_told_by_the_child(tmp_path: Path, in_child: None) -> None:
    """The child's words on what is wrong with the source come out as they are."""
    trace = scan_trace(tmp_path)
    (tmp_path / "t.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UnreadableError, match="changed"):
        matches(trace, parse("arg.n"))


# -- what is told on bytes ----------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-20, 20)
    | st.integers(10**15, 10**17)
    | st.floats(allow_nan=False)
    | st.text(alphabet='abnrue07 .-é/\\"K', max_size=6)
    | st.sampled_from(["7", "7.0", " 7", "\t7", "0x7", "07", "+7", "7e0", "name"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)
TERMS = [
    "arg.a=7",
    "arg.a=0",
    "arg.a=-7",
    "arg.a='7'",
    "arg.a='7.0'",
    "arg.a=0.5",
    "arg.a:ab",
    "arg.a:na",
    "arg.a:k",
    "arg.a=name",
    "arg.a=true",
    "arg.a='[7]'",
    "arg.a='a/b'",
    "arg.a='é'",
    "arg.a:'7, 7'",
    "arg.a>3",
    "arg.'a/b'",
    "arg.a:/^7/",
]


@given(VALUES, st.booleans(), st.booleans(), st.sampled_from(["a", "a/b", "b"]))
def test_blocks_left_out_hold_nothing(value: Any, ascii_only: bool, tight: bool, key: str) -> None:
    """A block of which the bytes say no holds no argument that fits, however its JSON is written."""
    block = json.dumps(
        {"args": {key: value}}, ensure_ascii=ascii_only, separators=(",", ":") if tight else (" , ", " : ")
    ).encode()
    arguments = arguments_in(json.loads(block))
    for text in TERMS:
        term = parse(text).terms[0]
        assert isinstance(term, Argument)
        if term.key in arguments and holding(term, [arguments[term.key]]) == [True]:
            assert all(needle.may_hold(block) for needle in needles_of(term)), (text, block)


@pytest.mark.parametrize(
    ("text", "block", "may"),
    [
        ("arg.n=7", b'{"n": 7}', True),
        ("arg.n=7", b'{"n": "7"}', True),
        ("arg.n=7", b'{"n": 70, "m": 7}', False),
        ("arg.n=7", b'{"n": 17}', False),
        ("arg.n=7", b'{"n": 70e-1}', True),
        ("arg.n=name", b'{"n": "other", "m": "name"}', False),
        ("arg.n:Gemm", b'{"n": "a gEMM"}', True),
        ("arg.n:Gemm", b'{"n": "gem"}', False),
        ("arg.n>3", b'{"m": 7}', False),
    ],
)
def test_most_blocks_need_no_decoding(text: str, block: bytes, may: bool) -> None:
    """Key and value are told together on the bytes."""
    term = parse(text).terms[0]
    assert isinstance(term, Argument)
    assert all(needle.may_hold(block) for needle in needles_of(term)) is may


# -- a value searched for as it stands ----------------------------------------------------------------------


OURS_TOO = {"device_id"}
"""A key of JAX's that is our name for PyTorch's `Device Id` too: a term means that one."""


@pytest.mark.slow
@for_files("paths", [traces(), files("**/*.json*")])
def test_every_argument_is_found_by_its_own_value(paths: list[Path], corpus_cache: Path) -> None:
    """What `term_for` says of an argument finds its slice, in small files."""
    tried = 0
    for path in paths:
        if path.stat().st_size > MAX_BYTES:
            continue
        try:
            trace = open_trace(path, index_dir=corpus_cache)
        except TracelaneError:
            continue
        for source, index in enumerate(trace.indexes):
            for position in range(0, len(index.column("slices.start")), 37):
                identity = SliceId(source, int(index.column("slices.ordinal")[position]))
                for key, value in trace.arguments(identity).merged.items():
                    term = term_for(key, value)
                    if term is None or key in OURS_TOO:
                        continue
                    tried += 1
                    hits = matches(trace, parse(term))
                    assert position in hits.positions[source].tolist(), (path.name, term)
        trace.close()
    assert tried > 100


REAL = "cuda/stacks.pt.trace.json.gz"
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
KEYS = ["bytes", "registers per thread", "warps per SM", "grid", "nothing"]
"""Promoted numbers and texts, one that is only in the source, one that no event has."""


@pytest.fixture
def trace_kernels(corpus_cache: Path) -> Trace:
    """Real kernels and copies."""
    return open_trace(file(REAL), index_dir=corpus_cache)


def _events() -> list[dict[str, Any]]:
    with gzip.open(file(REAL)) as stream:
        events: list[dict[str, Any]] = json.load(stream)["traceEvents"]
    return events


def _texts(value: Any) -> str | None:
    return (
        None
        if value is None
        else value
        if isinstance(value, str)
        else json.dumps(value, separators=(",", ":"))
    )


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_values(key: str, trace_kernels: Trace) -> None:
    """Each slice has the value of its own event, in whatever order slices are asked for."""
    index, events = trace_kernels.indexes[0], _events()
    kinds = [number for number, name in enumerate(index.categories) if name in WORK]
    positions = np.flatnonzero(np.isin(index.column("slices.category"), kinds))[::-7].astype(np.uint32)
    actual = argument_values(index, key, positions)
    ordinals = index.column("slices.ordinal")[positions].tolist()
    expected = [events[ordinal]["args"].get(key) for ordinal in ordinals]
    assert [_texts(value) for value in actual] == [_texts(value) for value in expected]
    assert any(value is not None for value in actual) == (key != "nothing")


@pytest.mark.slow
@pytest.mark.parametrize("key", ["bytes", "warps per SM"])
def test_columns(key: str, trace_kernels: Trace) -> None:
    """Sum and mean are over those of a name that have the argument."""
    sums: dict[str, list[float]] = defaultdict(list)
    for event in _events():
        if event.get("cat") in WORK and key in event["args"]:
            sums[event["name"]].append(event["args"][key])
    rows = list(kernels(Scope(trace_kernels), arguments=[key]).rows())
    assert sums and sums.keys() <= {row["name"] for row in rows}
    for row in rows:
        values = sums.get(str(row["name"]))
        if values is None:
            assert (row[f"arg:{key}"], row[f"arg:{key}_mean"]) == (None, None)
        else:
            assert row[f"arg:{key}"] == pytest.approx(float(sum(map(Fraction, values))))
            assert row[f"arg:{key}_mean"] == pytest.approx(float(sum(map(Fraction, values)) / len(values)))


def test_groups(trace_kernels: Trace) -> None:
    """A group for each value, one for work without it, and nothing gets lost."""
    expected: dict[str, int] = defaultdict(int)
    for event in _events():
        if event.get("cat") in WORK:
            expected[str(event["args"].get("warps per SM", "(none)"))] += 1
    table = kernels(Scope(trace_kernels), "arg:warps per SM")
    assert {row["name"]: row["count"] for row in table.rows()} == expected
    runs, _ = instances(Scope(trace_kernels), "Memset", "time", 5, ["bytes"])
    assert len(runs) == 5 and all(str(text).isdigit() for text in runs.data["arg:bytes"])


def test_what_is_no_argument(trace_kernels: Trace) -> None:
    """An argument that no kernel has as a number, or that is not spelled as one, is told."""
    with pytest.raises(UsageError, match="nothing"):
        kernels(Scope(trace_kernels), arguments=["nothing"])
    with pytest.raises(UsageError, match="arg:KEY"):
        kernels(Scope(trace_kernels), "arg:")
