"""Arguments looked for in the source: the same in a process of its own, in steps, and by brute force."""

from __future__ import annotations

import gc
import json
import os
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tracelane.core.base.errors import Cancelled, TracelaneError, UnreadableError
from tracelane.core.base.ids import SliceId
from tracelane.core.query import scan, scan_child
from tracelane.core.query.args import arguments_in
from tracelane.core.query.filter import Argument, parse
from tracelane.core.query.scan import holding, needles_of, term_for
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import find, matches

EVENTS = 6000
LARGEST = 20_000


def scan_trace(folder: Path) -> Trace:
    """Slices of two lanes in many blocks; `n` counts them, every 100th is `rare`."""
    events = [
        complete(
            10 * n, 5, f"s{n % 7}", tid=n % 2, args={"n": n, "text": "x" * 200 + ("rare" * (n % 100 == 0))}
        )
        for n in range(EVENTS)
    ]
    events += [
        {"ph": "B", "name": "pair", "ts": 1, "pid": 9, "tid": 9, "args": {"n": -1, "begin": 1}},
        {"ph": "E", "name": "pair", "ts": 99999, "pid": 9, "tid": 9, "args": {"n": -2}},
    ]
    events.insert(0, events.pop(-2))  # far from its end event
    (folder / "t.json").write_text(json.dumps({"traceEvents": events}, indent=0))
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
        ("-arg.text:rare s1", sum(n % 7 == 1 and n % 100 != 0 for n in range(EVENTS))),
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
    assert len(steps) > 3 and steps[-1].share == 1 and steps[-1].hits.count == EVENTS
    index = trace.indexes[0]
    first = {index.start(p) for p in steps[0].hits.positions[0].tolist()}
    assert any(window[0] <= start < window[1] for start in first)
    assert min(first) > index.start(0), "the first block of the file is not the first that is read"
    for before, after in pairwise(steps):
        assert before.share <= after.share
        assert set(before.hits.positions[0].tolist()) <= set(after.hits.positions[0].tolist())


def running() -> str:
    own = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
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
    (tmp_path / "t.json").write_text("[]")
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


@pytest.mark.slow
@needs_corpus
def test_every_argument_is_found_by_its_own_value(corpus_cache: Path) -> None:
    """What `term_for` says of an argument finds its slice, in small files of the corpus."""
    tried = 0
    for path in sorted(CORPUS.rglob("*.json*")):
        if path.stat().st_size > LARGEST:
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
                    if term is None:
                        continue
                    tried += 1
                    hits = matches(trace, parse(term))
                    assert position in hits.positions[source].tolist(), (path.name, term)
        trace.close()
    assert tried > 100
