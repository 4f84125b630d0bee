"""The filter language of search, `:filter` and `--where`: terms that all must hold, read from one line.

nccl 'two words' /regex/ /regex/i    the name contains the text (case aside), matches the expression
name:nccl name='exactly this'        the same; the name, or its short form in tables, is this text
cat:kernel lane:'stream 0'           the category is, the lane's title contains; :/regex/ works too
lane:'rank 1'                        all lanes of that rank
dur>1ms self<=20us                   > >= < <= = with ns us ms s
arg.bytes>1e6 arg.'Input type':half  an argument compares, is (=), or contains (:); alone: is there
-term                                the term must not hold
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, DecimalException
from fractions import Fraction
from math import inf
from typing import Any, TypeAlias

from ..base.errors import UsageError
from ..base.numbers import NUMBER
from ..base.pattern import Pattern
from ..base.progress import CancelledCallback, never

UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 10**6, "s": 10**9}
MAX_EXPONENT = 400
"""The largest exponent of ten in a number: no argument or duration is larger, and as an integer it would be
huge.
"""
_TIME = re.compile(r"((?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?)\s*([a-zµμ]*)", re.ASCII | re.IGNORECASE)
_COMPARE = re.compile(r">=|<=|>|<|=")
OPERATORS: Mapping[str, Callable[[Any, Any], Any]]
OPERATORS = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq}
_REGEX_END = re.compile(r"(?<!\\)(?:\\\\)*/(i?)(?=\s|$)")
_TERMS = "words, /regex/, name=, cat:, lane:, dur>1ms, self>1ms, arg.KEY>1"


@dataclass(frozen=True)
class Text:
    """A text to compare with: `how` is "in" (contained, case aside), "is" (equal) or "regex"."""

    how: str
    text: str
    ignore_case: bool = False

    def __call__(self, value: str) -> bool:
        if self.how == "in":
            return self.text.lower() in value.lower()
        if self.how == "is":
            return self.text.lower() == value.lower() if self.ignore_case else self.text == value
        return self.pattern.search(value)

    def fits(self, values: Sequence[str], cancelled: CancelledCallback = never) -> list[bool]:
        """Tell of each of many texts whether it fits. Raises SlowPatternError, Cancelled."""
        return self.pattern.matches_in(values, cancelled) if self.how == "regex" else list(map(self, values))

    @property
    def pattern(self) -> Pattern:
        return Pattern(self.text, self.ignore_case)

    @property
    def expression(self) -> Pattern:
        """The regular expression that finds what the text is compared with, whatever it is."""
        return self.pattern if self.how == "regex" else Pattern(re.escape(self.text), ignore_case=True)


@dataclass(frozen=True)
class Number:
    """A number to compare with, exact, with floats as the float nearest to it; `op` is > >= < <= or =."""

    op: str
    value: Fraction

    @property
    def nearest(self) -> float:
        """The float nearest to it, infinite beyond all floats."""
        try:
            return float(self.value)
        except OverflowError:
            return inf if self.value > 0 else -inf

    def __call__(self, value: Fraction | int | float) -> bool:
        """Tell whether a number fits; NaN and infinities fit nothing but order."""
        # Integers compare far faster than fractions, and nearly all numbers are.
        bound: Fraction | int | float = self.value.numerator if self.value.denominator == 1 else self.value
        if isinstance(value, float):
            bound = self.nearest
        holds: bool = OPERATORS[self.op](value, bound)
        return holds


@dataclass(frozen=True)
class TextTerm:
    """A text of a slice fits: its "name", its category ("cat", or one of those it names between commas), or
    the title of its "lane", or of the lane's rank.
    """

    of: str
    text: Text
    negated: bool = False


@dataclass(frozen=True)
class Time:
    """The duration ("dur") or self time ("self") compares, in ns."""

    what: str
    number: Number
    negated: bool = False


@dataclass(frozen=True)
class Argument:
    """An argument is there and fits: a number where `number` is given and the value is one, else the text."""

    key: str
    number: Number | None = None
    text: Text | None = None
    negated: bool = False


Term: TypeAlias = TextTerm | Time | Argument


@dataclass(frozen=True)
class Filter:
    """A filter: the text as typed and its terms, all of which must hold."""

    text: str
    terms: tuple[Term, ...]

    @property
    def may_take_long(self) -> bool:
        """Whether an expression in it is answered within a limit of time only."""
        texts = [term.text for term in self.terms if not isinstance(term, Time) and term.text is not None]
        return any(text.how == "regex" and text.pattern.may_take_long for text in texts)


def parse(text: str) -> Filter:
    """Return the filter that a text means; UsageError says what was not understood."""
    terms: list[Term] = []
    at = _skipped(text, 0)
    while at < len(text):
        negated = text[at] == "-" and at + 1 < len(text) and not text[at + 1].isspace()
        term, at = _term(text, at + int(negated), negated)
        terms.append(term)
        at = _skipped(text, at)
    if not terms:
        raise UsageError(f"nothing to search for; there are {_TERMS}")
    return Filter(text.strip(), tuple(terms))


def quoted(text: str) -> str:
    """Return a text in quotes, as `parse` reads it."""
    return "'" + text.replace("'", "''") + "'"


def _skipped(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _word_end(text: str, at: int) -> int:
    while at < len(text) and not text[at].isspace():
        at += 1
    return at


def _term(text: str, at: int, negated: bool) -> tuple[Term, int]:
    for key, how in (("cat:", "is"), ("lane:", "in"), ("name:", "in"), ("name=", "is")):
        if text.startswith(key, at) and (key[-1] == "=" or not text.startswith(key + ":", at)):
            pattern, at = _text(text, at + len(key), how, key)
            if key == "cat:":
                pattern = replace(pattern, ignore_case=pattern.ignore_case or pattern.how == "is")
            return TextTerm(key[:-1], pattern, negated), at
    match = re.compile(r"(dur|self)(:(?!:)|[<>=])").match(text, at)
    if match is not None:
        return _time(text, at, match[1], negated)
    if text.startswith("arg.", at):
        return _argument(text, at + 4, negated)
    if text[at] in "<>=":
        raise UsageError(f"{text[at:].split()[0]!r} has blanks around it: write it without, as in dur>1ms")
    pattern, at = _text(text, at, "in")
    return TextTerm("name", pattern, negated), at


def _text(text: str, at: int, how: str, after: str = "") -> tuple[Text, int]:
    """Return (a text or /regex/ to compare with, index of what follows)."""
    if at < len(text) and text[at] == "/":
        end = _REGEX_END.search(text, at + 1)
        if end is None:
            word = text[at:].split()[0]
            raise UsageError(f"{word} has no closing /: write /…/ for an expression, {quoted(word)} for text")
        slash = end.end() - 1 - len(end[1])
        pattern = text[at + 1 : slash]
        Pattern(pattern).check(f"/{pattern}/")
        if not pattern:
            raise UsageError("// is an empty expression")
        return Text("regex", pattern, bool(end[1])), end.end()
    value, at = _value(text, at)
    if not value and how == "in":
        raise UsageError(f"{after or 'a term'} has no text")
    return Text(how, value), at


def _value(text: str, at: int) -> tuple[str, int]:
    """Return (a word or quoted text, index of what follows); a doubled quote inside quotes is one."""
    if at < len(text) and text[at] in "'\"":
        quote, parts, begin = text[at], [], at + 1
        while True:
            end = text.find(quote, begin)
            if end < 0:
                raise UsageError(f"the quote {quote} is not closed")
            parts.append(text[begin:end])
            if text[end + 1 : end + 2] != quote:
                return quote.join(parts), end + 1
            begin = end + 2
    end = _word_end(text, at)
    return text[at:end], end


def _time(text: str, at: int, what: str, negated: bool) -> tuple[Term, int]:
    end = _word_end(text, at)
    compare = _COMPARE.match(text, at + len(what))
    example = f"write {what}>1ms, with > >= < <= = and ns us ms s"
    if compare is None:
        raise UsageError(f"{text[at:end]} is no comparison: {example}")
    match = _TIME.fullmatch(text, compare.end(), end)
    if match is None:
        raise UsageError(f"{text[at:end]} names no time: {example}")
    number, unit = match.groups()
    value = _fraction(number)
    if unit not in UNITS and (unit or value):
        raise UsageError(f"{text[at:end]} could be ns, us, ms or s: {example}")
    return Time(what, Number(compare[0], value * UNITS.get(unit, 1)), negated), end


def _argument(text: str, at: int, negated: bool) -> tuple[Term, int]:
    if at < len(text) and text[at] in "'\"":
        key, at = _value(text, at)
    else:
        begin = at
        while at < len(text) and not text[at].isspace() and text[at] not in "<>=:":
            at += 1
        key = text[begin:at]
    if not key:
        raise UsageError("arg. needs the argument's name, as in arg.bytes>1e6 or arg.'External id'=7")
    if at == len(text) or text[at].isspace():
        return Argument(key, negated=negated), at
    compare = _COMPARE.match(text, at)
    if compare is None and text[at] != ":":
        raise UsageError(f"arg.{key} is followed by {text[at]!r}: write > >= < <= = or : and a value")
    if compare is None:
        pattern, at = _text(text, at + 1, "in", f"arg.{key}:")
        return Argument(key, text=pattern, negated=negated), at
    in_quotes = text[compare.end() : compare.end() + 1] in ("'", '"')
    pattern, at = _text(text, compare.end(), "is", f"arg.{key}{compare[0]}")
    number = None
    if not in_quotes and pattern.how == "is" and NUMBER.fullmatch(pattern.text):
        number = Number(compare[0], _fraction(pattern.text))
    if compare[0] == "=":
        return Argument(key, number, pattern, negated), at
    if number is None:
        raise UsageError(f"arg.{key}{compare[0]} needs a number, not {pattern.text!r}")
    return Argument(key, number, negated=negated), at


def _fraction(text: str) -> Fraction:
    try:
        value = Decimal(text)
        if value and abs(value.adjusted()) > MAX_EXPONENT:
            raise UsageError(f"{text} is too large a number, or too small")
        return Fraction(value)
    except DecimalException:
        raise UsageError(f"{text} is not a number") from None
