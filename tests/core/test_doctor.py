"""The doctor: each rule speaks of a trace that has it and is silent on one that almost has it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import CASES, CORPUS, files, for_files, needs
from tests.events import Event, arrow, async_event, begin, complete, counter, end, event, flow, metadata
from tests.json_tables import flat
from tracelane.core.query.launches import launch_of
from tracelane.core.tables.compare.summary import analyse_summary
from tracelane.core.tables.device.breakdown import analyse_breakdown
from tracelane.core.tables.device.idle import analyse_idle
from tracelane.core.tables.device.launches import analyse_launches, begun_work, launch_calls, launched
from tracelane.core.tables.doctor.doctor import RULES, analyse_doctor, doctor_exit_code
from tracelane.core.tables.doctor.rule import TERMS
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Tables
from tracelane.core.tables.metric_groups import metrics
from tracelane.core.trace import open_trace
from tracelane.core.trace.devices import devices
from tracelane.tui.cli.main import main

HOST, DEVICE = 7, 0
SECOND = 1_000_000.0  # in µs, as traces have times


def op(ts: float, dur: float, name: str = "aten::mm", cat: str = "cpu_op", **more: Any) -> Event:
    return complete(ts, dur, name, cat, pid=HOST, **{"tid": HOST, **more})


def pair(number: int, called: float, starts: float, dur: float = 10, **more: Any) -> list[Event]:
    """Return a launch call and its kernel, with an arrow."""
    where = {"pid": DEVICE, "tid": more.pop("tid", 7)}
    call, name = more.pop("call", "cudaLaunchKernel"), more.pop("name", f"kernel{number}")
    args = {"correlation": number}
    launch = op(called, 2, call, more.pop("runtime", "cuda_runtime"), args=args)
    kernel = complete(starts, dur, name, more.pop("cat", "kernel"), args={**args, "stream": 7}, **where)
    start, head = arrow(number, launch, kernel)
    return [launch, start, kernel, head]


def lone_call(number: int, called: float) -> list[Event]:
    """Return a launch whose work was lost."""
    return pair(number, called, 0)[:2]


def lone_calls(count: int) -> list[Event]:
    """Return launches in a row whose work was lost."""
    return [one for number in range(count) for one in lone_call(100 + number, 2100.0 + 3 * number)]


def sound(count: int = 20) -> list[Event]:
    """Return a trace that nothing is wrong with: a step with ops, launches and kernels."""
    names = [
        metadata("process_name", DEVICE, name="python"),
        metadata("process_labels", DEVICE, labels="GPU 0"),
    ]
    events = [*names, op(0, 100 * count + 50, "ProfilerStep#1", "user_annotation")]
    for number in range(count):
        at = 100.0 * number + 10
        events += [op(at, 80, args={"Input Dims": [[2, 2]]}), *pair(number + 1, at + 5, at + 30)]
    stack = op(1, 5, "t.py(1): f", "python_function", tid=8)
    memory = event("i", 2, "[memory]", pid=HOST, tid=HOST, s="t", cat="cpu_instant_event", args={"Bytes": 4})
    return [*events, stack, memory]


def aiu(events: Sequence[Event]) -> list[Event]:
    """Return the same as an AIU's profiler writes it."""
    names = {"cuda_runtime": "privateuse1_runtime"}
    return [{**one, "cat": names.get(one["cat"], one["cat"])} if "cat" in one else one for one in events]


def doctor(
    path: Path, events: Sequence[Any], text: str | None = None, data: bytes = b"", **envelope: Any
) -> Tables:
    """Return what the doctor says of events, or of the text or bytes of a whole file."""
    path.mkdir(parents=True, exist_ok=True)
    file = path / "t.json"
    written = text if text is not None else json.dumps({**envelope, "traceEvents": list(events)})
    file.write_bytes(data or written.encode())
    return analyse_doctor(Scope(open_trace(file, index_dir=path / "index")))


def without(events: Sequence[Event], cat: str) -> list[Event]:
    return [one for one in events if one.get("cat") != cat]


