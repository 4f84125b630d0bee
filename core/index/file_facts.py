"""What a trace file says about itself outside its events, looked up without reading these; and what its name
says: its rank, its position in the parallel layout, when it was written.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from ..base.errors import TracelaneError, UnreadableError
from ..base.numbers import whole_number
from ..base.private import read_private
from ..read.inflate import RawReader
from ..read.json_text import Window
from ..read.source import SNAPSHOT, Source
from ..read.urls import is_url
from .cache import cache_root, index_key
from .version import FORMAT_VERSION, MANIFEST

SECOND = 1_000_000_000
AXES = ("DP", "PP", "CP", "TP")
"""Parallel axes from the slowest to the fastest: the order in which launchers number ranks."""

_RANK = re.compile(r"(?<![a-z])(?<!local[-_])rank[-_=]?(\d{1,7})(?:[-_]?of[-_]?(\d{1,7}))?", re.IGNORECASE)
_WORKER = re.compile(r"(?<![a-z])worker[-_=]?(\d{1,7})", re.IGNORECASE)
_AXIS = re.compile(r"-(TP|DP|PP|EP|CP)-(\d{1,7})(?![0-9A-Za-z])")
_WORKER_AXES = re.compile(r"(?<![0-9A-Za-z])dp(\d{1,7})_pp(\d{1,7})_tp(\d{1,7})(?=_(?:\w+_)?rank\d)")
"""How vLLM calls its workers: dp0_pp0_tp1_dcp0_ep1_rank1."""
_EPOCH = re.compile(r"(?<![0-9A-Za-z])(1\d{18}|1\d{15}|1\d{12}|1\d{9}(?:\.\d{1,9})?)(?![0-9A-Za-z])")
_DATE = re.compile(r"(?<!\d)(20\d\d)(\d\d)(\d\d)[-_T]?(\d\d)(\d\d)(\d\d)(?!\d)")
_HOST = re.compile(r"(?P<host>[A-Za-z0-9][\w.\-]*?)_(?P<pid>\d{1,10})\.$")
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


class FileFacts(NamedTuple):
    """Rank, number of ranks and host as the file gives them, None or empty where it does not. `start_ns` is
    when its first events begin, in ns since 1970; `job_rank` the pid of a FLEX job trace, which is the rank
    of its process; `has_events` whether it holds any, where it is not too large to be looked through.
    """

    rank: int | None = None
    world: int | None = None
    host: str = ""
    start_ns: int | None = None
    job_rank: int | None = None
    has_events: bool = True


NO_FACTS = FileFacts()


def facts_in_keys(envelope: Mapping[str, Any]) -> FileFacts:
    """Return what the keys of a trace beside its events say: `distributedInfo` and `host_name`."""
    info = envelope.get("distributedInfo")
    info = info if isinstance(info, dict) else {}
    host = envelope.get("host_name")
    return FileFacts(
        _count(info.get("rank")), _count(info.get("world_size")), host if isinstance(host, str) else ""
    )


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


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True)
class Member:
    """One file of a capture, by what its name and it itself say; `rank` is None for a host process, as a
    server's front end.
    """

    path: str | Path
    run: str
    rank: int | None = None
    world: int | None = None
    host: str = ""
    axes: tuple[tuple[str, int], ...] = ()  # its position in the parallel layout
    stamp_ns: int | None = None
    time_ns: int = 0  # its stamp, else when it was changed last
    stem: str = ""  # the name without rank and stamp: alike for the files of one capture
    pid: int | None = None  # of the process that wrote it, where its name is Kineto's
    start_ns: int | None = None  # when its first events begin, since 1970
    numbered: bool = False  # no file tells its rank: it is its place among the processes of the run
    side: str = ""  # of two runs that are shown together what it is called there: "A rank 3 · eager"
    job_rank: int | None = None  # the pid of a FLEX job trace: its rank, if no other file has the same
    source: Source | UnreadableError | None = field(default=None, compare=False, repr=False)
    """What is there, or why that is no trace; None for one that was not looked at."""

    @property
    def layout(self) -> str:
        """Its position in the parallel layout as engines write it: "TP 1 DP 0"."""
        return " ".join(f"{axis} {number}" for axis, number in self.axes)

    @property
    def title(self) -> str:
        """What the file is called beside others: "rank 3", "rank 3 (TP 1 DP 1)", else its name; of two runs
        with its side and its run: "A eager", "A rank 3 · eager".
        """
        if self.side:
            return self.side
        name = Path(self.path).name if self.rank is None else f"rank {self.rank}"
        layout = f" ({self.layout})" if self.rank is not None and " DP " in self.layout else ""
        return name + layout

    def with_facts(self, facts: FileFacts) -> Member:
        """Return the member with what its file says about itself, which counts more than its name."""
        return replace(
            self,
            rank=self.rank if facts.rank is None else facts.rank,
            world=facts.world or self.world,
            host=facts.host or self.host,
            start_ns=facts.start_ns,
            job_rank=facts.job_rank,
        )

    @property
    def span(self) -> tuple[int, int] | None:
        """From its first events to when it was written (ns since 1970), None where either is not known."""
        if self.start_ns is None or self.stamp_ns is None or self.start_ns >= self.stamp_ns:
            return None
        return self.start_ns, self.stamp_ns


def member_of(path: str | Path) -> Member:
    """Return what a file's name tells: `rankN`, `workerN`, `-TP-n-DP-n`, `dpN_ppN_tpN_rankN`, a stamp,
    Kineto's `host_pid.stamp`. Of a folder's name only the rank counts, where the file's own tells none.
    """
    name, parent = Path(path).name, Path(path).parent
    epoch, date = _EPOCH.search(name), _DATE.search(name)
    stamp = _epoch_ns(epoch[1]) if epoch else _date_ns(date) if date else None
    own_rank, world = rank_in(name)
    rank = own_rank
    axes = [(axis, whole_number(number)) for axis, number in _AXIS.findall(name)]
    if worker := _WORKER_AXES.search(name):
        axes = list(zip(("DP", "PP", "TP"), map(int, worker.groups())))
    if rank is None and not axes:
        rank, world = rank_in(parent.name)
        if rank is None and _RANK.search(parent.parent.name):
            # A profiler's own folder in that of a rank: rank0_ascend_pt/ASCEND_PROFILER_OUTPUT.
            parent = parent.parent
            rank, world = rank_in(parent.name)
    host = _HOST.search(name[: epoch.start()]) if epoch and own_rank is None else None
    stem = name
    for pattern in (_EPOCH, _DATE, _WORKER_AXES, _RANK, _WORKER, _AXIS):
        stem = pattern.sub("#", stem)
    run = str(parent.parent if own_rank is None and rank_in(parent.name)[0] is not None else parent)
    if is_url(path):
        run = run.replace(":/", "://", 1)
    try:
        changed = os.stat(path).st_mtime_ns
    except OSError:
        changed = 0
    time_ns = changed if stamp is None else stamp
    host_name, pid = (host["host"], whole_number(host["pid"])) if host else ("", None)
    return Member(path, run, rank, world, host_name, tuple(axes), stamp, time_ns, stem, pid)


def rank_in(name: str) -> tuple[int | None, int | None]:
    """Return (rank, how many there are) as a name tells them, None for what it does not."""
    match = _RANK.search(name)
    if match:
        return whole_number(match[1]), whole_number(match[2]) if match[2] else None
    match = _WORKER.search(name)
    return (whole_number(match[1]) if match else None), None


def ranks_by_axes(positions: Sequence[Mapping[str, int]]) -> list[int]:
    """Return the ranks of files that name only their positions in a layout. They are counted along AXES, the
    last one fastest.
    """
    used = [axis for axis in AXES if any(axis in position for position in positions)] or ["EP"]
    sizes = {axis: 1 + max(position.get(axis, 0) for position in positions) for axis in used}
    ranks = []
    for position in positions:
        rank = 0
        for axis in used:
            rank = rank * sizes[axis] + position.get(axis, 0)
        ranks.append(rank)
    return ranks


def _epoch_ns(text: str) -> int:
    """Return seconds (with decimals), ms, µs or ns since 1970 as ns, told apart by their length."""
    whole, _, part = text.partition(".")
    if part:
        return whole_number(whole) * SECOND + whole_number(part.ljust(9, "0"))
    digits: int = 10 ** (19 - len(whole))
    return whole_number(whole) * digits


def _date_ns(match: re.Match[str]) -> int | None:
    try:
        moment = datetime(*(int(group) for group in match.groups()), tzinfo=UTC)  # type: ignore[arg-type, misc]
    except ValueError:
        return None
    return int(moment.timestamp()) * SECOND
