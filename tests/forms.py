"""Every form in which a trace may come, written by ourselves, with what must be read from it."""

from __future__ import annotations

import gzip
import io
import json
import random
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Event = dict[str, Any]

NAMES = (
    "aten::mm",
    "été ✓ 😀",
    'with "quotes" and \\ backslash',
    "},\n  {",
    '"}, {"ph":"X"}]}',
    "[[[{{{",
    "void at::native::kernel<at::native::fill<float>, std::array<char*, 1ul> >(int)",
    "",
)
DECOY = {"traceEvents": [{"ph": "X", "name": "decoy"}], "text": '"traceEvents": [{"ph":"X"}]'}
BASE = 1_790_857_026_000_000_000


@dataclass(frozen=True)
class Form:
    """A file's bytes and what stands in them."""

    name: str
    data: bytes
    events: list[Any]
    form: str = "object"
    whole: bool = True  # nothing is missing: no problem may be reported
    base_time_ns: int | None = None


def events(count: int = 60, seed: int = 1) -> list[Event]:
    """Return events of every phase with awkward names, nested arguments and decoys."""
    rng = random.Random(seed)
    result: list[Event] = [
        {"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "tid": 0, "args": {"name": "python"}}
    ]
    for i in range(count - 1):
        event: Event = {
            "ph": rng.choice("XXXXXBEisftbneCMNOD"),
            "cat": rng.choice(["cpu_op", "kernel"]),
            "name": rng.choice(NAMES),
            "pid": rng.choice([1, "GPU", -3]),
            "tid": rng.choice([1, "stream 7", 2**63 + 1]),
            "ts": i * 10 + 0.125,
        }
        if rng.random() < 0.7:
            event["dur"] = rng.choice([0, 1.5, 12])
        if rng.random() < 0.6:
            event["args"] = rng.choice(
                [
                    {"External id": i},
                    {"stack": [{"f": i, "g": [1, [2]]}, {"f": 2}, {"ph": "Y"}]},
                    {"text": "]}]}", "Input Dims": [[2, 2], []], "none": None},
                    DECOY,
                ]
            )
        result.append(event)
    return result


def kineto_new(items: list[Event]) -> bytes:
    """Return one field per line, as Kineto writes since April 2026."""
    lines = [' {\n    "schemaVersion": 1,\n    "deviceProperties": [],\n    ']
    lines.append(
        f'    "displayTimeUnit": "ms",\n    "baseTimeNanoseconds": {BASE},\n    "traceEvents": [\n    '
    )
    texts = []
    for item in items:
        fields = [f'\n    "{k}": {json.dumps(v)}' for k, v in item.items() if k != "args"]
        text = "\n  {" + ",".join(fields)
        if "args" in item:
            inner = ", ".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in item["args"].items())
            text += '\n    ,\n    "args": {\n      ' + inner + "\n    }"
        texts.append(text + "\n  }")
    return "\n".join(lines).encode() + ",".join(texts).encode() + b'\n  ],\n  "traceName": "x.json"\n}'


def kineto_classic(items: list[Event]) -> bytes:
    """Return several fields per line and the keys behind the events, as Kineto wrote before."""
    texts = []
    for item in items:
        pairs = [f'"{k}": {json.dumps(v)}' for k, v in item.items() if k != "args"]
        text = "\n  {\n    " + ", ".join(pairs[:5]) + (",\n    " + ", ".join(pairs[5:]) if pairs[5:] else "")
        if "args" in item:
            inner = ",".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in item["args"].items())
            text += ',\n    "args": {\n      ' + inner + "\n    }"
        texts.append(text + "\n  }")
    head = b'\n{\n  "schemaVersion": 1,\n  "deviceProperties": [\n  ],\n  "traceEvents": ['
    tail = f'\n  ],\n  "traceName": "[{{",\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {BASE}\n}}\n'
    return head + ",".join(texts).encode() + tail.encode()


