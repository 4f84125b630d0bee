r"""Words of which a text must hold one for a regular expression to match in it: looking for them takes a
tenth of the time of searching long texts.

`(layer|batch)_?norm|splitk|^x` needs "batch" or "layer", or "splitk", or "x": of each alternative the longest
of what it cannot do without. Of a group that must match each alternative needs something of its own:
`(^|\W)(lamport|oneshot)_` needs "lamport" or "oneshot". Where nothing is needed the word is "", which all
texts hold. This knows what the project's own expressions are made of; those of users are asked as they are.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

OPTIONAL = ("?", "*", "{0")
"""What follows a part that may be missing."""


@cache
def searches(pattern: re.Pattern[str]) -> tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]:
    """Return each alternative of an expression that takes upper and lower case alike, by itself: the words in
    small letters of which a text must hold one, and the expression.
    """
    alternatives = _split(pattern.pattern)
    words = (tuple(sorted(set(_needed_of(each)))) for each in alternatives)
    return tuple(zip(words, (re.compile(each, pattern.flags) for each in alternatives)))


def text_matches(pattern: re.Pattern[str], text: str, small: str) -> bool:
    """Tell whether an expression that takes upper and lower case alike matches in a text; `small` is the same
    in small letters.
    """
    if not text.isascii():  # of other letters upper and lower case are more than two
        return pattern.search(text) is not None
    return any(
        any(word in small for word in words) and expression.search(text) is not None
        for words, expression in searches(pattern)
    )


def _needed_of(alternative: str) -> list[str]:
    """Return words of which one is needed: of all that are known those whose shortest is the longest."""
    return max([[""], *_needs_of(alternative)], key=lambda each: min(map(len, each)))


class _Part(NamedTuple):
    """A character, an escape, a class or a group of an expression, and whether it may be missing."""

    text: str
    is_optional: bool
    is_repeated: bool


def _parts(pattern: str) -> list[_Part]:
    parts, at = [], 0
    while at < len(pattern):
        end = _end_of_part(pattern, at)
        rest = pattern[end:]
        is_repeated = rest.startswith(("*", "+", "?", "{"))
        parts.append(_Part(pattern[at:end], rest.startswith(OPTIONAL), is_repeated))
        if rest.startswith("{"):
            end += rest.index("}") + 1
        elif is_repeated:
            end += 1
        at = end
    return parts


def _end_of_part(pattern: str, at: int) -> int:
    if pattern[at] == "\\":
        return at + 2
    if pattern[at] == "[":
        return pattern.index("]", at + 2) + 1  # the first character of a class may be a bracket
    if pattern[at] != "(":
        return at + 1
    end = at + 1
    while pattern[end] != ")":
        end = _end_of_part(pattern, end)
    return end + 1


def _split(pattern: str) -> list[str]:
    """Return the alternatives of an expression."""
    alternatives, begin, at = [], 0, 0
    while at < len(pattern):
        if pattern[at] == "|":
            alternatives.append(pattern[begin:at])
            begin = at + 1
        at = _end_of_part(pattern, at)
    return [*alternatives, pattern[begin:]]


def _needs_of(alternative: str) -> list[list[str]]:
    """Return lists of words of each of which one is needed."""
    needs, run = [], ""
    for part in [*_parts(alternative), _Part("$", False, False)]:
        is_character = len(part.text) == 1 and part.text not in ".^$"
        if is_character and not part.is_optional:
            run += part.text.lower()
        if not is_character or part.is_repeated:
            needs += [[run]] if run else []
            run = ""
        is_group = part.text.startswith("(") and not part.text.startswith("(?")
        if is_group and not part.is_optional:
            needs.append([word for each in _split(part.text[1:-1]) for word in _needed_of(each)])
    return needs
