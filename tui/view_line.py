"""The command line that shows a colleague the same view."""

from __future__ import annotations

import shlex

from tracelane.core.base.errors import TracelaneError
from tracelane.core.base.safe_text import safe
from tracelane.core.index.captures import ALL
from tracelane.core.logs.overlay import Overlay
from tracelane.core.logs.stamps import offset_text
from tracelane.core.trace import Trace
from tracelane.core.trace.device_clocks import seconds_of
from tracelane.core.trace.devices import device_keys

from .session import Session


def view_line(trace: Trace, session: Session) -> str:
    """Return `tracelane view …` with the files, logs, time, lanes, search and filter of a session;
    TracelaneError where the trace was read from standard input.
    """
    paths = [source.path for source in trace.sources if source.manifest.get("source")]
    if not paths or "-" in paths:
        raise TracelaneError("what was read from standard input cannot be opened again")
    seen = session.viewport
    words = ["tracelane", "view", *(path if not path.startswith("-") else f"./{path}" for path in paths)]
    if trace.open_capture is None and len(trace.captures) > 1:
        words += ["--capture", ALL]  # of the paths alone the newest would be opened
    words += ["--from", _stamp(seen.start), "--to", _stamp(seen.end)]
    for option, span in (("--range", session.range), ("--baseline", session.baseline)):
        if span is not None:
            words += [option, f"{_stamp(span[0])}..{_stamp(span[1])}"]
    texts = (("--step-name", session.steps), ("--search", session.search), ("--where", session.filter))
    for option, text in texts:
        if text:
            words += [option, text] if not text.startswith("-") else [f"{option}={text}"]
    words += _logs(trace, session)
    for key, device in device_keys(trace).items():
        own = session.clocks.offsets.get((device.source, device.pid), 0)
        if own:
            words += ["--device-offset", f"{key}={seconds_of(own)}"]
    if session.only:
        words += ["--lanes", session.only]
    if session.zone:
        words += ["--tz", session.zone]
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Return a word as shells read it; in one with characters that a terminal would act on they stand as
    escapes between $' and ', which bash and zsh read.
    """
    if safe(word) == word:
        return shlex.quote(word)
    parts = []
    for character in word:
        if safe(character) == character and character not in "'\\":
            parts.append(character)
        else:
            parts += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape")]
    return f"$'{''.join(parts)}'"


def _logs(trace: Trace, session: Session) -> list[str]:
    """Return the options that lay the same logs over the trace, clocks and devices where these are one."""
    if not isinstance(trace, Overlay):
        return []
    words = [word for one in trace.placed for word in ("--smi", one.log.path)]
    lags = {
        round(one.lag_s(session.clocks, source), 9) for one, source in zip(trace.placed, trace.log_sources)
    }
    zones = {offset_text(one.proposal.utc_offset_s).removeprefix("UTC") for one in trace.placed}
    for option, values in (("--smi-offset", lags), ("--smi-tz", zones)):
        if len(values) == 1:  # the options speak of all logs
            words.append(f"{option}={values.pop()}")
    pairs = {pair for one in trace.placed for pair in one.proposal.device_of.items()}
    cards = [card for card, _ in pairs]
    for card, pid in sorted(pairs):
        if cards.count(card) == 1:
            words += ["--smi-device", f"{card}={pid}"]
    return words


def _stamp(time: int) -> str:
    """Return a time as in the first file, µs; the line begins with no clock moved."""
    sign, time = ("-", -time) if time < 0 else ("", time)
    return f"@{sign}{time // 1000}.{time % 1000:03d}"