def text_of(events: Sequence[Event]) -> str:
    return json.dumps({"traceEvents": list(events)})


def moved(us: float) -> list[Event]:
    """Return the sound trace with the device's clock moved."""
    return [
        {**one, "ts": one["ts"] + us} if one["ph"] in "Xf" and one["pid"] == DEVICE else one
        for one in sound()
    ]


def note(ts: float, dur: float) -> Event:
    return op(ts, dur, "note", "user_annotation", tid=9)


def copy(number: int, called: float, starts: float) -> list[Event]:
    """Return a copy and its call."""
    return pair(number, called, starts, cat="gpu_memcpy", name="Memcpy HtoD")


def two_calls(first: float, second: float) -> list[Event]:
    """Return a kernel without an arrow, and two calls of its correlation id."""
    args = {"correlation": 99, "stream": 7}
    calls = [
        op(ts, 2, "cudaLaunchKernel", "cuda_runtime", args=args, tid=tid)
        for ts, tid in ((first, 7), (second, 9))
    ]
    return [*calls, complete(2040, 5, "k", "kernel", pid=DEVICE, tid=7, args=args)]


def unlaunched(events: Sequence[Event]) -> list[Event]:
    """Return events without anything that tells the launch of a kernel."""
    return [
        {**one, "args": {}} if one.get("pid") == DEVICE and one["ph"] == "X" else one
        for one in events
        if one["ph"] not in "sf"
    ]


S = sound()
BAD = '{"ph":"X","name":"bad" "ts" ::: ]},'
MARK = {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "s": "g"}
OVERHEAD = {"tid": HOST, "cat": "overhead"}
FAR = 86_400 * SECOND

