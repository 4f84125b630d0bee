"""Cutting the event array into blocks: every form, any block size, any ranges, the same events."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.forms import cut_off, events, forms, kineto_classic, kineto_new
from tracelane.core.ingest import cutter
from tracelane.core.ingest.cut import Decoded, Item, Repaired, Scanner
from tracelane.core.ingest.decode import decode_fast
from tracelane.core.ingest.ranges import RangeEnd, RangeScanner, joins, region, within
from tracelane.core.ingest.source import Source, open_source

FORMS = {form.name: form for form in forms()}
CUT_OFF = {form.name: form for form in cut_off()}
SIZES = (700, 5_000, 262_144)


class Memory:
    """A stream over bytes."""

    damage = None

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset

    def read(self, n: int) -> bytes:
        part = self.data[self.offset : self.offset + n]
        self.offset += len(part)
        return part


def scan(data: bytes, block_size: int = 262_144) -> tuple[list[Item], Scanner]:
    scanner = Scanner(Memory(data), decode_fast, block_size)
    return list(scanner), scanner


def read(items: list[Item]) -> list[Any]:
    return [event for item in items for event in item.events]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORMS)
def test_every_form_yields_its_events(name: str, size: int, tmp_path: Path) -> None:
    """Whatever form a trace comes in, all its events are read in order, and nothing is complained about."""
    form = FORMS[name]
    path = tmp_path / "trace"
    path.write_bytes(form.data)
    stream = open_source(path).open()
    scanner = Scanner(stream, decode_fast, size)
    items = list(scanner)
    assert read(items) == form.events
    if form.events:
        assert scanner.form == form.form
    assert scanner.envelope.base_time_ns == form.base_time_ns
    assert not scanner.problems
    assert not [item for item in items if isinstance(item, Repaired) and item.problems]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", CUT_OFF)
def test_a_missing_end_costs_only_what_is_not_whole(name: str, size: int, tmp_path: Path) -> None:
    """A file that ends too early yields every whole event and says that it was cut off."""
    form = CUT_OFF[name]
    path = tmp_path / "trace"
    path.write_bytes(form.data)
    stream = open_source(path).open()
    scanner = Scanner(stream, decode_fast, size)
    assert read(list(scanner)) == form.events
    assert stream.damage or any(problem.kind == "truncated" for problem in scanner.problems)


@pytest.mark.parametrize("layout", [kineto_new, kineto_classic])
def test_blocks_are_slices_of_the_text(layout: Any) -> None:
    """A block's data stands at its offset, decodes by itself to its events, and blocks do not overlap."""
    data = layout(events(400))
    items, _ = scan(data, 3_000)
    assert len(items) > 20
    end = 0
    for item in items:
        block = item.block
        assert isinstance(item, Decoded)
        assert block.offset >= end
        assert data[block.offset : block.offset + block.length] == block.data
        assert orjson.loads(b"[" + block.data + b"]") == item.events
        end = block.offset + block.length


def test_offsets_count_a_byte_order_mark(tmp_path: Path) -> None:
    """Offsets of a plain file are those of its bytes, byte order mark included."""
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + kineto_new(events(50)))
    source = open_source(path)
    for item in Scanner(source.open(), decode_fast, 2_000):
        assert source.read_range(item.block.offset, item.block.length) == item.block.data


@needs_corpus
def test_the_corpus_reads_alike_at_any_block_size() -> None:
    """Real files yield what a decoder of the whole file yields, however small the blocks are."""
    checked = 0
    for path in sorted(CORPUS.rglob("*.json*")):
        raw = path.read_bytes()
        data = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        if len(data) > 700_000 or "tools" in path.parts or path.suffix == ".zip":
            continue
        try:
            whole = orjson.loads(data)
        except orjson.JSONDecodeError:
            continue
        expected = whole.get("traceEvents") or [] if isinstance(whole, dict) else whole
        if isinstance(whole, dict) and "traceEvents" not in whole:
            continue
        for size in (1_000, 40_000):
            items, scanner = scan(data, size)
            assert read(items) == expected or any(isinstance(item, Repaired) for item in items), path
            assert not scanner.problems, path
        checked += 1
    assert checked > 60


def test_memory_stays_at_a_few_blocks() -> None:
    """However long the array is, a few blocks at most are held."""
    item = json.dumps({"ph": "X", "name": "n" * 200, "ts": 1, "args": {"x": [{"y": 1}] * 5}}).encode()
    data = b'{"traceEvents":[' + b",".join([item] * 40_000) + b"]}"
    scanner = Scanner(Memory(data), lambda text: [None], 65_536)
    tracemalloc.start()
    for _ in scanner:
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) > 10_000_000
    assert peak < 1_000_000


