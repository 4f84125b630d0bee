"""Events to columns: whole-column decoding gives what a plain loop over the events gives."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

import numpy as np
import pytest

from tracelane.core.base.kineto import GROUPS
from tracelane.core.base.units import TIME_LIMIT
from tracelane.core.read.batch import TABLES, EventFlag, IdKind
from tracelane.core.read.promoted import PROMOTED, Kind, PromotedTable
from tracelane.core.read.reader import NATIVE, PYTHON, new_scanner, scanner_name
from tracelane.core.read.scan_reference import Reason, ScanText, ScanWatch

from ..batches import Part

TABLE = PromotedTable()
DECIMAL = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*", re.ASCII)


def part_of(*blocks: str, exact: bool = False) -> Part:
    """Return the part that blocks of event texts make; `exact`: by the plain scanner."""
    data = ",".join(blocks).encode()
    scanner = new_scanner(PYTHON if exact else scanner_name(NATIVE), TABLE)(ScanWatch())
    scanner.begin()
    stop = scanner.scan(ScanText.of(data), 0, len(data) + 1, len(data) + 1)
    assert stop.reason is Reason.LIMIT, stop
    return Part.of(scanner.finish(0, 0), scanner.table())


def rows(part: Part, table: str) -> list[dict[str, Any]]:
    """Return a table's rows with strings and tracks looked up."""
    columns = part.tables[table]
    assert list(columns) == list(TABLES[table])
    assert {name: values.dtype for name, values in columns.items()} == {
        name: np.dtype(dtype) for name, dtype in TABLES[table].items()
    }
    records = [
        dict(zip(columns, values)) for values in zip(*(values.tolist() for values in columns.values()))
    ]
    for row in records:
        for name in ("category", "name", "series"):
            if name in row:
                row[name] = part.strings[row[name]]
        if "track" in row:
            row["track"] = part.tracks[row["track"]]
        if "phase" in row:
            row["phase"] = chr(row["phase"])
        if row.get("id_kind", 0) > IdKind.INTEGER:
            row["id_value"] = part.strings[row["id_value"]]
    return records


def promoted(part: Part) -> dict[str, dict[int, Any]]:
    """Return key -> ordinal -> value, texts looked up."""
    kinds = {one.key: one.kind for one in PROMOTED}
    result: dict[str, dict[int, Any]] = {}
    for key, column in part.promoted.items():
        assert (np.diff(column["ordinal"].astype(np.int64)) > 0).all(), key
        values = column["value"].tolist()
        if kinds[key] is Kind.TEXT:
            values = [part.strings[value] for value in values]
        result[key] = dict(zip(column["ordinal"].tolist(), values))
    return result


def contents(part: Part) -> Any:
    """Return all that a part says, in a form that compares."""
    return (
        {name: rows(part, name) for name in TABLES},
        promoted(part),
        part.metadata,
        part.counts,
        part.problems,
        part.events,
    )


# -- time ---------------------------------------------------------------------------------------------------


def nanoseconds(text: str) -> int:
    return int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_EVEN))


def test_a_key_in_escaped_letters_is_still_ts() -> None:
    r"""`"\u0074s"` is the key ts: its decimals count like any other's."""
    block = ",".join(f'{{"ph":"X","\\u0074s":{2**42 + 1}.12{i:02d}51,"dur":1}}' for i in range(100))
    expected = [nanoseconds(f"{2**42 + 1}.12{i:02d}51") for i in range(100)]
    assert part_of(block).tables["timed"]["start"].tolist() == expected


@pytest.mark.parametrize(
    ("fields", "usable", "count"),
    [
        ('"ts":1,"dur":2', True, {}),
        ('"ts":1', True, {"missing_dur": 1}),
        ('"ts":1,"dur":null', True, {"missing_dur": 1}),
        ('"ts":1,"dur":-2', True, {"negative_dur": 1}),
        ('"ts":1,"dur":"abc"', False, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":1,"dur":true', False, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":1,"dur":1e400', False, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":"abc","dur":1', None, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":true,"dur":1', None, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":null,"dur":1', None, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"ts":[1],"dur":1', None, {"no_usable_time": 1, "no_usable_time.X": 1}),
        ('"dur":1', None, {"no_usable_time": 1, "no_usable_time.X": 1}),
    ],
)
@pytest.mark.parametrize("company", ["", ',{"ph":"X","ts":5,"dur":1}', ',{"ph":"X","ts":5.5,"dur":1.5}'])
def test_unusable_times(fields: str, usable: bool | None, count: dict[str, int], company: str) -> None:
    """A slice without usable ts is counted only; one with an unusable dur becomes an instant."""
    part = part_of(f'{{"ph":"X",{fields}}}{company}')
    timed = rows(part, "timed")
    mine = [row for row in timed if row["ordinal"] == 0]
    assert [row["phase"] for row in mine] == {True: ["X"], False: ["?"], None: []}[usable]
    assert all(row["start"] == 1000 for row in mine)
    counts = {key: number for key, number in part.counts.items() if not key.startswith("phase.")}
    assert counts == count
    assert len(timed) - len(mine) == bool(company)