CASES_OF_RULES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "unreadable": (
        {"text": text_of(S).replace('{"ph": "i"', BAD + '{"ph": "i"', 1)},
        {"text": text_of(S).replace('{"ph": "i"', "\n\n" + '{"ph": "i"', 1)},
    ),
    "damaged": (
        {"data": gzip.compress(text_of(S).encode())[:-8] + bytes(8)},
        {"data": gzip.compress(text_of(S).encode()) + bytes(8)},
    ),
    "truncated": ({"text": text_of(S)[:-40]}, {"text": text_of(S) + "\n\n"}),
    "repaired": (
        {"text": text_of(S).replace("t.py(1): f", 't.py(1): "f" x', 1)},
        {"text": text_of(S).replace("t.py(1): f", 't.py(1): \\"f\\" x', 1)},
    ),
    "not-objects": ({"events": [*S, 7]}, {"events": [*S, {"ph": "i", "name": "7", "ts": 3}]}),
    "without-time": ({"events": [*S, op(0, 1) | {"ts": None}]}, {"events": [*S, op(0, 1) | {"ts": "12.5"}]}),
    "broken-envelope": (
        {"text": text_of(S)[:-1] + ', "note": "a "quoted" one"}'},
        {"text": text_of(S)[:-1] + ', "note": "a \\"quoted\\" one"}'},
    ),
    "merged": (
        {"events": [*S, {**MARK, "ts": 5000}, {**MARK, "ts": 9000}]},
        {"events": [*S, {**MARK, "ts": 5000}, op(0, 1, "worker", "user_annotation") | {"pid": 99}]},
    ),
    "empty-counters": ({"events": [*S, counter(5, "c", v="x")]}, {"events": [*S, counter(5, "c", v=1)]}),
    "negative-durations": ({"events": [*S, op(5, -1, tid=9)]}, {"events": [*S, op(5, 0, tid=9)]}),
    "clamped-times": ({"events": [*S, op(1e16, 1, tid=9)]}, {"events": [*S, op(5000, 1, tid=9)]}),
    "ts-unit": (
        {"events": [one | {"ts": one["ts"] + 1_773_534_654 * 10**9} if "ts" in one else one for one in S]},
        {"events": [one | {"ts": one["ts"] + 1_773_534_654 * 10**6} if "ts" in one else one for one in S]},
    ),
    "other-clock": (
        {"events": moved(-FAR)},
        {"events": [*S, op(FAR, 1, tid=9)]},
    ),
    "unmatched": (
        {"events": [*S, begin(1, tid=9), async_event("b", 1, 5)]},
        {"events": [*S, begin(1, tid=9), end(2, tid=9), async_event("b", 1, 5), async_event("e", 2, 5)]},
    ),
    "outside-parent": (
        {"events": [*S, op(10, 50, tid=9), op(40, 50, tid=9)]},
        {"events": [*S, op(10, 50, tid=9), note(40, 50), op(59.5, 50, tid=9)]},
    ),
    "before-launch": ({"events": moved(-26)}, {"events": moved(-25)}),
    "zero-times": (
        {"events": [{**e, "ts": 0} if e["ph"] in "Xf" and e["pid"] == DEVICE else e for e in moved(0)]},
        {"events": [{**e, "ts": e["ts"] + 1} if e["ph"] in "Xsf" else e for e in S]},
    ),
    "collapsed": (
        {"events": [*S, *pair(99, 2030, 2040, 500), *lone_calls(6)]},
        {"events": [*S, *pair(99, 2030, 2040, 500), *lone_calls(5)]},
    ),
    "clock-offset": (
        {"events": unlaunched(moved(-9000))},
        {"events": unlaunched(moved(2_100))},
    ),
    "ends-late": (
        {"events": [*S, *pair(99, 2030, 2040, 1.1 * SECOND)]},
        {"events": [*S, *pair(99, 2030, 2040, 0.9 * SECOND)]},
    ),
    "kernel-overlap": (
        {"events": [*S, *pair(99, 2030, 2040), *pair(100, 2033, 2045)]},
        {"events": [*S, *pair(99, 2030, 2040), *pair(100, 2033, 2049.5)]},
    ),
    "host-stamped-copies": (
        {"events": aiu([*S, *pair(99, 2030, 2040), *copy(100, 2033, 2045)])},
        {"events": [*S, *pair(99, 2030, 2040), *copy(100, 2033, 2045)]},
    ),
    "duplicate-starts": (
        {"events": [*S, *pair(99, 2030, 2040, 0.5), *pair(100, 2033, 2040, 0.75)]},
        {"events": [*S, *pair(99, 2030, 2040, 0.5), *pair(100, 2033, 2040.5, 0.75)]},
    ),
    "zero-durations": (
        {"events": [*S, *pair(99, 2030, 2040, 0)]},
        {"events": [*S, *pair(99, 2030, 2040, 0.001)]},
    ),
    "out-of-order": (
        {"events": [*S, *pair(99, 2030, 2060), *pair(100, 2034, 2045)]},
        {"events": [*S, *pair(99, 2030, 2045), *pair(100, 2034, 2060)]},
    ),
    "ambiguous-launches": (
        {"events": [*S, *two_calls(2030, 2030)]},
        {"events": [*S, *two_calls(2030, 2033)]},
    ),
    "lost-kernels": ({"events": [*S, *lone_call(99, 12)]}, {"events": S}),
    "device-stops-early": (
        {"events": [*S, *(e for n in range(10) for e in lone_call(100 + n, 2100 + 100 * n))]},
        {"events": [*S, *(e for n in range(9) for e in lone_call(100 + n, 2100 + 100 * n))]},
    ),
    "blank-names": (
        {"events": [*S, *pair(99, 2030, 2040, name="  ")]},
        {"events": [*S, *pair(99, 2030, 2040, name="k")]},
    ),
    "steps-overlap": (
        {"events": [*S, op(2040, 50, "ProfilerStep#2", "user_annotation", tid=9)]},
        {"events": [*S, op(2050, 50, "ProfilerStep#2", "user_annotation", tid=9)]},
    ),
    "profiler-overhead": (
        {"events": [*S, op(50, 110, "Instrumentation", **OVERHEAD | {"tid": 9})]},
        {"events": [*S, op(50, 90, "Instrumentation", **OVERHEAD | {"tid": 9})]},
    ),
    "buffer-flushes": (
        {"events": [*S, op(50, 9, "Activity Buffer Request", **OVERHEAD | {"tid": 9})]},
        {"events": [*S, op(50, 9, "Lazy Function Loading", **OVERHEAD | {"tid": 9})]},
    ),
    "buffers-exceeded": (
        {"events": S, "WARNING": ["Exceeded max AIU buffer count (5 > 5) - terminating tracing"]},
        {"events": S, "WARNING": ["max AIU buffer count is 5"]},
    ),
    "profiler-errors": ({"events": S, "ERROR": ["gpuGetDeviceCount failed"]}, {"events": S, "ERROR": []}),
    "device-unused": (
        {"events": [op(0, 5)], "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]},
        {"events": S, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}]},
    ),
    "no-events": (
        {"events": [metadata("process_name", DEVICE, name="python")]},
        {"events": [counter(0, "memory", used=1)]},
    ),
    "other-text": (
        {"text": f"INFO 12:00 profiler: writing trace\n{text_of(S)}"},
        {"text": f"{text_of(S)}\n"},
    ),
    "open-ended": (
        {"events": [
            *S,
            *(op(40 + 10 * at, 900 - 10 * at, "len", "python_function", tid=9) for at in range(4)),
        ]},
        {"events": [
            *S,
            *(op(40 + 10 * at, 900 - 10 * at, f"f{at}", "python_function", tid=9) for at in range(8)),
            *(op(50 + 10 * at, 100 - 20 * at, "block", "python_function", tid=10) for at in range(4)),
            *(op(40 + 10 * at, 900 - 10 * at, "run", "python_function", tid=11) for at in range(4)),
            op(20, 5, "run", "python_function", tid=11),
        ]},
    ),
    "no-shapes": (
        {"events": [{**e, "args": {}} if e.get("cat") == "cpu_op" else e for e in S]},
        {"events": without(S, "cpu_op")},
    ),
    "no-stacks": (
        {"events": without(S, "python_function")},
        {"events": without(S, "python_function"), "with_stack": 1},
    ),
    "no-memory": ({"events": without(S, "cpu_instant_event")}, {"events": S}),
}  # fmt: skip
FROM_THE_READER = {
    *("event-sum", "missing-durations", "mismatched-ends", "oversized", "cycle-stamps"),
    *("graphs-without-owners", "not-read"),
}
"""Rules about what only the reader counts, jobs of FLEX, captures, packets: other tests give them."""


