"""No character of a trace can do anything to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.safe_text import safe


@pytest.mark.parametrize(
    ("raw", "escaped"),
    [
        ("plain", "plain"),
        ("größe 測試 é", "größe 測試 é"),
        ("a\tb\nc\r\nd", "a b c  d"),
        ("\x1b]0;owned\x07", "⟨U+001B⟩]0;owned⟨U+0007⟩"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("a\u202eb\u2066c\u200fd", "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩d"),
        ("x\u200by\ufeffz\u200d", "x⟨U+200B⟩y⟨U+FEFF⟩z⟨U+200D⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\x00\x7f", "⟨U+0000⟩⟨U+007F⟩"),
    ],
)
def test_known_troublemakers(raw: str, escaped: str) -> None:
    """Escapes, direction changers and invisible characters are written as their numbers, real text stays."""
    assert safe(raw) == escaped


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_harmful_remains(text: str) -> None:
    """Whatever comes in, what goes out is encodable and has no control or format characters."""
    cleaned = safe(text)
    cleaned.encode("utf-8")
    assert not {unicodedata.category(c) for c in cleaned} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    assert safe(cleaned) == cleaned
