"""The string table: one number per distinct text, however the parts divide them."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tracelane.core.index import strings as module
from tracelane.core.index.columns_out import Columns
from tracelane.core.index.strings import Strings, StringSource, merge_strings, write_strings

TEXTS = [["", "a", "aten::mm", "ä"], ["", "aten::mm", "😀", "a"], [""], ["", "x" * 3000, "b"]]


def merged(lists: list[list[str]]) -> Strings:
    return merge_strings([StringSource.of_texts(texts) for texts in lists])


def written(strings: Strings, folder: Path) -> list[str]:
    with Columns(folder) as columns:
        write_strings(strings, columns.writer("blob", "u1"), columns.writer("offset", "i8"))
        columns.finish()
        blob, offsets = columns.read("blob").tobytes(), columns.read("offset").tolist()
    return [blob[a:b].decode() for a, b in pairwise(offsets)]


def test_every_text_has_one_number() -> None:
    """All parts' numbers lead back to their texts, equal texts to one number, the empty text to 0."""
    strings = merged(TEXTS)
    for texts, numbers in zip(TEXTS, strings.maps):
        assert [strings.text(n) for n in numbers.tolist()] == texts
    assert strings.count == len({text for texts in TEXTS for text in texts})
    assert all(numbers[0] == 0 for numbers in strings.maps)


def test_no_parts_at_all(tmp_path: Path) -> None:
    """The empty string is always there."""
    assert written(merged([]), tmp_path) == [""]


@pytest.mark.parametrize("chunk", [1, 10, 1 << 20])
def test_written_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """The table on disk holds each text at its number, the added ones last, whatever the size of a piece."""
    monkeypatch.setattr(module, "_CHUNK", chunk)
    strings = merged(TEXTS)
    new = [strings.number("new"), strings.number("newer"), strings.number("new")]
    table = written(strings, tmp_path)
    assert table == [strings.text(n) for n in range(strings.count)]
    assert [table[n] for n in new] == ["new", "newer", "new"] and table[0] == ""


def test_known_texts_are_found_again() -> None:
    """Asking for a text that a part has adds nothing."""
    strings = merged(TEXTS)
    before = strings.count
    for texts, numbers in zip(TEXTS, strings.maps):
        assert [strings.number(text) for text in texts] == numbers.tolist()
    assert strings.count == before


def test_numbers_do_not_depend_on_the_cut() -> None:
    """One part or many, in whatever local order: the same numbers."""
    texts = [f"name {i}" for i in range(500)]
    one = merged([["", *texts]])
    many = merged([["", *texts[i : i + 7][::-1]] for i in range(0, 500, 5)])
    numbers = {one.text(n): n for n in range(one.count)}
    assert numbers == {many.text(n): n for n in range(many.count)}


def test_half_a_digest_is_not_enough() -> None:
    """Texts whose digests agree in the first 64 bits stay apart, in both directions."""
    source = StringSource.of_texts(["", "one", "two", "three"])
    digests = source.digests.copy()
    digests[1:, :8] = 7
    strings = merge_strings([StringSource(source.blob, source.offsets, digests)] * 2)
    assert strings.count == 4
    for numbers in strings.maps:
        assert [strings.text(n) for n in numbers.tolist()] == ["", "one", "two", "three"]
    assert np.array_equal(strings.maps[0], strings.maps[1])
