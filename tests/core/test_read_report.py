"""The read report and the keys around the events: each counted once, noted, never in the way."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.corpus import CORPUS, file, for_files, needs, traces
from tests.events import (
    async_event,
    begin,
    complete,
    counter,
    end,
    event,
    every_phase,
    flow,
    index_of,
    metadata,
    write_events,
)
from tests.forms import deep
from tests.reading import read_text
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.analyzer import OVERLAPS, analyzer_notes
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.read import envelope as envelope_module
from tracelane.core.read.envelope import Envelope
from tracelane.core.read.problem import Problem
from tracelane.core.read.source import open_source
from tracelane.core.tables.doctor.doctor import analyse_doctor
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.read_report import read_report_rows

TERMS = (
    "slices", "pairs", "instant_events", "counter_events", "flow_events", "metadata", "async_events",
    "unmatched_begin", "unmatched_end", "without_time", "empty", "not_objects", "unreadable",
)  # fmt: skip
FOLDERS = ("chrome", "odd", "aiu", "cases/trust", "cases/adversarial")
TRACES = [
    path for path in traces(*(f"{folder}/**/*.json*" for folder in FOLDERS)) if path.stat().st_size < 1 << 20
]


def total(index: Index) -> int:
    return sum(int(index.read_report[term]) for term in TERMS)


@pytest.mark.parametrize("seed", range(3))
def test_all_events_are_counted(tmp_path: Path, seed: int) -> None:
    """The terms add up to the events, of every phase and with times of every kind."""
    index = index_of([*every_phase(seed), event("O", 1), event("Q", None), 7, None, "x"], tmp_path)
    assert total(index) == index.read_report["events"]
    assert index.read_report["not_objects"] == 3


@pytest.mark.slow
@for_files("name", TRACES)
def test_the_terms_of_real_files_add_up(name: str, tmp_path: Path) -> None:
    """Nothing vanishes of any file that is a trace, damaged ones included."""
    try:
        index = ingest_index(open_source(file(name)), IndexOptions(tmp_path))
    except UnreadableError:
        return
    assert total(index) == index.read_report["events"]


def test_what_is_said_of_few_events(tmp_path: Path) -> None:
    """Pairs, names that differ, and times that are missing or unusable have their own counts."""
    index = index_of(
        [
            begin(1, "a"), end(2, name="b"),
            begin(3, "a"), end(4, name="a"), begin(5, "a"), end(6, name=None),
            begin(7, "open"), end(0),
            complete(1, -5), complete(1, None), complete(None, 1), event("i", "soon"),
            counter(1, "c", v=1), counter(None, "c", v=1),
            flow("s", 1, 1), flow("f", None, 1),
            async_event("b", 1, 1), async_event("e", 2, 1, name="other"),
            metadata("process_name", 1, name="p"),
        ],
        tmp_path,
    )  # fmt: skip
    want = {
        "pairs": 3, "mismatched_ends": 1, "unmatched_begin": 1, "unmatched_end": 1, "negative_durations": 1,
        "missing_durations": 1, "without_time": 4, "counter_events": 1, "flow_events": 1, "async_events": 2,
        "metadata": 1, "events": 19,
    }  # fmt: skip
    assert {name: index.read_report[name] for name in want} == want
    assert total(index) == 19


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_counter_values_in_quotes(decoder: Literal["native", "python"], tmp_path: Path) -> None:
    """Numbers in quotes are samples as others are; others are none, and lose no neighbour."""
    values = ["1", " 2.5 ", "-3e2", ".5", "", "abc", "0x10", "nan", "1_0", "١", None, True, [1], "7" * 400]
    path = tmp_path / "counters.json"
    events = [counter(at, "m", v=value, w=at) for at, value in enumerate(values)]
    path.write_text(json.dumps([complete(0, 99), *events]), encoding="utf-8")
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index", decoder=decoder))
    assert index.read_report["counter_events"] == len(values)
    samples = index.column("samples.value").tolist()
    assert sorted(samples) == sorted([1.0, 2.5, -300.0, 0.5, *map(float, range(len(values)))])


def test_repeated_event_arrays_are_said(tmp_path: Path) -> None:
    """Where traceEvents stands twice in one object, both are read and the second is pointed at."""
    path = tmp_path / "twice.json"
    part = json.dumps([complete(1, 2)])
    path.write_text(f'{{"traceEvents": {part}, "x": 1, "traceEvents": {part}}}', encoding="utf-8")
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index"))
    assert index.read_report["slices"] == 2
    (problem,) = index.problems
    assert "more than once" in problem["message"]
    assert path.read_bytes()[: problem["offset"]].endswith(b"[")


EVENTS = [{"ph": "X", "name": f"n{i}", "ts": i, "pid": 1, "tid": 1} for i in range(30)]
TEXT = json.dumps(EVENTS)


def scan(text: str | bytes, size: int) -> tuple[list[Any], Envelope, list[Problem]]:
    read = read_text(text.encode() if isinstance(text, str) else text, size)
    return read.elements, read.envelope, read.problems


SIZES = (50, 300, 262_144)


@pytest.mark.parametrize("size", SIZES)
def test_small_values_are_kept(size: int) -> None:
    """Small values before and after the events come out as they are, of a key given twice the last."""
    before = {
        "schemaVersion": 1,
        "a": [1, {"b": None}],
        "t": 'x"\\é😀\n',
        "n": -1.5e3,
        "big": 10**30,
        "z": True,
    }
    after = {"traceName": "]}[{", "displayTimeUnit": "ns", "baseTimeNanoseconds": 17, "z": False, "": {}}
    text = json.dumps(before)[:-1] + ',"traceEvents":' + TEXT + "," + json.dumps(after)[1:]
    events, envelope, problems = scan(text, size)
    assert events == EVENTS and not problems
    assert envelope.values == {**before, **after}
    assert (envelope.base_time_ns, envelope.display_unit) == (17, "ns")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ('"12"', 12), ("null", None), ("true", None), ("1.5", None), ('"x"', None), ("[1]", None)],
)
def test_a_base_time_of_unusable_type_counts_as_absent(value: str, expected: int | None) -> None:
    """baseTimeNanoseconds may be an integer or its text; anything else is no base time."""
    _, envelope, _ = scan(f'{{"baseTimeNanoseconds": {value}, "traceEvents": []}}', 300)
    assert envelope.base_time_ns == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", (300, 262_144))
@pytest.mark.parametrize(
    "value",
    [json.dumps("x" * 5_000), json.dumps(list(range(40_000))), json.dumps({"k" * 70_000: 1}), deep(50_000)],
    ids=["string", "list", "key", "deep"],
)
def test_large_values_are_noted_by_their_size(value: str, size: int) -> None:
    """A value too large or too deep to be kept leaves a note of its size; the rest is read."""
    text = f'{{"large": {value}, "traceEvents": {TEXT}, "also": {value}, "small": 1}}'
    events, envelope, problems = scan(text, size)
    assert events == EVENTS and not problems
    assert envelope.values["large"] == envelope.values["also"] == f"({len(value):,} bytes)"
    assert envelope.values["small"] == 1


@pytest.mark.slow
def test_a_huge_envelope_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many keys, or one value of 5 MB, are passed over in bounded memory."""
    monkeypatch.setattr(envelope_module, "MAX_EVENT_LENGTH", 2 << 20)
    large = json.dumps({"s": ["y" * 100] * 50_000})
    many = ",".join(f'"key{i}": "value"' for i in range(10_000))
    data = f'{{"large": {large}, {many}, "traceEvents": {TEXT}}}'.encode()
    tracemalloc.start()
    events, _, _ = scan(data, 262_144)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert events == EVENTS
    assert peak < 20 << 20