def zipped(**members: bytes) -> bytes:
    """Return an archive of JSON files; `__` in a name stands for a folder."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/") + ".json", data)
    return out.getvalue()


def deep(depth: int) -> str:
    """Return a list nested so deep that most decoders refuse it."""
    return "[" * depth + "]" * depth


def forms(count: int = 60) -> Iterator[Form]:
    """Yield every form, each with `count` events."""
    items = events(count)
    compact = json.dumps(items, separators=(",", ":"))
    plain = json.dumps({"traceEvents": items}).encode()
    lines = [json.dumps(item) for item in items]
    huge = {"n": [[i, {"traceEvents": [i]}] for i in range(20_000)]}

    yield Form("object", plain, items)
    yield Form("object, not ASCII", json.dumps({"traceEvents": items}, ensure_ascii=False).encode(), items)
    yield Form("array", compact.encode(), items, "array")
    yield Form("array, one per line", ("[\n" + ",\n".join(lines) + "\n]\n").encode(), items, "array")
    yield Form("array without its end", ("[\n" + ",\n".join(lines)).encode(), items, "array")
    yield Form("array with a trailing comma", ("[\n" + ",\n".join(lines) + ",\n").encode(), items, "array")
    yield Form("trailing comma before the end", ("[" + ",".join(lines) + ",\n]").encode(), items, "array")
    yield Form("lines", "\n".join(lines).encode(), items, "lines")
    yield Form("lines, blank between, CRLF", "\r\n\r\n".join(lines).encode(), items, "lines")
    yield Form("lines with commas", ",\n".join(lines).encode(), items, "lines")
    yield Form("lines without anything between", "".join(lines).encode(), items, "lines")
    pretty = "\n".join(json.dumps(item, indent=2) for item in items)
    yield Form("objects over several lines", pretty.encode(), items, "lines")
    for indent in (1, 2, 4):
        text = json.dumps({"a": 1, "traceEvents": items, "b": [1]}, indent=indent)
        yield Form(f"indent {indent}", text.encode(), items)
    yield Form(
        "tabs and CRLF", json.dumps({"traceEvents": items}, indent="\t").replace("\n", "\r\n").encode(), items
    )
    yield Form("kineto, new layout", kineto_new(items), items, base_time_ns=BASE)
    yield Form("kineto, classic layout", kineto_classic(items), items, base_time_ns=BASE)
    text = json.dumps({"metadata": huge, "decoy": DECOY, "traceEvents": items, "baseTimeNanoseconds": 5})
    yield Form("huge metadata before", text.encode(), items, base_time_ns=5)
    text = json.dumps(
        {"baseTimeNanoseconds": 5, "traceEvents": items, "decoy": {"x": DECOY}, "metadata": huge}
    )
    yield Form("huge metadata after", text.encode(), items, base_time_ns=5)
    text = '{"deep":' + deep(100_000) + ',"traceEvents":' + compact + ',"deep":' + deep(100_000) + "}"
    yield Form("deep metadata", text.encode(), items)
    yield Form(
        "decoy in a string first", json.dumps({"x": json.dumps(DECOY), "traceEvents": items}).encode(), items
    )
    yield Form("elements that are no objects", b'[1,null,"x",[{"a":1}],' + compact[1:].encode(), [
        1, None, "x", [{"a": 1}], *items,
    ], "array")  # fmt: skip
    yield Form("nothing but numbers", json.dumps(list(range(9000))).encode(), list(range(9000)), "array")
    yield Form("empty object", b"{}", [])
    yield Form("no events", b'{"traceEvents": []}', [])
    yield Form("null events", b'{"traceEvents": null}', [])
    yield Form("empty array", b" [ ]\n", [], "array")
    yield Form("two arrays in one object", b'{"traceEvents":%b,"traceEvents":%b}' % (
        compact.encode(), compact.encode()), [*items, *items], "concatenated")  # fmt: skip
    yield Form(
        "concatenated objects",
        plain + b"\n" + kineto_new(items),
        [*items, *items],
        "concatenated",
        True,
        BASE,
    )
    yield Form("concatenated arrays", b"[1]" + compact.encode() * 2, [1, *items, *items], "concatenated")
    large = {**items[1], "args": {"list": [{"ph": "X", "cat": n} for n in range(30_000)]}}
    text = json.dumps({"traceEvents": [*items, large, *items]})
    yield Form("an event larger than a block", text.encode(), [*items, large, *items])
    stacks = [{**item, "args": {"s": [{"ph": i, "cat": i} for i in range(40)]}} for item in items]
    yield Form(
        "lists that look like events", json.dumps(stacks, separators=(",", ":")).encode(), stacks, "array"
    )

    yield Form("BOM", b"\xef\xbb\xbf" + plain, items)
    for encoding in ("utf-16-le", "utf-16-be"):
        mark = "\ufeff".encode(encoding)
        raw = json.dumps({"traceEvents": items}, ensure_ascii=False).encode(encoding)
        yield Form(encoding, mark + raw, items)
    yield Form("gzip", gzip.compress(plain), items)
    yield Form("gzip of several members", gzip.compress(plain[:999]) + gzip.compress(plain[999:]), items)
    yield Form("zip", zipped(a__trace=plain), items)


def cut_off(count: int = 60) -> Iterator[Form]:
    """Yield forms of which the end is missing; all whole events before it must be read."""
    items = events(count)
    for layout in (kineto_new, kineto_classic):
        data = layout(items)
        yield Form(
            f"{layout.__name__} after a comma", data[: data.rindex(b"},") + 2], items[:-1], whole=False
        )
        yield Form(f"{layout.__name__} in an event", data[: data.rindex(b'"ts"')], items[:-1], whole=False)
        yield Form(f"{layout.__name__} behind the array", data[: data.rindex(b"]") + 3], items, whole=False)
    packed = gzip.compress(kineto_new(items))
    yield Form("gzip without its end", packed[:-9], items, whole=False)
