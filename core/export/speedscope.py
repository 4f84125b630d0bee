"""A trace in speedscope's format: a profile for each lane (for each track, where slices overlap)."""

from __future__ import annotations

from collections.abc import Iterator

from ..base.safe_text import json_text, safe
from ..tables.scope import Scope
from .tracks import Track, begin_and_end, tracks_of

SCHEMA = "https://www.speedscope.app/file-format-schema.json"
PIECE = 1000
"""Events written together."""


def speedscope_pieces(scope: Scope, name: str) -> Iterator[str]:
    """Yield the JSON of a scope's slices for speedscope; times are ns since the scope's first slice."""
    tracks = list(tracks_of(scope))
    zero = min((int(track.starts[0]) for track in tracks), default=0)
    frames: dict[str, int] = {}
    yield f'{{"$schema":{json_text(SCHEMA)},"exporter":"tracelane",'
    yield f'"name":{json_text(safe(name))},"profiles":['
    for number, track in enumerate(tracks):
        scope.check()
        title = f"{track.lane.process.title} · {track.title}"
        last = int(track.ends.max()) - zero
        yield "," if number else ""
        yield f'{{"type":"evented","name":{json_text(title)},"unit":"nanoseconds",'
        yield f'"startValue":{int(track.starts[0]) - zero},"endValue":{last},"events":['
        yield from _events(scope, track, frames, zero)
        yield "]}"
    names = ",".join(f'{{"name":{json_text(safe(frame))}}}' for frame in frames)
    yield f'],"shared":{{"frames":[{names}]}}}}\n'


def _events(scope: Scope, track: Track, frames: dict[str, int], zero: int) -> Iterator[str]:
    index = scope.trace.indexes[track.lane.source]
    texts = index.strings(index.column("slices.name")[track.positions])
    numbers = [frames.setdefault(text, len(frames)) for text in texts]
    piece: list[str] = []
    separator = ""
    for time, begins, at in begin_and_end(track):
        piece.append(f'{{"type":"{"O" if begins else "C"}","frame":{numbers[at]},"at":{time - zero}}}')
        if len(piece) == PIECE:
            yield separator + ",".join(piece)
            piece, separator = [], ","
    if piece:
        yield separator + ",".join(piece)
