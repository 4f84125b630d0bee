"""Regular expressions mean what they mean in Python whoever looks for them, and none can hold anything up."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.waiting import PATIENCE_S, children_of
from tracelane.core.base.errors import Cancelled, UsageError
from tracelane.core.base.pattern import Pattern, PatternJob, SlowPatternError

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


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS, st.lists(TEXTS, max_size=4), st.booleans())
@example("a$", ["a\n"], False)
@example(r"\w+k", ["éK"], True)
@example(r"\B+", [""], False)
@example(r"a\|b", ["a|b", "a", "b"], False)
def test_finds_what_python_finds(expression: str, texts: list[str], ignore_case: bool) -> None:
    """Hits and the ends of matches are those of Python's engine, and what is no expression is none here."""
    pattern = Pattern(expression, ignore_case)
    try:
        python = re.compile(expression, re.IGNORECASE if ignore_case else 0)
    except re.error:
        with pytest.raises(UsageError):
            pattern.check("this")
        return
    assert pattern.matches_in(texts) == [python.search(text) is not None for text in texts]
    for text in texts:
        match = python.match(text)
        assert pattern.end_of_match(text) == (None if match is None else match.end())


@pytest.mark.parametrize(
    ("expression", "long"),
    [
        ("nccl", False),
        ("a|b[cd]$", False),
        (r"^rank \d\b", False),
        (r"void \(anonymous\)\.run\*\\", False),
        ("a+", True),
        (r"\\+", True),
        ("x{2}", True),
        ("colou?r", True),
        ("(?=a)b", True),
        (r"(a)\1", True),
        ("(?:ab|ac)(?:a|bc)", True),
    ],
)
def test_what_may_take_long(expression: str, long: bool) -> None:
    """Only what neither repeats nor groups is answered without a process that can be ended."""
    assert Pattern(expression).may_take_long == long


@pytest.mark.slow
def test_a_slow_text_ends_the_job() -> None:
    """A match that takes too much processor time ends with a sentence, at once where it is asked for again;
    other expressions go on.
    """
    pattern = Pattern(SLOW)
    for _ in range(2):
        with pytest.raises(SlowPatternError, match="takes too long on 'aaaa"):
            pattern.matches_in(["x", "aaa", LONG])
    assert Pattern("(?=b)b+").matches_in(["abb", "a"]) == [True, False]


def test_the_text_that_is_slow_is_named() -> None:
    """What was answered before does not count as slow."""
    job = PatternJob(SLOW, 0, text_s=0.3)
    assert job.ends("search", ["b", "aa"], bool) == [-1, 2]
    with pytest.raises(SlowPatternError, match=r"on 'a{40}…'"):
        job.ends("search", ["b", "aaa", LONG, "a"], bool)


def test_all_texts_together_have_a_limit() -> None:
    """An expression that is bearable on each of many texts ends all the same."""
    job = PatternJob(SLOW, 0, text_s=60.0, all_s=0.3)
    with pytest.raises(SlowPatternError):
        job.ends("search", ["a" * 14 + "!" + str(number) for number in range(1 << 12)], bool)


def test_answers_are_cached() -> None:
    """What was asked is not asked again, however many texts there were, and no answer is another's."""
    job = PatternJob("[0-9]+7", 0)
    texts = [str(number) for number in range(70_000)]
    for _ in range(2):
        ends = job.ends("search", texts, bool)
        assert [end >= 0 for end in ends] == [re.search("[0-9]+7", text) is not None for text in texts]
    assert job.ends("match", ["x77"], bool) == [-1] and job.ends("search", ["x77"], bool) == [3]


def test_a_job_can_be_cancelled() -> None:
    """Whoever waits for an answer can give up at any moment."""
    calls = []

    def cancelled() -> bool:
        calls.append(1)
        return len(calls) > 2

    with pytest.raises(Cancelled):
        Pattern(f"{SLOW}|b").matches_in([LONG], cancelled)


def searching() -> list[int]:
    """Return the processes of this one that search."""
    return [
        pid
        for pid in children_of(os.getpid())
        if b"pattern_search" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for processes in /proc")
def test_one_process_searches_for_all_expressions() -> None:
    """However many expressions and threads ask, one process answers each rightly, also after it was ended for
    one of them.
    """
    jobs = [PatternJob(f"(?={sign}){sign}+", 0) for sign in "abcdefgh"]
    texts = [f"{sign}{sign}{number}" for number in range(500) for sign in "abcdefgh"]
    for _ in range(2):
        with ThreadPoolExecutor(len(jobs)) as threads:
            answers = list(threads.map(lambda job: job.ends("search", texts, bool), jobs))
        for sign, ends in zip("abcdefgh", answers):
            assert [end >= 0 for end in ends] == [text[0] == sign for text in texts]
        assert len(searching()) == 1
        with pytest.raises(SlowPatternError):
            PatternJob(SLOW, 0, text_s=0.2).ends("search", [LONG], bool)
        assert searching() == []
        jobs = [PatternJob(f"(?={sign})[{sign}]+", 0) for sign in "abcdefgh"]


def test_whoever_waits_for_its_turn_can_give_up() -> None:
    """A request behind one that takes long can be cancelled, and the other goes on."""
    going_on = Event()
    with ThreadPoolExecutor(1) as threads:
        begun = Event()

        def unwanted() -> bool:
            begun.set()
            return not going_on.is_set()

        going_on.set()
        slow = threads.submit(PatternJob(SLOW, 0, 3600.0, 3600.0).ends, "search", [LONG], unwanted)
        assert begun.wait(PATIENCE_S)
        with pytest.raises(Cancelled):
            PatternJob("(?=b)b", 0).ends("search", ["b"], lambda: True)
        assert not slow.done()
        going_on.clear()
        with pytest.raises(Cancelled):
            slow.result(PATIENCE_S)
    assert PatternJob("(?=b)b", 0).ends("search", ["b"], bool) == [1]


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
