"""Matching in a process of its own, which ends by itself when one text takes too much processor time."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress

from .errors import Cancelled, TracelaneError
from .progress import CancelledCallback

TEXT_S = 1.0
"""Seconds of processor time that a match in one text may take; load does not change what is found."""
ALL_S = 60.0
"""The same for all texts that one expression is asked about."""
POLL_S = 0.05
REQUEST_CHARACTERS = 1 << 18
TOO_LONG = 3
PROGRAM = (
    f"TOO_LONG = {TOO_LONG}"
    + """
import json, os, re, signal, sys, time, warnings
warnings.simplefilter("ignore")
def too_long(*_):
    print(*ends, flush=True)
    os._exit(TOO_LONG)
signal.signal(signal.SIGPROF, too_long)
text, flags, text_s, all_s = json.loads(sys.stdin.readline())
ways = {"search": re.compile(text, flags).search, "match": re.compile(text, flags).match}
for line in sys.stdin:
    how, texts = json.loads(line)
    ends, said = [], time.monotonic()
    for text in texts:
        left = min(text_s, max(all_s - time.process_time(), 0.01))
        signal.setitimer(signal.ITIMER_PROF, left)
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * left)
        found = ways[how](text)
        ends.append(-1 if found is None else found.end())
        if time.monotonic() - said > 0.02:
            print(*ends, flush=True)
            ends, said = [], time.monotonic()
    signal.setitimer(signal.ITIMER_PROF, 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    print(*ends, ".", flush=True)
"""
)
"""Where a text takes too long it says what it has found until then and ends; while Python looks at no signals
the other timer ends it.
"""


class SlowTextError(Exception):
    """A match took too long."""

    def __init__(self, text: str) -> None:
        """Name the text."""
        super().__init__(text)
        self.text = text


class PatternJob:
    """A process that searches for one expression; one caller at a time."""

    def __init__(self, text: str, flags: int, text_s: float = TEXT_S, all_s: float = ALL_S) -> None:
        """Look for this, compiled with these flags, within these limits."""
        self._begin = json.dumps([text, flags, text_s, all_s]) + "\n"
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._rest = b""

    def ends(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
        """Return of each text where the match ends ("search": the first one, "match": the one at the begin),
        -1 where there is none. Raises SlowTextError, Cancelled, TracelaneError.
        """
        ends: list[int] = []
        with self._lock:
            while len(ends) < len(texts):
                count, size = 0, 0
                while len(ends) + count < len(texts) and (not count or size < REQUEST_CHARACTERS):
                    size += len(texts[len(ends) + count])
                    count += 1
                part = texts[len(ends) : len(ends) + count]
                try:
                    ends += self._answers(how, part, cancelled)
                except BaseException:
                    self._end()
                    raise
        return ends

    def _answers(self, how: str, texts: Sequence[str], cancelled: CancelledCallback) -> list[int]:
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
                    raise SlowTextError(texts[len(ends)])
                raise TracelaneError(self._why_ended(process))
            *lines, self._rest = (self._rest + data).split(b"\n")
            for line in lines:
                words = line.split()
                ends += [int(word) for word in words if word != b"."]
                if words[-1:] == [b"."]:
                    return ends

    def _running(self) -> subprocess.Popen[bytes]:
        process = self._process
        if process is not None and process.poll() is None:
            return process
        self._end()
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

    @staticmethod
    def _why_ended(process: subprocess.Popen[bytes]) -> str:
        return f"the process that searches has ended ({process.wait()}): there was too little memory, perhaps"


def _ended(process: subprocess.Popen[bytes]) -> None:
    """End a process and release its resources."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not written yet
                pipe.close()