BROKEN = {
    "quotes": '"note": "say "hi" now"',
    "odd quote": '"note": "say "hi now"',
    "quotes in a list": '"note": ["a "b" c", "d"]',
    "odd quote in an object": '"note": {"x": "a "b c", "y": [1]}',
    "json in a string": '"note": "{"a": 1, "b": {"c": [2]}}"',
    "control characters": '"note": "a\nb\tc"',
    "bare word": '"note": oops',
    "nothing": '"note": ',
    "bad escape": '"note": "C:\\Temp\\x"',
    "single quotes": "'note': 'x'",
}
READ_AS_MEANT = ("control characters", "bad escape", "bare word")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("where", ["before", "after", "kineto"])
@pytest.mark.parametrize("name", BROKEN)
def test_broken_keys_do_not_hide_the_events(name: str, where: str, size: int) -> None:
    """Whatever a writer did to its keys, the events are found, and so are the keys that follow."""
    broken = BROKEN[name]
    if where == "before":
        text = f'{{"first": 1, {broken}, "second": 2, "traceEvents": {TEXT}, "third": 3}}'
    elif where == "after":
        text = f'{{"first": 1, "traceEvents": {TEXT}, {broken}, "second": 2, "third": 3}}'
    else:
        lines = ",\n    ".join(json.dumps(e) for e in EVENTS)
        text = f'{{\n  "first": 1,\n  {broken},\n  "second": 2,\n'
        text += f'  "traceEvents": [\n    {lines}\n  ],\n  "third": 3\n}}'
    events, envelope, problems = scan(text, size)
    assert events == EVENTS
    assert envelope.values["first"] == 1
    kinds = {problem.kind for problem in problems}
    assert ("broken envelope" in kinds) == (name not in READ_AS_MEANT)
    if "odd" not in name and name != "json in a string":
        assert envelope.values.get("second") == 2 and envelope.values.get("third") == 3


