"""`open_log`: a telemetry log as series per device and metric, with every line of it accounted for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from ..base.arrays import F64, I64, Bools
from ..base.errors import UnreadableError
from ..base.private import open_regular, reason_of
from .cells import LogRows, read_rows
from .header import UNITS_OF_TIME, ColumnKind, LogColumn, LogHeader, header_in, with_units
from .series import DeviceLog, Series
from .stamps import SECOND, StampKind, interval_starts, on_days, sampling_interval, spread_seconds

CHUNK = 4 << 20
PAUSE = 3
"""A run ends where its rows pause for so many sampling intervals, or seconds, and a header follows."""
UNPARSED_EXAMPLES = 100
"""Unparsed lines and messages beyond this many are counted, not kept."""
_MESSAGE = re.compile(rb"\s*\[?(INFO|WARN|WARNING|ERROR|DEBUG|NOTE|CRITICAL|Traceback)\b", re.IGNORECASE)
_TEXT_FILE = re.compile(rb"#\s*(\d+)\s+(/\S.*)")
_CSV_FILE = re.compile(rb"#MetricFile,([^,]*),(.*)")
_HEADER_START = re.compile(rb'[\s"#\xef\xbb\xbf]*[A-Za-z_]')


class Unparsed(NamedTuple):
    """A line that is no header and cannot be read as a row."""

    line: int  # from 1
    why: str
    text: str


@dataclass(frozen=True, eq=False)
class TelemetryLog:
    """What was understood of a log; rows + missing + unparsed is the number of lines that should be rows."""

    path: str
    tool: str  # "aiu-smi", "nvidia-smi", ..., or "" where unknown
    format: str  # "text" or "csv"
    columns: tuple[LogColumn, ...]
    devices: Mapping[str, DeviceLog]
    rows: int  # with a value for the card
    missing: int  # where the card was not ready: read, but empty
    unparsed: int
    messages: int  # lines of the tool's standard error among the rows
    interval_ns: int | None
    stamps: StampKind
    whole_seconds: bool
    unparsed_lines: tuple[Unparsed, ...]
    message_lines: tuple[tuple[int, str], ...]
    notes: tuple[str, ...]
    line_offsets: I64  # where each row's line starts in the file, by row in file order
    row_lines: I64  # its line number, from 1, beside it

    @property
    def span(self) -> tuple[int, int] | None:
        """Return begin and end of all samples in log time, ns, or None where there is none."""
        devices = [d for d in self.devices.values() if len(d.end_ns)]
        if not devices:
            return None
        return min(int(d.start_ns[0]) for d in devices), max(int(d.end_ns[-1]) for d in devices)

    def series(self, device: str, column: str) -> Series:
        """Return a metric by its name (or name and unit, as in a lane's title); KeyError if there is none."""
        entry = self.devices[device]
        for own in entry.values:
            if column in (own.name, own.label):
                return entry.series(own)
        raise KeyError(column)

    def first_of(self, device: str, kind: ColumnKind) -> Series | None:
        """Return the first metric of a kind that has values, else the first of the kind; None of none."""
        entry = self.devices[device]
        alike = [entry.series(column) for column in entry.values if column.kind is kind]
        return next((series for series in alike if not series.missing.all()), alike[0] if alike else None)

    def line_text(self, line: int) -> str:
        """Return a row's line as it stands in the log; empty where the line is no row or the file is gone."""
        at = int(np.searchsorted(self.row_lines, line))
        if at == len(self.row_lines) or self.row_lines[at] != line:
            return ""
        try:
            with open(open_regular(self.path), "rb") as file:
                file.seek(int(self.line_offsets[at]))
                return file.readline().decode("utf-8", "replace").rstrip("\r\n")
        except OSError:
            return ""


def open_log(path: str | Path, near_ns: int | None = None) -> TelemetryLog:
    """Read an aiu-smi log (text or CSV) or any CSV with a header and a column of times. Stamps without a date
    are of the days that bring them nearest to a local time, `near_ns`. Raises UnreadableError where there is
    no such header in it, and for a pipe: lines are read again later.
    """
    reading = _Reading(str(path), near_ns)
    try:
        with open(open_regular(path), "rb") as file:
            reading.read(file)
    except OSError as error:
        raise UnreadableError(f"{path}: {reason_of(error)}") from error
    return reading.log()


class _Reading:
    def __init__(self, path: str, near_ns: int | None) -> None:
        self.path, self.near_ns = path, near_ns
        self.header: LogHeader | None = None
        self.first: LogHeader | None = None
        self.last_header_line = b""
        self.header_lines: list[int] = []
        self.units_due = False
        self.blocks: list[tuple[LogRows, I64, I64]] = []
        self.files: dict[str, str] = {}
        self.unparsed = 0
        self.unparsed_lines: list[Unparsed] = []
        self.messages = 0
        self.message_lines: list[tuple[int, str]] = []
        self.lines_before = 0
        self.line_above = b""

    def read(self, file: BinaryIO) -> None:
        offset, rest = 0, b""
        while data := file.read(CHUNK):
            if b"\x00" in data:
                raise UnreadableError(f"{self.path}: is binary, no text log")
            head, end, tail = data.rpartition(b"\n")
            if end:
                whole = rest + head
                self.block(whole.split(b"\n"), offset, cut_last=False)
                offset, rest = offset + len(whole) + 1, b""
            rest += tail
        if rest:
            self.block([rest], offset, cut_last=True)
        elif not offset:
            raise UnreadableError(
                f"{self.path}: is empty (aiu-smi 1.3 leaves -f files empty: redirect its output instead)"
            )

    def block(self, lines: list[bytes], offset: int, cut_last: bool) -> None:
        lengths = np.fromiter(map(len, lines), np.int64, len(lines)) + 1
        offsets = offset + np.concatenate([[0], np.cumsum(lengths)[:-1]])
        pending: list[int] = []
        for i, line in enumerate(lines):
            start = line.lstrip()[:1]
            if start.isdigit():
                pending.append(i)
            elif not start:
                continue
            elif self.header_lines and line.strip() == self.last_header_line:
                self.header_lines.append(self.lines_before + i + 1)
            elif (header := self.header_of(line)) is not None:
                self.rows(lines, pending, offsets, False)
                pending = []
                self.take_header(header, line, self.lines_before + i + 1)
            elif start == b"#":
                self.comment(line)
            elif self.is_message(line):
                self.message(self.lines_before + i + 1, line)
            else:
                pending.append(i)
        self.rows(lines, pending, offsets, cut_last)
        self.lines_before += len(lines)
        self.line_above = lines[-1]

    def header_of(self, line: bytes) -> LogHeader | None:
        stripped = line.strip().removeprefix(b"\xef\xbb\xbf")
        separator = None if self.header is None else self.header.separator
        header = header_in(line) if _HEADER_START.match(line) else None
        if header is None or header.separator is None:
            return header
        # A row whose first cell is a word is no new header: a header has no cell that begins with a digit.
        is_row = any(cell.strip()[:1].isdigit() for cell in stripped.split(header.separator))
        return None if is_row or (separator and separator not in stripped) else header

    def take_header(self, header: LogHeader, line: bytes, number: int) -> None:
        self.header, self.first = header, self.first or header
        self.last_header_line = line.strip()
        self.header_lines.append(number)
        self.units_due = header.separator is None

    def comment(self, line: bytes) -> None:
        stripped = line.strip()
        if self.units_due and self.header is not None and UNITS_OF_TIME.search(stripped):
            self.header = with_units(self.header, stripped)
            self.units_due = False
            return
        match = _CSV_FILE.fullmatch(stripped) or _TEXT_FILE.fullmatch(stripped)
        if match:
            self.files[match[1].decode("utf-8", "replace").strip()] = match[2].decode("utf-8", "replace")

    def is_message(self, line: bytes) -> bool:
        if _MESSAGE.match(line):
            return True
        # The first cell of an aiu-smi row is a number.
        aiu = self.header is None or self.header.tool == "aiu-smi"
        return aiu and line.lstrip()[:1].isalpha()

    def message(self, number: int, line: bytes) -> None:
        self.messages += 1
        if len(self.message_lines) < UNPARSED_EXAMPLES:
            self.message_lines.append((number, line.decode("utf-8", "replace").strip()[:500]))

    def drop(self, number: int, why: str, line: bytes) -> None:
        self.unparsed += 1
        if len(self.unparsed_lines) < UNPARSED_EXAMPLES:
            self.unparsed_lines.append(Unparsed(number, why, line.decode("utf-8", "replace").rstrip()[:500]))

    def rows(self, lines: list[bytes], which: list[int], offsets: I64, cut_last: bool) -> None:
        if not which:
            return
        if self.header is None:
            for i in which:
                self.drop(self.lines_before + i + 1, "comes before any header", lines[i])
            return
        cut = cut_last and which[-1] == len(lines) - 1
        rows = read_rows(self.header, [lines[i] for i in which], cut, self.line_above)
        for position, why in rows.unparsed:
            self.drop(self.lines_before + which[position] + 1, why, lines[which[position]])
        if len(rows.stamps):
            at = np.array(which, dtype=np.int64)[rows.line]
            self.blocks.append((rows, self.lines_before + at + 1, offsets[at]))

    def log(self) -> TelemetryLog:
        if self.first is None or self.header is None:
            raise UnreadableError(
                f"{self.path}: has no header with a column of times (Date and Time, timestamp, ...)"
            )
        merged = _merge(self.blocks, self.header)
        whole = all(rows.whole_seconds for rows, _, _ in self.blocks)
        kinds = {rows.kind for rows, _, _ in self.blocks} or {StampKind.LOCAL}
        notes = []
        if len(kinds) > 1:
            notes.append("its time stamps change their format part of the way through")
        if StampKind.TIME_OF_DAY in kinds and self.near_ns is not None:
            merged = replace(merged, stamps=on_days(merged.stamps, self.near_ns))
            kinds = kinds - {StampKind.TIME_OF_DAY} | {StampKind.LOCAL}
            notes.append("its time stamps have no date: that of the trace is taken")
        if all(rows.header.device is None for rows, _, _ in self.blocks):
            merged, remark = _told_apart(merged, whole)
            notes += [remark] if remark else []
        devices, interval = _devices(merged, self.files, whole, notes)
        present = merged.present
        runs = _runs(merged, self.header_lines, interval or SECOND)
        if runs > 1:
            notes.append(f"its header occurs {len(self.header_lines)} times: it holds {runs} runs")
        if self.first.tool == "aiu-smi":
            notes.append("after a workload ends, its last values repeat for some seconds")
        return TelemetryLog(
            path=self.path,
            tool=self.first.tool,
            format=self.first.format,
            columns=tuple(merged.values),
            devices=devices,
            rows=int(np.count_nonzero(present)),
            missing=len(present) - int(np.count_nonzero(present)),
            unparsed=self.unparsed,
            messages=self.messages,
            interval_ns=interval,
            stamps=next(iter(sorted(kinds))),
            whole_seconds=whole,
            unparsed_lines=tuple(self.unparsed_lines),
            message_lines=tuple(self.message_lines),
            notes=tuple(notes),
            line_offsets=merged.offsets,
            row_lines=merged.lines,
        )


@dataclass(frozen=True, eq=False)
class _Merged:
    values: dict[LogColumn, F64]
    stamps: I64
    device: np.ndarray[tuple[int], np.dtype[np.bytes_]]
    lines: I64
    offsets: I64
    present: Bools


def _merge(blocks: list[tuple[LogRows, I64, I64]], last: LogHeader) -> _Merged:
    """Put the blocks together; a column that a block lacks (the header changed) is missing there."""
    headers = [rows.header for rows, _, _ in blocks] or [last]
    columns = dict.fromkeys(column for header in headers for _, column in header.columns)
    named = [
        {column: facts for (_, column), *facts in zip(rows.header.columns, rows.values, rows.words)}
        for rows, _, _ in blocks
    ]
    none = np.empty(0, np.int64)
    stamps = np.concatenate([none, *(rows.stamps for rows, _, _ in blocks)])
    present = np.zeros(len(stamps), bool)
    values: dict[LogColumn, F64] = {}
    for column in columns:
        absent = ((np.full(len(rows.stamps), np.nan), False) for rows, _, _ in blocks)
        parts = [own.get(column, nothing) for own, nothing in zip(named, absent)]
        value = np.concatenate([np.empty(0), *(part for part, _ in parts)])
        has_value = ~np.isnan(value)
        if column.kind is not ColumnKind.HOST:
            present |= has_value
        has_words = any(words for _, words in parts)
        values[column._replace(numeric=bool(has_value.any()) or not has_words)] = value
    return _Merged(
        values,
        stamps,
        np.concatenate([np.empty(0, "S1"), *(rows.device for rows, _, _ in blocks)]),
        np.concatenate([none, *(lines for _, lines, _ in blocks)]),
        np.concatenate([none, *(offsets for _, _, offsets in blocks)]),
        present,
    )


MAX_CARDS = 64
"""So many rows of one moment are told apart at most."""
AT_ONCE = 0.2
"""Rows that follow one another within this share of the time to the next are of one moment."""
INTERLEAVED = 0.3
"""With so many of them a log holds several devices."""


def _told_apart(merged: _Merged, whole: bool) -> tuple[_Merged, str]:
    """Return the rows of a log that names no device with one for each row of a moment, where all moments have
    as many, and a remark: tools write a row for each card, one right after the other.
    """
    steps = np.diff(merged.stamps)
    if whole or not len(steps):
        return merged, ""
    long = steps > AT_ONCE * np.quantile(steps, 0.95)
    cards = int(np.argmax(long)) + 1 if long.any() else 1
    # Rows at 0.000 0.004 1.000 1.004 2.000 2.004: each second step is long, so that two cards take turns.
    card = np.arange(len(merged.stamps)) % cards
    if 1 < cards <= MAX_CARDS and bool((long == (card[:-1] == cards - 1)).all()):
        remark = (
            f"no column names its devices: the {cards} rows of each moment are taken for as many, in order"
        )
        return replace(merged, device=card.astype("S")), remark
    if np.mean(~long) >= INTERLEAVED:
        return merged, "no column names its devices, but its rows come in bursts: several may be mixed"
    return merged, ""


def _runs(merged: _Merged, header_lines: list[int], interval: int) -> int:
    """Return how many runs a log holds: how often time stands still for some intervals, or runs back, at a
    header. Some tools repeat theirs every few rows.
    """
    at = np.searchsorted(merged.lines, header_lines)
    at = at[(at > 0) & (at < len(merged.lines))]
    pauses = merged.stamps[at] - merged.stamps[at - 1]
    return 1 + int(np.count_nonzero((pauses < 0) | (pauses > PAUSE * max(interval, SECOND))))


def _devices(
    merged: _Merged, files: Mapping[str, str], whole: bool, notes: list[str]
) -> tuple[dict[str, DeviceLog], int | None]:
    names, codes = np.unique(merged.device, return_inverse=True)
    texts = [name.decode("utf-8", "replace") for name in names.tolist()]
    picks = [np.flatnonzero(codes == code) for code in range(len(texts))]
    ordered = [pick[np.argsort(merged.stamps[pick], kind="stable")] for pick in picks]
    if any((pick != order).any() for pick, order in zip(picks, ordered)):
        notes.append("its clock runs backwards in places (set back, or summer time ended): sorted by stamp")
    intervals = [sampling_interval(merged.stamps[pick], whole) for pick in ordered]
    known = [interval for interval in intervals if interval]
    interval = int(np.median(known)) if known else None
    devices = {}
    for number in sorted(range(len(texts)), key=lambda k: (not texts[k].isdigit(), len(texts[k]), texts[k])):
        pick = ordered[number]
        usual = intervals[number] or interval or SECOND
        stamps = merged.stamps[pick]
        ends = spread_seconds(stamps, usual) if whole else stamps
        devices[texts[number]] = DeviceLog(
            texts[number],
            interval_starts(ends, usual),
            ends,
            merged.lines[pick],
            {c: v[pick] for c, v in merged.values.items() if c.numeric},
            files.get(texts[number], ""),
        )
    if interval is None and devices:
        notes.append("one row for each device: an interval of 1 s is assumed")
    return devices, interval