def rules_in(tables: Tables) -> dict[str, dict[str, Any]]:
    return {row["rule"]: row for row in tables["doctor"].rows()}


def test_nothing_is_wrong_with_a_sound_trace(tmp_path: Path) -> None:
    """No rule speaks, on a GPU's trace as on an AIU's."""
    assert rules_in(doctor(tmp_path / "gpu", S)) == {}
    assert rules_in(doctor(tmp_path / "aiu", aiu(S))) == {}


@pytest.mark.slow
@pytest.mark.parametrize("rule", CASES_OF_RULES)
def test_a_rule_speaks_of_what_it_is_for_and_of_nothing_else(rule: str, tmp_path: Path) -> None:
    """It names count, severity, what is distorted and its source, and is silent where it almost holds."""
    has, almost = CASES_OF_RULES[rule]
    row = rules_in(doctor(tmp_path / "has", has.get("events", ()), **rest(has)))[rule]
    assert row["count"] > 0 and row["severity"] in ("note", "warning", "error")
    assert row["text"] and row["distorts"] and row["source"] and "{" not in row["threshold"]
    assert rule not in rules_in(doctor(tmp_path / "almost", almost.get("events", ()), **rest(almost)))


def rest(case: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in case.items() if key != "events"}


def test_every_rule_has_its_two_traces() -> None:
    """The table above names all rules, each once."""
    assert {rule.id for rule in RULES} == CASES_OF_RULES.keys() | FROM_THE_READER
    assert len({rule.id for rule in RULES}) == len(RULES)