def test_a_broken_note_is_kept_where_its_end_is_plain() -> None:
    """A note with stray quotes is kept whole, and the report names it and its place."""
    text = (
        ' {\n    "schemaVersion": 1,\n    "note": "say "hi", you",\n    "traceEvents": [\n  '
        + TEXT[1:]
        + "\n}"
    )
    events, envelope, problems = scan(text, 262_144)
    assert events == EVENTS
    assert envelope.values == {"schemaVersion": 1, "note": 'say "hi", you'}
    (problem,) = problems
    assert problem.kind == "broken envelope" and "note" in problem.message
    assert problem.offset == text.index('"note"')


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_text_cut_anywhere_in_its_keys_ends_in_peace(size: int) -> None:
    """Cut at every byte before and after the events, a file yields its events or none, and never an error."""
    head = '{"schemaVersion": 1, "nested": {"a": ["b", "\\"]"]}, "text": "x\\\\", "n": -12.5, "traceEvents": '
    tail = ', "traceName": "q\\"[", "list": [1, {"a": "]"}], "baseTimeNanoseconds": 5}'
    text = head + TEXT + tail
    for cut in range(1, len(text)):
        if len(head) < cut < len(head) + len(TEXT):
            continue
        events, _, problems = scan(text[:cut], size)
        assert events == (EVENTS if cut > len(head) else [])
        assert problems, cut


def test_text_around_documents_is_reported() -> None:
    """What stands before, between or behind documents is passed over and reported with its offset."""
    events, _, problems = scan(f"log line\n{TEXT}\ngarbage {TEXT} the end", 262_144)
    assert events == EVENTS * 2
    (problem,) = problems
    assert (problem.kind, problem.count, problem.offset) == ("other text", 3, 0)


def test_a_file_without_its_head_is_read() -> None:
    """A file that begins amid an event yields all that follow it."""
    events, _, problems = scan(TEXT[20:] + "}", 262_144)
    assert events == EVENTS[1:]
    assert problems


TORCH = {"profile": "/x/profiles/torch_minimal.json", "overlap": "warn"}


def note(line: str = "", **settings: Any) -> str:
    """Return the note of a file with these settings, or with a command line alone."""
    other_data: dict[str, Any] = {"Application": "Acelyzer: Trace Post-Processing Tool", "CmdLine": line}
    if settings:
        other_data["Settings"] = settings
    (text,) = analyzer_notes({"otherData": other_data})
    return text


@pytest.mark.parametrize("overlap", ["drop", "tid", "async", "shift"])
def test_overlap_modes(overlap: str) -> None:
    """Each way to deal with overlaps is told by what became of the slices, from settings or command line."""
    assert OVERLAPS[overlap] in note(**TORCH | {"overlap": overlap})
    for line in (f"acelyzer -i a.json --tb -O {overlap}", f"acelyzer --tb --overlap={overlap} -i a.json"):
        assert OVERLAPS[overlap] in note(line)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"sync_to_dev": True}, "device's timers"),
        ({"event_filter": "name:Prep$"}, "that match name:Prep$"),
        ({"filter": "C"}, "types C"),
        ({"event_limit": {"skip": 5}}, "beyond a limit"),
        ({"event_limit": {"count": 1000}}, "beyond a limit"),
        ({"comm_summarize_seq": True}, "sequences of communication"),
        ({"tb": True, "tb_refinement": True}, "numbers are taken out of names"),
        ({"profile": "/x/default.json"}, "may be moved by their cycle counts (profile default)"),
        ({"profile": "p.json", "input": "a.json,b.json"}, "ranks are aligned"),
        ({"profile": "p.json", "flex_ts_fix": True}, "per job"),
        ({"profile": "p.json", "drop_globals": True}, "without stamps of the device"),
    ],
)
def test_settings(settings: dict[str, Any], words: str) -> None:
    """Each setting that changes times or events is told, and nothing of it without."""
    assert words in note(**TORCH | settings)
    assert words not in note(**TORCH)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"flex_ts_fix": True, "drop_globals": True},  # stages that this profile has not
        {
            "event_limit": {
                "skip": 0,
                "count": 1 << 60,
                "ts_start": 0.0,
                "ts_end": 1.7e308,
                "no_count_types": "M",
            }
        },
        {"tb": True, "tb_refinement": True, "keep_names": True},
    ],
)
def test_no_change(settings: dict[str, Any]) -> None:
    """Settings that change nothing are said to."""
    assert "no change to times or events" in note(**TORCH | settings)


