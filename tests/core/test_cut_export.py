"""A cut opened again has exactly the window's slices, and its events are the source's, byte by byte."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, file, for_files
from tests.events import begin, complete, counter, end, every_phase, flow, metadata
from tests.forms import Form, cut_off, forms
from tests.tui.cli_process import tracelane_here
from tracelane.core import open_trace
from tracelane.core.base.clock import NO_CLOCKS
from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.export.cut import cut_scope, event_text, event_texts
from tracelane.core.index.format import LaneKind, RowKind, SliceFlag
from tracelane.core.index.pids import SHARED_PID
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace

FILES = (
    "aiu/spyre_torch_profiler/decode_bmm__upstream-main__adnan-cdx-spyre-dev-pf_2294891"
    ".1781947844789580072.pt.trace.json",
    "aiu/mlp_trace.json",
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "chrome/catapult_big_trace.json",
    "chrome/catapult_nestable_async.json",
    "chrome/catapult_flow.json.gz",
    "chrome/devtools_65_array.json.gz",
    "chrome/viztracer_multithread.json",
    "chrome/catapult_main_thread_has_unclosed_slices.json",
    *("cuda/gloo.pt.trace.json.gz", "cpu/torch_2.13_training.pt.trace.json.gz", "jax.trace.json.gz"),
)


def slices(trace: Trace, window: tuple[int, int] | None = None) -> Counter[tuple[Any, ...]]:
    """Return every slice (of those that overlap a window) by lane, name, category, time; the slow way."""
    index = trace.indexes[0]
    counts: Counter[tuple[Any, ...]] = Counter()
    starts = index.column("slices.start").tolist()
    lengths = index.duration(range(len(starts))).tolist()
    names, categories = index.column("slices.name").tolist(), index.column("slices.category").tolist()
    lane_of = {}
    for lane in trace.lanes:
        for row in trace.rows(lane):
            if row.kind is RowKind.SLICES:
                first = int(index.rows[row.number]["first"])
                # An async id that several processes share is shown with whichever comes first.
                # A device is marked that shares its pid with a program; a cut may lack the program.
                pid = "" if lane.kind is LaneKind.ASYNC else lane.pid.removesuffix(SHARED_PID)
                track = (pid, lane.tid, lane.kind)
                lane_of.update(dict.fromkeys(range(first, first + row.count), track))
    for position, (start, length) in enumerate(zip(starts, lengths)):
        if window is None or (start < window[1] and (start + length > window[0] or start >= window[0])):
            unclosed = bool(index.flag(position) & SliceFlag.UNCLOSED)
            key = (*lane_of[position], index.string(names[position]), index.categories[categories[position]])
            counts[(*key, start, None if unclosed else length)] += 1
    return counts


def window_of(trace: Trace, low: float, high: float) -> tuple[int, int]:
    start, stop = trace.opening_span
    return start + int((stop - start) * low), start + int((stop - start) * high)


@pytest.mark.slow
@for_files("name", [*FILES, "mtia"])
@pytest.mark.parametrize("part", [(0.3, 0.55), (0.9, 1.1)], ids=["middle", "end"])
def test_a_cut_has_exactly_the_slices_of_its_window(
    name: str, part: tuple[float, float], corpus_cache: Path, tmp_path: Path
) -> None:
    """Nothing of the window is missing or changed, nothing else is there; envelope and metadata are kept."""
    path = next(CORPUS.glob("**/*mtia*.json*")) if name == "mtia" else file(name)
    trace = open_trace([path], index_dir=corpus_cache)
    window = window_of(trace, *part)
    out = tmp_path / "cut.json.gz"
    expected = slices(trace, window)
    done = cut_scope(Scope(trace, window), out)
    value = json.loads(gzip.decompress(out.read_bytes()))
    again = open_trace([out], index_dir=tmp_path / "index")
    assert slices(again) == expected
    assert done.slices == expected.total()
    assert done.events == len(value["traceEvents"])
    before, after = trace.sources[0], again.sources[0]
    assert after.base_time_ns == before.base_time_ns
    envelope = before.manifest["envelope"]
    assert {key: value[key] for key in envelope if key not in done.left_out} == {
        key: entry for key, entry in envelope.items() if key not in done.left_out
    }
    counts = (before.read_report["counts"].get("phase.M", 0), after.read_report["counts"].get("phase.M", 0))
    assert counts[0] == counts[1] == done.metadata
    again.close()
    trace.close()


@for_files("name", [FILES[0], "cpu/torch_2.13_rank0.pt.trace.json.gz", "cuda/gloo.pt.trace.json.gz"])
def test_a_cut_copies_events_as_they_stand(name: str, corpus_cache: Path, tmp_path: Path) -> None:
    """Every event of a plain trace's cut is found in the source with the same bytes, in the same order."""
    path = file(name)
    trace = open_trace([path], index_dir=corpus_cache)
    out = tmp_path / "cut.json"
    cut_scope(Scope(trace, window_of(trace, 0.3, 0.6)), out)
    source, at = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes(), 0
    body = out.read_bytes().split(b'"traceEvents": [\n')[1].removesuffix(b"\n]}\n")
    value = json.loads(out.read_bytes(), parse_float=Decimal)
    texts = event_texts(body, len(value["traceEvents"]), False)
    assert len(texts) > 100
    for text in texts:
        at = source.find(text, at)
        assert at >= 0, text
    trace.close()