@pytest.mark.parametrize(
    ("name", "count"), [("missing_durations", 3), ("mismatched_ends", 2), ("oversized", 1), ("events", 1)]
)
def test_counts_of_the_reader_are_said(name: str, count: int, tmp_path: Path) -> None:
    """What only the reader can count becomes a finding, and events that no term counts are an error."""
    (tmp_path / "t.json").write_text(text_of(S), encoding="utf-8")
    trace = open_trace(tmp_path / "t.json", index_dir=tmp_path / "index")
    read_report = trace.indexes[0].read_report
    rule = {"events": "event-sum"}.get(name, name.replace("_", "-"))
    assert rule not in rules_in(analyse_doctor(Scope(trace)))
    read_report[name] = read_report.get(name, 0) + count
    assert rules_in(analyse_doctor(Scope(trace)))[rule]["count"] == count


def test_overlap_is_an_error_on_an_aiu(tmp_path: Path) -> None:
    """An AIU runs one kernel of a stream at a time."""
    events = CASES_OF_RULES["kernel-overlap"][0]["events"]
    assert rules_in(doctor(tmp_path / "gpu", events))["kernel-overlap"]["severity"] == "warning"
    row = rules_in(doctor(tmp_path / "aiu", aiu(events)))["kernel-overlap"]
    assert row["severity"] == "error" and row["count"] == 1
    labels = [entry["label"] for entry in row["evidence"]]
    assert labels == ["the earlier: kernel99", "the later: kernel100"]
    assert row["evidence"][1]["start_ns"] - row["evidence"][0]["start_ns"] == 5_000


@pytest.mark.parametrize(("shortest", "severity"), [(1, "note"), (2, "warning"), (1.5, "warning")])
def test_whole_microseconds_round_to_nothing(shortest: float, severity: str, tmp_path: Path) -> None:
    """Where a file has whole µs and others take one, work of no time took less than that."""
    short = [
        e for n in range(3) for e in pair(99 + n, 2030 + 10 * n, 2035 + 10 * n, 0 if n == 0 else shortest)
    ]
    rows = rules_in(doctor(tmp_path, [*S, *short]))
    assert rows["zero-durations"]["severity"] == severity


def test_few_lost_kernels_are_a_note(tmp_path: Path) -> None:
    """At the edge of a recording some work is always cut off; where much is lost it is a warning."""
    few = [*S, *(e for n in range(5) for e in lone_call(100 + n, 20 + 3 * n))]
    many = [*few, *lone_call(200, 60)]
    assert rules_in(doctor(tmp_path / "few", few))["lost-kernels"]["severity"] == "note"
    assert rules_in(doctor(tmp_path / "many", many))["lost-kernels"]["severity"] == "warning"


def test_an_empty_object_is_no_event_without_a_time(tmp_path: Path) -> None:
    """rocprof's writer puts one first, others put one last; with anything in it it is an event."""
    assert rules_in(doctor(tmp_path / "both", [{}, *S, {}])) == {}
    assert "without-time" in rules_in(doctor(tmp_path / "name", [{"name": "x"}, *S]))


def overlapping() -> list[Event]:
    """Return a trace in which a kernel begins 5 µs before the one before on its stream has ended."""
    return [*S, *pair(99, 2030, 2040), *pair(100, 2033, 2045)]


def labelled(events: Sequence[Event], label: str) -> list[Event]:
    """Return events whose device has another label."""
    return [{**e, "args": {"labels": label}} if e["name"] == "process_labels" else e for e in events]


