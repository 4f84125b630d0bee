"""Both scanners on the same text: what they make of it, and in what they differ."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.batches import Part
from tests.boundary_times import BOUNDARY_TEXTS
from tracelane.core.native.library import native_library
from tracelane.core.read.batch import ColumnBuffers, PlainNumbering
from tracelane.core.read.promoted import PromotedTable
from tracelane.core.read.scan_native import NativeScanner
from tracelane.core.read.scan_reference import (
    Reason,
    ReferenceScanner,
    ScanStop,
    ScanText,
    ScanWatch,
)

PROMOTED = PromotedTable()
MAX_LENGTH = 1 << 20


@dataclass(frozen=True)
class Scan:
    """Where a scan stopped, and its batch by itself."""

    stop: ScanStop
    batch: Part


def scanners() -> list[ReferenceScanner]:
    """Return a plain scanner, and a native one where it is compiled."""
    return [reference(), *([native()] if native_library().functions is not None else [])]


def native() -> NativeScanner:
    """Return a native scanner."""
    return NativeScanner(PROMOTED, ScanWatch())


def reference() -> ReferenceScanner:
    """Return a plain scanner."""
    return ReferenceScanner(ColumnBuffers(PROMOTED), PlainNumbering(), ScanWatch())


def scan_text(
    scanner: ReferenceScanner,
    text: ScanText,
    at: int = 0,
    limit: int | None = None,
    longest: int = MAX_LENGTH,
) -> Scan:
    """Scan one batch."""
    scanner.begin()
    stop = scanner.scan(text, at, text.size + 1 if limit is None else limit, longest)
    return scan_of(scanner, stop)


def scan_of(scanner: ReferenceScanner, stop: ScanStop) -> Scan:
    """Return the batch that a scanner has read."""
    return Scan(stop, Part.of(scanner.finish(0, 0), scanner.table()))


def differences(one: Scan, other: Scan) -> list[str]:
    """Return in what two scans differ, byte for byte."""
    a, b = one.batch, other.batch
    fields = ("events", "metadata", "counts", "problems", "strings", "tracks")
    differing = [
        f"{name}: {getattr(a, name)!r} and {getattr(b, name)!r}"
        for name in fields
        if getattr(a, name) != getattr(b, name)
    ]
    if one.stop != other.stop:
        differing.append(f"stop: {one.stop} and {other.stop}")
    if list(a.promoted) != list(b.promoted):
        return [*differing, f"promoted: {list(a.promoted)} and {list(b.promoted)}"]
    twins = {**b.tables, **b.promoted}
    for table, columns in {**a.tables, **a.promoted}.items():
        for name, values in columns.items():
            if values.tobytes() != twins[table][name].tobytes():
                differing.append(f"{table}.{name}: {values[:8]} and {twins[table][name][:8]}")
    return differing


def compare(text: ScanText, at: int = 0, limit: int | None = None, longest: int = MAX_LENGTH) -> list[str]:
    """Return in what the scanners differ on a text."""
    return differences(
        scan_text(native(), text, at, limit, longest), scan_text(reference(), text, at, limit, longest)
    )


_PIECES = [
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b" ", b"\n", b"\0", b"\x1f", b"\x7f", b"\xff",
    b"\xc3\xa9", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"-", b"+", b".", b"e", b"E", b"0", b"9", b"00",
    b"1e5", b"-0", b"0.5", b"1.50", b"1e999", b"1e-400", b"9223372036854775807", b"9223372036854775808",
    b"-9223372036854775809", b"18446744073709551616", b"0.0005", b"1.0005", b"1717171717171717.1235",
    *(text.encode() for text in BOUNDARY_TEXTS), b"null", b"true", b"false", b"NaN", b"-Infinity", b"tru",
    b"\\u00e9", b"\\ud83d\\ude00", b"\\ud800", b"\\u0022", b"\\n", b"\\x", b'"ph"', b'"ts"', b'"dur"',
    b'"args": {}', b'"args": null', b'"attr": {"correlation": 1}', b'"id"', b'"id2": {"local": "0x1"}',
    b'"scope": "a"', b'"s": "g"', b'"bp": "e"', b'"cname": "good"', b'"a": 1, "a": 2', b'"ph": "C"',
    b'"ph": "i"', b'"ph": "f"', b'"ph": "b"', b'"ph": "M"', b'"ph": 1', b'"cat": "kernel"',
    b'"stream": "7"', b'"grid": [1, 2.0, 3]', b'"Input Dims": [[1,2],[],[1.5,"a"]]', b'"correlation": 1.0',
]  # fmt: skip


def mutants(text: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield damaged copies of a text: bytes and pieces of JSON put in, taken out, exchanged, doubled."""
    chance = random.Random(seed)
    for _ in range(count):
        data = bytearray(text)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
            at = chance.randrange(len(data) + 1)
            length = chance.choice((0, 0, 1, 1, 2, 4, 30))
            other = chance.randrange(len(data) + 1)
            piece = chance.choice(
                (b"", bytes([chance.randrange(256)]), chance.choice(_PIECES), bytes(data[other : other + 40]))
            )
            data[at : at + length] = piece
        yield bytes(data)


def values_exchanged(text: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Yield copies of a text in which values are others, mostly sound ones."""
    chance = random.Random(seed)
    colons = [at for at in range(len(text)) if text[at : at + 1] == b":"]
    values: Sequence[bytes] = [
        piece for piece in _PIECES if not piece.startswith(b'"a') and b": " not in piece
    ]
    for _ in range(count):
        data = bytearray(text)
        for at in sorted(chance.sample(colons, min(len(colons), chance.choice((1, 1, 2, 5)))), reverse=True):
            end = min(
                (e for e in (data.find(stop, at) for stop in (b",", b"}", b"\n")) if e >= 0),
                default=len(data),
            )
            data[at + 1 : end] = b" " + chance.choice(values)
        yield bytes(data)


def wrong(texts: Iterator[bytes]) -> list[tuple[bytes, list[str]]]:
    """Return the texts on which the scanners differ; each is scanned on behind what is refused."""
    scanners = native(), reference()
    result = []
    for data in texts:
        text = ScanText.of(data)
        at = 0
        while at <= text.size:
            one, other = (scan_text(scanner, text, at) for scanner in scanners)
            differing = differences(one, other)
            if differing:
                result.append((data, differing))
                break
            following = data.find(b"{", max(one.stop.begin, one.stop.at) + 1)
            if one.stop.reason is Reason.LIMIT or following < 0:
                break
            at = following
    return result
