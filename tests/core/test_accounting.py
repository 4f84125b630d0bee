"""Every number that accounting.json has for a corpus file, `tracelane info --json` has too."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CASES, CORPUS, GOLDENS, accounting, file, for_files, needs, recoverable, thinned
from tracelane.core.base.units import TIME_LIMIT
from tracelane.tui.cli.main import main

VALID = sorted(name for name, entry in accounting().items() if "events" in entry)
TRACKS = "tracks_pid_tid: [slices, depth, partial_overlap_slices]"
PHASES = (*"XBEiIMCstfbneSTpF",)
"""All others count as instants where they have a time."""
SUM = (
    *("slices", "pairs", "instants", "counter_events", "flow_events", "metadata", "async_events"),
    *("unmatched_begin", "unmatched_end", "without_time", "empty", "not_objects", "unreadable"),
)
NO_TRACE = {"odd/empty.json", "odd/html_not_json.json"}
"""Neither JSON nor the beginning of it."""


def _info(path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    code = main(["info", str(path), "--json", "--index-dir", str(cache)])
    out = capsys.readouterr()
    assert code == 0, out.err
    return dict(json.loads(out.out))


def _track_text(pid: Any, tid: Any) -> str:
    return f"{json.dumps(pid)},{json.dumps(tid)}"


@pytest.mark.slow
@for_files("name", VALID, reads=[GOLDENS])
def test_numbers_equal_the_accounting(
    name: str, corpus_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Events, slices, pairs, instants, counters, flows, bounds and every track's depth are exact."""
    if not file(name).is_file():
        pytest.skip("listed in the accounting, not in this corpus")
    want = accounting()[name]
    got = _info(file(name), corpus_cache, capsys)
    be = want["BE"]
    assert got["schema"] == 1
    assert got["events"] == want["events"]
    assert got["slices"] == want["slices_total"]
    others = sum(count for phase, count in want["phases"].items() if phase not in PHASES)
    unusable = want["X_unusable_ts_or_dur(not a slice)"] + others
    assert 0 <= got["instants"] - want["instants_i_or_I"] <= unusable
    assert got["instants"] + got["without_time"] + got["empty"] >= want["instants_i_or_I"] + others
    assert sum(got[term] for term in SUM) == got["events"]
    assert got["metadata"] == want["phases"].get("M", 0)
    assert got["unmatched_begin"] == be["B_unclosed"]
    assert got["unmatched_end"] == be["E_without_B"]
    for end, edge in (("start_ns", "slices_min_ts_ns"), ("end_ns", "slices_max_end_ns")):
        time = want[edge]
        assert got[end] == (time if time is None else min(max(time, -TIME_LIMIT), TIME_LIMIT))
    assert got["base_time_ns"] == want.get("baseTimeNanoseconds")
    assert got["unreadable"] == 0
    for category, flows in want["flows"].items():
        mine = got["flows"][category]
        assert (mine["starts"], mine["steps"], mine["ends"]) == (flows["s"], flows["t"], flows["f"])
        assert mine["paired"] == flows["f_with_s_same_cat_id"]
        assert mine["orphan_ends"] == flows["f_orphan"]
        assert mine["orphan_starts"] == flows["s_orphan"]
    # Flows that slices name by `bind_id` have no events of their own, which the reference counts.
    assert set(got["flows"]) - {"bind_id"} == set(want["flows"])
    tracks = {
        _track_text(process["pid"], lane["tid"]): [lane["slices"], lane["depth"], lane["overlapping"]]
        for process in got["processes"]
        for lane in process["lanes"]
        if lane["slices"] and lane.get("kind", "thread") == "thread"
    }
    assert tracks == want[TRACKS]


