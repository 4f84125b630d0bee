"""Times around every limit that reading has, in each form in which a file may write them."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tracelane.core.base.units import TIME_LIMIT

BOUNDARY_NS = (
    *(0, 1, -1),
    *(sign * power for power in (2**53, 2**61) for sign in (1, -1)),
    *(sign * (power + more) for power in (2**62, 2**63) for more in (-1, 0, 1) for sign in (1, -1)),
    *(sign * power for power in (2 * TIME_LIMIT, 10**25, 10**33) for sign in (1, -1)),
)
WRITTEN = {
    "integer": lambda ns: str(ns // 1000),
    "float": lambda ns: f"{'-' if ns < 0 else ''}{abs(ns) // 1000}.{abs(ns) % 1000:03d}",
    "exponent": lambda ns: f"{ns}e-3",
    "text": lambda ns: f'"{ns}E-3"',
}
"""By form, the JSON of a `ts` or `dur` for a time in ns; integers hold whole µs."""
BOUNDARY_TEXTS = tuple(written(ns) for ns in BOUNDARY_NS for written in WRITTEN.values())


def event_text(ph: str, ts: str, dur: str = "", **more: object) -> str:
    """Return the JSON of an event whose time, and duration where there is one, is written as given."""
    fields = {"ph": ph, "name": "n", "cat": "cpu_op", "pid": 1, "tid": 1, **more}
    return json.dumps(fields)[:-1] + f', "ts": {ts}' + (f', "dur": {dur}' if dur else "") + "}"


def boundary_events(form: str) -> Iterator[str]:
    """Yield events of every kind at and between all boundary times: each lane by itself, and all in one."""
    written = WRITTEN[form]
    times = [written(ns) for ns in BOUNDARY_NS]
    for i, first in enumerate(times):
        yield event_text("X", first, name="no duration")
        yield event_text("B", first, tid="open")
        yield event_text("E", first, tid="closed")
        yield event_text("b", first, id="open")
        yield event_text("e", first, id="closed")
        yield event_text("M", first, name="thread_name", tid=i, args={"name": f"lane {i}"})
        for j, second in enumerate(times):
            number = i * len(times) + j
            yield event_text("X", first, second)
            yield event_text("X", first, second, tid=number)
            yield event_text("B", first, tid=f"pair {number}")
            yield event_text("E", second, tid=f"pair {number}")
            yield event_text("b", first, id=number)
            yield event_text("e", second, id=number)
            yield event_text("s", first, id=number, cat="flow", tid=number)
            yield event_text("f", second, id=number, cat="flow", tid=number, bp="e")
            yield event_text("C", first, name=f"counter {i}", args={"value": j})
            yield event_text("i", first, s="t", tid=number)


def boundary_trace(form: str) -> bytes:
    """Return a trace of all of them."""
    return ('{"traceEvents": [\n' + ",\n".join(boundary_events(form)) + "\n]}").encode()