@pytest.mark.parametrize(
    ("more", "severity"),
    [
        ({}, "warning"),
        ({"cuda_runtime_version": 12_040}, None),
        ({"cuda_runtime_version": 11_080}, "warning"),
        ({"deviceProperties": [{"name": "NVIDIA H100 80GB HBM3", "computeMajor": 9}]}, None),
        ({"deviceProperties": [{"name": "NVIDIA A100-SXM4-40GB", "computeMajor": 8}]}, "warning"),
        ({"deviceProperties": [{"name": "AMD Instinct MI300X", "computeMajor": 9}]}, "warning"),
    ],
)
def test_where_kernels_of_a_stream_may_overlap(
    more: dict[str, Any], severity: str | None, tmp_path: Path
) -> None:
    """From CUDA 12 on the next kernel may begin early; on an AIU, told by its label alone, never."""
    row = rules_in(doctor(tmp_path / "gpu", overlapping(), **more)).get("kernel-overlap")
    assert (None if row is None else row["severity"]) == severity
    aius = labelled(overlapping(), "AIU 0")
    assert rules_in(doctor(tmp_path / "aiu", aius))["kernel-overlap"]["severity"] == "error"


def test_a_call_that_starts_work_goes_before_others(tmp_path: Path) -> None:
    """Two calls of one id and moment are not ambiguous where only one of them starts work by its name."""
    for names, rules in (
        (("hipArray3DCreate", "hipMemsetAsync"), set()),
        (("x", "y"), {"ambiguous-launches"}),
    ):
        events = [
            event | {"name": name}
            for event, name in zip(two_calls(2030, 2030), (*names, "fillBuffer"), strict=True)
        ]
        assert rules_in(doctor(tmp_path / names[0], [*S, *events])).keys() == rules
    trace = open_trace(tmp_path / "hipArray3DCreate" / "t.json", index_dir=tmp_path / "index")
    index = trace.indexes[0]
    (kernel,) = np.flatnonzero(index.column("slices.name") == index.string_numbers("fillBuffer")[0]).tolist()
    launch, via = launch_of(index, kernel)
    assert via == "correlation" and launch is not None and launch == trace.launches(0).launch_of(kernel)[0]
    assert index.string(int(index.column("slices.name")[launch])) == "hipMemsetAsync"


def test_calls_in_the_process_of_a_device_are_no_other_capture(tmp_path: Path) -> None:
    """An accelerator's queue of calls stands in its own process; calls of another process are another one."""
    call = op(500, 5, "runFunction", "mtia_runtime")
    assert rules_in(doctor(tmp_path / "device", [*S, call | {"pid": DEVICE, "tid": 99}])) == {}
    assert "merged" in rules_in(doctor(tmp_path / "other", [*S, call | {"pid": 99}]))


def test_kernels_that_begin_together_are_named_once(tmp_path: Path) -> None:
    """An event that stands twice in the file is a duplicate, and no overlap beside."""
    rules = rules_in(doctor(tmp_path, [*S, *pair(99, 2030, 2040), *pair(100, 2033, 2040)]))
    assert rules.keys() == {"duplicate-starts"}


def test_no_clock_is_to_be_moved_where_none_is_wrong(tmp_path: Path) -> None:
    """Neither of a sound trace nor where only times are lost; where work begins too early one is."""
    lost = [{**e, "ts": 0} if e.get("name") == "kernel1" else e for e in moved(0)]
    for name, events, offset in (("sound", S, None), ("lost", lost, None), ("early", moved(-26), 1_000)):
        (row,) = doctor(tmp_path / name, events)["clocks"].rows()
        assert row["offset_ns"] == offset, name


@needs(CORPUS)
def test_rocprof_of_rpd(corpus_cache: Path) -> None:
    """A file that begins with {}, has processes called GPU2 for devices, and slices without categories."""
    trace = open_trace(CORPUS / "verdicts/rpd_matmul.json.gz", index_dir=corpus_cache)
    tables = analyse_doctor(Scope(trace))
    assert len(tables["doctor"]) == 0 and doctor_exit_code(tables) == 0
    calls = launch_calls(launched(begun_work(Scope(trace))))
    assert len(devices(trace)) == 1 and len(calls) == 85


