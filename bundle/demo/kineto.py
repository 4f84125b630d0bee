"""Events in the text layout of Kineto since 2026: one key a line, `ph` first, arguments on one line.

Everything is rendered from integers and strings, so that the same run gives the same bytes on every platform.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Value: TypeAlias = "int | str | bool | Sequence[Value] | None"
Track: TypeAlias = tuple[int | str, int | str]
"""(pid, tid) as they stand in the file."""

BASE_TIME_NS = 1_775_078_550_000_000_000
"""Kineto's base: the running quarter's start; stamps in the file are relative to it."""


def micros(ns: int) -> str:
    """Return ns as the decimal µs that Kineto writes: always three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def arguments_json(*values: tuple[str, Value]) -> str:
    """Return the one-line body of an `args` object, keys in the order given."""
    return ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in values)


@dataclass(frozen=True)
class DemoHeader:
    """What stands before the events."""

    rank: int
    world_size: int
    host: str
    trace_id: str

    def text(self) -> str:
        """Return the file's first lines, up to and with the opening of the event array."""
        device = (
            '{"id": 0, "name": "AIU 0", "type": "AIU", "multiProcessorCount": 32, '
            '"computeCapability": "dd2", "coreCount": 32}'
        )
        return (
            " {\n"
            '    "schemaVersion": 1,\n'
            f'    "deviceProperties": [{device}],\n'
            "    \n"
            f'      "trace_id": "{self.trace_id}",\n'
            '      "with_stack": 1,\n'
            '      "profile_memory": 1,\n'
            '      "record_shapes": 1,\n'
            f'      "host_name": "{self.host}",\n'
            '      "distributedInfo": {"backend": "hccl", "rank": '
            f'{self.rank}, "world_size": {self.world_size}, "pg_count": 1}},\n'
            '    "displayTimeUnit": "ms",\n'
            f'    "baseTimeNanoseconds": {BASE_TIME_NS},\n'
            '    "traceEvents": [\n'
            "    "
        )


def footer(name: str) -> str:
    """Return what closes the event array and the file."""
    return f'\n  ],\n    "traceName": {json.dumps(name)} }}\n'


def _event(lines: Iterable[str]) -> str:
    return "\n  {\n    " + ",\n    ".join(lines)


def _track(track: Track) -> list[str]:
    return [f'"pid": {json.dumps(track[0])}', f'"tid": {json.dumps(track[1])}']


def _args(body: str) -> str:
    return f'"args": {{\n      {body}\n    }}\n  }}'


def slice_text(category: str, name: str, track: Track, start: int, duration: int, body: str) -> str:
    """Return a complete (X) event; times in ns relative to the base."""
    lines = ['"ph": "X"', f'"cat": "{category}"', f'"name": {json.dumps(name)}', *_track(track)]
    lines += [f'"ts": {micros(start)}', f'"dur": {micros(duration)}\n    ', _args(body)]
    return _event(lines)


def flow_text(phase: str, category: str, number: int, track: Track, time: int) -> str:
    """Return a flow's start (s) or its end (f, bound to the slice around it)."""
    lines = [f'"ph": "{phase}"', f'"id": {number}', *_track(track), f'"ts": {micros(time)}']
    lines += [f'"cat": "{category}"', f'"name": "{category}"']
    tail = '\n    , "bp": "e"\n  }' if phase == "f" else "\n    \n  }"
    return _event(lines) + tail


def instant_text(category: str, scope: str, name: str, track: Track, time: int, body: str) -> str:
    """Return an instant (i) event; without a category the line is left out, as Kineto does."""
    lines = ['"ph": "i"']
    if category:
        lines.append(f'"cat": "{category}"')
    lines += [f'"s": "{scope}"', f'"name": {json.dumps(name)}', *_track(track), f'"ts": {micros(time)}']
    if not body:
        return _event(lines) + "\n    \n  }"
    lines[-1] += "\n    "
    return _event([*lines, _args(body)])


def counter_text(category: str, name: str, track: Track, time: int, body: str) -> str:
    """Return a counter (C) event: every number of its arguments is one series."""
    lines = ['"ph": "C"', f'"cat": "{category}"', f'"name": {json.dumps(name)}', *_track(track)]
    return _event([*lines, f'"ts": {micros(time)}', _args(body)])


def metadata_text(name: str, track: Track, time: int, key: str, value: Value) -> str:
    """Return a metadata (M) event."""
    lines = ['"ph": "M"', f'"name": "{name}"', f'"ts": {micros(time)}', *_track(track)]
    return _event([*lines, _args(arguments_json((key, value)))])
