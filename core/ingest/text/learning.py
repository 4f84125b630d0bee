"""A template learned from one event: which of its places may differ in others of its make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...base.kineto import group_of
from ..columns import EventFlag
from ..columns_block import FLOW, KINDS, TIMED
from ..lifted import LIFTED, Kind, Lifted, lifted_in
from .stretch import KEY_END
from .template import Form, Slot, Template

_TOKEN = re.compile(
    rb'\s*(?:("[^"\\\x00-\x1f]*")|([{}\[\]:,])|(-?[0-9][0-9.eE+-]*)|(true|false|null))', re.ASCII
)
_FIXED = frozenset({"ph", "cat", "s", "bp"})
"""Keys whose strings are few: a template for each."""
_UNSUPPORTED = frozenset({"cname", "attr", "id2", "scope"})
"""Keys whose events are left to the decoder."""
_INSTANTS = "iIR"
_SCOPES = {"p": EventFlag.SCOPE_PROCESS, "g": EventFlag.SCOPE_GLOBAL}
ARGUMENT = "args."
"""Before the keys of arguments."""
MOST_BEHIND = 16
"""At most so many bytes lie from the end of a key to its value."""
_IDENTITY = frozenset({"pid", "tid", "id"})


@dataclass(frozen=True)
class _Member:
    key: str
    value: bytes
    start: int
    end: int
    token: str  # "string", "number", "constant" or "nested"


def template_of(event: bytes) -> Template | None:
    """Return the template of a sound event without escapes; None where its like are left to the decoder."""
    members = _members(event, 0)
    if members is None:
        return None
    top, end = members
    if end != len(event):
        return None
    keys = {member.key: member for member in top}
    if len(keys) < len(top) or not _UNSUPPORTED.isdisjoint(keys):
        return None
    if any(key.startswith(ARGUMENT) for key in keys):  # it would pass for an argument
        return None
    phase, category = _text(keys.get("ph")), _text(keys.get("cat"))
    if phase is None or len(phase) != 1 or not phase.isascii() or KINDS[ord(phase)] not in (TIMED, FLOW):
        return None
    if "cat" in keys and category is None:
        return None
    within: list[_Member] = []
    holder = keys.get("args")
    if holder is not None:
        found = _members(event, holder.start) if holder.value[:1] == b"{" else None
        if found is None:
            return None
        within = found[0]
    arguments = {member.key for member in within}
    if len(arguments) < len(within):
        return None
    if nothing := {member.key for member in within if member.value == b"null"}:
        if any(nothing & set(lifted.args) and len(arguments & set(lifted.args)) > 1 for lifted in LIFTED):
            return None  # the first of several keys wins, though it has no value
        within = [member for member in within if member.key not in nothing]
        arguments -= nothing
    slots = _slots(top, within, phase, category, arguments)
    if slots is None:
        return None
    scope, binds = _text(keys.get("s")), _text(keys.get("bp")) == "e"
    flags = _SCOPES.get(scope or "", 0) if phase in _INSTANTS else 0
    if KINDS[ord(phase)] == FLOW and binds:
        flags |= EventFlag.BIND_ENCLOSING
    return _cut(event, slots, phase, category, int(flags), frozenset(arguments))


def _slots(
    top: list[_Member], within: list[_Member], phase: str, category: str | None, arguments: set[str]
) -> list[tuple[int, int, Slot]] | None:
    """Return (start, end, slot) of all places that differ, None where the decoder must see the event."""
    slots: list[tuple[int, int, Slot]] = []
    forms: dict[str, Form] = {}
    for member in top:
        if (member.key in _FIXED and member.token == "string") or member.key == "args":
            continue
        slot = _slot(member, member.key, None)
        if member.key in _IDENTITY:
            slot = _identity(member)
        elif member.key in ("ts", "dur"):
            if member.token != "number":
                return None
            slot = Slot(member.key, Form.TIME)
        elif member.key == "name" and member.token != "string":
            return None
        if slot is not None:
            slots.append(_placed(member, slot))
            forms[member.key] = slot.form
        elif member.key in _FIXED | _IDENTITY:
            return None
    if "ts" not in forms or (phase == "X" and "dur" not in forms):
        return None
    if KINDS[ord(phase)] == FLOW and forms.get("id") is not Form.INTEGER:
        return None
    columns = [] if KINDS[ord(phase)] == FLOW else lifted_in(group_of(category), arguments)
    lifted = {key: column for column, key in columns}
    for member in within:
        column = lifted.get(member.key)
        slot = _slot(member, ARGUMENT + member.key, column)
        if slot is not None:
            slots.append(_placed(member, slot))
        elif column is not None:
            return None
    return sorted(slots, key=lambda found: found[0])


def _identity(member: _Member) -> Slot | None:
    """Return the slot of a pid, tid or id."""
    if member.token == "constant":
        return None
    whole = member.token == "number" and member.key == "id" and member.value.lstrip(b"-").isdigit()
    return Slot(member.key, Form.INTEGER if whole else Form.VALUE)


def _slot(member: _Member, key: str, column: Lifted | None) -> Slot | None:
    """Return the slot of a member; None where it is the same in all events, or cannot be lifted from here."""
    if member.token == "constant":
        return None
    if column is None:
        plain = {"number": Form.NUMBER, "string": Form.TEXT}.get(member.token, Form.VALUE)
        return None if member.value in (b"{}", b"[]") else Slot(key, plain)
    if column.kind is Kind.TEXT:
        return Slot(key, Form.TEXT if member.token == "string" else Form.VALUE, column)
    if member.token != "number":
        return None
    return Slot(key, Form.INTEGER if column.kind is Kind.INTEGER else Form.FLOAT, column)


def _placed(member: _Member, slot: Slot) -> tuple[int, int, Slot]:
    inside = member.token == "string" and slot.form is Form.TEXT
    return member.start + inside, member.end - inside, slot


def _text(member: _Member | None) -> str | None:
    if member is None or member.token != "string":
        return None
    try:
        return member.value[1:-1].decode()
    except UnicodeDecodeError:
        return None


def _cut(
    event: bytes,
    slots: list[tuple[int, int, Slot]],
    phase: str,
    category: str | None,
    flags: int,
    arguments: frozenset[str],
) -> Template | None:
    runs, anchors, behind = [], [], []
    at = 0
    for start, end, _ in slots:
        run = event[at:start]
        offset = run.rfind(KEY_END)
        if offset < 0 or len(run) - offset > MOST_BEHIND:
            return None
        runs.append(run)
        anchors.append(event.count(KEY_END, 0, at + offset))
        behind.append(len(run) - offset)
        at = end
    return Template(
        (*runs, event[at:]),
        tuple(slot for _, _, slot in slots),
        np.array(anchors)[:, None],
        np.array(behind)[:, None],
        phase,
        category,
        flags,
        arguments,
    )


def _members(text: bytes, start: int) -> tuple[list[_Member], int] | None:
    """Return the members of the object that begins at `start`, and where it ends; None if it has escapes."""
    tokens = _tokens(text, start)
    members: list[_Member] = []
    if next(tokens, (b"", 0, 0, ""))[0] != b"{":
        return None
    for token, _, end, kind in tokens:
        if token == b"}":
            return members, end
        if token == b",":
            continue
        colon = next(tokens, None)
        if kind != "string" or colon is None or colon[0] != b":":
            return None
        value = next(tokens, None)
        if value is None:
            return None
        token_text, low, high, form = value
        if token_text in (b"{", b"["):
            closed = _closed(tokens)
            if closed is None:
                return None
            high, form = closed, "nested"
        try:
            members.append(_Member(token[1:-1].decode(), text[low:high], low, high, form))
        except UnicodeDecodeError:
            return None
    return None


def _closed(tokens: Iterator[tuple[bytes, int, int, str]]) -> int | None:
    """Return where the bracket that was opened last is closed."""
    depth = 1
    for token, _, end, _ in tokens:
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
        if not depth:
            return end
    return None


def _tokens(text: bytes, start: int) -> Iterator[tuple[bytes, int, int, str]]:
    """Yield tokens with their places, up to the first that is none."""
    kinds = ("string", "mark", "number", "constant")
    while match := _TOKEN.match(text, start):
        group = match.lastindex or 1
        yield match[group], match.start(group), match.end(group), kinds[group - 1]
        start = match.end()