@needs(CASES)
def test_work_without_times_is_in_no_sum_over_time(tmp_path: Path) -> None:
    """Breakdown, idle, launches and summary leave 12 kernels at 0 out, and say so."""
    scope = Scope(open_trace(CASES / "verdicts/c1_ts0.json", index_dir=tmp_path))
    for analyse in (analyse_breakdown, analyse_idle, analyse_launches, analyse_summary):
        assert analyse(scope).scope == "whole trace, without 12 kernels and copies whose times are lost"
    (row,) = analyse_breakdown(scope)["devices"].rows()
    assert (row["slices"], row["kernel_time_ns"]) == (36, 39_606_000)
    (row,) = analyse_idle(scope)["streams"].rows()
    assert row["idle_ns"] == 10_806_000
    values = {name: metric.value for name, metric in metrics(scope).items()}
    assert (values["device.untimed"], values["device.kernel_time"]) == (12, 39_606_000)
    assert values["trace.span"] == 54_500_000 and values["launches.calls"] == 36


def test_every_event_is_in_one_term(tmp_path: Path) -> None:
    """The terms of a trace with everything in it, each as it was written."""
    events: list[Any] = [
        *(op(n, 1) for n in range(3)), begin(1, tid=3), end(2, tid=3), begin(3, tid=4), end(1, tid=5),
        event("i", 1), event("Q", 2), counter(1, "c", a=1, b=2), counter(2, "c", a=1), flow("s", 1, 4),
        flow("t", 2, 4), flow("f", 3, 4), metadata("process_name", 1, name="p"), async_event("b", 1, 5),
        async_event("n", 2, 5), async_event("e", 3, 5), op(0, 1) | {"ts": None}, op(0, 1) | {"ts": True},
        7, "x", {},
    ]  # fmt: skip
    text = json.dumps(events)[:-1] + ', {"ph":"X" "a" ::: ]}, {"ph":"i","ts":4,"name":"last"}]'
    tables = doctor(tmp_path, (), text)
    counts = {row["term"]: row["count"] for row in tables["events"].rows()}
    assert counts == {
        "slices": 4, "pairs": 1, "instant_events": 3, "counter_events": 2, "flow_events": 3, "metadata": 1,
        "async_events": 3, "unmatched_begin": 1, "unmatched_end": 1, "without_time": 2, "empty": 1,
        "not_objects": 2,
        "unreadable": 1,
    }  # fmt: skip
    assert list(counts) == list(TERMS)
    assert tables["events"].totals["events"] == sum(counts.values()) == len(events) + 2
    assert "event-sum" not in rules_in(tables)


@for_files("path", files("cpu/torch*.trace.json*", "cpu/torch213*", "cuda/[ags]*.pt.trace.json.gz"))
def test_a_pytorch_trace_gets_a_clean_bill(path: Path, corpus_cache: Path) -> None:
    """PyTorch's own files have nothing but notes, unless their quotes had to be repaired."""
    tables = analyse_doctor(Scope(open_trace(path, index_dir=corpus_cache)))
    grave = {row["rule"] for row in tables["doctor"].rows() if row["severity"] != "note"}
    assert grave == ({"repaired"} if "quotes" in path.name else set())
    assert doctor_exit_code(tables) == (1 if grave else 0)


@needs(CASES)
@pytest.mark.parametrize(
    ("name", "rules"),
    [
        (
            "lost",
            {
                "not-objects",
                "without-time",
                "repaired",
                "negative-durations",
                "missing-durations",
                "unmatched",
            },
        ),
        ("negdur", {"negative-durations"}),
        ("merged2", {"merged"}),
        ("graph", set()),
        ("corr_wrap", set()),
    ],
)
def test_cases(name: str, rules: set[str], tmp_path: Path) -> None:
    """What must be said of small traces made for one question each."""
    tables = analyse_doctor(Scope(open_trace(CASES / "adversarial" / f"{name}.json", index_dir=tmp_path)))
    assert {row["rule"] for row in tables["doctor"].rows() if row["severity"] != "note"} == rules


