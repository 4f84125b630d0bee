"""Cut a window out of a trace as a small trace of its own. Every event is copied byte by byte, so that times,
arguments and ids are exactly those of the source. Only blocks in which something of the window or metadata
may stand are read, one at a time.
"""

from __future__ import annotations

import gzip
import json
import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import orjson

from ..base.arrays import I64, U32, distinct
from ..base.errors import TracelaneError, UsageError
from ..base.progress import CancelledCallback, Progress, ProgressCallback, no_progress
from ..base.whole_file import is_stream, unfinished
from ..index.blocks import read_blocks, source_of
from ..index.format import RowKind
from ..index.store import Index
from ..query.flows import flows_between
from ..read.json_text import structure
from ..read.repair import RepairedEvent, repair
from ..tables.frame.scope import Scope
from ..trace import Trace

CHUNK = 1 << 20
GZIP_LEVEL = 6
KINETO_KEYS = ("schemaVersion", "deviceProperties", "baseTimeNanoseconds", "displayTimeUnit")
_METADATA = re.compile(rb'"ph"\s*:\s*"M"')
_LEFT_OUT = re.compile(r"\([\d,]+ bytes\)")


class Cut(NamedTuple):
    """The result of a cut: counts of events by kind, and keys of the envelope that were too large to keep."""

    slices: int
    instants: int
    samples: int
    flows: int
    metadata: int
    events: int
    left_out: tuple[str, ...]


def cut_scope(scope: Scope, out: Path, progress: ProgressCallback = no_progress) -> Cut:
    """Write what overlaps the range and lanes of a scope in its source, by default the first one, to a file,
    packed if it is called *.gz. All slices that overlap the range come whole, instants and counter samples
    inside it, flows from one such slice to another, all metadata; times are written as they stand. Raises
    UsageError where nothing lies in the range, UnreadableError where the source is not what was indexed.
    """
    scope = replace(scope, source=scope.source or 0)
    index = scope.trace.indexes[scope.source or 0]
    if scope.range is not None and scope.range[0] >= scope.range[1]:
        raise UsageError("the window to cut is empty: --from must be before --to")
    if _same_file(out, index.path):
        raise UsageError(f"{out} is the trace itself: cut to another file")
    ordinals, counts = _selection(scope, index)
    if not len(ordinals):
        raise UsageError("nothing of the trace is in that window")
    envelope, left_out = _envelope(index)
    metadata = 0
    with whole_file(out) as file:
        file.write(envelope)
        separator = b"\n"
        for text, is_metadata in _events(index, ordinals, progress, scope.cancelled):
            file.write(separator + text)
            separator = b",\n"
            metadata += is_metadata
        file.write(b"\n]}\n")
    return Cut(*counts, metadata, len(ordinals) + metadata, tuple(left_out))


def copy_source(trace: Trace, source: int, out: Path, progress: ProgressCallback = no_progress) -> int:
    """Write the whole text of a source to a file, packed if it is called *.gz; return its bytes. Raises
    UsageError where `out` is the source, UnreadableError where that is not what was indexed.
    """
    index = trace.indexes[source]
    if _same_file(out, index.path):
        raise UsageError(f"{out} is the trace itself: write another file")
    stream = source_of(index).open()
    count = 0
    try:
        with whole_file(out) as file:
            while data := stream.read(CHUNK):
                file.write(data)
                count += len(data)
                progress(Progress("copying", count, 0))
    finally:
        stream.close()
    return count


# -- what is wanted ---------------------------------------------------------------------------------------


def _selection(scope: Scope, index: Index) -> tuple[U32, tuple[int, int, int, int]]:
    """Return the ordinals of all events to be copied, ascending, each once; how many of them are slices,
    instants, samples and flows.
    """
    slices = [(part.begin, part.end) for part in scope.parts]
    instants, samples = (
        [(part.begin, part.end) for part in scope.rows_inside(kind)]
        for kind in (RowKind.INSTANTS, RowKind.SAMPLES)
    )
    flows = flows_between(index, (slice(a, b) for a, b in slices))
    paired = index.column("ends.position")
    pairs = [np.searchsorted(paired, np.array(part, paired.dtype)).tolist() for part in slices]
    sampled = [index.column("samples.ordinal")[a:b] for a, b in samples]
    pieces = [
        *(index.column("slices.ordinal")[a:b] for a, b in slices),
        *(index.column("ends.ordinal")[a:b] for a, b in pairs),
        *(index.column("instants.ordinal")[a:b] for a, b in instants),
        *sampled,
        index.column("flows.source_ordinal")[flows],
        index.column("flows.target_ordinal")[flows],
    ]
    ordinals = distinct(np.concatenate(pieces)).astype(np.uint32, copy=False)
    slice_count, instant_count = (sum(b - a for a, b in some) for some in (slices, instants))
    counters = len(distinct(np.concatenate(sampled))) if sampled else 0  # an event may sample many series
    return ordinals, (slice_count, instant_count, counters, len(flows))


# -- where it stands --------------------------------------------------------------------------------------