def small(tmp_path: Path, events: list[Any], **envelope: Any) -> Trace:
    path = tmp_path / "source.json"
    path.write_text(json.dumps({**envelope, "traceEvents": events}), encoding="utf-8")
    return open_trace([path], index_dir=tmp_path / "source.index")


def again(tmp_path: Path, trace: Trace, start: int, stop: int, **options: Any) -> list[dict[str, Any]]:
    out = tmp_path / "cut.json"
    cut_scope(Scope(trace, (start, stop), **options), out)
    events: list[dict[str, Any]] = json.loads(out.read_bytes())["traceEvents"]
    return events


EVENTS = [
    metadata("process_name", 1, name="python"),
    complete(0, 10, "before"),
    complete(5, 30, "cut by the edge"),
    begin(12, "b"),
    counter(5, "mem", used=1, free=2),
    counter(15, "mem", used=2, free=2),
    complete(15, 0, "nothing long", tid=2),
    flow("s", 16, 1),
    complete(16, 2, "launch"),
    complete(18, 2, "kernel", tid=7),
    flow("f", 18, 1, bp="e", tid=7),
    flow("s", 16, 2),
    flow("f", 60, 2, bp="e", tid=7),
    complete(60, 5, "late kernel", tid=7),
    end(40),
    complete(20, 1, "begins at the end", tid=3),
    metadata("thread_name", 1, 7, name="stream"),
]


def test_what_belongs_to_a_window(tmp_path: Path) -> None:
    """Slices that overlap it come whole, both halves of pairs too; flows only with both ends; counter samples
    inside; metadata always; what ends where the window begins or begins where it ends is not in it.
    """
    trace = small(tmp_path, EVENTS)
    events = again(tmp_path, trace, 10_000, 20_000)
    names = [(event["ph"], event.get("name")) for event in events]
    assert names == [
        ("M", "process_name"),
        ("X", "cut by the edge"),
        ("B", "b"),
        ("C", "mem"),
        ("X", "nothing long"),
        ("s", "flow"),
        ("X", "launch"),
        ("X", "kernel"),
        ("f", "flow"),
        ("E", None),
        ("M", "thread_name"),
    ]


def test_only_some_lanes(tmp_path: Path) -> None:
    """With lanes given, nothing of other lanes is there, nor a flow that ends in one."""
    trace = small(tmp_path, EVENTS)
    lanes = [lane.number for lane in trace.lanes if lane.tid == "7"]
    events = again(tmp_path, trace, 10_000, 20_000, lanes=lanes)
    assert [event["name"] for event in events if event["ph"] != "M"] == ["kernel"]


@pytest.mark.parametrize("seed", range(4))
def test_every_phase_survives(tmp_path: Path, seed: int) -> None:
    """Of events of all phases with odd ids, in no order, a cut has exactly the window's slices."""
    trace = small(tmp_path, every_phase(seed, 300), baseTimeNanoseconds=1_700_000_000_000_000_123)
    window = window_of(trace, 0.25, 0.5)
    expected = slices(trace, window)
    assert expected
    again(tmp_path, trace, *window)
    reopened = open_trace([tmp_path / "cut.json"], index_dir=tmp_path / "cut.index")
    assert slices(reopened) == expected
    assert reopened.sources[0].base_time_ns == 1_700_000_000_000_000_123


