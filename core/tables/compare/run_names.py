"""What runs are called beside each other: by what differs in the paths of their files.

    run_2026-11-01/rank0.pt.trace.json    2026-11-01
    run_2026-11-02/rank0.pt.trace.json    2026-11-02

Runs are called by the last part of their paths that tells all of them from each other, as a rule the name of
the file: by the first words of it that differ, as many as are needed, without the ending of trace files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ...index.inputs import TRACE_ENDINGS
from ...read.urls import is_url

MAX_BRIEF = 24
"""The most characters of a run's name within a sentence, or in the title of a column."""
_BETWEEN = re.compile(r"([_.:=\s]+|(?<!\d)-+|-+(?!\d))")
"""What stands between words; dates stay whole."""


def run_names(paths: Sequence[str], parts: Sequence[str] = ()) -> list[str]:
    """Return a name for each run: what differs in the paths of their files or folders, and behind a colon
    which of `parts` of the file it is, as "step=4", where these differ. Runs that nothing tells apart are
    called by their files.
    """
    names = _names_of_paths(paths)
    if len(set(parts)) < 2:
        return names
    if len(set(names)) == 1:
        return [part or name for name, part in zip(names, parts)]
    return [f"{name}:{part}" if part else name for name, part in zip(names, parts)]


def brief_name(name: str) -> str:
    """Return a run's name as a sentence has room for it: both ends of a long one, which tell it apart."""
    if len(name) <= MAX_BRIEF:
        return name
    end = MAX_BRIEF // 2
    return f"{name[: MAX_BRIEF - 1 - end]}…{name[-end:]}"


def _names_of_paths(paths: Sequence[str]) -> list[str]:
    folders = [_folders(path) for path in paths]
    runs = len(set(map(tuple, folders)))
    if runs < 2:
        return [one[-1] if one else "" for one in folders]
    for level in range(1, min(map(len, folders)) + 1):
        names = [one[-level] for one in folders]
        if len(set(names)) == runs:
            return _differing_words(names)
    while all(one[-1:] == folders[0][-1:] for one in folders):
        folders = [one[:-1] for one in folders]
    ends = (["/".join(one[-count:]) for one in folders] for count in range(1, max(map(len, folders)) + 1))
    return next(names for names in ends if len(set(names)) == runs)


def _folders(path: str) -> list[str]:
    """Return the parts of a path; a relative one begins where the program runs."""
    text = path if is_url(path) else os.path.abspath(path)
    return [part for part in text.split("/") if part]


def _differing_words(names: Sequence[str]) -> list[str]:
    """Return the first words of names that tell them apart, without those that all of them begin with."""
    bare = [_without_ending(name) for name in names]
    names = bare if len(set(bare)) == len(set(names)) else names
    words = [_BETWEEN.split(name) for name in names]  # word, what is between, word …
    alike = _alike(words)
    start = (
        0 if alike == min(map(len, words)) else alike - alike % 2
    )  # where one begins the others: all of it
    ends = (_with_hyphens(words, end) for end in range(start + 1, max(map(len, words)) + 1, 2))
    texts = next(texts for end in ends if len(set(texts := _joined(words, start, end))) == len(set(names)))
    if start and all(map(str.isdecimal, texts)):  # "4" and "8" alone say nothing
        texts = [
            before + text for before, text in zip(_joined(words, start - 2, [start] * len(words)), texts)
        ]
    return texts if all(texts) else list(names)


def _with_hyphens(words: Sequence[Sequence[str]], end: int) -> list[int]:
    """Return where so many places end in each name, with what hyphens join to the last of them."""
    ends = []
    for one in words:
        own = end
        while one[own : own + 1] and not one[own].strip("-"):
            own += 2
        ends.append(own)
    return ends


def _joined(words: Sequence[Sequence[str]], start: int, ends: Sequence[int]) -> list[str]:
    return ["".join(one[start:end]) for one, end in zip(words, ends)]


def _alike(words: Sequence[Sequence[str]]) -> int:
    """Return how many places from the first on are the same in all."""
    count = 0
    for column in zip(*words):
        if len(set(column)) > 1:
            break
        count += 1
    return count


def _without_ending(name: str) -> str:
    while ending := next((one for one in TRACE_ENDINGS if name.lower().endswith(one) and name != one), ""):
        name = name[: -len(ending)]
    return name
