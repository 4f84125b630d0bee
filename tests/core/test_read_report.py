"""The read report: every event of a file is counted once, whatever it became."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import pytest

from tests.corpus import CORPUS, needs_corpus, representative
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
)
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.indexing import ingest_index
from tracelane.core.index.options import IndexOptions
from tracelane.core.index.store import Index
from tracelane.core.read.source import open_source

TERMS = (
    "slices", "pairs", "instant_events", "counter_events", "flow_events", "metadata", "async_events",
    "unmatched_begin", "unmatched_end", "without_time", "empty", "not_objects", "unreadable",
)  # fmt: skip
TRACES = sorted(
    str(path.relative_to(CORPUS))
    for folder in ("chrome", "odd", "aiu", "../cases/trust", "../cases/adversarial")
    for path in (CORPUS / folder).glob("**/*")
    if path.is_file() and ".json" in path.name and path.stat().st_size < 1 << 20
)


def total(index: Index) -> int:
    return sum(int(index.read_report[term]) for term in TERMS)


@pytest.mark.parametrize("seed", range(3))
def test_all_events_are_counted(tmp_path: Path, seed: int) -> None:
    """The terms add up to the events, of every phase and with times of every kind."""
    index = index_of([*every_phase(seed), event("O", 1), event("Q", None), 7, None, "x"], tmp_path)
    assert total(index) == index.read_report["events"]
    assert index.read_report["not_objects"] == 3


@pytest.mark.slow
@needs_corpus
@pytest.mark.parametrize("name", representative(TRACES))
def test_the_terms_of_real_files_add_up(name: str, tmp_path: Path) -> None:
    """Nothing vanishes of any file that is a trace, damaged ones included."""
    try:
        index = ingest_index(open_source(CORPUS / name), IndexOptions(tmp_path))
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
    path.write_text(json.dumps([complete(0, 99), *events]))
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index", decoder=decoder))
    assert index.read_report["counter_events"] == len(values)
    samples = index.column("samples.value").tolist()
    assert sorted(samples) == sorted([1.0, 2.5, -300.0, 0.5, *map(float, range(len(values)))])


def test_repeated_event_arrays_are_said(tmp_path: Path) -> None:
    """Where traceEvents stands twice in one object, both are read and the second is pointed at."""
    path = tmp_path / "twice.json"
    part = json.dumps([complete(1, 2)])
    path.write_text(f'{{"traceEvents": {part}, "x": 1, "traceEvents": {part}}}')
    index = ingest_index(open_source(path), IndexOptions(tmp_path / "index"))
    assert index.read_report["slices"] == 2
    (problem,) = index.problems
    assert "more than once" in problem["message"]
    assert path.read_bytes()[: problem["offset"]].endswith(b"[")
