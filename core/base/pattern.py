"""Regular expressions as users type them, of which none can block the program.

Python's engine tries all ways to match one after the other, for which `(a+)+$` needs longer than anybody
lives. It holds Python's lock all the while, so that a thread that searched would stop all others, and nothing
could stop it. So where something repeats, is grouped or looked around for, one process that can be ended at
any moment searches (`pattern_search`), with a limit of processor time for each text.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from . import pattern_search
from .descriptors import readable
from .errors import Cancelled, TracelaneError, UsageError
from .numbers import whole_number
from .pattern_search import TOO_LONG
from .progress import CancelledCallback, never

if TYPE_CHECKING:
    import subprocess

TEXT_S = 1.0
"""Seconds of processor time that a match in one text may take; load does not change what is found."""
ALL_S = 60.0
"""The same for all texts that one expression is asked about."""
POLL_S = 0.05
PROGRAM = pattern_search.__file__
REQUEST_CHARACTERS = 1 << 18
MAX_CACHED = 1 << 16
"""Answers of a job that are cached: titles of lanes are asked for again and again."""
_SURROGATES = re.compile("[\ud800-\udfff]")
_QUICK = re.compile(r"(?:[^*+?{(\\]|\\.)*", re.DOTALL)
"""Without repeats and groups an expression can match from one position in as many ways as it has
alternatives.
"""
_EXAMPLE_LENGTH = 40


class SlowPatternError(UsageError):
    """An expression took longer than allowed on some text."""


class Pattern(NamedTuple):
    """A regular expression, in the syntax and with the meaning of Python's `re`."""

    text: str
    ignore_case: bool = False

    def check(self, what: str) -> None:
        """Raise UsageError where the text is not a regular expression; `what` names it in the message."""
        try:
            _compiled(self.text, self.ignore_case)
        except (re.error, OverflowError, RecursionError) as error:
            raise UsageError(f"{what} is not a regular expression: {error}") from None

    @property
    def may_take_long(self) -> bool:
        """Whether a process of its own answers, within a time limit."""
        return _QUICK.fullmatch(self.text) is None

    def search(self, text: str, cancelled: CancelledCallback = never) -> bool:
        """Tell whether the expression matches in a text. Raises SlowPatternError, Cancelled."""
        return self.matches_in((text,), cancelled)[0]

    def matches_in(self, texts: Sequence[str], cancelled: CancelledCallback = never) -> list[bool]:
        """Return for each text whether the expression matches in it. Raises SlowPatternError, Cancelled."""
        compiled = _compiled(self.text, self.ignore_case)
        if not self.may_take_long:
            return [compiled.search(_sound(text)) is not None for text in texts]
        return [end >= 0 for end in job_of(compiled).ends("search", texts, cancelled)]

    def end_of_match(self, text: str, cancelled: CancelledCallback = never) -> int | None:
        """Return the end of the match at the start of the text; None where there is none. Raises
        SlowPatternError, Cancelled.
        """
        compiled = _compiled(self.text, self.ignore_case)
        if not self.may_take_long:
            match = compiled.match(_sound(text))
            return None if match is None else match.end()
        end = job_of(compiled).ends("match", (text,), cancelled)[0]
        return None if end < 0 else end