def _events(
    index: Index, ordinals: U32, progress: ProgressCallback, cancelled: CancelledCallback
) -> Iterator[tuple[bytes, bool]]:
    """Yield (text, whether it is metadata) of the wanted events and all metadata, in file order."""
    first: I64 = index.column("blocks.ordinal").astype(np.int64)
    count: I64 = index.column("blocks.count").astype(np.int64)
    bounds = np.searchsorted(ordinals, np.stack((first, first + count)).astype(np.uint32))
    touched = bounds[1] > bounds[0]
    unknown = count > _known(index, first, count)
    blocks = np.flatnonzero(touched | unknown)
    total = int(index.column("blocks.length")[blocks].sum())
    done = 0
    for block, data in read_blocks(index, blocks.tolist(), cancelled):
        progress(Progress("cutting", done, total))
        done += len(data)
        if not touched[block] and not _METADATA.search(data):
            continue
        chosen = (ordinals[bounds[0, block] : bounds[1, block]] - np.uint32(first[block])).tolist()
        texts = event_texts(data, int(count[block]), bool(index.column("blocks.repaired")[block]))
        if chosen and chosen[-1] >= len(texts):
            raise TracelaneError(f"{index.path} has changed since it was indexed: open it again")
        chosen_ordinals = set(chosen)
        for number, text in enumerate(texts):
            if number in chosen_ordinals:
                yield text, False
            elif unknown[block] and _METADATA.search(text) and _is_metadata(text):
                yield text, True


def _known(index: Index, first: I64, count: I64) -> I64:
    """Return for each block how many of its events the index has: the others may be metadata."""
    stops = first + count
    met = np.zeros(int(stops.max(initial=0)), np.bool_)  # an event may have several samples or flows
    for name in ("slices.", "ends.", "instants.", "samples.", "flows.source_", "flows.target_"):
        column = index.column(f"{name}ordinal")
        for low in range(0, len(column), CHUNK):
            met[column[low : low + CHUNK]] = True
    known = (np.count_nonzero(met[begin:stop]) for begin, stop in zip(first.tolist(), stops.tolist()))
    return np.fromiter(known, np.int64, len(first))


def _is_metadata(text: bytes) -> bool:
    try:
        event = orjson.loads(text)
    except ValueError:
        return False
    return isinstance(event, dict) and event.get("ph") == "M"


# -- what it stands in ------------------------------------------------------------------------------------


def _envelope(index: Index) -> tuple[bytes, list[str]]:
    """Return (the text up to the bracket of the events, the keys that were too large to be kept)."""
    values: dict[str, Any] = dict(index.envelope)
    left_out = [k for k, v in values.items() if isinstance(v, str) and _LEFT_OUT.fullmatch(v)]
    keys = dict.fromkeys((*(key for key in KINETO_KEYS if key in values), *values))
    lines = [
        f"  {json.dumps(key)}: {json.dumps(values[key])},\n"
        for key in keys
        if key not in left_out and key != "traceEvents"
    ]
    return ("{\n" + "".join(lines) + '  "traceEvents": [').encode(), left_out


@contextmanager
def whole_path(out: Path) -> Iterator[Path]:
    """Yield the path of a file that gets its name only when it is complete. Raises TracelaneError."""
    if is_stream(out) or (out.exists() and not out.is_file()):
        raise UsageError(f"{out} is not a file: give the name of a file to write")
    try:
        with unfinished(out) as building:
            yield building
            building.replace(out)
    except OSError as error:
        raise TracelaneError(f"cannot write {out}: {error.strerror or error}") from None


@contextmanager
def whole_file(out: Path) -> Iterator[IO[bytes] | gzip.GzipFile]:
    """Yield such a file, packed if it is called *.gz."""
    with whole_path(out) as building, building.open("wb") as raw:
        if out.suffix == ".gz":
            with gzip.GzipFile("", "wb", GZIP_LEVEL, raw, mtime=0) as packed:
                yield packed
        else:
            yield raw


def _same_file(out: Path, source: str) -> bool:
    try:
        return os.path.samefile(out, source)
    except OSError:
        return False


EXACT_KEYS = ("ts", "dur")
_GAP = re.compile(rb"[\s,]*+")


def event_texts(data: bytes, count: int, repaired: bool) -> list[bytes]:
    """Return the text of each of a block's elements, in the order in which they were counted. What is no
    valid JSON is written anew from what could be read of it, times with all their digits.
    """
    if not repaired:
        shape = structure(data)
        if len(shape.ends) == count and shape.close is None and shape.stray is None:
            texts, begin = [], 0
            for end in shape.ends:
                gap = _GAP.match(data, begin)
                texts.append(data[gap.end() if gap else begin : end])
                begin = end
            return texts
    items = [item for item in repair(data) if isinstance(item, RepairedEvent)]
    return [_sound(data[item.offset : item.offset + item.length], item) for item in items]


def _sound(text: bytes, item: RepairedEvent) -> bytes:
    """Return an element's own text where it is valid JSON, else its value written anew."""
    if not item.why:
        with suppress(ValueError):
            orjson.loads(text)
            return text
    return event_text(item.value)


def event_text(value: Any) -> bytes:
    """Return a value as JSON; Decimals as the numbers they are, what JSON has no number for as text."""
    if not isinstance(value, dict):
        return json.dumps(_plain(value), ensure_ascii=False).encode("utf-8", "replace")
    fields = []
    for key, field in value.items():
        exact = isinstance(field, Decimal) and field.is_finite()
        text = str(field) if exact else json.dumps(_plain(field), ensure_ascii=False)
        fields.append(f"{json.dumps(str(key), ensure_ascii=False)}: {text}")
    return ("{" + ", ".join(fields) + "}").encode("utf-8", "replace")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() else str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
