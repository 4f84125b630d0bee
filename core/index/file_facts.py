"""What a trace file says about itself outside its events, looked up without reading these."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from ..base.errors import TracelaneError
from ..base.numbers import whole_number
from ..base.private import read_private
from ..read.inflate import RawReader
from ..read.json_text import Window
from ..read.source import SNAPSHOT, Source
from ..read.urls import is_url
from .cache import cache_root, index_key
from .member import NO_FACTS, FileFacts, facts_in_keys, member_of
from .version import FORMAT_VERSION, MANIFEST

MAX_HEAD = 1 << 20
"""Bytes before the events that are looked at."""
MAX_MANIFEST = 256 << 20
TAIL = 64 * 1024
MAX_PACKED = 64 << 20
"""Bytes of a packed file that is inflated for what stands at its end: some seconds."""
_BLOCK = 1 << 16
_STEP = 1 << 20
_EVENT = re.compile(rb'"ph"\s{0,64}:\s{0,64}"')
FAR = 256
"""Bytes that an event's telling key takes at most."""
_TIME = re.compile(rb'"ts"\s*:\s*"?(\d{1,19}(?:\.\d{1,9})?)(?=[\s",}])')
_PID = re.compile(rb'"pid"\s*:\s*"?(\d{1,6})(?=[\s",}])')
_FLEX = re.compile(rb'"name"\s*:\s*"[^"]*( Cmpt (Exec|Prep)| Dma[IO]|RoundTrip|Roundtrip|SenRdma(Send|Rec))')
"""Names of events of FLEX, the runtime of the AIU's older software."""
MAX_TIMES = 1000
"""Times at the beginning of the events of which the first is the start of the trace."""
EPOCH_NS = 10**18
"""Times since 1970 lie beyond this (2001), times since the machine started before it."""
QUARTER_NS = 7_889_238 * 10**9
"""Since 2024 Kineto counts times from the last multiple of this since 1970: a quarter of a year."""
MAX_NS = 3600 * 10**9
"""From the beginning of a trace to when its file was written; what lies further back has another origin."""
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(\d{1,19})\b')
_RANKS = re.compile(rb'"distributedInfo"\s*:\s*(?=\{)')


def file_facts(source: Source, index_dir: Path | None = None) -> FileFacts:
    """Return what a file says: before its events, else after them, else in its cached index."""
    if source.encoding == SNAPSHOT:  # no key says a rank, and all of it would be read for the first byte
        return NO_FACTS
    named = member_of(source.path)
    is_worker = named.pid is not None and named.rank is None  # Kineto's name of one process of a host
    try:
        facts = _head(source, stamp_ns=named.stamp_ns if is_worker else None)
        if facts.rank is not None:
            return facts
        end = _end_of(source) if source.seekable else b""
        facts = _merged(facts, facts_in_keys(_ranks_in(end)))
        cached = _cached(source, index_dir) if facts.rank is None else {}
        facts = _merged(facts, facts_in_keys(cached))
        if facts.rank is None and facts.start_ns is None:
            # Kineto wrote before 2026 what times count from behind the events.
            if is_worker and not source.seekable and not is_url(source.path):
                end = _end_of(source)
            base = cached.get("baseTimeNanoseconds") or whole_number((_BASE.findall(end) or ["0"])[-1])
            facts = facts._replace(start_ns=_head(source, base).start_ns if base else None)
    except (TracelaneError, OSError):  # opening it will say what is wrong
        return NO_FACTS
    return facts


