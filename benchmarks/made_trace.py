"""A trace of any size in Kineto's layout: the demo's rank again and again, times and identities moved on."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tracelane.core.demo.trace import demo_files

EVENT = re.compile(r"\n  \{.*?\n  \}", re.DOTALL)
BASE = re.compile(r' *"baseTimeNanoseconds": (\d+),\n')
BREAK = re.compile(r"\n *")
"""White space between values: within a text no line ends."""
STAMP = re.compile(r'"ts": (\d+)\.(\d{3})')
DURATION = re.compile(r'"dur": (\d+)\.(\d{3})')
NUMBER = re.compile(
    r'"(id|correlation|External id|Record function id|Ev Idx|Sequence number|Python(?: parent)? id)": (\d+)'
    r"|(ProfilerStep#)(\d+)"
)
GZIP_LEVEL = 1
RANK = re.compile(r'"rank": \d+, "world_size": \d+')
RANKS_OF_DEMO = 2
PAUSE_NS = 1_000_000
"""Time between two copies."""
WHAT_DEVICES_DO = '"pid": 0,'


@dataclass(frozen=True)
class Section:
    """Events of one copy: a template, and the numbers that go into it (stamps as µs and the rest)."""

    template: str
    base: np.ndarray  # int64: ns of stamps, numbers of identities
    step: np.ndarray  # what each copy adds to them
    is_stamp: np.ndarray

    def text(self, copy: int) -> str:
        """Return the events of a copy, the first being 0."""
        values = self.base + copy * self.step
        numbers = np.repeat(values, 1 + self.is_stamp)
        second = np.cumsum(1 + self.is_stamp)[self.is_stamp] - 1
        numbers[second] = values[self.is_stamp] % 1000
        numbers[second - 1] = values[self.is_stamp] // 1000
        return self.template % tuple(numbers.tolist())


@dataclass(frozen=True)
class Pattern:
    """What is repeated: the header once, host events, device events, then what stands in the file once."""

    header: str
    host: Section
    device: Section
    once: list[str]
    footer: str
    events: int  # of one copy

    @property
    def copy_bytes(self) -> int:
        """Roughly what a copy takes."""
        return len(self.host.text(0)) + len(self.device.text(0))


def pattern(epoch: bool = False, rank: int = 0) -> Pattern:
    """Return a rank of the demo as a pattern; stamps since 1970 if asked for, as torch wrote them once."""
    text = demo_files()[rank].data.decode()
    if epoch:
        base = BASE.search(text)
        assert base is not None
        since = int(base[1]) // 1000
        text = STAMP.sub(lambda match: f'"ts": {int(match[1]) + since}.{match[2]}', BASE.sub("", text))
    events = EVENT.findall(text)
    once = [event for event in events if '"ph": "M"' in event or '"pid": "' in event]
    unrepeated = set(once)
    repeated = [event for event in events if event not in unrepeated]
    begin = min(_stamp(event) for event in repeated)
    period = max(_stamp(event) + _duration(event) for event in repeated) - begin + PAUSE_NS
    strides = _strides(repeated)
    device = [event for event in repeated if WHAT_DEVICES_DO in event]
    host = [event for event in repeated if WHAT_DEVICES_DO not in event]
    first, last = text.index(events[0]), text.rindex(events[-1]) + len(events[-1])
    return Pattern(
        text[:first],
        _section(host, period, strides),
        _section(device, period, strides),
        once,
        text[last:],
        len(repeated),
    )


def write_made_trace(
    path: Path, *, copies: int = 0, size: float = 0.0, epoch: bool = False, one_line: bool = False
) -> Path:
    """Write a trace of so many copies, or of about so many bytes; metadata last, as in long profiles.

    A path that ends in .gz is compressed; on one line there is no white space between values.
    """
    source = pattern(epoch)
    copies = copies or max(1, round(size / source.copy_bytes))
    with gzip.open(path, "wb", GZIP_LEVEL) if path.suffix == ".gz" else path.open("wb") as file:
        for text in _pieces(source, range(copies)):
            file.write((BREAK.sub("", text) if one_line else text).encode())
    return path


def write_made_ranks(folder: Path, count: int) -> Path:
    """Write a trace of some 0.9 MB for each of so many ranks, in turn like those of the demo, of which one
    comes late to collectives; return their folder.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sources = [pattern(rank=rank) for rank in range(RANKS_OF_DEMO)]
    for rank in range(count):
        source = sources[rank % RANKS_OF_DEMO]
        header = RANK.sub(f'"rank": {rank}, "world_size": {count}', source.header)
        text = "".join(_pieces(replace(source, header=header), range(1)))
        (folder / f"rank{rank}.pt.trace.json").write_text(text, encoding="utf-8")
    return folder


def _pieces(source: Pattern, copies: Iterable[int]) -> Iterator[str]:
    yield source.header
    for section in (source.host, source.device):
        for copy in copies:
            yield section.text(copy) + ","
    yield ",".join(source.once) + source.footer


def _stamp(event: str) -> int:
    match = STAMP.search(event)
    assert match is not None, event
    return int(match[1]) * 1000 + int(match[2])


def _duration(event: str) -> int:
    match = DURATION.search(event)
    return int(match[1]) * 1000 + int(match[2]) if match else 0


def _strides(events: list[str]) -> dict[str, int]:
    """Return by how much each kind of identity moves on, so that no two copies share one."""
    strides: dict[str, int] = {}
    for event in events:
        for match in NUMBER.finditer(event):
            kind, number = match[1] or match[3], int(match[2] or match[4])
            strides[kind] = max(strides.get(kind, 0), number + 1)
    same = max(strides.get(kind, 0) for kind in ("correlation", "External id", "id"))
    frames = max(strides.get(kind, 0) for kind in ("Python id", "Python parent id"))
    strides |= dict.fromkeys(("correlation", "External id", "id"), same)
    return strides | dict.fromkeys(("Python id", "Python parent id"), frames)


def _section(events: list[str], period: int, strides: dict[str, int]) -> Section:
    base: list[int] = []
    step: list[int] = []
    stamps: list[bool] = []

    def placeholder(match: re.Match[str]) -> str:
        if match["stamp"]:
            base.append(int(match["stamp"]) * 1000 + int(match["rest"]))
            step.append(period)
            stamps.append(True)
            return '"ts": %d.%03d'
        kind, number = match[4] or match[6], int(match[5] or match[7])
        base.append(number)
        step.append(strides[kind] if number else 0)
        stamps.append(False)
        return f"{kind}%d" if match[6] else f'"{kind}": %d'

    numbers = re.compile(rf'("ts": (?P<stamp>\d+)\.(?P<rest>\d{{3}}))|{NUMBER.pattern}')
    template = numbers.sub(placeholder, ",".join(events).replace("%", "%%"))
    return Section(template, np.array(base), np.array(step), np.array(stamps))