def test_huge_times_are_clamped_and_their_bounds_kept() -> None:
    """Times beyond int64 stay in the columns at the limit, flagged; the exact bounds stay Python integers."""
    part = part_of(
        '{"ph":"X","ts":9223372036854775807,"dur":1},{"ph":"X","ts":-1e30,"dur":5},{"ph":"X","ts":500,"dur":1e30},'
        '{"ph":"X","ts":4e15,"dur":3e15},{"ph":"X","ts":1,"dur":1}'
    )
    table = part.tables["timed"]
    assert (table["flags"] & EventFlag.CLAMPED != 0).tolist() == [True, True, True, True, False]
    assert (abs(table["start"]) <= TIME_LIMIT).all()
    ends = [a + b for a, b in zip(table["start"].tolist(), table["duration"].tolist())]
    assert max(ends) <= TIME_LIMIT and (table["duration"] >= 0).all()
    assert [(p.kind, p.count) for p in part.problems] == [("clamped time", 4)]


# -- identities ---------------------------------------------------------------------------------------------


def test_tracks_of_different_type_differ() -> None:
    """1, 1.0, true, "1", null and integers beyond 64 bits are different tracks; absent is null."""
    pids = [
        "1",
        "1.0",
        "true",
        '"1"',
        "null",
        "18446744073709551616",
        "18446744073709551617",
        "-1",
        '"é\\"q"',
        "1.5",
    ]
    events = [f'{{"ph":"i","ts":1,"pid":{pid},"tid":2}}' for pid in pids] + ['{"ph":"i","ts":1,"tid":2}'] * 2
    for order in (events, events[::-1]):
        part = part_of(",".join(order))
        tracks = [row["track"] for row in rows(part, "timed")]
        assert sorted(set(tracks)) == sorted({(pid.replace('\\"', '\\"'), "2") for pid in pids})
        assert [json.loads(pid) for pid, _ in tracks] == [json.loads(event).get("pid") for event in order]
        assert len(part.tracks) == len(set(part.tracks))


@pytest.mark.parametrize(
    ("fields", "kind", "value"),
    [
        ("", IdKind.NONE, 0),
        ('"id":null', IdKind.NONE, 0),
        ('"id":7', IdKind.INTEGER, 7),
        ('"id":-9223372036854775808', IdKind.INTEGER, -(2**63)),
        ('"id":9223372036854775808', IdKind.TEXT, "9223372036854775808"),
        ('"id":18446744073709551617', IdKind.TEXT, "18446744073709551617"),
        ('"id":"7"', IdKind.TEXT, '"7"'),
        ('"id":7.0', IdKind.TEXT, "7.0"),
        ('"id":true', IdKind.TEXT, "true"),
        ('"id2":{"local":"0x1"}', IdKind.LOCAL, '"0x1"'),
        ('"id2":{"global":5}', IdKind.GLOBAL, "5"),
        ('"id":7,"scope":"s"', IdKind.SCOPED, '["s",7]'),
        ('"id2":{"local":1},"scope":"s"', IdKind.LOCAL, '["s",1]'),
    ],
)
@pytest.mark.parametrize("phase", "sbn")
def test_ids(fields: str, kind: IdKind, value: Any, phase: str) -> None:
    """Each form of id has a kind and a value that no other id has, alone and among plain ones."""
    event = f'{{"ph":"{phase}","ts":1,{fields}}}'.replace(",}", "}")
    for block in (event, event + f',{{"ph":"{phase}","ts":2,"id":3}}'):
        row = rows(part_of(block), "flows" if phase == "s" else "asyncs")[0]
        assert (row["id_kind"], row["id_value"]) == (kind, value)


# -- against a plain loop -----------------------------------------------------------------------------------