FORMS = [form for form in (*forms(24), *cut_off(24)) if any(isinstance(e, dict) for e in form.events)]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_form_of_file_can_be_cut(tmp_path: Path, form: Form) -> None:
    """Whatever the file's form, encoding or packing and wherever it breaks off, a cut is valid JSON with its
    slices.
    """
    path = tmp_path / "source"
    path.write_bytes(form.data)
    trace = open_trace([path], index_dir=tmp_path / "source.index")
    start, stop = trace.span
    window = (start, (start + stop) // 2 + 1)
    expected = slices(trace, window)
    again(tmp_path, trace, *window)
    reopened = open_trace([tmp_path / "cut.json"], index_dir=tmp_path / "cut.index")
    assert slices(reopened) == expected
    assert reopened.sources[0].base_time_ns == trace.sources[0].base_time_ns


def test_broken_text_becomes_valid_json(tmp_path: Path) -> None:
    """Events that are no JSON in the source are written so that they are, their times exact."""
    path = tmp_path / "broken.json"
    path.write_text(
        '{"traceEvents": [{"ph":"X","pid":1,"tid":1,"name":"a","ts":5533068085235803.188,"dur":1,'
        '"args":{"x":NaN}},\n{"ph":"X","pid":1,"tid":1,"name":"b\nc","ts":5533068085235805.001,"dur":2}]}',
        encoding="utf-8",
    )
    trace = open_trace([path], index_dir=tmp_path / "source.index")
    again(tmp_path, trace, *trace.span)
    reopened = open_trace([tmp_path / "cut.json"], index_dir=tmp_path / "cut.index")
    assert slices(reopened) == slices(trace)
    assert json.loads(event_text({"ts": Decimal("1.001"), "x": float("nan")})) == {"ts": 1.001, "x": "nan"}


def test_refusals(tmp_path: Path) -> None:
    """An empty window, one in which nothing lies, and the trace itself as the file to write are refused; a
    folder that is not there is said, and nothing half-written is left.
    """
    trace = small(tmp_path, EVENTS)
    source = (tmp_path / "source.json").read_bytes()
    for window, out, error in (
        ((10, 10), tmp_path / "cut.json", UsageError),
        ((900_000, 910_000), tmp_path / "cut.json", UsageError),
        ((10_000, 20_000), tmp_path / "source.json", UsageError),
        ((10_000, 20_000), tmp_path / "none" / "cut.json", TracelaneError),
    ):
        with pytest.raises(error):
            cut_scope(Scope(trace, window), out)
    assert (tmp_path / "source.json").read_bytes() == source
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.index", "source.json"]


@pytest.mark.slow
def test_the_command(tmp_path: Path) -> None:
    """Times are typed as everywhere; what was written is told; a bare number is refused."""
    small(tmp_path, EVENTS)
    out = tmp_path / "cut.json.gz"
    window = ("--from", "+10us", "--to", "@20")
    done = tracelane_here("cut", str(tmp_path / "source.json"), *window, "--lanes", "stream", "-o", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{out}: 1 slice, 2 metadata events\n"
    events = json.loads(gzip.decompress(out.read_bytes()))["traceEvents"]
    assert [event["name"] for event in events] == ["process_name", "kernel", "thread_name"]
    refused = tracelane_here("cut", str(tmp_path / "source.json"), "--from", "10", "-o", str(out))
    assert refused.returncode == 64


def test_devices_are_held_against_the_window_where_they_were_moved(tmp_path: Path) -> None:
    """A process with a clock of its own is cut where its slices are shown, with the times of the file."""
    events = [
        complete(10 * n, 5, f"{who} {n}", pid=pid)
        for who, pid in (("host", 1), ("card", 0))
        for n in range(6)
    ]
    clocks = NO_CLOCKS.shifted((0, "0"), 20_000)
    cut_events = again(tmp_path, small(tmp_path, events), 10_000, 30_000, clocks=clocks)
    assert [(event["name"], event["ts"]) for event in cut_events] == [
        ("host 1", 10),
        ("host 2", 20),
        ("card 0", 0),
    ]