@needs(CORPUS, GOLDENS)
@pytest.mark.parametrize("name", sorted(set(recoverable()) - NO_TRACE))
def test_broken_files_give_up_their_whole_events(
    name: str, corpus_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From files that are no valid JSON at least the whole events are read, and the damage is said."""
    if recoverable()[name] == 0:
        assert main(["info", str(file(name)), "--json", "--index-dir", str(corpus_cache)]) in (0, 2)
        return
    got = _info(file(name), corpus_cache, capsys)
    assert got["events"] - got["unreadable"] >= recoverable()[name]
    assert got["slices"] + got["instants"] + got["unmatched_begin"] > 0


@for_files("name", sorted(NO_TRACE))
def test_what_is_no_trace_is_refused(
    name: str, corpus_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An empty file or a web page ends with one line on stderr and exit code 2."""
    assert main(["info", str(file(name)), "--index-dir", str(corpus_cache)]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "Traceback" not in err


CASE_FILES = sorted(path for path in CASES.rglob("*.json")) if CASES.is_dir() else []
SMALL = 60_000
"""Bytes of a file that is damaged many times."""
VALUES = (
    *('"ts":null', '"ts":true', '"ts":"12.5"', '"ts":"x"', '"ts":1e400', '"ts":NaN', '"ts":[1]', '"ts":{}'),
    *('"ph":"B"', '"ph":"E"', '"ph":"C"', '"ph":"M"', '"ph":"s","id":1', '"ph":"b","id":2', '"ph":"i"'),
    *('"ph":"Q"', '"ph":1', '"ph":""', '"ph":null', '"ph":"X","dur":-3', '"dur":null', '"args":null'),
)
ELEMENTS = (
    "null",
    "3",
    '"x"',
    "[]",
    "{}",
    '{"ph":"X"}',
    "true",
    '{"ph":"i","ts":1}',
    '[1,{"ph":"X","ts":1}]',
)


def _events_of(text: str) -> int | None:
    """Return how many elements Python's decoder finds, None where it finds no trace or several lists."""
    try:
        trace = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(trace, dict):
        trace = trace.get("traceEvents") if text.count('"traceEvents"') == 1 else None
    return len(trace) if isinstance(trace, list) else None


def _adds_up(path: Path, cache: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any] | None:
    """Check the sum of a file's events, whose terms are whole numbers; None where it is refused in a line."""
    code = main(["info", str(path), "--json", "--index-dir", str(cache)])
    out = capsys.readouterr()
    if code:
        assert code == 2 and out.err.count("\n") == 1 and "Traceback" not in out.err
        return None
    got: dict[str, Any] = json.loads(out.out)
    assert all(type(got[term]) is int and got[term] >= 0 for term in (*SUM, "events"))
    assert sum(got[term] for term in SUM) == got["events"], {term: got[term] for term in SUM}
    return got


def _damaged(text: str, pick: random.Random) -> str:
    """Return a text with keys replaced, elements put in, parts removed, or its end missing."""
    kind = pick.randrange(4)
    if kind == 0:
        return text[: pick.randrange(len(text))]
    for _ in range(pick.randrange(1, 9)):
        at = pick.randrange(len(text))
        if kind == 1:
            text = text[:at] + text[at + pick.randrange(1, 30) :] or "["
        elif kind == 2 and (at := text.find("},", at)) >= 0:
            text = f"{text[: at + 2]}{pick.choice(ELEMENTS)},{text[at + 2 :]}"
        elif kind == 3 and (at := text.find(pick.choice(('"ph"', '"ts"', '"dur"')), at)) >= 0:
            end = min(to for to in (text.find(",", at), text.find("}", at), len(text)) if to >= 0)
            text = text[:at] + pick.choice(VALUES) + text[end:]
    return text


@pytest.mark.slow
@for_files("path", CASE_FILES)
def test_the_terms_of_a_case_add_up(
    path: Path, corpus_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every event of every small case is in one term."""
    got = _adds_up(path, corpus_cache, capsys)
    events = _events_of(path.read_text(encoding="utf-8", errors="replace"))
    if got is None:
        assert not events
    elif events is not None:
        assert got["events"] == events


@needs(CORPUS, CASES)
@pytest.mark.slow
@pytest.mark.parametrize("seed", thinned(range(20), 4))
def test_the_terms_of_damaged_files_add_up(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So is every event of files that were damaged in odd places."""
    pick = random.Random(seed)
    files = [
        path for path in (*CASE_FILES, *sorted(CORPUS.rglob("*.json"))) if 2 < path.stat().st_size < SMALL
    ]
    compared = 0
    for number in range(15):
        text = _damaged(pick.choice(files).read_text(encoding="utf-8", errors="replace"), pick)
        path = tmp_path / f"{number}.json"
        path.write_text(text, encoding="utf-8")
        got = _adds_up(path, tmp_path / "index", capsys)
        events = _events_of(text)
        if got is not None and events is not None:
            compared += 1
            assert got["events"] == events, (number, text[:2000])
    assert compared
