"""The loops in C take time in proportion to what they are given, and hear a request to stop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bundle.native_build import SOURCES
from tests.core.loops import loops_of
from tests.linear import assert_linear
from tracelane.core.base.arrays import AnyArray
from tracelane.core.base.errors import Cancelled
from tracelane.core.index.loops import CancelFlag, Correlations, Interned, LaneFlows, LaneRows
from tracelane.core.index.native import NativeLoops
from tracelane.core.read.batch import StringTable
from tracelane.core.read.promoted import PromotedTable
from tracelane.core.read.scan_native import NativeScanner
from tracelane.core.read.scan_reference import ScanText, ScanWatch

Work = Callable[[], object]
Shape = Callable[[Any, int], Work]
SEQUENCES: dict[str, Callable[[int], AnyArray]] = {
    "rising": np.arange,
    "falling": lambda n: np.arange(n)[::-1].copy(),
    "one value": lambda n: np.zeros(n, np.int64),
    "up and down": lambda n: np.where(np.arange(n) % 2, np.arange(n), 2 * n - np.arange(n)),
}
SLICES: dict[str, Callable[[int], tuple[AnyArray, AnyArray]]] = {
    "side by side": lambda n: (10 * np.arange(n), np.full(n, 10)),
    "nested": lambda n: (np.arange(n), 4 * n - 2 * np.arange(n)),
    "nested, of one end": lambda n: (np.arange(n), 2 * n - np.arange(n)),
    "nested, of one start": lambda n: (np.zeros(n, np.int64), n - np.arange(n)),
    "overlapping": lambda n: (np.arange(n), np.full(n, n)),
    "without length": lambda n: (np.zeros(n, np.int64), np.zeros(n, np.int64)),
    "many in one": lambda n: (np.arange(n), np.where(np.arange(n), 1, n)),
    "many in many": lambda n: (np.arange(n), np.where(np.arange(n) < n // 2, 2 * n, 1)),
}
"""Starts and durations in the order that loops want."""
STAMPS: dict[str, Callable[[int], AnyArray]] = {
    "behind all": lambda n: 5 * n + np.arange(n),
    "falling": lambda n: 5 * n - np.arange(n),
    "among them": lambda n: 4 * np.arange(n),
    "at one stamp": lambda n: np.zeros(n, np.int64),
}


def bounds(n: int) -> AnyArray:
    return np.array([0, n], np.uint64)


def rows_of(loops: Any, start: AnyArray, duration: AnyArray) -> LaneRows:
    rows: LaneRows = loops.rows(bounds(len(start)), np.array([len(start)], np.uint64), start, duration)
    return rows


def ordering(values: Callable[[int], AnyArray]) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        column, ordinal, kind = values(n), np.arange(n, dtype=np.uint32), (np.arange(n) % 3).astype(np.uint8)
        return lambda: loops.order(bounds(n), column, column, ordinal, kind)

    return prepare


def placing(slices: Callable[[int], tuple[AnyArray, AnyArray]]) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        start, duration = slices(n)
        slot_of = np.zeros(n, np.uint32)
        events = {"start": start, "duration": duration, "ordinal": np.arange(n, dtype=np.uint32)}

        def work() -> None:
            loops.slices(rows_of(loops, start, duration), range(n), 0, events, slot_of)

        return work

    return prepare


def binding(slices: Callable[[int], tuple[AnyArray, AnyArray]], stamps: Callable[[int], AnyArray]) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        start, duration = slices(n)
        ordinal = np.arange(n, dtype=np.uint32)
        columns: dict[str, AnyArray] = {name: np.ones(n, np.uint8) for name in ("flags", "id_kind")}
        columns |= {"phase": np.full(n, ord("s"), np.uint8), "start": stamps(n), "ordinal": ordinal + 1}
        columns["id_value"] = np.full(n, -1)
        known = Correlations(ordinal, np.arange(n))
        flows = LaneFlows(bounds(n), columns, np.zeros(n, np.uint32), known)
        of_slices = {"start": start, "duration": duration, "ordinal": ordinal}
        sizes = np.array([n], np.uint64)
        rows = rows_of(loops_of("native"), start, duration)
        return lambda: loops.bind(rows, bounds(n), sizes, 0, of_slices, flows)

    return prepare


def matching(phases: bytes) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        phase = np.repeat(np.frombuffer(phases, np.uint8), n // len(phases))
        name = np.tile(np.arange(1, n // len(phases) + 1, dtype=np.uint32), len(phases))
        return lambda: loops.match(bounds(len(phase)), phase, name)

    return prepare


def pairing(groups: Callable[[int], AnyArray], start: Callable[[int], AnyArray]) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        zeros, ordinal = np.zeros(n, np.uint32), np.arange(n, dtype=np.uint32)
        flows = {
            "phase": np.resize(np.frombuffer(b"stf", np.uint8), n),
            "ordinal": ordinal,
            "category": zeros,
        }
        flows |= {"id_kind": np.ones(n, np.uint8), "id_value": groups(n), "start": start(n)}
        return lambda: loops.pair(flows, zeros, 1)

    return prepare


def naming(texts: Callable[[int], list[bytes]]) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        strings = texts(n)
        offset = np.cumsum([0, *map(len, strings)])
        blob, tracks = np.frombuffer(b"".join(strings) + b"\0", np.uint8), np.zeros(0, np.uint32)
        table, number = np.zeros(len(strings), np.uint16), np.arange(len(strings), dtype=np.uint32)

        def work() -> None:
            interned = Interned([StringTable(blob, offset, tracks, tracks)])
            loops.intern(interned, table, number)
            loops.texts(interned, table, number, len(blob))

        return work

    return prepare


def moving(loops: Any, n: int) -> Work:
    order, values = np.arange(n, dtype=np.uint32)[::-1].copy(), np.arange(n)

    def work() -> None:
        loops.take(values, order)
        loops.put(values, order, values.copy())
        loops.slots(np.zeros(n, np.uint32), np.zeros(1, np.uint64))

    return work


def promoting(every: int) -> Shape:
    def prepare(loops: Any, n: int) -> Work:
        ordinal, values = np.arange(0, n, every, dtype=np.uint32), np.arange(0, n, every)
        slot_of, dense, present = (
            np.arange(n, dtype=np.uint32),
            np.zeros(n, np.int64),
            np.zeros(n // 64 + 1, np.uint64),
        )

        def work() -> None:
            loops.promote(ordinal, values, slot_of, dense, present)
            loops.compact(dense, present, 0, n, 0)

        return work

    return prepare


SHAPES: dict[str, Shape] = {
    **{f"order, {name}": ordering(values) for name, values in SEQUENCES.items()},
    **{f"rows, {name}": placing(slices) for name, slices in SLICES.items()},
    **{
        f"bind, {name}, {when}": binding(slices, stamps)
        for name, slices in SLICES.items()
        for when, stamps in STAMPS.items()
    },
    **{f"match, {phases!r}": matching(phases) for phases in (b"B", b"BE", b"E", b"EB", b"i", b"be", b"SFe")},
    **{
        f"pair, {groups}, {name}": pairing(SEQUENCES[groups], start)
        for groups in ("one value", "rising")
        for name, start in SEQUENCES.items()
    },
    "intern, all different": naming(lambda n: [b"%d" % i for i in range(n // 8)]),
    "intern, all alike": naming(lambda n: [b"kernel"] * (n // 8)),
    "intern, long": naming(lambda n: [b"x" * n, b"x" * n]),
    "take, put, places": moving,
    "promote, all": promoting(1),
    "promote, few": promoting(1000),
}
"""What makes the inner loops long: work on n entries."""


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_loops_take_linear_time(shape: str) -> None:
    """Four times as many entries take about four times as long, however they lie."""
    loops = loops_of("native")
    assert_linear(lambda n: SHAPES[shape](loops, n), 20_000)


@pytest.mark.parametrize("shape", SHAPES)
def test_loops_hear_a_request_to_stop(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """C itself looks at the flag: a call ends as soon as it is set."""
    cancel = CancelFlag()
    work = SHAPES[shape](loops_of("native", cancel), 64)
    cancel.set()
    monkeypatch.setattr(CancelFlag, "check", lambda flag: None)
    with pytest.raises(Cancelled):
        work()


def test_every_loop_has_a_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """No function of build.c that may be stopped is without a shape."""
    called = set()
    call = NativeLoops._call

    def noted(loops: NativeLoops, name: str, *arguments: Any) -> None:
        called.add(name)
        call(loops, name, *arguments)

    monkeypatch.setattr(NativeLoops, "_call", noted)
    for shape in SHAPES.values():
        shape(loops_of("native"), 64)()
    assert called == set(
        re.findall(r"TL_API int (tl_\w+)", (SOURCES / "build.c").read_text(encoding="utf-8"))
    )


EVENT = b'{"ph":"X","name":"s","pid":1,"tid":1,"ts":1,"dur":1'
TEXTS: dict[str, tuple[bytes, bytes, bytes]] = {
    "blanks": (b"", b" ", b""),
    "commas": (b"", b",", b""),
    "lists": (b"", b"[", b""),
    "objects": (b"", b'{"ph":', b""),
    "name": (EVENT[:-1] + b'1,"name":"', b"x", b'"}'),
    "letters beyond ASCII": (EVENT + b',"name":"', "é".encode(), b'"}'),
    "escapes": (EVENT + b',"name":"', b"\\n", b'"}'),
    "digits": (EVENT + b',"args":{"correlation":', b"1", b"}}"),
    "keys": (EVENT, b',"k":1', b"}"),
    "other keys": (EVENT + b',"args":{"a":1', b',"correlation":1', b"}}"),
    "values": (EVENT + b',"args":{"Input Dims":[1', b",1", b"]}}"),
    "series": (b'{"ph":"C","name":"c","pid":1,"ts":1,"args":{"a":1', b',"bb":2', b"}}"),
    "members of an id": (b'{"ph":"b","ts":1,"id2":{"a":1', b',"a":1', b"}}"),
    "texts that are no numbers": (EVENT + b',"args":{"correlation":"', b" ", b'"}}'),
    "events": (EVENT + b"}", b"," + EVENT + b"}", b""),
    "gaps": (EVENT + b"}", b", " + EVENT + b" , \n}", b""),
}
"""What stands before, what is repeated, and what stands behind it."""


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_a_scan_takes_linear_time(text: str) -> None:
    """Four times as much text takes about four times as long, whatever it is full of."""

    def prepare(n: int) -> Work:
        before, unit, behind = TEXTS[text]
        data = ScanText.of(before + unit * (n // len(unit)) + behind)
        return lambda: NativeScanner(PromotedTable(), ScanWatch()).scan(data, 0, data.size, data.size)

    assert_linear(prepare, 1 << 18)
