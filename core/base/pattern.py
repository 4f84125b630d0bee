"""Regular expressions as users type them, of which none can block the program.

Python's own engine decides what an expression means, but it tries all ways to match one after the other, for
which `(a+)+$` needs longer than anybody lives. So an expression goes one of three ways, to the same hits:

- one without repeats, and with few alternatives, has few ways to match: Python's engine, here;
- others are rewritten for RE2, whose time is linear in the text, where it is installed and knows their means;
- what is left (lookaround, back-references; all where there is no RE2) is answered by a process with a limit
  of processor time for each text, which can be ended at any moment.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from .errors import UsageError
from .pattern_job import PatternJob, SlowTextError
from .progress import CancelledCallback, never
from .re2_syntax import RE2_LARGEST, NotLinearError, re2_syntax, ways_to_match

try:
    import re2
except ImportError:  # no wheel for this machine
    re2 = None

MOST_CACHED = 1 << 14
"""Answers of the job that are cached."""
FEW_WAYS = 1000
"""Ways to match up to which Python's engine is used as it is."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_EXAMPLE_LENGTH = 40


class SlowPatternError(UsageError):
    """An expression took longer than allowed on some text."""


class Engine(Protocol):
    """An engine that searches texts for one expression."""

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback) -> list[bool]:
        """Return for each text whether the expression matches in it."""

    def end_of_match(self, text: str, cancelled: CancelledCallback) -> int | None:
        """Return the end of the match at the start of the text; None where there is none."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression, in the syntax and with the meaning of Python's `re`."""

    text: str
    ignore_case: bool = False

    def check(self, what: str) -> None:
        """Raise UsageError where the text is not a regular expression; `what` names it in the message."""
        try:
            _parsed(self.text, self.ignore_case)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{what} is not a regular expression: {error}") from None

    @property
    def may_take_long(self) -> bool:
        """Whether a process of its own answers, within a time limit."""
        return isinstance(engine_for(self.text, self.ignore_case), JobEngine)

    def search(self, text: str, cancelled: CancelledCallback = never) -> bool:
        """Tell whether the expression matches in a text. Raises SlowPatternError, Cancelled."""
        return self.matches_in((text,), cancelled)[0]

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback = never) -> list[bool]:
        """Return for each text whether the expression matches in it. Raises SlowPatternError, Cancelled."""
        return engine_for(self.text, self.ignore_case).matches_in([_sound(text) for text in texts], cancelled)

    def end_of_match(self, text: str, cancelled: CancelledCallback = never) -> int | None:
        """Return the end of the match at the start of the text; None where there is none. Raises
        SlowPatternError, Cancelled.
        """
        return engine_for(self.text, self.ignore_case).end_of_match(_sound(text), cancelled)


class PythonEngine:
    """Python's engine, for expressions that have few ways to match."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        """Compile the expression."""
        self._pattern = pattern

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback) -> list[bool]:
        """Return for each text whether the expression matches in it."""
        search = self._pattern.search
        return [search(text) is not None for text in texts]

    def end_of_match(self, text: str, cancelled: CancelledCallback) -> int | None:
        """Return the end of the match at the start of the text; None where there is none."""
        match = self._pattern.match(text)
        return None if match is None else match.end()


class JobEngine:
    """Python's engine in a process that can be ended."""

    def __init__(self, text: str, flags: int) -> None:
        """Prepare the expression; the first search starts the process."""
        self._text = text
        self._job = PatternJob(text, flags)
        self._slow: SlowPatternError | None = None
        self._cache: dict[tuple[str, str], int] = {}
        """(how, text) -> where the match ends: titles of lanes are asked for again and again."""

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback) -> list[bool]:
        """Return for each text whether the expression matches in it. Raises SlowPatternError, Cancelled."""
        return [end >= 0 for end in self._ends("search", texts, cancelled)]

    def end_of_match(self, text: str, cancelled: CancelledCallback) -> int | None:
        """Return the end of the match at the start of the text; None where there is none. Raises
        SlowPatternError, Cancelled.
        """
        end = self._ends("match", (text,), cancelled)[0]
        return None if end < 0 else end

    def _ends(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        if self._slow is not None:
            raise self._slow
        new = [text for text in dict.fromkeys(texts) if (how, text) not in self._cache]
        try:
            ends = self._job.ends(how, new, cancelled) if new else []
        except SlowTextError as error:
            example = error.text[:_EXAMPLE_LENGTH] + ("…" if len(error.text) > _EXAMPLE_LENGTH else "")
            self._slow = SlowPatternError(
                f"/{self._text}/ takes too long on {example!r}: it repeats what repeats, or can match in too"
                " many ways; write it more simply"
            )
            raise self._slow from None
        known = self._cache | {(how, text): end for text, end in zip(new, ends)}
        self._cache = known if len(known) <= MOST_CACHED else {}
        return [known[how, text] for text in texts]


class LinearEngine:
    """RE2; texts on which it might differ from Python's engine go to that engine."""

    def __init__(self, translated: re2._Regexp, ascii_only: bool, job: JobEngine) -> None:
        """Find what was translated; if `ascii_only`, in other texts by the job."""
        self._pattern, self._job = translated, job
        self.ascii_only = ascii_only

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback) -> list[bool]:
        """Return for each text whether the expression matches in it. Raises SlowPatternError, Cancelled."""
        search = self._pattern.search
        if not self.ascii_only:
            return [search(text) is not None for text in texts]
        hits = [self._fits(text) and search(text) is not None for text in texts]
        others = [at for at, text in enumerate(texts) if not self._fits(text)]
        if others:
            answers = self._job.matches_in([texts[at] for at in others], cancelled)
            for at, answer in zip(others, answers):
                hits[at] = answer
        return hits

    def end_of_match(self, text: str, cancelled: CancelledCallback) -> int | None:
        """Return the end of the match at the start of the text; None where there is none. Raises
        SlowPatternError, Cancelled.
        """
        if self.ascii_only and not self._fits(text):
            return self._job.end_of_match(text, cancelled)
        match = self._pattern.match(text)
        if match is None:
            return None
        line_break = any(group is not None for group in match.groups())  # the one that $ may stand before
        return int(match.end()) - line_break

    def _fits(self, text: str) -> bool:
        return text.isascii() and text != ""


@lru_cache(maxsize=16)
def engine_for(text: str, ignore_case: bool) -> Engine:
    """Return the engine for an expression."""
    pattern = _parsed(text, ignore_case)
    try:
        if ways_to_match(pattern) <= FEW_WAYS:
            return PythonEngine(pattern)
    except RecursionError:  # groups within groups: deeper than it takes Python's own parser
        return JobEngine(pattern.pattern, pattern.flags)
    return linear_engine(pattern) or JobEngine(pattern.pattern, pattern.flags)


def linear_engine(pattern: re.Pattern[str]) -> LinearEngine | None:
    """Return RE2's engine for an expression; None where RE2 is not installed or has no such expression."""
    if re2 is None:
        return None
    options = re2.Options()
    options.log_errors = False
    options.max_mem = RE2_LARGEST
    try:
        translated = re2_syntax(pattern)
        compiled = re2.compile(translated.text, options)
    except (NotLinearError, RecursionError, re2.error):
        return None
    return LinearEngine(compiled, translated.ascii_only, JobEngine(pattern.pattern, pattern.flags))


@lru_cache(maxsize=16)
def _parsed(text: str, ignore_case: bool) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's advice on what a later version may understand otherwise
        return re.compile(_sound(text), re.IGNORECASE if ignore_case else 0)


def _sound(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
