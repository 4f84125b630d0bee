"""Marks and views of a trace, kept beside its index: small JSON files named by what the trace holds. They lie
in <root>/marks/, never inside an index folder, so that they outlive it; each is replaced as a whole. Folder
and files are their owner's alone, as the indexes are: a link or another user's file is not read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.digest import blake2b
from ..base.errors import TracelaneError
from ..base.numbers import json_value
from ..base.private import (
    make_folders,
    make_private_folder,
    read_private,
    read_regular,
    reason_of,
    write_private,
)
from ..base.safe_text import json_text
from ..base.units import TIME_LIMIT

if TYPE_CHECKING:
    from ..trace import Trace

SCHEMA = 1
FOLDER = "marks"
MAX_BYTES = 64 << 20
"""The largest file of marks, or of a view, in bytes."""
MAX = 10_000
"""The most marks that are read from one file: tracelane writes no file with more."""


class Mark(NamedTuple):
    """A moment (start = end) or a range, in ns as the first file counts; the text may be empty."""

    start: int
    end: int
    text: str = ""


def shelf(trace: Trace, kind: str) -> Path | None:
    """Return the file for what is kept of a trace ("marks" or "view"); None where nothing identifies it. Its
    name comes from their contents (sizes, hashes of both ends): a copy of a trace has the same marks.
    """
    prints: list[dict[str, Any]] = []
    root: Path | None = None
    for index in trace.indexes:
        source = index.manifest.get("source")
        if not isinstance(source, dict) or not source:
            continue  # a log laid over the trace is no part of it
        prints.append(source)
        root = root or index.folder.parent.parent
    return None if root is None else shelf_of(prints, root, kind)


def shelf_of(prints: Sequence[Mapping[str, Any]], root: Path, kind: str) -> Path:
    """Return the same of a trace whose files have these fingerprints, with indexes below a folder."""
    lasting = [{key: value for key, value in each.items() if key != "mtime_ns"} for each in prints]
    key = blake2b(json.dumps(lasting, sort_keys=True).encode(), digest_size=16).hexdigest()
    return root / FOLDER / f"{key}.{kind}.json"


def index_of_one(trace: Trace) -> tuple[Mapping[str, Any], Path] | None:
    """Return the fingerprint of the file that a trace is of, and the folder of its index; None of several
    files, or with logs: beside its own index there is at most the one that holds what is computed.
    """
    if not 1 <= len(trace.indexes) <= 2:
        return None
    own = trace.indexes[0]
    fingerprint = own.manifest.get("source")
    return (fingerprint, own.folder) if fingerprint else None


def read_marks(path: Path) -> tuple[Mark, ...]:
    """Return the marks kept of a trace in order of time; none where there is no such file. Raises
    TracelaneError where it holds something else, or is not the user's own.
    """
    value = read_object(path)
    return () if value is None else _marks_of(path, value)


def read_named_marks(path: Path) -> tuple[Mark, ...]:
    """Return the marks of a file that the user named, in order of time. Raises TracelaneError."""
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from None
    return _marks_of(path, _object_of(path, data))


def _marks_of(path: Path, value: dict[str, Any]) -> tuple[Mark, ...]:
    try:
        marks = [
            Mark(_time_of(entry["start_ns"]), _time_of(entry["end_ns"]), str(entry.get("text", "")))
            for entry in value["marks"][:MAX]
        ]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise TracelaneError(f"{path} contains no marks") from None
    return tuple(sorted(marks))


def _time_of(value: Any) -> int:
    return max(-TIME_LIMIT, min(TIME_LIMIT, int(value)))


def moved(marks: Sequence[Mark], ns: int) -> tuple[Mark, ...]:
    """Return the marks moved by so many ns."""
    return tuple(Mark(mark.start + ns, mark.end + ns, mark.text) for mark in marks)


def nearest_mark(marks: Sequence[Mark], time: int) -> Mark | None:
    """Return the mark one end of which is nearest to a time; None where there are no marks."""
    return min(marks, key=lambda mark: min(abs(mark.start - time), abs(mark.end - time)), default=None)


def write_marks(path: Path, marks: Sequence[Mark], paths: Sequence[str] = ()) -> None:
    """Write marks in place of a file, as `marks_json` puts them. Raises TracelaneError."""
    write_object(path, _object(marks, paths))


def marks_json(marks: Sequence[Mark], paths: Sequence[str] = ()) -> str:
    """Return marks as JSON text that `read_marks` understands; `paths` tell people of which traces."""
    return json_text(_object(marks, paths), indent=1) + "\n"


def _object(marks: Sequence[Mark], paths: Sequence[str]) -> dict[str, Any]:
    entries = [{"start_ns": mark.start, "end_ns": mark.end, "text": mark.text} for mark in sorted(marks)]
    return {"schema": SCHEMA, "traces": list(paths), "marks": entries}


def read_object(path: Path) -> dict[str, Any] | None:
    """Return the JSON object of a file of the user's own, None where there is none. Raises TracelaneError."""
    try:
        data = read_private(path, MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from None
    return _object_of(path, data)


def write_object(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object in place of a file, whole or not at all. Raises TracelaneError."""
    try:
        make_folders(path.parent.parent)
        make_private_folder(path.parent)
        write_private(path, (json_text(value, indent=1) + "\n").encode())
    except OSError as error:
        raise TracelaneError(f"{error.filename or path} cannot be written: {reason_of(error)}") from None


def _object_of(path: Path, data: bytes) -> dict[str, Any]:
    try:
        value = json_value(data)
    except ValueError:
        raise TracelaneError(f"{path} is not JSON") from None
    if not isinstance(value, dict):
        raise TracelaneError(f"{path} is not a JSON object")
    return value


def _unreadable(path: Path, error: OSError) -> TracelaneError:
    return TracelaneError(f"{path} cannot be read: {reason_of(error)}")
