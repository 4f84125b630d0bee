"""What is kept of a trace for the next time: the view in which it was left, as JSON and back, and marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.ids import SliceId
from tracelane.core.export.marks import Mark, read_marks, read_named_marks, read_object, shelf, write_marks
from tracelane.core.index.inputs import check_there
from tracelane.core.trace import Trace

from .actions.view import limits
from .session import GapId, InstantId, LaneKey, RowKey, Session, Viewport

SCHEMA = 1
_KINDS: Final = {
    kind.__name__: kind for kind in (Session, Viewport, LaneKey, RowKey, SliceId, InstantId, GapId)
}


def saved_session(trace: Trace) -> Session | None:
    """Return the view in which a trace was left the last time."""
    path = shelf(trace, "view")
    try:
        return None if path is None else session_of(read_object(path), trace)
    except TracelaneError:
        return None


def import_marks(trace: Trace, path: Path) -> int:
    """Add the marks of a file to those kept of a trace; return how many are new. Raises TracelaneError."""
    check_there([path])
    return keep_marks(trace, read_named_marks(path))


def keep_marks(trace: Trace, marks: Sequence[Mark]) -> int:
    """Add marks to those kept of a trace; return how many are new. Raises TracelaneError."""
    path = shelf(trace, "marks")
    if path is None:
        raise UsageError("of what comes from standard input no marks are kept")
    present = read_marks(path)
    more = set(marks) - set(present)
    write_marks(path, (*present, *more), [source.path for source in trace.sources])
    return len(more)


def session_json(session: Session) -> dict[str, Any]:
    """Return a session as a JSON object."""
    return {"schema": SCHEMA, "session": _encoded(replace(session, anchor=None))}


def session_of(value: dict[str, Any] | None, trace: Trace) -> Session | None:
    """Return the session that a JSON object holds; None if it is none, or speaks of another time."""
    if value is None or value.get("schema") != SCHEMA:
        return None
    try:
        session = _decoded(value["session"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    if not isinstance(session, Session) or not _sound(session):
        return None
    low, high = limits(trace, session.clocks)
    view = session.viewport
    if view.end <= low or view.start >= high:
        return None
    return replace(session, viewport=view.kept_within((low, high)))


def _sound(session: Session) -> bool:
    view = session.viewport
    if not isinstance(view, Viewport):
        return False
    numbers = (view.start, view.span, view.width, session.cursor, session.scroll, session.panel_size)
    texts = (session.only, session.panel, session.ruler, session.colour_by)
    return (
        all(type(number) is int for number in numbers)
        and all(isinstance(text, str) for text in texts)
        and view.span > 0
        and 0 < view.width <= view.span
        and isinstance(session.clocks, Clocks)
    )


def _encoded(value: Any) -> Any:
    if isinstance(value, Clocks):
        return {"is": "Clocks", "offsets": [[*key, ns] for key, ns in value.offsets.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        members = {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
        return {"is": type(value).__name__, **members}
    if isinstance(value, frozenset):
        return {"is": "set", "of": sorted((_encoded(entry) for entry in value), key=repr)}
    if isinstance(value, tuple):
        return [_encoded(entry) for entry in value]
    return value


def _decoded(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decoded(entry) for entry in value)
    if not isinstance(value, dict):
        return value
    kind = value["is"]
    if kind == "set":
        return frozenset(_decoded(value["of"]))
    if kind == "Clocks":
        offsets = {(int(source), str(key)): int(ns) for source, key, ns in value["offsets"]}
        return Clocks(MappingProxyType(offsets))
    kind_of_value = _KINDS[kind]
    known = {field.name for field in fields(kind_of_value)}
    return kind_of_value(**{name: _decoded(entry) for name, entry in value.items() if name in known})
