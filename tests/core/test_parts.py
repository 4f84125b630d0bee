"""Parts on disk: what is written is what is read back."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from tracelane.core.base.errors import CacheError
from tracelane.core.index.parts import open_part, write_part
from tracelane.core.ingest.columns import TABLES, LiftedColumn, Metadata, Part
from tracelane.core.ingest.problem import Problem


def _part(rows: int) -> Part:
    random = np.random.default_rng(rows)
    tables = {
        name: {column: random.integers(0, 100, rows).astype(dtype) for column, dtype in columns.items()}
        for name, columns in TABLES.items()
    }
    return Part(
        number=3,
        events=rows,
        tables=tables,
        lifted={
            "bytes": LiftedColumn(np.arange(rows, dtype=np.uint32), np.arange(rows) - 5),
            "bandwidth": LiftedColumn(np.arange(rows, dtype=np.uint32), np.arange(rows) / 3),
        },
        strings=["", "aten::mm", "naïve \u2603 \U0001f600", "x" * 70_000],
        tracks=[("1", '"stream 7"'), ("null", "18446744073709551616")],
        metadata=[Metadata(2, "thread_name", "1", "2", '{"name":"é"}')],
        counts={"phase.X": rows},
        problems=[Problem("repaired", 2, 17, "words"), Problem("truncated", 1, None, "at the end")],
        exact_start=-(10**30),
        exact_end=None,
    )


@pytest.mark.parametrize("rows", [0, 1, 7, 1000])
def test_round_trip(tmp_path: Path, rows: int) -> None:
    """Every field of a part comes back equal, whatever the lengths of its columns."""
    part = _part(rows)
    read = open_part(write_part(part, tmp_path))
    for field in ("number", "events", "strings", "tracks", "metadata", "counts", "problems"):
        assert getattr(read, field) == getattr(part, field), field
    assert (read.exact_start, read.exact_end) == (part.exact_start, part.exact_end)
    for name, table in part.tables.items():
        assert list(read.tables[name]) == list(table)
        for column, values in table.items():
            assert np.result_type(read.tables[name][column], values) == values.dtype
            np.testing.assert_array_equal(read.tables[name][column], values)
            assert read.tables[name][column].ctypes.data % 8 == 0 or not rows
    for key, column in part.lifted.items():
        np.testing.assert_array_equal(read.lifted[key].ordinals, column.ordinals)
        np.testing.assert_array_equal(read.lifted[key].values, column.values)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([0, 255], "u1"),
        ([-1, 255], "i2"),
        ([0, 1 << 31], "u4"),
        ([0, 1 << 40], "i8"),
        ([-(1 << 40), 1], "i8"),
        ([0.5, 1.0], "f8"),
    ],
)
def test_numbers_are_stored_narrow(tmp_path: Path, values: list[float], dtype: str) -> None:
    """Whole numbers take the bytes that they need, and what needs all that it has keeps its sign."""
    part = replace(_part(2), lifted={"bytes": LiftedColumn(np.arange(2, dtype=np.uint32), np.array(values))})
    read = open_part(write_part(part, tmp_path))
    assert read.lifted["bytes"].values.dtype == dtype
    assert read.lifted["bytes"].values.tolist() == values
    assert read.tables["flows"]["id_value"].dtype == np.int64


def test_strings_can_be_unified_in_numpy(tmp_path: Path) -> None:
    """Blob, offsets and digests agree with the strings one by one."""
    part = _part(1)
    read = open_part(write_part(part, tmp_path))
    assert read.string_count == len(part.strings)
    bounds = read.string_offsets.tolist()
    for i, text in enumerate(part.strings):
        raw = text.encode()
        assert read.string_blob[bounds[i] : bounds[i + 1]].tobytes() == raw
        assert read.string_digests[i].tobytes() == blake2b(raw, digest_size=16).digest()


@pytest.mark.parametrize("damage", ["magic", "header", "short", "missing"])
def test_damage_is_told(tmp_path: Path, damage: str) -> None:
    """A part file that is not whole raises CacheError instead of yielding wrong columns."""
    path = write_part(_part(100), tmp_path)
    raw = bytearray(path.read_bytes())
    if damage == "missing":
        path.unlink()
    else:
        if damage == "magic":
            raw[0] ^= 1
        elif damage == "header":
            raw[16] = ord("?")
        else:
            del raw[-500:]
        path.write_bytes(raw)
    with pytest.raises(CacheError):
        open_part(path)
