"""Traces that appear in folders while somebody looks: each file once it is whole, each capture once all of
its files are there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..base.errors import UnreadableError
from ..read.source import open_source
from .captures import Capture, captures_of, members_of
from .changes import Awaited, Change, Following, State, changes_since
from .file_facts import file_facts
from .inputs import LIVE_S, UNFINISHED
from .member import NO_FACTS, FileFacts

SETTLE_S = 10.0
"""A capture whose files do not say how many they are is complete when no other has come for so long; one of
which ranks are missing after LIVE_S.
"""


class _KnownFacts:
    """What files say about themselves, looked up once while they stay the same."""

    def __init__(self) -> None:
        self._facts: dict[str, tuple[State, FileFacts]] = {}

    def look_up(self, files: Mapping[str, State]) -> Mapping[str, FileFacts]:
        """Return the facts of files in these states, and forget those of all others."""
        self._facts = {path: self._fact(path, state) for path, state in files.items()}
        return {path: facts for path, (_, facts) in self._facts.items()}

    def _fact(self, path: str, state: State) -> tuple[State, FileFacts]:
        known = self._facts.get(path)
        if known is not None and known[0] == state:
            return known
        try:
            source = open_source(path)
            facts = file_facts(source)
            source.close()
        except UnreadableError:
            facts = NO_FACTS._replace(has_events=False)
        return state, facts


class FolderNews:
    """Which traces are in some folders that were not there before."""

    def __init__(self, folders: Sequence[str], known: Iterable[str]) -> None:
        """Look into the folders; `known` are the files that are no news."""
        self._following, self._known = Following(folders), frozenset(map(os.path.abspath, known))
        self._facts = _KnownFacts()

    def look(self, states: Mapping[str, State]) -> tuple[Change, ...]:
        """Return what has become of files that were read, and which traces are new."""
        whole = self._following.look(is_known=self._is_known).whole
        new = {path: state for path, state in whole.items() if not self._is_known(path, state)}
        facts = self._facts.look_up(new)
        arrived = (Change(path, is_new=True) for path in sorted(new) if facts[path].has_events)
        return (*changes_since(states), *arrived)

    def _is_known(self, path: str, _: State) -> bool:
        return os.path.abspath(path) in self._known


class Arrived(NamedTuple):
    """Captures that have become complete since the last look, oldest first; the files that are awaited."""

    captures: tuple[Capture, ...]
    awaited: tuple[Awaited, ...]


class Arrivals:
    """Which captures become complete in a folder; remembers a state for each file there, and no more."""

    def __init__(
        self,
        folder: str,
        settle_s: float = SETTLE_S,
        clock: Callable[[], float] = time.monotonic,
        following: Callable[[Sequence[str]], Following] = Following,
    ) -> None:
        """Follow a folder, which need not be there yet."""
        self._following = following([folder])
        self._settle_s, self._clock = settle_s, clock
        self._facts = _KnownFacts()
        self._done: dict[str, State] = {}
        self._changed: dict[str, tuple[State, float]] = {}

    def skip_present(self) -> None:
        """Take what is there, whole or not, for known as it is."""
        look = self._following.look(is_known=lambda path, state: True)
        self._done = dict(look.whole)

    def look(self, is_over: bool = False) -> Arrived:
        """Return which captures have become complete. Once it `is_over` nothing else will come."""
        look = self._following.look(is_over, lambda path, state: self._done.get(path) == state)
        states = {**{one.path: _state(one.path) for one in look.awaited}, **look.whole}
        self._done = {path: state for path, state in self._done.items() if path in states}
        new = {path: state for path, state in states.items() if self._done.get(path) != state}
        ages = self._ages(new)
        # Under the name of an unfinished file a whole one is about to be renamed.
        ready = {
            path: new[path] for path in new if path in look.whole and (is_over or not _is_unfinished(path))
        }
        written = {os.path.dirname(path) for path in new.keys() - ready.keys() if ages[path] < LIVE_S}
        facts = self._facts.look_up(ready)
        traces = [path for path in ready if facts[path].has_events]
        complete = []
        for capture in captures_of(members_of(traces, lambda path: facts[str(path)])) if traces else ():
            paths = [str(member.path) for member in capture.members]
            patience_s = self._settle_s if capture.world is None else max(LIVE_S, self._settle_s)
            rests = min(ages[path] for path in paths) >= patience_s
            has_all = capture.world is not None and len(capture.ranks) == capture.world
            is_written = any(os.path.dirname(path) in written for path in paths)
            if is_over or has_all or (rests and not is_written):
                complete.append(capture)
                self._done.update({path: new[path] for path in paths})
        return Arrived(tuple(sorted(complete, key=lambda capture: capture.time_ns)), look.awaited)

    def _ages(self, files: Mapping[str, State]) -> Mapping[str, float]:
        """Return for how many seconds files have been in their states, as far as was looked."""
        now, before = self._clock(), self._changed
        self._changed = {
            path: before[path] if path in before and before[path][0] == state else (state, now)
            for path, state in files.items()
        }
        return {path: now - since for path, (_, since) in self._changed.items()}


def _is_unfinished(path: str) -> bool:
    return path.endswith(UNFINISHED)


def _state(path: str) -> State:
    """Return the state of a file, (-1, 0) where it is gone."""
    try:
        status = os.stat(path)
    except OSError:
        return -1, 0
    return status.st_size, status.st_mtime_ns
