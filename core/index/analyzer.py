"""What aiu-trace-analyzer (acelyzer) changed in a trace that it wrote, as far as the file tells.

It leaves its settings in `otherData`. Their meaning is that of its options, of 1.3.0.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

TOOL = "acelyzer"
OVERLAPS = {
    "drop": "slices that overlapped another without nesting in it were dropped (overlap drop)",
    "tid": "slices that overlapped were put on further lanes (overlap tid)",
    "async": "slices that overlapped became async spans (overlap async)",
    "shift": "slices that overlapped by some ns begin later than measured (overlap shift; see orig_ts)",
}
"""What became of slices that overlap without nesting; `warn` changes nothing."""
ONLY_TORCH = "torch_minimal"
"""The profile in which what adjusts FLEX events is switched off; --tb takes it."""
FLAGS = {
    "-T": "sync_to_dev",
    "--sync_to_dev": "sync_to_dev",
    "-M": "skip_mpsync",
    "--no_mp_sync": "skip_mpsync",
    "--flex_ts_fix": "flex_ts_fix",
    "--drop_globals": "drop_globals",
    "--comm_summarize_seq": "comm_summarize_seq",
    "--keep_names": "keep_names",
    "--tb": "tb",
}
VALUES = {
    "-O": "overlap",
    "--overlap": "overlap",
    "-F": "filter",
    "--filter": "filter",
    "--event_filter": "event_filter",
    "-P": "profile",
    "--profile": "profile",
    "-i": "input",
    "--input": "input",
}
DEFAULTS: dict[str, Any] = {"overlap": "tid", "tb_refinement": True}
UNLIMITED = {"skip": 0, "ts_start": 0.0, "count": 1 << 60, "ts_end": 1e300}
"""Of event_limit: what leaves nothing out, count and ts_end from there on."""


def analyzer_notes(envelope: Mapping[str, Any]) -> tuple[str, ...]:
    """Return one note on what acelyzer changed, none for a file that it did not write."""
    data = envelope.get("otherData")
    if not isinstance(data, Mapping) or TOOL not in str(data.get("Application", "")).lower():
        return ()
    settings = data.get("Settings")
    if not isinstance(settings, Mapping):
        settings = _of_command_line(str(data.get("CmdLine", "")))
    if settings is None:
        return ("written by aiu-trace-analyzer, which does not say what it changed",)
    changes = [*_times(settings), *_events(settings), *_names(settings)]
    words = "; ".join(changes) if changes else "it names no change to times or events"
    return (f"written by aiu-trace-analyzer: {words}",)


def _times(settings: Mapping[str, Any]) -> Iterator[str]:
    if settings.get("sync_to_dev"):
        yield "times are counted from the device's timers (sync_to_dev)"
    profile = _profile(settings)
    if profile != ONLY_TORCH:
        name = f"profile {profile}" if profile else "its usual profile"
        yield f"times of FLEX events may be moved by their cycle counts ({name})"
        inputs = str(settings.get("input", ""))
        if not settings.get("skip_mpsync") and ("," in inputs or "*" in inputs):
            yield "ranks are aligned by the devices' stamps (no -M)"
        if settings.get("flex_ts_fix"):
            yield "times are corrected per job (flex_ts_fix)"


def _events(settings: Mapping[str, Any]) -> Iterator[str]:
    overlap = OVERLAPS.get(str(settings.get("overlap", DEFAULTS["overlap"])))
    if overlap is not None:
        yield overlap
    if settings.get("event_filter"):
        yield f"events are dropped that match {settings['event_filter']} (event_filter)"
    if settings.get("filter"):
        yield f"only events of the types {settings['filter']} are kept (filter)"
    limit = settings.get("event_limit")
    if isinstance(limit, Mapping) and _limits(limit):
        yield "events beyond a limit are left out (event_limit)"
    if settings.get("drop_globals") and _profile(settings) != ONLY_TORCH:
        yield "events without stamps of the device are dropped (drop_globals)"
    if settings.get("comm_summarize_seq"):
        yield "sequences of communication are one event each (comm_summarize_seq)"


def _names(settings: Mapping[str, Any]) -> Iterator[str]:
    refined = settings.get("tb_refinement", DEFAULTS["tb_refinement"]) and settings.get("tb")
    if refined and not settings.get("keep_names"):
        yield "most numbers are taken out of names (no --keep_names)"


def _profile(settings: Mapping[str, Any]) -> str:
    return PurePosixPath(str(settings.get("profile") or "")).stem


def _limits(limit: Mapping[str, Any]) -> bool:
    """Tell whether an event_limit leaves anything out; a value that is no number counts as none."""

    def number(key: str) -> float:
        value = limit.get(key)
        return value if isinstance(value, int | float) else UNLIMITED[key]

    begins = number("skip") > 0 or number("ts_start") > 0
    return begins or number("count") < UNLIMITED["count"] or number("ts_end") < UNLIMITED["ts_end"]


def _of_command_line(line: str) -> dict[str, Any] | None:
    """Return the settings that a command line gives, None where it cannot be taken apart."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if not words:
        return None
    settings: dict[str, Any] = dict(DEFAULTS)
    for number, word in enumerate(words):
        option, given, value = word.partition("=")
        if option in FLAGS:
            settings[FLAGS[option]] = True
        elif option in VALUES:
            following = words[number + 1] if number + 1 < len(words) else ""
            settings[VALUES[option]] = value if given else following
    if settings.get("tb") and "profile" not in settings:
        settings["profile"] = ONLY_TORCH
    return settings