def test_what_is_not_told() -> None:
    """Without settings and command line the note says so; of files by others nothing is said."""
    assert "does not say what it changed" in note()
    assert "does not say what it changed" in note("acelyzer 'unclosed")
    for envelope in ({}, {"otherData": 5}, {"otherData": {"Application": "x"}}):
        assert analyzer_notes(envelope) == ()


def test_on_opening(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The note is among the trace's, at first and from the kept index, in `info` and in what was read."""
    other_data = {"Application": "Acelyzer", "Settings": TORCH | {"overlap": "drop"}}
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [complete(0, 5)], "otherData": other_data}), encoding="utf-8")
    for _ in range(2):
        trace = open_trace(path, index_dir=tmp_path / "index")
        assert [one for one in trace.sources[0].notes if OVERLAPS["drop"] in one]
        assert [row for row in read_report_rows(trace.sources) if OVERLAPS["drop"] in row.text]
        trace.close()
    assert main(["info", str(path), "--index-dir", str(tmp_path / "index")]) == 0
    assert OVERLAPS["drop"] in capsys.readouterr().out


@needs(CORPUS)
def test_the_sample(corpus_cache: Path) -> None:
    """The sample tells that overlaps went to further lanes and that names lost their numbers."""
    trace = open_trace(CORPUS / "aiu" / "acelyzer_spyre_mlp_tb.pt.trace.json", index_dir=corpus_cache)
    (text,) = [one for one in trace.sources[0].notes if "aiu-trace-analyzer" in one]
    assert OVERLAPS["tid"] in text and "taken out of names" in text and "FLEX" not in text


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_counters_without_a_number(decoder: Literal["native", "python"], tmp_path: Path) -> None:
    """A counter event none of whose arguments is a number is counted; the doctor says so."""
    values: list[dict[str, Any] | None] = [{"a": 1, "b": 2}, {"a": 3}, {"a": True}, {"a": {"b": 1}}, {}, None]
    events = [
        {"ph": "C", "ts": ts, "pid": 1, "name": "c", **({} if args is None else {"args": args})}
        for ts, args in enumerate(values)
    ]
    path = write_events(tmp_path / "t.json", [*events, complete(0, 9)])
    ingest_index(open_source(path), IndexOptions(tmp_path / "index", decoder=decoder))
    trace = open_trace(path, index_dir=tmp_path / "index")
    report = trace.indexes[0].read_report
    assert (report["counter_events"], report["counter_values"], report["empty_counters"]) == (6, 3, 4)
    rows = analyse_doctor(Scope(trace))["doctor"].rows()
    assert ("empty-counters", "note", 4) in [(row["rule"], row["severity"], row["count"]) for row in rows]
    (recount,) = analyse_doctor(Scope(trace), recount=True)["recount"].rows()
    assert recount["verdict"] == "equal"


@pytest.mark.parametrize("behind", [5, 60, 0], ids=["in an event", "in the next", "between two"])
def test_a_file_ends_once(behind: int, tmp_path: Path) -> None:
    """Where a file is cut off, in an event or between two, that is one problem, met once."""
    text = json.dumps({"traceEvents": [complete(at, 2, f"op{at}") for at in range(20)]})
    cut = text.index('{"ph"', len(text) // 2) + behind
    path = tmp_path / "cut.json"
    path.write_text(text[:cut], encoding="utf-8")
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index"))
    assert [(one["kind"], one["count"]) for one in index.problems] == [("truncated", 1)]
