"""An index folder read back: strings, positions, long durations, damage."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.small_index import L, S, write_index
from tracelane.core.base.errors import CacheError, DamagedIndexError
from tracelane.core.index import store
from tracelane.core.index.store import Index, checksum_of, table_file


@pytest.fixture
def index(tmp_path: Path) -> Index:
    lanes = [
        L(
            slices=[
                S(0, 100, "outer", ordinal=7),
                S(10, 20, "inner", ordinal=3, promoted={"correlation": 41}),
                S(12, 5, "innermost", "kernel", ordinal=9, end_ordinal=11),
                S(200, 1 << 40, "Zeit läuft", ordinal=1),
            ]
        ),
        L(tid='"s"', slices=[S(50, 3, "ProfilerStep#4", ordinal=100, promoted={"correlation": -2})]),
    ]
    write_index(tmp_path, lanes)
    return Index.open(tmp_path)


def at(index: Index, name: str) -> int:
    names = index.strings(index.column("slices.name"))
    return names.index(name)


def test_positions_and_ordinals_find_each_other(index: Index) -> None:
    """Each event ordinal leads to its slice, an unknown one to None."""
    for position, ordinal in enumerate(index.column("slices.ordinal").tolist()):
        assert index.position_of(ordinal) == position
    assert index.position_of(12345) is None
    assert index.position_of(-1) is None and index.position_of(1 << 40) is None


def test_long_durations_are_resolved(index: Index) -> None:
    """Durations beyond 32 bits come out in full, by position and in a piece."""
    everything = np.arange(5)
    expected = {"outer": 100, "inner": 20, "innermost": 5, "Zeit läuft": 1 << 40, "ProfilerStep#4": 3}
    names = index.strings(index.column("slices.name"))
    assert dict(zip(names, index.duration(everything).tolist())) == expected
    assert index.durations_between(1, 4).tolist() == index.duration([1, 2, 3]).tolist()
    assert index.self_time([at(index, "outer"), at(index, "inner")]).tolist() == [80, 15]


def test_sparse_facts_are_found(index: Index) -> None:
    """Flags, end ordinals, parents and promoted arguments belong to the slice that has them, no other."""
    inner, innermost = at(index, "inner"), at(index, "innermost")
    assert index.end_ordinal(innermost) == 11 and index.end_ordinal(inner) is None
    assert index.parent(innermost) == inner and index.parent(at(index, "outer")) is None
    assert index.promoted("correlation", inner) == 41 and index.promoted("correlation", innermost) is None
    assert index.promoted_positions("correlation", -2).tolist() == [at(index, "ProfilerStep#4")]
    assert index.promoted_positions("correlation", 1 << 70).tolist() == []
    assert index.promoted("stream", inner) is None


def test_rows_of_positions(index: Index) -> None:
    """Each position lies in the row whose range holds it."""
    for number, row in enumerate(index.rows):
        for position in range(int(row["first"]), int(row["first"] + row["count"])):
            assert index.row_of(position) == number
    assert sum(index.rows["count"].tolist()) == index.length("slices.start") > 0


def test_strings_are_found_in_the_blob(index: Index) -> None:
    """A whole text or a prefix leads to the numbers of the strings, never to one that merely contains it."""
    assert [index.string(n) for n in index.string_numbers("ProfilerStep#", prefix=True)] == ["ProfilerStep#4"]
    assert [index.string(n) for n in index.string_numbers("Zeit läuft")] == ["Zeit läuft"]
    assert index.string_numbers("ner") == [] and index.string_numbers("inner", prefix=True) != []


@pytest.mark.parametrize("limit", [1, 2, 3, 1 << 20])
def test_strings_are_found_as_each_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """Where texts stand side by side and within each other, those are found that looking at each would find,
    with a limit the first of them, however many places are looked up at once.
    """
    texts = ["add", "mm", "addmm", "dm", "aaaa", "a", "aa", "mmdm", "ädd", "dd"]
    monkeypatch.setattr(store, "HITS", 2)
    write_index(tmp_path, [L(slices=[S(10 * at, 5, text) for at, text in enumerate(texts)])])
    index = Index.open(tmp_path)
    all_texts = index.strings(range(index.length("strings.offset") - 1))
    for text in (*texts, "m", "d", "amm", "dmaa", "aaaaa", "ä"):
        numbers = {
            "whole": [number for number, one in enumerate(all_texts) if one == text],
            "prefix": [number for number, one in enumerate(all_texts) if one.startswith(text)],
            "inside": [number for number, one in enumerate(all_texts) if text in one],
        }
        assert index.string_numbers(text, limit=limit) == numbers["whole"][:limit]
        assert index.string_numbers(text, prefix=True, limit=limit) == numbers["prefix"][:limit]
        inside = index.string_numbers(text, inside=True, limit=limit)
        assert set(inside) <= set(numbers["inside"]) and bool(inside) == bool(numbers["inside"])
        if limit > len(all_texts):
            assert inside == numbers["inside"]


@pytest.mark.parametrize("most", [1, 3, 1 << 16])
def test_strings_are_those_of_their_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """In any order, again and again, however few are held: the texts that were written, short and long ones;
    a number that no string has is damage.
    """
    texts = ["", "add", "mm", "ädd", "x" * 4000]
    monkeypatch.setattr(store, "HELD_STRINGS", most)
    write_index(tmp_path, [L(slices=[S(10 * at, 5, text) for at, text in enumerate(texts)])])
    index = Index.open(tmp_path)
    names = index.column("slices.name")
    for order in ([4, 0, 3], [1, 1, 2, 4, 1], [3, 2, 1, 0, 4]):
        assert index.strings(names[order]) == [texts[at] for at in order]
        assert index.strings(names[order].tolist()) == [texts[at] for at in order]
        assert [index.string(number) for number in names[order]] == [texts[at] for at in order]
        assert len(index._held_strings) <= most
    for wrong in (-1, index.length("strings.offset") - 1):
        with pytest.raises(DamagedIndexError, match=f"string {wrong},"):
            index.strings([int(names[0]), wrong])


def test_columns_verify(index: Index) -> None:
    """A flipped byte in a column is found by its CRC, an intact index has none."""
    Index.open(index.folder).check(*index.manifest["columns"])
    path = index.folder / "slices.start.i8"
    raw = bytearray(path.read_bytes())
    raw[3] ^= 1
    path.write_bytes(raw)
    damaged = Index.open(index.folder)
    with pytest.raises(DamagedIndexError, match=r"slices\.start does not match its checksum"):
        damaged.column("slices.start")


def damage_manifest(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["read_report"]["events"] = 99
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def damage_rows(folder: Path) -> None:
    path = folder / table_file("rows")
    raw = bytearray(path.read_bytes())
    raw[20] ^= 255
    path.write_bytes(raw)


def truncate_column(folder: Path) -> None:
    path = folder / "slices.start.i8"
    path.write_bytes(path.read_bytes()[:-8])


def other_format(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["format"] = "0-x"
    manifest["checksum"] = checksum_of(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


DAMAGES = {
    "manifest gone": lambda folder: (folder / "manifest.json").unlink(),
    "manifest cut": lambda folder: (folder / "manifest.json").write_text('{"format', encoding="utf-8"),
    "manifest no object": lambda folder: (folder / "manifest.json").write_text("[]", encoding="utf-8"),
    "manifest changed": damage_manifest,
    "row table changed": damage_rows,
    "column cut": truncate_column,
    "column gone": lambda folder: (folder / "slices.name.u4").unlink(),
    "table gone": lambda folder: (folder / table_file("lanes")).unlink(),
    "other format": other_format,
}


@pytest.mark.parametrize("damage", DAMAGES, ids=list(DAMAGES))
def test_damage_is_an_error_with_a_line(index: Index, damage: str) -> None:
    """Whatever is wrong with a folder, opening it says so in a CacheError and never reads beyond a column."""
    DAMAGES[damage](index.folder)
    with pytest.raises(CacheError) as caught:
        Index.open(index.folder)
    assert "\n" not in str(caught.value)
