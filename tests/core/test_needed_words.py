"""Expressions are asked only of texts that hold a word that they need, and say the same as asked of all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.corpus import for_files, traces
from tracelane.core.base.kineto import COMMUNICATION
from tracelane.core.base.needed_words import searches, text_matches
from tracelane.core.tables.frame.kinds import DEFAULT_KINDS, KINDS, UNKNOWN
from tracelane.core.trace import open_trace

EXPRESSIONS = [row.pattern for row in KINDS if isinstance(row.pattern, re.Pattern)]


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(layer|batch)_?norm|splitk|^x", [("batch", "layer"), ("splitk",), ("x",)]),
        (r"(^|\W)(lamport|oneshot)_", [("lamport", "oneshot")]),
        (r"ab?c+d{0,3}ef{2}", [("ef",)]),
        (r"(?<![a-z])f?moe|(fused_?)?Adam", [("moe",), ("adam",)]),
        (r"a.b|[abc]|\d\w|(x)?|$", [("a",), ("",), ("",), ("",), ("",)]),
        (r"fill[)|(]er|a\|b", [("fill",), ("a",)]),
    ],
)
def test_words_that_are_needed(pattern: str, words: list[tuple[str, ...]]) -> None:
    """Of each alternative what it cannot do without: not what may be missing, nor what only looks around."""
    assert [needed for needed, _ in searches(re.compile(pattern, re.IGNORECASE))] == words


FRAGMENTS = sorted(
    {word for pattern in EXPRESSIONS for word in re.findall(r"[A-Za-z0-9_:]+", pattern.pattern)}
    | {" ", "_", "(", "<", "1", "x", "é", "ſ", "\u212a", "İ", "\n"}
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(FRAGMENTS), st.booleans()), max_size=6))
def test_any_text_is_judged_as_by_the_whole_expression(parts: list[tuple[str, bool]]) -> None:
    """The plain search of each kind's expression says the same of texts made of its own words."""
    text = "".join(part.upper() if is_upper else part for part, is_upper in parts)
    for pattern in (*EXPRESSIONS, COMMUNICATION):
        assert text_matches(pattern, text, text.lower()) is (pattern.search(text) is not None), (
            pattern,
            text,
        )


@for_files("path", traces("gpu/*", "aiu/*", "multirank/*/*.gz", "verdicts/*.json*"))
def test_names_of_real_work_are_of_their_kinds(path: Path, corpus_cache: Path) -> None:
    """Every name of a recording is of the first kind whose expression matches anywhere in it."""
    for index in open_trace(path, index_dir=corpus_cache).indexes:
        for name in index.strings(range(len(index.column("strings.offset")) - 1)):
            plain = next((row.name for row in KINDS if row.pattern.search(name)), UNKNOWN)
            assert DEFAULT_KINDS.kind_of(name).name == plain, name
