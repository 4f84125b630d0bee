"""Rows of text to numpy columns, a block of lines below one header at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from ..base.arrays import F64, I64, Bools
from .header import ColumnKind, LogHeader
from .stamps import NO_TIME, StampKind, Stamps, parse_stamps

MISSING_CELLS = frozenset(
    (b"", b"-", b"--", b"n/a", b"[n/a]", b"na", b"nan", b"none", b"null", b"unknown", b"not supported",
     b"[not supported]", b"[unknown error]", b"[insufficient permissions]", b"[gpu requires reset]", b"err!")
)  # fmt: skip
_NUMBER = re.compile(rb"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z%/][A-Za-z%/]*)?")


@dataclass(frozen=True, eq=False)
class LogRows:
    """The rows of one block, in file order."""

    header: LogHeader
    stamps: I64
    kind: StampKind
    whole_seconds: bool
    device: np.ndarray[tuple[int], np.dtype[np.bytes_]]
    line: I64  # position of each row's line in the block
    values: tuple[F64, ...]  # beside header.columns; NaN where missing
    words: tuple[bool, ...]  # beside header.columns: has cells that are neither numbers nor missing
    unparsed: tuple[tuple[int, str], ...]  # position of the line in the block, why


def read_rows(header: LogHeader, lines: Sequence[bytes], cut_last: bool, above: bytes = b"") -> LogRows:
    """Read the lines that follow a header; `cut_last` says that the last one has no line end. A cut line with
    all its cells is a row, but its last cell counts only if it has as many decimals as that of the line
    before it (`above`, where the block has but one line).
    """
    split = _split(header, lines)
    good = [i for i, row in enumerate(split) if len(row) == header.cells]
    unparsed = [
        (i, f"the last line is cut off after {len(row)} of {header.cells} cells")
        if cut_last and i == len(split) - 1
        else (i, f"has {len(row)} cells where the header has {header.cells}")
        for i, row in enumerate(split)
        if len(row) != header.cells
    ]
    rows = [split[i] for i in good] if len(good) < len(split) else split
    if cut_last and good and good[-1] == len(lines) - 1:
        before = rows[-2] if len(rows) > 1 else _split(header, [above])[0]
        if len(before) == header.cells and _cut(before[-1], rows[-1][-1]):
            rows[-1] = [*rows[-1][:-1], b""]
    cells: list[tuple[bytes, ...]] = list(zip(*rows)) or [()] * header.cells
    stamps = _parse_repeated([b" ".join(parts) for parts in zip(*(cells[i] for i in header.time))])
    keep = stamps.ns != NO_TIME
    devices = np.array([b"0"] * len(rows) if header.device is None else cells[header.device], np.bytes_)
    position = np.array(good, dtype=np.int64)
    if header.tool == "aiu-smi" and header.device is not None:
        keep &= np.char.isdigit(devices)
    if not keep.all():
        unparsed += [(int(i), "has no time or device where the header puts them") for i in position[~keep]]
    columns = [numbers(cells[i], header.separator == b";", column.unit) for i, column in header.columns]
    values = [value for value, _ in columns]
    if header.tool == "aiu-smi" and header.format == "csv":
        _clear_bare_zeros(header, cells, values)
    if not keep.all():
        values = [value[keep] for value in values]
    return LogRows(
        header,
        stamps.ns[keep],
        stamps.kind,
        stamps.whole_seconds,
        np.char.strip(devices[keep]),
        position[keep],
        tuple(values),
        tuple(has_words for _, has_words in columns),
        tuple(sorted(unparsed)),
    )


def numbers(cells: Sequence[bytes], decimal_comma: bool, unit: str) -> tuple[F64, bool]:
    """Return a column's values, NaN where missing, and whether some cells are words. A unit behind the number
    must be the column's ("71.35 W"), a percent sign aside.
    """
    values: dict[bytes, float] = dict.fromkeys(cells, np.nan)
    words = False
    for cell in values:  # logs repeat themselves: reading each text once halves the time
        try:
            value = float(cell)
        except ValueError:
            bare = cell.strip().strip(b'"').strip()
            if bare.lower() in MISSING_CELLS:
                continue
            match = _NUMBER.fullmatch(bare.replace(b",", b".") if decimal_comma else bare)
            if match is None or (match[2] and unit and match[2] != b"%" and match[2].decode() != unit):
                words = True
                continue
            value = float(match[1])
        if isfinite(value):
            values[cell] = value
    return np.fromiter(map(values.__getitem__, cells), np.float64, len(cells)), words


def _parse_repeated(times: Sequence[bytes]) -> Stamps:
    """Read the times of a log whose rows share most of theirs."""
    distinct = {time: i for i, time in enumerate(dict.fromkeys(times))}
    stamps = parse_stamps(list(distinct))
    if len(distinct) == len(times):
        return stamps
    return replace(stamps, ns=stamps.ns[np.fromiter(map(distinct.__getitem__, times), np.int64, len(times))])


def _split(header: LogHeader, lines: Sequence[bytes]) -> list[list[bytes]]:
    if header.separator is None:
        return [line.split() for line in lines]
    separator = header.separator
    if any(b'"' in line for line in lines):
        delimiter = separator.decode()
        rows = (_quoted_cells(line.decode("latin-1"), delimiter) for line in lines)
        return [[cell.strip().encode("latin-1") for cell in row] for row in rows]
    return [line.rstrip().split(separator) for line in lines]


def _quoted_cells(line: str, delimiter: str) -> list[str]:
    """Return the cells of a line with quotes; one with a cell that no reader of CSV takes is cut plainly."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:  # a cell is longer than 128 KiB
        return line.rstrip().split(delimiter)


def _cut(above: bytes, last: bytes) -> bool:
    return len(last.partition(b".")[2]) < len(above.partition(b".")[2]) or last.endswith(b".")


def _clear_bare_zeros(header: LogHeader, cells: Sequence[Sequence[bytes]], values: list[F64]) -> None:
    """Set the bare `0` of aiu-smi's CSV to missing: it means "not captured". A measured zero has decimals
    ("0.000"), except in the column `busy`. So where every cell of a card is bare the whole row was not
    captured; else power and temperature are missing where their cells are bare.
    """
    columns = enumerate(header.columns)  # those of the host are there even where no card is ready
    card_cells = [(k, i, c) for k, (i, c) in columns if c.kind is not ColumnKind.HOST]
    if not any(c.name.lower() != "busy" for _, _, c in card_cells):
        return
    bare: list[Bools] = [
        np.fromiter((cell.strip() == b"0" for cell in cells[i]), bool, len(cells[i]))
        for _, i, _ in card_cells
    ]
    whole_row = np.logical_and.reduce(bare)
    for (k, _, column), cell_bare in zip(card_cells, bare):
        alone = column.name.lower() in ("pwr", "tempr", "gtemp")
        values[k][cell_bare if alone else whole_row] = np.nan