def oracle(events: list[Any]) -> dict[str, Any]:
    """Return what a part of these events must hold, by a loop that knows nothing of columns."""
    tables: dict[str, Any] = {
        "timed": [],
        "flows": [],
        "asyncs": [],
        "counters": [],
        "metadata": {},
        "promoted": {},
    }
    counts: Counter[str] = Counter()

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    for ordinal, event in enumerate(events):
        if not isinstance(event, dict):
            counts["not_object"] += 1
            continue
        if not event:
            counts["empty"] += 1
            continue
        phase = event.get("ph")
        counts[f"phase.{phase}" if phase is not None else "phase.(missing)"] += 1
        phase_code = phase if isinstance(phase, str) and len(phase) == 1 else "?"
        track = (text(event.get("pid")), text(event.get("tid")))
        args = next((event[k] for k in ("args", "attr") if isinstance(event.get(k), dict)), {})
        if phase_code == "M":
            tables["metadata"].pop((*track, event["name"]), None)
            tables["metadata"][(*track, event["name"])] = (ordinal, event["name"], *track, text(args))
            continue
        if not isinstance(event.get("ts"), int | float) or isinstance(event["ts"], bool):
            counts["no_usable_time"] += 1
            counts[f"no_usable_time.{phase_code}"] += 1
            continue
        start = nanoseconds(repr(event["ts"]))
        base = (phase_code, ordinal, track, event.get("cat") or "", event.get("name") or "", start)
        if phase_code in "stf":
            tables["flows"].append((*base, event.get("id", 0), event.get("bp") == "e"))
        elif phase_code in "bneSTpF":
            tables["asyncs"].append((*base, event.get("id", 0), False))
        elif phase_code == "C":
            for key, value in args.items():
                if isinstance(value, str) and DECIMAL.fullmatch(value):
                    value = float(value)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    tables["counters"].append((ordinal, track, event["name"], key, start, float(value)))
        else:
            duration = nanoseconds(repr(event.get("dur", 0))) if phase_code == "X" else 0
            counts["missing_dur"] += phase_code == "X" and "dur" not in event
            counts["negative_dur"] += duration < 0
            tables["timed"].append((*base, max(0, duration)))
            for one in PROMOTED:
                value = next((args[key] for key in one.args if key in args), None)
                value = event.get("cname") if one.key == "cname" else value
                if value is None:
                    continue
                if one.kind is Kind.TEXT:
                    value = value if isinstance(value, str) else text(value)
                elif one.kind is Kind.INTEGER:
                    if isinstance(value, str) and value.isdigit():
                        value = int(value)
                    if type(value) is not int or not -(2**63) <= value < 2**63:
                        continue
                elif type(value) not in (int, float):
                    continue
                else:
                    value = float(value)
                tables["promoted"].setdefault(one.key, {})[ordinal] = value
    tables["counts"] = {key: number for key, number in counts.items() if number}
    return tables


VALUES = [
    0,
    7,
    -3,
    2**63 - 1,
    "12",
    "x",
    1.5,
    True,
    None,
    [1, [2, 3]],
    ["Tensor", "é"],
    {"a": 1},
    "long " * 20,
]


