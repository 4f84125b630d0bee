"""How a store is laid out: names say whose a file is, so that a list of names tells what is missing.

    tracelane-store.json        makes the folder a store; hints at where the traces lie, relative to it
    ranks/RANK-NAME-STATE-CONTENT.rank
                                the summary of one rank: hashes of its trace's name and state, and of itself
    groups/NUMBER.group         the summaries of 64 ranks once more, column by column: what is read first
    indexes/RANK-NAME-STATE.tar the index of one rank, where it was asked for

A file of `ranks` is never changed: other content has another name. Whoever writes a group lists `ranks` again
afterwards and writes it anew if something came meanwhile, so the last of several writers leaves all of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..base.errors import UnreadableError
from ..read.source import Fingerprint
from .location import StoreLocation

MANIFEST_NAME = "tracelane-store.json"
FORMAT, VERSION = "tracelane capture store", 4
RANKS, GROUPS, INDEXES = "ranks", "groups", "indexes"
GROUP_SIZE = 64
MOST_STORE_MANIFEST = 64 << 10
NO_RANK = "none"
UNREADABLE_STATE = "0" * 12
_GROUP = re.compile(r"(?:\d{6,9}|none)\.group")
_RECORD = re.compile(
    r"(?P<rank>\d{6,9}|none)-(?P<name>[0-9a-f]{12})-(?P<state>[0-9a-f]{12})-(?P<content>[0-9a-f]{12})\.rank"
)


@dataclass(frozen=True)
class RecordName:
    """The name of a rank's summary."""

    rank: int | None
    name: str  # hash of the trace's name
    state: str  # hash of what tells one state of the trace from another
    content: str

    def __str__(self) -> str:
        """Return the file's name."""
        return f"{self.owner}-{self.state}-{self.content}.rank"

    @property
    def owner(self) -> str:
        """What is the same for all summaries of one trace."""
        return f"{NO_RANK if self.rank is None else f'{self.rank:06d}'}-{self.name}"

    @property
    def group(self) -> str:
        """The file of the group that it belongs to."""
        return f"{NO_RANK if self.rank is None else f'{self.rank // GROUP_SIZE:06d}'}.group"

    @property
    def index_name(self) -> str:
        """The file of the rank's index."""
        return f"{INDEXES}/{self.owner}-{self.state}.tar"


def record_name(text: str) -> RecordName | None:
    """Return what a file's name says, None where it is none of a summary."""
    match = _RECORD.fullmatch(text)
    if match is None:
        return None
    rank = None if match["rank"] == NO_RANK else int(match["rank"])
    return RecordName(rank, match["name"], match["state"], match["content"])


def json_bytes(value: Any) -> bytes:
    """Return a JSON value as bytes that depend on nothing but the value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def short_hash(data: bytes) -> str:
    """Return twelve hexadecimal digits of a hash."""
    return hashlib.blake2b(data, digest_size=6).hexdigest()


def state_hash(fingerprint: Fingerprint) -> str:
    """Return the hash of a trace's state: its size, its contents at the ends, its ETag; of no time."""
    state = {
        key: fingerprint[key] for key in ("size", "head", "tail", "etag", "hash") if fingerprint.get(key)
    }
    return short_hash(json_bytes(state))


def records_in(location: StoreLocation) -> list[RecordName]:
    """Return the summaries of a store by name."""
    names = (record_name(name) for name in location.names(RANKS))
    return sorted((name for name in names if name is not None), key=str)


def groups_in(location: StoreLocation) -> list[str]:
    """Return the groups of a store by name."""
    return [name for name in location.names(GROUPS) if _GROUP.fullmatch(name)]


def write_store_manifest(location: StoreLocation, traces: str) -> None:
    """Make a folder a store; one that is a store already stays as it is. Raises TracelaneError."""
    try:
        read_store_manifest(location)
    except FileNotFoundError:
        manifest = {"format": FORMAT, "version": VERSION, "traces": traces}
        location.write(MANIFEST_NAME, json_bytes(manifest) + b"\n")


def read_store_manifest(location: StoreLocation) -> Mapping[str, Any]:
    """Return the manifest of a store. Raises FileNotFoundError where it is none, UnreadableError."""
    raw = location.read(MANIFEST_NAME, 0, MOST_STORE_MANIFEST)
    try:
        manifest = json.loads(raw)
    except (ValueError, RecursionError):
        raise UnreadableError(f"{location.title}: {MANIFEST_NAME} is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise UnreadableError(f"{location.title}: {MANIFEST_NAME} is not that of a capture store")
    if manifest.get("version") != VERSION:
        raise UnreadableError(f"{location.title}: the store is of another version: collect it again")
    return manifest
