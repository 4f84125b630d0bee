"""No character of a trace can do anything to a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracelane.core.base.safe_text import safe

R = "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("größe 測試 é", "größe 測試 é"),
        ("a\tb\nc\r\nd", "a b c  d"),
        ("\x1b]0;owned\x07", f"{R}]0;owned{R}"),
        ("\x9b31m", f"{R}31m"),
        ("a\u202eb\u2066c\u200fd", "abcd"),
        ("x\u200by\ufeffz\u200d", "xyz"),
        ("\ud800", R),
        ("\x00\x7f", R + R),
    ],
)
def test_known_troublemakers(raw: str, shown: str) -> None:
    """Escapes, direction changers and invisible characters are replaced or dropped, real text stays."""
    assert safe(raw) == shown


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_nothing_harmful_remains(text: str) -> None:
    """Whatever comes in, what goes out is encodable and has no control or format characters."""
    cleaned = safe(text)
    cleaned.encode("utf-8")
    assert not {unicodedata.category(c) for c in cleaned} & {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
    assert safe(cleaned) == cleaned