def random_events(rng: random.Random, count: int) -> list[Any]:
    keys = [key for one in PROMOTED for key in one.args if key] + ["Ev Idx", "other"]
    categories = [cat for cats in GROUPS.values() for cat in sorted(cats)[:3]] + ["Trace", ""]
    shapes = [rng.sample(keys, rng.randrange(8)) for _ in range(6)]
    events: list[Any] = []
    for number in range(count):
        if rng.random() < 0.01:
            events.append(rng.choice([None, 5, "x", [], [1]]))
            continue
        event: dict[str, Any] = {"ph": rng.choice("XXXXXXXsftbneCMiIBEPvN") if rng.random() < 0.99 else "XXX"}
        if rng.random() < 0.01:
            del event["ph"]
        event |= {
            "name": rng.choice(["a", "b", "é", f"n{number}"]),
            "pid": rng.choice([1, 1, "p"]),
            "tid": rng.randrange(3),
        }
        if rng.random() < 0.95:
            event["cat"] = rng.choice(categories)
        if rng.random() < 0.97:
            event["ts"] = rng.choice([rng.randrange(10**6), rng.randrange(10**9) / 1000])
        if event.get("ph") == "X" and rng.random() < 0.95:
            event["dur"] = rng.randrange(-10, 10**6) / 1000
        if event.get("ph") in list("stfbne"):
            event["id"] = rng.randrange(100)
            event |= {"bp": "e"} if rng.random() < 0.3 else {}
        if rng.random() < 0.02:
            event["cname"] = "good"
        if rng.random() < 0.9 or event.get("ph") == "C":
            shape = rng.choice(shapes) if rng.random() < 0.9 else rng.sample(keys, rng.randrange(8))
            plain = rng.random() < 0.9
            event["attr" if rng.random() < 0.05 else "args"] = {
                key: rng.randrange(50) if plain else rng.choice(VALUES) for key in shape
            }
        events.append(event)
    return events


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_columns_equal_a_plain_loop(seed: int) -> None:
    """Random events of every phase, with arguments of every type, come out as a simple loop reads them."""
    rng = random.Random(seed)
    events = random_events(rng, 1500)
    texts = [json.dumps(event, ensure_ascii=False) for event in events]
    size = rng.choice([1, 7, 200, 2000])
    part = part_of(*(",".join(texts[i : i + size]) for i in range(0, len(texts), size)))
    expected = oracle(events)
    assert part.events == len(events)
    assert part.counts == expected["counts"]
    common = ("phase", "ordinal", "track", "category", "name", "start")
    assert [(*(row[c] for c in common), row["duration"]) for row in rows(part, "timed")] == expected["timed"]
    for table in ("flows", "asyncs"):
        actual = [
            (*(row[c] for c in common), row["id_value"], bool(row["flags"] & EventFlag.BIND_ENCLOSING))
            for row in rows(part, table)
        ]
        assert actual == expected[table]
    fields = ("ordinal", "track", "name", "series", "start", "value")
    assert [tuple(row[f] for f in fields) for row in rows(part, "counters")] == expected["counters"]
    assert [(m.ordinal, m.name, m.pid, m.tid, m.args) for m in part.metadata] == list(
        expected["metadata"].values()
    )
    assert promoted(part) == expected["promoted"]


def test_scopes_of_instants() -> None:
    """An instant's scope is kept as a flag: process, global, or none for a thread's."""
    part = part_of(",".join(f'{{"ph":"{ph}","ts":1,"s":"{s}"}}' for ph in "iIX" for s in "tpg"))
    flags = part.tables["timed"]["flags"].tolist()
    process, everywhere = EventFlag.SCOPE_PROCESS, EventFlag.SCOPE_GLOBAL
    assert flags == [0, process, everywhere, 0, process, everywhere, 0, 0, 0]


def test_lost_digits_are_fetched_again() -> None:
    """Integers that orjson would turn into floats keep their digits wherever they become text."""
    big = 2**70 + 1
    block = (
        f'{{"ph":"X","ts":1,"dur":1,"cat":"cpu_op","pid":1,"tid":{big},"name":{big},'
        f'"args":{{"Input Dims":[[{big}]],"Sequence number":{big}}}}},'
        f'{{"ph":"M","name":"thread_name","pid":1,"tid":1,"args":{{"name":{big}}}}}'
    )
    part = part_of('{"ph":"X","ts":1,"name":"before"}', block)
    row = rows(part, "timed")[1]
    assert (row["track"], row["name"]) == (("1", str(big)), str(big))
    assert promoted(part) == {"input_dims": {1: f"[[{big}]]"}}
    assert part.metadata[0].args == f'{{"name":{big}}}'
    assert not [text for text in part.strings if "e+" in text or "e2" in text]
    assert contents(part) == contents(part_of('{"ph":"X","ts":1,"name":"before"}', block, exact=True))


def test_the_block_table_tells_where_events_stand() -> None:
    """Blocks carry their offsets, lengths and first ordinals, in file order."""
    part = part_of('{"ph":"i","ts":1},{"ph":"i","ts":2}', "5", " " * (256 << 10), '{"ph":"i","ts":3}')
    blocks = part.tables["blocks"]
    assert blocks["offset"].tolist() == [0, 39 + (256 << 10)]
    assert blocks["length"].tolist() == [37, 17]
    assert blocks["ordinal"].tolist() == [0, 3]
    assert blocks["count"].tolist() == [3, 1]
    assert blocks["repaired"].tolist() == [0, 0]


def test_an_empty_part() -> None:
    """A part without events has all tables, empty."""
    part = part_of("")
    assert part.events == 0 and part.strings == [""]
    assert all(rows(part, name) == [] for name in TABLES)