class SearchProcess:
    """The process that searches for whatever expression, one request after another; it is started when it is
    needed, and ended where a text takes too long or nobody waits for the answer any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ends(
        self, request: SearchRequest, texts: Sequence[str], cancelled: CancelledCallback
    ) -> tuple[list[int], float]:
        """Return where the match in each text ends, -1 where there is none, and the seconds that it took.
        Raises TextTooLongError, Cancelled, TracelaneError.
        """
        while not self._lock.acquire(timeout=POLL_S):  # another thread's request
            if cancelled():
                raise Cancelled
        try:
            return self._answer(json.dumps([*request, list(texts)]), cancelled)
        except BaseException:
            self._end()
            raise
        finally:
            self._lock.release()

    def _answer(self, request: str, cancelled: CancelledCallback) -> tuple[list[int], float]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
        except OSError:
            raise TracelaneError(_why_ended(process)) from None
        ends: list[int] = []
        while True:
            if cancelled():
                raise Cancelled
            if not readable([process.stdout.fileno()], POLL_S):
                continue
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                if process.wait() in (TOO_LONG, -signal.SIGVTALRM):
                    raise TextTooLongError(len(ends))
                raise TracelaneError(_why_ended(process))
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                words, _, seconds = line.partition(b".")
                ends += map(whole_number, words.split())
                if seconds:
                    return ends, float(seconds)

    def _running(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and process.poll() is None:
            return process
        self._end()
        import subprocess

        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        except OSError as error:
            raise TracelaneError(f"no process to search with: {error.strerror or error}") from None
        self._process, self._rest = process, b""
        weakref.finalize(self, _ended, process)
        return process

    def _end(self) -> None:
        if self._process is not None:
            _ended(self._process)
            self._process = None


class SearchRequest(NamedTuple):
    """What `pattern_search` is asked about some texts."""

    text: str
    flags: int
    how: str  # "search" or "match"
    text_s: float  # of processor time, for one text
    all_s: float  # for all of them


class TextTooLongError(Exception):
    """The text at this position of a request took longer than allowed."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


class PatternJob:
    """One expression and what is known of it; one caller at a time."""

    def __init__(self, text: str, flags: int, text_s: float = TEXT_S, all_s: float = ALL_S) -> None:
        """Prepare an expression, compiled with these flags, within these limits."""
        self._request = SearchRequest(text, flags, "search", text_s, all_s)
        self._lock = threading.Lock()
        self._slow: SlowPatternError | None = None
        self._cache: dict[tuple[str, str], int] = {}

    def ends(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        """Return of each text where the match ends ("search": the first one, "match": the one at the begin),
        -1 where there is none. Raises SlowPatternError (from then on at once), Cancelled, TracelaneError.
        """
        with self._lock:
            if self._slow is not None:
                raise self._slow
            known = self._cache
            new = [text for text in dict.fromkeys(texts) if (how, text) not in known]
            if new:
                if len(known) + len(new) > MAX_CACHED:
                    known = self._cache = {}
                    new = list(dict.fromkeys(texts))
                answers = self._answers(how, list(map(_sound, new)), cancelled)
                known.update(((how, text), end) for text, end in zip(new, answers))
            return [known[how, text] for text in texts]

    def _answers(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        """Ask the process, some texts at a time, as long as the expression has time left."""
        ends: list[int] = []
        while len(ends) < len(texts):
            count, size = 0, 0
            while len(ends) + count < len(texts) and (not count or size < REQUEST_CHARACTERS):
                size += len(texts[len(ends) + count])
                count += 1
            request = self._request._replace(how=how)
            try:
                more, seconds = search_process().ends(
                    request, texts[len(ends) : len(ends) + count], cancelled
                )
            except TextTooLongError as error:
                self._slow = self._too_long_on(texts[len(ends) + error.position])
                raise self._slow from None
            ends += more
            self._request = self._request._replace(all_s=self._request.all_s - seconds)
        return ends

    def _too_long_on(self, text: str) -> SlowPatternError:
        example = text[:_EXAMPLE_LENGTH] + ("…" if len(text) > _EXAMPLE_LENGTH else "")
        return SlowPatternError(
            f"/{self._request.text}/ takes too long on {example!r}: it repeats what repeats, or can match in"
            " too many ways; write it more simply"
        )


def _why_ended(process: subprocess.Popen[bytes]) -> str:
    return f"the process that searches has ended ({process.wait()}): there was too little memory, perhaps"


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written yet
                pipe.close()


@cache
def search_process() -> SearchProcess:
    """Return the process of all expressions: one caller waits for another, and no more memory is taken."""
    return SearchProcess()


@lru_cache(maxsize=16)
def job_of(compiled: re.Pattern[str]) -> PatternJob:
    return PatternJob(compiled.pattern, compiled.flags)


@lru_cache(maxsize=64)
def _compiled(text: str, ignore_case: bool) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's advice on what a later version may understand otherwise
        return re.compile(_sound(text), re.IGNORECASE if ignore_case else 0)


def _sound(text: str) -> str:
    """Return the text without lone surrogates, which UTF-8 cannot encode."""
    return text if text.isascii() else _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text)