def _head(source: Source, base_ns: int = 0, stamp_ns: int | None = None) -> FileFacts:
    """Return what a file says by the keys before its events, and by its first events; `base_ns` is what
    times count from where these keys do not say it, `stamp_ns` when Kineto wrote it.
    """
    from ..read.envelope import EnvelopeReader  # with numpy: not before a process that indexes one file runs

    stream = source.open()
    try:
        window = Window(lambda at, n: stream.read(n) if at < MAX_HEAD else b"", stream.offset, _BLOCK)
        window.more()
        window.at = len(window.data) - len(window.data.lstrip())
        if window.data[window.at : window.at + 1] != b"{":
            pids = {match[1] for match in _PID.finditer(window.data)}
            is_job_rank = len(pids) == 1 and _FLEX.search(window.data) is not None
            facts = FileFacts(job_rank=whole_number(pids.pop()) if is_job_rank else None)
        else:
            reader = EnvelopeReader(window)
            reader.read_object()
            keys = {"baseTimeNanoseconds": base_ns, **reader.values}
            start = _start_ns(keys, window.data[window.at :], stamp_ns, source.time_digits)
            facts = facts_in_keys(reader.values)._replace(start_ns=start)
        return facts._replace(has_events=_has_events(window.data, stream))
    finally:
        stream.close()


def _has_events(data: bytes, stream: RawReader) -> bool:
    """Tell whether an event begins in a text or in what follows it; of more than MAX_PACKED one does."""
    read = len(data)
    while not _EVENT.search(data):
        if read > MAX_PACKED:
            return True
        more = stream.read(_STEP)
        if not more:
            return False
        read += len(more)
        data = data[-FAR:] + more
    return True


def _start_ns(keys: Mapping[str, Any], events: bytes, stamp_ns: int | None, digits: int) -> int | None:
    """Return the least time of the first events in ns since 1970, None where times have another origin. Where
    nothing says what they count from it is the multiple of QUARTER_NS, as Kineto counts, by which they end
    shortly before the file was written, if there is one. Times count 10^digits ns.
    """
    times = [Decimal(match[1].decode()) for match in islice(_TIME.finditer(events), MAX_TIMES)]
    times = [time for time in times if time]
    base = keys.get("baseTimeNanoseconds")
    base = base if isinstance(base, int) and not isinstance(base, bool) else 0
    first = int(min(times) * 10**digits) if times else 0
    if not base and stamp_ns is not None and 0 < first < EPOCH_NS:
        base = (stamp_ns - first) // QUARTER_NS * QUARTER_NS
        if stamp_ns - base - first > MAX_NS:
            return None
    start = base + first if times else 0
    return start if EPOCH_NS < start < 10 * EPOCH_NS else None


def _end_of(source: Source) -> bytes:
    """Return the last bytes of the text; none of a large packed file."""
    if source.seekable:
        return source.read_range(max(0, source.size - TAIL), TAIL)
    if source.size > MAX_PACKED:
        return b""
    stream = source.open()
    try:
        end = b""
        while data := stream.read(TAIL):
            end = (end + data)[-TAIL:]
        return end
    finally:
        stream.close()


def _ranks_in(data: bytes) -> Mapping[str, Any]:
    """Return the keys that say the rank behind the events."""
    matches = list(_RANKS.finditer(data))
    if not matches:
        return {}
    from ..read.envelope import EnvelopeReader  # as in _head

    window = Window(lambda at, n: data[at : at + n], matches[-1].end(), TAIL)
    window.more()
    reader = EnvelopeReader(window, of_event=True)
    reader.read_object()
    return {"distributedInfo": reader.values}


def _cached(source: Source, index_dir: Path | None) -> Mapping[str, Any]:
    root = cache_root() if index_dir is None else index_dir
    if root is None:
        return {}
    folder = root / f"v{FORMAT_VERSION}" / index_key(dict(source.fingerprint))
    try:
        manifest = json.loads(read_private(folder / MANIFEST, MAX_MANIFEST))
    except (OSError, ValueError, RecursionError):
        return {}
    envelope = manifest.get("envelope") if isinstance(manifest, dict) else None
    return envelope if isinstance(envelope, dict) else {}


def _merged(one: FileFacts, other: FileFacts) -> FileFacts:
    """Return what one says, and where it says nothing what the other says."""
    return FileFacts(
        other.rank if one.rank is None else one.rank,
        other.world if one.world is None else one.world,
        one.host or other.host,
        other.start_ns if one.start_ns is None else one.start_ns,
        other.job_rank if one.job_rank is None else one.job_rank,
        one.has_events,
    )
