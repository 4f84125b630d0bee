"""The same recording later, where all takes twice as long, or behind another slice: answers follow, and else
they are the same.
"""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import ROOT
from tests.events import Event, complete, metadata
from tests.tui.cli_process import tracelane_here
from tracelane.core.base.errors import TracelaneError
from tracelane.core.export.formats import as_json
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import Trace, open_trace

SAMPLES = ROOT / "tests" / "samples"
NAMES = ("cuda/activities.pt.trace.json.gz", "cuda/gloo.pt.trace.json.gz", "compiled/model.pt.trace.json.gz")
WITHOUT_LIMITS = (
    *("range", "tree", "ops", "steps", "breakdown", "kernels", "critical_path", "memory", "compile"),
)
"""Analyses that tell nothing apart by how many ns it took."""
LEEWAY_NS = 3
"""What is half a nanosecond is rounded before it is doubled."""
LATER_US = 1_000_000

COUNT_ALL = ("range", "tree", "sections", "doctor", "summary")
"""Analyses that count every slice of a trace, whatever it is."""
KERNELS_BY = ("kernel", "stream", "op", "annotation", "step")

Document = dict[str, Any]


def document(name: str) -> Document:
    whole: Document = json.loads(gzip.decompress((SAMPLES / name).read_bytes()))
    return whole


def changed(whole: Document, times: int = 1, later_us: int = 0) -> Document:
    """Return a trace all of whose slices begin later, and whose times are some times as long."""
    events = []
    for event in whole["traceEvents"]:
        ts = {} if event["ph"] == "M" or "ts" not in event else {"ts": event["ts"] * times + later_us}
        events.append({**event, **ts, **({"dur": event["dur"] * times} if "dur" in event else {})})
    return {**whole, "traceEvents": events}


def written(folder: Path, whole: Document) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "trace.json"
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def answers(path: Path) -> dict[str, Any]:
    """Return what each analysis says of a file, as JSON, without its path and where its axis begins."""
    trace = open_trace(path, index_dir=path.parent / "index")
    return {row.name: answer(trace, row) for row in ANALYSES}


def answer(trace: Trace, analysis: Analysis, **options: Any) -> Any:
    try:
        text = as_json(analysis.run(Scope(trace), **options), analysis.name)
    except TracelaneError as error:
        return str(error)
    return json.loads(text.replace(json.dumps(trace.sources[0].path), '"here"')) | {"origin_ns": 0}


def cells(answer: dict[str, Any]) -> dict[tuple[str, int, str, str], Any]:
    """Return each cell by its table, row, column and unit."""
    return {
        (name, number, column["name"], column["unit"]): row.get(column["name"])
        for name, table in answer["tables"].items()
        for number, row in enumerate(table["rows"])
        for column in table["columns"]
        if not column["name"].startswith("recorded")  # as an argument says, whatever the times are
    }


def is_doubled(before: Any, after: Any, unit: str) -> bool:
    """Tell whether a cell of a trace is what it should be where all times are twice as long."""
    if unit == "bytes/s" and before is not None:
        before /= 2
    if unit != "ns" or before is None:
        return before == pytest.approx(after, rel=1e-4) if isinstance(before, float) else before == after
    return abs(2 * before - after) <= LEEWAY_NS


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_answers_do_not_depend_on_when_it_was(name: str, tmp_path: Path) -> None:
    """A trace that begins a second later has the same answers, whichever analysis is asked."""
    whole = document(name)
    before, after = (
        answers(written(tmp_path / str(later), changed(whole, later_us=later))) for later in (0, LATER_US)
    )
    assert len(before) == len(ANALYSES)
    for each, answer in before.items():
        assert after[each] == answer, each


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_lengths_follow_the_clock(name: str, tmp_path: Path) -> None:
    """Where all takes twice as long, lengths and moments double, rates halve; all else stays as it is."""
    whole = document(name)
    before, after = (answers(written(tmp_path / str(times), changed(whole, times))) for times in (1, 2))
    for each in WITHOUT_LIMITS:
        if isinstance(before[each], str):
            assert after[each] == before[each]
            continue
        old, new = cells(before[each]), cells(after[each])
        assert old.keys() == new.keys(), each
        wrong = {key: (old[key], new[key]) for key in old if not is_doubled(old[key], new[key], key[3])}
        assert not wrong, each


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_picture_is_the_same_at_any_time(name: str, tmp_path: Path) -> None:
    """The picture of a trace is the same a second later; of one twice as long all but its numbers."""
    whole = document(name)
    pictures = []
    for times, later in ((1, 0), (1, LATER_US), (2, 0)):
        path = written(tmp_path / f"{times}-{later}", changed(whole, times, later))
        pictures.append(tracelane_here("view", str(path)).stdout.replace(str(path), ""))
    assert pictures[0] == pictures[1]
    lanes = [lanes_of(picture) for picture in pictures]
    assert len(lanes[0]) > 3 and lanes[0] == lanes[2]


def lanes_of(picture: str) -> list[str]:
    """Return the lines of lanes, without how long is waited, which a hatch says where it has room."""
    lines = picture.splitlines()
    ruler = next(number for number, line in enumerate(lines) if line.startswith("▼"))
    lanes = [line for line in lines[ruler + 1 :] if "│" in line]
    return [re.sub("░[ 0-9A-Za-zµ.:]*(?=░)", lambda hatch: "░" * len(hatch[0]), line) for line in lanes]


def loop(first: str) -> list[Event]:
    """Return four steps that launch a kernel each; of the first one only what comes from `first` on, so that
    this is the first slice of the index.
    """
    events: list[Event] = []
    for number in range(4):
        at, args = 100 * number, {"correlation": number + 1, "External id": number + 1}
        more = {"device": 0, "stream": 7}
        events += [
            complete(at, 90, f"ProfilerStep#{number}", "user_annotation"),
            complete(at + 1, 30, "aten::mm", "cpu_op", args={"External id": number + 1}),
            complete(at + 5, 4, "cudaLaunchKernel", "cuda_runtime", args=args),
            complete(at + 20 + number, 40 + number, "gemm", "kernel", pid=9, tid=7, args=args | more),
            complete(at + 70, 10, "cudaStreamSynchronize", "cuda_runtime", args={"correlation": number + 9}),
        ]
    at = [event["name"].partition("#")[0] for event in events].index(first)
    return [
        *events[at:],
        metadata("process_name", 1, name="python"),
        metadata("process_labels", 9, labels="GPU 0"),
    ]


@pytest.mark.parametrize("first", ["ProfilerStep", "aten::mm", "cudaLaunchKernel"])
def test_what_comes_first_counts_as_any_other(first: str, tmp_path: Path) -> None:
    """A step, an op or a launch that is the first slice of all means what it means behind another one."""
    events = loop(first)
    other = complete(250, 1, "other", "other", pid=0, tid=0)
    said = []
    for number, more in enumerate(([], [other])):
        path = written(tmp_path / str(number), {"traceEvents": [*events, *more]})
        trace = open_trace(path, index_dir=path.parent / "index")
        index = trace.indexes[0]
        names = index.strings(index.column("slices.name"))
        assert [name.partition("#")[0] for name in names].index(first) == number
        rows = {row.name: row for row in ANALYSES}
        said.append(
            {name: answer(trace, row) for name, row in rows.items() if name not in COUNT_ALL}
            | {by: answer(trace, rows["kernels"], by=by) for by in KERNELS_BY}
        )
    for each, before in said[0].items():
        assert said[1][each] == before, each
