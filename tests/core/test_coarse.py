"""The picture of a trace that is still being read: coarse, but every slice's lane and time is in it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.batches import Part
from tests.corpus import CORPUS, needs_corpus
from tests.reading import batches_of_file
from tracelane.core.base.errors import CacheError, UnreadableError
from tracelane.core.index.format import LaneKind
from tracelane.core.read import coarse
from tracelane.core.read.batch_store import BatchStore
from tracelane.core.read.coarse import (
    Coarse,
    LaneName,
    coarse_of,
    merged,
    most_buckets,
    read_coarse,
    write_coarse,
)
from tracelane.core.read.reader import ReadOptions, SourceReading
from tracelane.core.read.source import open_source

Interval = tuple[int, int]
SMALL = 3 << 20


def intervals(part: Part) -> dict[LaneName, list[Interval]]:
    """Return (start, end) of everything that is drawn, by lane, in plain Python."""
    intervals_by_lane = defaultdict(list)
    timed = part.tables["timed"]
    columns = (timed[name].tolist() for name in ("track", "start", "duration"))
    for track, start, duration in zip(*columns):
        intervals_by_lane[LaneName(LaneKind.THREAD, *part.tracks[track])].append((start, start + duration))
    for kind, table, column in ((1, "asyncs", "category"), (2, "counters", "name")):
        rows = zip(*(part.tables[table][name].tolist() for name in ("track", column, "start")))
        for track, text, start in rows:
            intervals_by_lane[LaneName(kind, part.tracks[track][0], "", part.strings[text])].append(
                (start, start)
            )
    return intervals_by_lane


def union(pieces: Sequence[Interval]) -> list[Interval]:
    done: list[Interval] = []
    for start, end in sorted(pieces):
        if done and start < done[-1][1]:
            done[-1] = (done[-1][0], max(end, done[-1][1]))
        else:
            done.append((start, end))
    return done


def by_lane(picture: Coarse) -> dict[LaneName, dict[int, int]]:
    buckets: dict[LaneName, dict[int, int]] = defaultdict(dict)
    for lane, bucket, busy in zip(picture.lane.tolist(), picture.bucket.tolist(), picture.busy.tolist()):
        assert bucket not in buckets[picture.lanes[lane]]
        buckets[picture.lanes[lane]][bucket] = busy
    return buckets


def check(picture: Coarse, part: Part) -> None:
    """Hold a part's picture to its events, one by one."""
    lanes, width = by_lane(picture), picture.width
    events = intervals(part)
    assert set(lanes) == set(events)
    for track, pieces in events.items():
        buckets = lanes[track]
        assert len(buckets) <= most_buckets(len(events))
        for start, end in pieces:
            assert start // width in buckets and max(start, end - 1) // width in buckets
        covered: dict[int, int] = defaultdict(int)
        for start, end in union(pieces):
            for bucket in range(start // width, (max(start, end - 1)) // width + 1):
                covered[bucket] += max(0, min(end, (bucket + 1) * width) - max(start, bucket * width))
        assert covered == buckets, track


def test_kinds_are_those_of_the_index() -> None:
    """The picture's kinds of lanes are numbered as the index numbers them."""
    assert tuple(LaneKind) == (coarse.THREAD, coarse.ASYNC, coarse.COUNTER)


def corpus_files() -> list[Path]:
    paths = [file for file in CORPUS.rglob("*.json*") if file.is_file() and file.stat().st_size < SMALL]
    return sorted(paths)[::3]


@needs_corpus
def test_every_slice_is_in_the_picture() -> None:
    """In real traces all lanes and times are there, and busy times are those of the slices, to the ns."""
    seen = 0
    for path in corpus_files():
        try:
            pictures = drawn(path, 8 << 20)
        except UnreadableError:
            continue
        for picture, part in pictures:
            if len(part.tables["timed"]["start"]) < 10_000:
                check(picture, part)
                seen += 1
    assert seen > 10


def trace_file(folder: Path, events: Sequence[dict[str, object]], name: str = "t.json") -> Path:
    path = folder / name
    path.write_text('{"traceEvents":[\n' + ",\n".join(map(json.dumps, events)) + "\n]}")
    return path


def slice_of(tid: int, ts: float, dur: float) -> dict[str, object]:
    return {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": tid, "ts": ts, "dur": dur}


def drawn(path: Path, size: int) -> list[tuple[Coarse, Part]]:
    """Return the batches of a file, each with its picture."""
    batches = batches_of_file(path, size)
    return [(coarse_of(batch, table), Part.of(batch, table)) for batch, table in batches]


def test_pictures_add_up(tmp_path: Path) -> None:
    """Whatever the order and the cuts, the sum holds each lane and bucket, and the parts' busy times."""
    rng = np.random.default_rng(5)
    events = [slice_of(int(rng.integers(5)), float(t), float(rng.integers(9))) for t in range(0, 90_000, 30)]
    pictures, parts = zip(*drawn(trace_file(tmp_path, events), 20_000))
    assert len(pictures) > 5
    total = sum(int(picture.busy.sum()) for picture in pictures)
    lanes = {track for part in parts for track in intervals(part)}
    for order in (pictures, pictures[::-1]):
        at_once, stepwise = merged(order), order[0]
        for picture in order[1:]:
            stepwise = merged([stepwise, picture])
        assert by_lane(at_once) == by_lane(stepwise)
        assert int(at_once.busy.sum()) == total and set(by_lane(at_once)) == lanes
        for part in parts:
            for track, pieces in intervals(part).items():
                held = by_lane(at_once)[track]
                assert all(time // at_once.width in held for piece in pieces for time in (piece[0],))


def test_far_outliers_cost_no_resolution(tmp_path: Path) -> None:
    """Kernels at 0 and the rest two months later still show milliseconds; only what is full is widened."""
    events = [slice_of(1, 0, 5), slice_of(2, 3, 0)]
    events += [slice_of(1, 5.5e12 + 1000 * n, 800) for n in range(3000)]
    ((picture, part),) = drawn(trace_file(tmp_path, events), 1 << 20)
    assert picture.width < 2_000_000
    check(picture, part)


@pytest.mark.parametrize("lanes", [1, 300, 5000])
def test_size_is_bounded(tmp_path: Path, lanes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many slices and lanes there are, no lane holds more buckets than its share."""
    monkeypatch.setattr(coarse, "LANE_BUCKETS", 64)
    monkeypatch.setattr(coarse, "MOST_BUCKETS", 64 * 256)
    events = [slice_of(n % lanes, 10.0 * n, 4) for n in range(10_000)]
    ((picture, part),) = drawn(trace_file(tmp_path, events), 1 << 22)
    check(picture, part)
    counts = np.bincount(picture.lane)
    assert counts.max() <= {1: 64, 300: 54, 5000: 16}[lanes]
    more = merged([picture, Coarse(0, picture.lanes, picture.lane, picture.bucket + (1 << 40), picture.busy)])
    assert np.bincount(more.lane).max() <= {1: 64, 300: 54, 5000: 16}[lanes]


def test_files_come_back(tmp_path: Path) -> None:
    """A picture and what belongs to it are read as they were written; a damaged file says so."""
    ((picture, _),) = drawn(trace_file(tmp_path, [slice_of(1, 5, 5)]), 1 << 20)
    write_coarse(tmp_path / "p", picture, {"lanes": [1, "ä\ud800"]})
    again, about = read_coarse(tmp_path / "p")
    assert by_lane(again) == by_lane(picture) and about == {"lanes": [1, "ä\ud800"]}
    raw = (tmp_path / "p").read_bytes()
    (tmp_path / "p").write_bytes(raw[: len(raw) // 2])
    for name in ("p", "gone"):
        with pytest.raises(CacheError, match="cannot read"):
            read_coarse(tmp_path / name)


def test_at_a_quarter_nearly_all_is_touched(tmp_path: Path) -> None:
    """When a quarter of a plain file has been read, 90 % of the lanes and 95 % of the time have been met.

    As in real files: host threads in the order of time, devices at the end, names last.
    """
    threads = [slice_of(100 + n // 3000, 10.0 * n, 8) for n in range(20_000)]
    devices = [slice_of(n % 3, 30.0 * n, 20) for n in range(7_000)]
    names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": t, "args": {"name": "x"}} for t in range(99)]
    path = trace_file(tmp_path, [*threads, *devices, *names])
    pictures: list[Path] = []
    folder = tmp_path / "pictures"
    folder.mkdir()
    with (
        BatchStore(folder) as store,
        SourceReading(
            open_source(path),
            folder,
            store,
            ReadOptions(threads=1, chunk_size=1 << 15),
            pictured=pictures.append,
        ) as reading,
    ):
        result = reading.read()
    assert len(pictures) == len(result.batches) > 50
    early = [read_coarse(file) for file in pictures[: len(pictures) // 4]]
    assert any(about["metadata"] for _, about in early)
    some, everything = (
        merged([one for one, _ in early]),
        merged([read_coarse(file)[0] for file in pictures]),
    )
    assert len(some.lanes) >= 0.9 * len(everything.lanes)
    assert extent(some) >= 0.95 * extent(everything)


def extent(picture: Coarse) -> int:
    return int(picture.bucket.max() + 1 - picture.bucket.min()) << picture.shift
