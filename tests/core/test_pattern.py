"""Regular expressions mean the same whichever engine finds them, and none of them can hold anything up."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tracelane.core.base import pattern as patterns
from tracelane.core.base.errors import Cancelled, UsageError
from tracelane.core.base.pattern import JobEngine, LinearEngine, Pattern, PythonEngine, SlowPatternError
from tracelane.core.base.pattern_job import PatternJob, SlowTextError

SLOW = "(a+)+$"
LONG = "a" * 5000 + "!"
LITERALS = [
    "a",
    "b",
    "K",
    "k",
    "ß",
    "ſ",
    "s",
    "İ",
    "i",
    "ı",
    "Σ",
    "ς",
    "µ",
    "1",
    "٣",
    "_",
    "\\.",
    "\\n",
    "[a-z]",
    "[^a-k]",
    "[\\d_]",
    "[^\\w]",
    "[Σ-ω]",
    "[^\\n]",
]
CLASSES = [r".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S"]
ANCHORS = [r"^", r"$", r"\A", r"\Z", r"\b", r"\B"]
ATOMS = st.sampled_from([*LITERALS, " ", *CLASSES, *ANCHORS])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda each: f"(?:{'|'.join(each)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
        inner.map(lambda each: f"({each})"),
        inner.map(lambda each: f"(?i:{each})"),
        inner.map(lambda each: f"(?s:{each})"),
        inner.map(lambda each: f"(?m:{each})"),
        inner.map(lambda each: f"(?a:{each})"),
    ),
    max_leaves=6,
)
TEXTS = st.text(alphabet="abkKKßſsSİiıIΣςσµμ1٣_. \n\x85\u3000é", max_size=8)


@pytest.fixture(autouse=True)
def _needs_re2(request: pytest.FixtureRequest) -> None:
    if "linear" in request.node.name and patterns.re2 is None:
        pytest.skip("there is no RE2 for this machine")


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS, TEXTS, st.booleans())
@example("a$", "a\n", False)
@example(r"(?:a|b)+\Z", "a\n", False)
@example("(?:^|b)*c", "bc", False)
@example(r"\w+k", "éK", True)
@example(r"\b1+", "٣1", False)
@example(r"\B+", "", False)
def test_the_linear_engine_finds_what_python_finds(expression: str, text: str, ignore_case: bool) -> None:
    """Whatever RE2 is given, its hits and the ends of its matches are those of Python's own engine."""
    pattern = Pattern(expression, ignore_case)
    try:
        python = re.compile(expression, re.IGNORECASE if ignore_case else 0)
    except re.error:
        with pytest.raises(UsageError):
            pattern.check("this")
        return
    engine = linear(expression, ignore_case)
    assume(engine is not None)
    assert engine is not None
    assume(not engine.ascii_only or (text.isascii() and text))
    assert engine.matches_in([text], bool) == [python.search(text) is not None]
    match = python.match(text)
    assert engine.end_of_match(text, bool) == (None if match is None else match.end())


def linear(expression: str, ignore_case: bool) -> LinearEngine | None:
    """Return RE2's engine for an expression, whether it would be taken or not; None where there is none."""
    return patterns.linear_engine(re.compile(expression, re.IGNORECASE if ignore_case else 0))


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("nccl", PythonEngine),
        ("a|b[cd]$", PythonEngine),
        (r"^rank \d\b", PythonEngine),
        ("(?=a+)b", JobEngine),
        (r"(a+)\1", JobEngine),
        ("(?<!a)b+", JobEngine),
        ("a++b", JobEngine),
        ("(?:ab|ac)(?:a|bc)" * 10, None),
    ],
)
def test_which_engine(expression: str, kind: type | None) -> None:
    """What cannot take long is left to Python's engine, what RE2 refuses goes to the job."""
    engine = patterns.engine_for(expression, False)
    assert not isinstance(engine, PythonEngine) if kind is None else isinstance(engine, kind)


EVERYWHERE = [
    (r"(?<=void )\w+(?=<)", ["void gemm<4>", "gemm<4>", "void "]),
    (r"(\w)\1+", ["nccl", "abc", "ççx", ""]),
    (r"\bgemm.*\d$", ["x gemm_1", "xgemm 1", "gemm 2\n", "égemm 3", "gemmé 4"]),
    ("(?i)KERNEL.+ſ", ["kernel s", "Kernel S", "kernel"]),
    ("^(a|b)*$", ["abab", "", "abc", "ab\n", "ab\n\n"]),
]


@pytest.mark.parametrize(("expression", "texts"), EVERYWHERE)
@pytest.mark.parametrize("installed", [True, False])
def test_hits_are_the_same_with_and_without_re2(
    expression: str, texts: list[str], installed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern finds the same on a machine for which there is no RE2."""
    if not installed:
        monkeypatch.setattr(patterns, "re2", None)
    patterns.engine_for.cache_clear()
    try:
        expected = [re.search(expression, text) is not None for text in texts]
        assert Pattern(expression).matches_in(texts) == expected
        for text in texts:
            match = re.match(expression, text)
            assert Pattern(expression).end_of_match(text) == (None if match is None else match.end())
    finally:
        patterns.engine_for.cache_clear()


def test_many_ways_to_match_cost_the_linear_engine_nothing() -> None:
    """What takes Python's engine longer than anybody lives is answered at once."""
    before = time.process_time()
    assert Pattern(SLOW).matches_in([LONG] * 50) == [False] * 50
    assert time.process_time() - before < 2


@pytest.mark.slow
def test_a_slow_text_ends_the_job() -> None:
    """A match that takes too much processor time ends with a sentence, at once where it is asked for again;
    other expressions go on.
    """
    pattern = Pattern(f"{SLOW}(?=)")
    for _ in range(2):
        with pytest.raises(SlowPatternError, match="takes too long on 'aaaa"):
            pattern.matches_in(["x", "aaa", LONG])
    assert Pattern("(?=b)b+").matches_in(["abb", "a"]) == [True, False]


def test_the_text_that_is_slow_is_named() -> None:
    """What was answered before does not count as slow; the job can be asked again."""
    job = PatternJob(f"{SLOW}(?=)", 0, text_s=0.3)
    with pytest.raises(SlowTextError) as error:
        job.ends("search", ["b", "aa", LONG, "a"], bool)
    assert error.value.text == LONG
    assert job.ends("search", ["b", "aa"], bool) == [-1, 2]


def test_a_job_can_be_cancelled() -> None:
    """Whoever waits for an answer can give up at any moment."""
    calls = []

    def cancelled() -> bool:
        calls.append(1)
        return len(calls) > 2

    with pytest.raises(Cancelled):
        Pattern(f"{SLOW}(?=|a)").matches_in([LONG], cancelled)


def test_many_texts_in_one_question() -> None:
    """Texts of many megabytes together, with line breaks and halves of characters, are answered in order."""
    texts = [f"{number}\n{'x' * 1000}\ud800" for number in range(3000)]
    hits = Pattern("(?=7)7\n").matches_in(texts)
    assert [number for number, hit in enumerate(hits) if hit] == list(range(7, 3000, 10))


@pytest.mark.parametrize(
    "text", ["(", "[", "a{2,1}", "*", "(?<n", "a" * 10 + "(" * 5000, "x{99999999999999}"]
)
def test_what_is_no_expression(text: str) -> None:
    """It is said in one line, wherever it was typed."""
    with pytest.raises(UsageError, match=r"^--lanes is not a regular expression: "):
        Pattern(text).check("--lanes")
