"""The filter language: what a text means, and what it says of texts that mean nothing."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tracelane.core.base.errors import UsageError
from tracelane.core.query.filter import Argument, Category, LaneTitle, Name, Number, Text, Time, parse, quoted

MEANINGS = [
    ("nccl", Name(Text("in", "nccl"))),
    ("-nccl", Name(Text("in", "nccl"), negated=True)),
    ("-", Name(Text("in", "-"))),
    ("'two words'", Name(Text("in", "two words"))),
    ("'it''s'", Name(Text("in", "it's"))),
    ("aten::mm", Name(Text("in", "aten::mm"))),
    ("self::run", Name(Text("in", "self::run"))),
    ("/a b|c/", Name(Text("regex", "a b|c"))),
    (r"/a\/b/i", Name(Text("regex", r"a\/b", True))),
    ("name='all of this'", Name(Text("is", "all of this"))),
    ("cat:kernel", Category(Text("is", "kernel", True))),
    ("-cat:/gpu_.*/", Category(Text("regex", "gpu_.*"), negated=True)),
    ("lane:'stream 0'", LaneTitle(Text("in", "stream 0"))),
    ("dur>1ms", Time("dur", Number(">", Fraction(10**6)))),
    ("self<=0.5us", Time("self", Number("<=", Fraction(500)))),
    ("dur=0", Time("dur", Number("=", Fraction(0)))),
    ("dur>=1.5µs", Time("dur", Number(">=", Fraction(1500)))),
    ("arg.bytes>1e6", Argument("bytes", Number(">", Fraction(10**6)))),
    ("arg.'External id'=7", Argument("External id", Number("=", Fraction(7)), Text("is", "7"))),
    ("arg.dtype='7'", Argument("dtype", None, Text("is", "7"))),
    ("arg.dtype:half", Argument("dtype", None, Text("in", "half"))),
    ("arg.dtype", Argument("dtype")),
]


@pytest.mark.parametrize(("text", "term"), MEANINGS)
def test_a_term_means(text: str, term: object) -> None:
    """Every form of a term reads as what it says, alone and among others."""
    assert parse(text).terms == (term,)
    assert parse(f"  one {text}\ttwo ").terms == (Name(Text("in", "one")), term, Name(Text("in", "two")))


REFUSED = [
    ("", "nothing to look for"),
    ("   ", "nothing to look for"),
    ("/model/layers.0", "no closing /"),
    ("/(/", "not a regular expression"),
    ("dur>1", "ns, us, ms or s"),
    ("dur>1h", "ns, us, ms or s"),
    ("dur>fast", "names no time"),
    ("dur:5ms", "is no comparison"),
    ("dur > 1ms", "without spaces"),
    ("arg.", "needs the argument's name"),
    ("arg.bytes>many", "needs a number"),
    ("arg.bytes>1e999", "too large"),
    ("lane:", "has no text"),
    ("'open", "not closed"),
    ("''", "has no text"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED)
def test_what_is_refused_says_why(text: str, why: str) -> None:
    """A text that means nothing is refused in one line that says what to write."""
    with pytest.raises(UsageError, match=why) as caught:
        parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["plain", "it's", "a 'b' \"c\"", "-x", "/y/", "''"])
def test_a_quoted_name_reads_back(name: str) -> None:
    """What `quoted` writes is read as the very text."""
    assert parse("name=" + quoted(name)).terms == (Name(Text("is", name)),)
