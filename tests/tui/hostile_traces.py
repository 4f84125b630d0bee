"""Traces and logs whose every text tries to act on a terminal, a spreadsheet or a page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.tui import small_file
from tracelane.core.demo.trace import demo_files

CONTROLS = (
    "\x1b]0;PWNED\x07\x1b[38;5;199;1;3;9mPW\x1bPpwn\x1b\\\x9b31mC1\x9d0;t\x9c\x1b]52;c;UFdORUQ=\x07\x1b[?1049l"
    "\x1b[6n\x1bc\x08bs\x7fdel\x00nul\x85nel"
)
INVISIBLE = "\u202eRTL\u202c\u2066iso\u2069\u200bzw\u200d\ufeff\u2028ls\ue000pu\U000e0041tag\ufe0f\u3164"
LINES = "\rcr\ttab\nnewline"
MARKUP = "[red]MK[/red][](http://evil)<img src=x>`|**b**$accent=1+1@x"
HOSTILE = CONTROLS + INVISIBLE + LINES + MARKUP
FILE_NAME = "n" + CONTROLS.replace("\0", "").replace("/", "") + "\u202e[red]x\n\tz"
SEPARATORS = '\0,;|\t\n\r"'
"""Characters that would end a cell of a log, or the log."""
COLOUR = "38;5;199"
"""A colour that tracelane never draws in."""


def hostile(value: Any) -> Any:
    """Return a JSON value with hostile keys and texts."""
    if isinstance(value, str):
        return value + HOSTILE
    if isinstance(value, list):
        return [hostile(each) for each in value]
    if isinstance(value, dict):
        return {key: hostile(each) for key, each in value.items()} | {"key" + HOSTILE: HOSTILE}
    return value


def hostile_events(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return events whose names, arguments and every seventh category are hostile; steps still count."""
    changed = []
    for number, event in enumerate(events):
        event = dict(event)
        if event["ph"] == "M":
            event["args"] = {
                key: text + HOSTILE if isinstance(text, str) else text for key, text in event["args"].items()
            }
        else:
            event["name"] += HOSTILE if "ProfilerStep" not in event["name"] or number % 2 else ""
            if event["ph"] == "C":
                event["args"] = {key + HOSTILE: number for key, number in event["args"].items()}
            elif "args" in event:
                event["args"] = hostile(event["args"])
        if number % 7 == 0 and "cat" in event:
            event["cat"] += HOSTILE
        changed.append(event)
    at = next(event["ts"] for event in events if "ts" in event)
    odd = {"pid": "p" + HOSTILE, "tid": "t" + HOSTILE, "ts": at}
    changed += [
        {"ph": "X", "name": HOSTILE, "cat": HOSTILE, "dur": 5} | odd,
        {"ph": "i", "name": HOSTILE, "s": "g", "args": {HOSTILE: HOSTILE}} | odd,
        {"ph": "C", "name": HOSTILE, "args": {"x" + HOSTILE: 3}} | odd,
        {"ph": "b", "cat": HOSTILE, "id": HOSTILE, "name": HOSTILE} | odd,
        {"ph": "e", "cat": HOSTILE, "id": HOSTILE, "name": HOSTILE} | odd | {"ts": at + 3},
        {"ph": "Q" + HOSTILE, "name": HOSTILE} | odd,
    ]
    return changed


def write_small(path: Path, evil: bool = True) -> Path:
    """Write the small trace of the other tests, hostile or as it is."""
    events = small_file.events()
    whole: dict[str, Any] = {"deviceProperties": [{"id": 0, "name": "device"}], "host_name": "host"}
    whole = (hostile(whole) if evil else whole) | {"traceEvents": hostile_events(events) if evil else events}
    path.write_text(json.dumps(whole), encoding="utf-8")
    return path


def write_ranks(folder: Path) -> list[Path]:
    """Write the two ranks of the demo, hostile."""
    paths = []
    for file in demo_files():
        if file.name.endswith(".json"):
            whole = json.loads(file.data)
            events = hostile_events(whole.pop("traceEvents"))
            path = folder / file.name
            path.write_text(
                json.dumps(
                    hostile(whole) | {"traceEvents": events, "distributedInfo": whole.get("distributedInfo")}
                ),
                encoding="utf-8",
            )
            paths.append(path)
    return paths


def write_log(path: Path) -> Path:
    """Write a telemetry log with hostile headings and a line that cannot be read."""
    text = "".join(each for each in HOSTILE if each not in SEPARATORS)
    rows = (f"2026-06-20 07:10:{second:02d},{second * 3},{second}{text}\n" for second in range(60))
    path.write_text(
        f"timestamp,power.draw [W]{text},util{text}\n" + "".join(rows) + f"what{text},x\n", encoding="utf-8"
    )
    return path