def test_the_exit_code_is_for_ci(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """0 for notes alone, 1 with --strict or from a warning on, 2 if unreadable, 64 for a part of a trace."""
    cache = ["--index-dir", str(tmp_path / "index")]
    paths = {"sound": S, "note": without(S, "python_function"), "warning": [*S, begin(1, tid=9)]}
    for name, events in paths.items():
        (tmp_path / f"{name}.json").write_text(text_of(events), encoding="utf-8")
    (tmp_path / "none.json").write_text("<html>", encoding="utf-8")

    def code(name: str, *more: str) -> int:
        return main(["doctor", str(tmp_path / f"{name}.json"), *more, *cache])

    assert [code("sound"), code("sound", "--strict"), code("note"), code("note", "--strict")] == [0, 0, 0, 1]
    assert [code("warning"), code("none"), code("sound", "--lanes", "x")] == [1, 2, 64]
    capsys.readouterr()
    assert code("note", "--json", "--strict") == 1
    answer = flat(json.loads(capsys.readouterr().out))
    assert [row["rule"] for row in answer["doctor"]] == ["no-stacks"] and answer["failed"]
    assert {"rule", "severity", "count", "evidence", "distorts", "source"} <= answer["doctor"][0].keys()


def test_a_total_loss_is_an_error(tmp_path: Path) -> None:
    """Of launches that all lack their work few are not few: 4 of 4 is an error, 4 of 20 a note."""
    for count, severity in ((4, "error"), (20, "note")):
        events = [
            one
            for one in sound(count)
            if not (one.get("cat") == "kernel" and one["args"]["correlation"] in range(9, 13))
            and not (count == 4 and one.get("cat") == "kernel")
        ]
        row = rules_in(doctor(tmp_path / str(count), events))["lost-kernels"]
        assert (row["count"], row["severity"]) == (4, severity)


def test_what_only_looks_cut_off_is_not(tmp_path: Path) -> None:
    """A quote that is not escaped, behind the events, breaks its value; the file ends where it should."""
    whole = text_of(S)[:-1]
    broken = whole + ', "otherData": {"cmd": "python -c "print("hello")""}}'
    rules = rules_in(doctor(tmp_path / "broken", (), broken))
    assert rules.keys() == {"broken-envelope"}
    assert "truncated" in rules_in(doctor(tmp_path / "cut", (), whole + ', "otherData": {"cmd": "pyth'))


def test_waits_may_take_no_time(tmp_path: Path) -> None:
    """What waits for a peer that is there already takes 0 ns, and is no fault; a kernel that does is one."""
    for name, is_fault in (("NOTIFY_WAIT", False), ("EVENT_RECORD", False), ("waitress_gemm", True)):
        events = [{**one, "dur": 0, "name": name} if one.get("cat") == "kernel" else one for one in S]
        rules = rules_in(doctor(tmp_path / name, [*events, *pair(500, 3000, 3010)]))
        assert ("zero-durations" in rules) == is_fault, name


def test_a_device_may_stand_in_what_is_missing(tmp_path: Path) -> None:
    """A file that is cut off before its device work is not said to hold none."""
    head = '{"deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "traceEvents": ['
    path = tmp_path / "t.json"
    path.write_text(head + json.dumps(op(0, 5)) + ', {"ph": "X", "na', encoding="utf-8")
    table = analyse_doctor(Scope(open_trace(path, index_dir=tmp_path))).main
    rules = [row["rule"] for row in table.rows()]
    assert "truncated" in rules and "device-unused" not in rules


def test_a_repeated_array_is_no_damage(tmp_path: Path) -> None:
    """The events of all arrays of one object are read; it is one document, and not cut off."""
    first, second = (json.dumps(S[at::2]) for at in (0, 1))
    text = f'{{"traceEvents": {first}, "traceEvents": {second}}}'
    assert rules_in(doctor(tmp_path, (), text)).keys() == set()
    trace = open_trace(tmp_path / "t.json", index_dir=tmp_path / "index")
    assert trace.sources[0].form == "object"
    assert trace.indexes[0].read_report["events"] == len(S)