@pytest.mark.parametrize("where", ["args", "name", "list"])
def test_an_oversized_event_is_read_without_its_arguments(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event over the limit yields its fixed keys and is counted as such; its neighbours are whole."""
    monkeypatch.setattr(cutter, "OVERSIZED", 3 << 20)
    first, last = events(2)[1], events(3)[2]
    large: dict[str, Any] = {"ph": "X", "name": "large", "ts": 1712195495505582.988, "pid": 1}
    if where == "args":
        large["args"] = {"id": 7, "data": ["x" * 50] * 80_000}
    elif where == "name":
        large["name"] = "y" * (4 << 20)
    else:
        large["args"] = {"id": 7, "list": [{"ph": "X", "cat": "cpu_op"}] * 140_000}
    texts = [json.dumps(e).encode() for e in (first, large, last)]
    data = b"[" + b", ".join(texts) + b"]"
    scanner = Scanner(Memory(data), decode_fast)
    items = list(scanner)
    got = read(items)
    assert [got[0], got[2]] == [first, last] and len(got) == 3
    assert got[1]["ph"] == "X" and float(got[1]["ts"]) == 1712195495505582.988
    if where != "name":
        assert got[1]["args"]["id"] == 7
        assert isinstance(got[1]["args"]["data" if where == "args" else "list"], str)
    (item,) = [item for item in items if isinstance(item, Repaired)]
    assert [problem.kind for problem in item.problems] == ["oversized"]
    assert item.block.length == len(texts[1]) and item.block.offset == data.index(texts[1][:30])
    assert len(item.block.data) <= 1 << 20


# -- ranges -------------------------------------------------------------------------------------------


def read_in_ranges(source: Source, edges: list[int], size: int) -> tuple[list[Any], int] | None:
    """Read as several workers would; return the events and how often ranges had to be joined."""
    found = region(source, decode_fast, size)
    if found is None:
        return None
    edges = [found.begin, *sorted(max(found.begin, edge) for edge in edges), source.size]
    ranges = list(pairwise(edges))

    def one(number: int) -> tuple[list[Any], RangeEnd]:
        a, b = ranges[number]
        scanner = RangeScanner(source, a, b, found.separator, decode_fast, size, first=number == 0)
        got = read(list(scanner))
        assert scanner.end is not None
        return got, scanner.end

    results = [one(number) for number in range(len(ranges))]
    joined = 0
    while runs := joins([end for _, end in results]):
        joined += len(runs)
        for first, last in reversed(runs):
            ranges[first : last + 1] = [(ranges[first][0], ranges[last][1])]
            results[first : last + 1] = [one(first)]
    count = within([end for _, end in results])
    got = [event for part, _ in results[:count] for event in part]
    behind = results[count - 1][1].array_end
    if behind is not None:
        got += read(list(Scanner(source.open(behind), decode_fast, size, behind_array=found.form)))
    return got, joined


RANGED = [name for name, form in FORMS.items() if len(form.events) > 50 and form.data[:1] in b" \n[{\xef"]


@pytest.mark.parametrize("name", [*RANGED, *CUT_OFF])
def test_ranges_cut_anywhere_add_up(name: str, tmp_path: Path) -> None:
    """Wherever a file is cut into ranges, their events together are those of the file."""
    form = {**FORMS, **CUT_OFF}[name]
    path = tmp_path / "trace"
    path.write_bytes(form.data)
    source = open_source(path)
    rng = random.Random(name)
    large = len(form.data) > 200_000
    for _ in range(2 if large else 12):
        edges = [rng.randrange(len(form.data)) for _ in range(rng.randint(1, 6))]
        result = read_in_ranges(source, edges, rng.choice([600, 5_000]) if not large else 50_000)
        if result is not None:
            assert result[0] == form.events


@needs_corpus
def test_ranges_of_the_corpus_add_up(tmp_path: Path) -> None:
    """Real files cut at arbitrary offsets into ranges yield what they yield when read in one go."""
    rng = random.Random(3)
    checked = 0
    for path in sorted(CORPUS.rglob("*.json")):
        data = path.read_bytes()
        if not 1_000 < len(data) < 300_000 or data[:1] not in b" \n\r{[\xef":
            continue
        source = open_source(path)
        whole = read(list(Scanner(source.open(), decode_fast)))
        for _ in range(2):
            edges = [rng.randrange(len(data)) for _ in range(rng.randint(1, 6))]
            result = read_in_ranges(source, edges, rng.choice([4_000, 65_536]))
            if result is not None:
                assert repr(result[0]) == repr(whole), (path, edges)
                checked += 1
    assert checked > 40


@pytest.mark.parametrize("layout", [kineto_new, kineto_classic])
def test_ranges_of_kineto_files_never_need_joining(layout: Any, tmp_path: Path) -> None:
    """In Kineto's own layouts the separator tells true boundaries, so that no range is read twice."""
    path = tmp_path / "trace.json"
    items = [e for e in events(4_000) if e["name"] != "},\n  {"]
    path.write_bytes(layout(items))
    source = open_source(path)
    found = region(source, decode_fast)
    assert found is not None
    edges = [a for a, _ in found.split(60_000)]
    assert len(edges) > 8
    result = read_in_ranges(source, edges, 262_144)
    assert result == (items, 0)


def test_a_boundary_inside_a_string_is_noticed(tmp_path: Path) -> None:
    """A separator within a string is found out by the range that ends there, and reading again heals it."""
    items = [{"ph": "X", "name": f"n{i}", "ts": i} for i in range(40)]
    text = json.dumps({"traceEvents": items}).replace('"n20"', '"}, {\\"ph\\": \\"X\\" }, {"')
    text = text.replace(", {", ",{")
    items[20]["name"] = '},{"ph": "X" },{'
    path = tmp_path / "t.json"
    path.write_text(text.replace('\\"', "'").replace("'", '\\"'))
    source = open_source(path)
    found = region(source, decode_fast)
    assert found is not None
    middle = text.index("},{\\")
    result = read_in_ranges(source, [middle], 1_000)
    assert result is not None and result[0] == items
