"""Regular expressions as users type them, of which none can block the program.

Python's engine tries all ways to match one after the other, for which `(a+)+$` needs longer than anybody
lives, and no thread can stop it. So where something repeats, is grouped or looked around for, a
process that can be ended at any moment searches, with a limit of processor time for each text.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from .errors import Cancelled, TracelaneError, UsageError
from .numbers import whole_number
from .progress import CancelledCallback, never

if TYPE_CHECKING:
    import subprocess

TEXT_S = 1.0
"""Seconds of processor time that a match in one text may take; load does not change what is found."""
ALL_S = 60.0
"""The same for all texts that one expression is asked about."""
POLL_S = 0.05
REQUEST_CHARACTERS = 1 << 18
MOST_CACHED = 1 << 16
"""Answers of a job that are cached: titles of lanes are asked for again and again."""
TOO_LONG = 3
PROGRAM = (
    f"TOO_LONG = {TOO_LONG}"
    + """
import json, os, re, signal, sys, time, warnings
warnings.simplefilter("ignore")
text, flags, text_s, all_s = json.loads(sys.stdin.readline())
tick_s = min(text_s, all_s) / 20
def tick(*_):
    global ticks
    ticks += 1
    if ticks * tick_s > text_s or time.process_time() > all_s:
        print(*ends, flush=True)
        os._exit(TOO_LONG)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * text_s)
signal.signal(signal.SIGPROF, tick)
ways = {"search": re.compile(text, flags).search, "match": re.compile(text, flags).match}
for line in sys.stdin:
    how, texts = json.loads(line)
    find, ends, ticks, said = ways[how], [], 0, time.monotonic()
    signal.setitimer(signal.ITIMER_PROF, tick_s, tick_s)
    for text in texts:
        ticks = 0
        found = find(text)
        ends.append(-1 if found is None else found.end())
        if time.monotonic() - said > 0.02:
            print(*ends, flush=True)
            ends, said = [], time.monotonic()
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(*ends, ".", flush=True)
"""
)
"""Where a text takes too long it says what it has found until then and ends. The other timer, set anew by
each tick, ends it while Python looks at no signals.
"""
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


class PatternJob:
    """A process that searches for one expression; one caller at a time."""

    def __init__(self, text: str, flags: int, text_s: float = TEXT_S, all_s: float = ALL_S) -> None:
        """Prepare an expression, compiled with these flags, within these limits; the first question starts
        the process.
        """
        self._text = text
        self._begin = json.dumps([text, flags, text_s, all_s]) + "\n"
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""
        self._slow: SlowPatternError | None = None
        self._cache: dict[tuple[str, str], int] = {}

    def ends(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        """Return of each text where the match ends ("search": the first one, "match": the one at the begin),
        -1 where there is none. Raises SlowPatternError (from then on at once), Cancelled, TracelaneError.
        """
        with self._lock:
            if self._slow is not None:
                raise self._slow
            cache = self._cache
            new = [text for text in dict.fromkeys(texts) if (how, text) not in cache]
            if new:
                if len(cache) + len(new) > MOST_CACHED:
                    cache = self._cache = {}
                    new = list(dict.fromkeys(texts))
                answers = self._answers(how, list(map(_sound, new)), cancelled)
                cache.update(((how, text), end) for text, end in zip(new, answers))
            return [cache[how, text] for text in texts]

    def _answers(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        """Ask the process, some texts at a time; it is ended where one of them takes too long."""
        ends: list[int] = []
        try:
            while len(ends) < len(texts):
                count, size = 0, 0
                while len(ends) + count < len(texts) and (not count or size < REQUEST_CHARACTERS):
                    size += len(texts[len(ends) + count])
                    count += 1
                ends += self._request(how, texts[len(ends) : len(ends) + count], cancelled)
        except BaseException:
            self._end()
            raise
        return ends

    def _request(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        process = self._running()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write((json.dumps([how, list(texts)]) + "\n").encode())
            process.stdin.flush()
        except OSError:
            raise TracelaneError(self._why_ended(process)) from None
        ends: list[int] = []
        while True:
            if cancelled():
                raise Cancelled
            if not select.select([process.stdout], [], [], POLL_S)[0]:
                continue
            data = os.read(process.stdout.fileno(), 1 << 16)
            if not data:
                if process.wait() in (TOO_LONG, -signal.SIGVTALRM):
                    self._slow = self._too_long_on(texts[len(ends)])
                    raise self._slow
                raise TracelaneError(self._why_ended(process))
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                words = line.split()
                ends += [whole_number(word) for word in words if word != b"."]
                if words[-1:] == [b"."]:
                    return ends

    def _running(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and process.poll() is None:
            return process
        self._end()
        import subprocess

        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            assert process.stdin is not None
            process.stdin.write(self._begin.encode())
        except OSError as error:
            raise TracelaneError(f"no process to search with: {error.strerror or error}") from None
        self._process, self._rest = process, b""
        weakref.finalize(self, _ended, process)
        return process

    def _end(self) -> None:
        if self._process is not None:
            _ended(self._process)
            self._process = None

    def _too_long_on(self, text: str) -> SlowPatternError:
        example = text[:_EXAMPLE_LENGTH] + ("…" if len(text) > _EXAMPLE_LENGTH else "")
        return SlowPatternError(
            f"/{self._text}/ takes too long on {example!r}: it repeats what repeats, or can match in too"
            " many ways; write it more simply"
        )

    @staticmethod
    def _why_ended(process: subprocess.Popen[bytes]) -> str:
        return f"the process that searches has ended ({process.wait()}): there was too little memory, perhaps"


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written yet
                pipe.close()


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
