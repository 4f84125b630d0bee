"""Which keys a command has once the user's own settings are in, and what to say of keys that have none."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from textual.binding import Binding
from textual.widget import Widget

from tracelane.core.base.safe_text import safe

from .commands.table import COMMANDS, Command, FocusedPart, command, key_text, keys_of, with_keys
from .session import Session

OWN_KEYS: Final[Mapping[FocusedPart, tuple[tuple[str, str, str], ...]]] = {
    "lanes": (),
    "strip": (
        ("← →", "Choose a part", "Of the verdict's bar, or of the minimap"),
        ("Enter", "Go there", "To where the part lasts longest, or to the time or step"),
    ),
    "table": (
        ("↑ ↓", "Choose a row", "PgUp, PgDn, Home and End too"),
        ("← →", "Sort by a column", "The greatest numbers first"),
        ("Space", "Sort the other way", "The smallest first; again: back"),
        ("Enter", "Go to the row's slice", "Select the longest slice of the row in the lanes"),
    ),
    "flame": (
        ("↑ ↓ ← →", "Choose a call", "Its caller, its costliest callee, the calls beside it"),
        ("Enter", "Its slices", "List the slices of the call"),
    ),
    "text": (
        ("↑ ↓", "Scroll, choose a row", "PgUp, PgDn, Home and End too"),
        ("← →", "The other column", "Of the overview, which is shown while nothing is selected"),
        ("Enter", "Go there", "Show what the row of the overview is about"),
    ),
}
"""Keys that a part has of its own: the key, what it is called, what it does."""
PANE_COMMANDS: Final[Mapping[FocusedPart, tuple[str, ...]]] = {
    "lanes": ("next", "down", "details", "focus", "fold", "next-gap", "launch", "kernel", "longest"),
    "strip": ("verdict", "minimap", "other-pane"),
    "table": ("panel-back", "maximise", "copy", "other-pane"),
    "flame": ("focus", "same-name", "back", "panel-back", "maximise", "other-pane"),
    "text": ("same-name", "copy", "maximise", "other-pane"),
}
"""Commands that are used most in a part."""


def keys_text(entry: Command, remapped: Mapping[str, str]) -> str:
    return " ".join(key_text(key) for key in keys_of(entry, remapped))


NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})
"""No key is the user's own."""


def remapped_in(widget: Widget) -> Mapping[str, str]:
    """Return the user's own keys, by command, in the viewer that a widget is of."""
    config = getattr(widget.app, "config", None)
    return NO_KEYS if config is None else config.keys


def said(widget: Widget, text: str) -> str:
    """Return a text as a widget of the viewer shows it: harmless, and with the user's keys."""
    return safe(with_keys(text, remapped_in(widget)))


def footer_keys(remapped: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (first key, short title) of the commands that the footer shows."""
    pairs = []
    for entry in COMMANDS:
        keys = keys_of(entry, remapped)
        if entry.footer and keys:
            pairs.append((key_text(keys[0]), entry.footer))
    return pairs


def state_keys(
    session: Session, part: FocusedPart, escape: str, remapped: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return (key, short title) pairs of what the present state offers, help always first; `part` has the
    arrows, `escape` is what Esc does.
    """
    if part == "flame":
        pairs = [("↑↓←→", "choose"), ("Enter", "its slices")]
        pairs += footer_pairs({"focus": "zoom", "back": "out", "other-pane": "table"}, remapped)
    elif part == "strip":
        pairs = [("←→", "choose"), ("Enter", "go"), *footer_pairs({"other-pane": "lanes"}, remapped)]
    elif part == "table":
        pairs = [("←→", "sort"), ("Enter", "go")]
        pairs += footer_pairs({"copy": "copy", "maximise": "maximise"}, remapped)
        pairs += footer_pairs({"other-pane": "lanes"}, remapped)
    elif session.anchor is not None:
        pairs = footer_pairs({"range": "end", "panel-table": "table", "focus": "zoom"}, remapped)
    else:
        walk = {"next-hit": "next hit", "previous-hit": "previous", "hits": "list"} if session.search else {}
        pairs = footer_pairs({**walk, **AIMS.get(session.aim, {})}, remapped)
    escapes = footer_pairs({"close": escape}, remapped) if escape else []
    offered = {key for key, _ in pairs}
    rest = [pair for pair in footer_keys(remapped) if pair[0] not in offered]
    first = [pair for pair in rest if pair[1] == "help"]
    return [*first, *escapes, *pairs, *(pair for pair in rest if pair not in first)]


AIMS: Final[Mapping[str, Mapping[str, str]]] = {
    "range": {"panel-table": "table", "focus": "zoom", "compare": "compare", "mark": "mark"},
    "step": {"focus": "zoom", "panel-table": "table", "next-gap": "idle there", "compare": "compare"},
    "selection": {"launch": "launch", "kernel": "kernel", "focus": "zoom", "copy": "copy"},
}
"""What the footer offers after a range, a step or a selection was chosen."""


def footer_pairs(titles: Mapping[str, str], remapped: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return (first key, short title) of those commands that have a key, by the titles of each."""
    keys = {command_id: keys_of(command(command_id), remapped) for command_id in titles}
    return [(key_text(own[0]), titles[command_id]) for command_id, own in keys.items() if own]


def bound_keys(remapped: Mapping[str, str]) -> frozenset[str]:
    """Return the keys that commands have, as Textual calls them."""
    keys = [",".join(keys_of(entry, remapped)) for entry in COMMANDS]
    named = Binding.make_bindings([Binding(each, "command") for each in keys if each])
    return frozenset(binding.key for binding in named)


def unbound_message(key: str, character: str | None) -> str:
    """Return what is said of a key that no command has."""
    if character and character.isprintable() and len(character) == 1 and _foreign(character):
        return f"{character} is no key here: the arrows and {{palette}} (all commands) work on any keyboard"
    name = character if character and character.isprintable() and character.strip() else key_text(key)
    return f"{name} does nothing here: {{help}} shows all keys"


def clashes(remapped: Mapping[str, str]) -> list[str]:
    """Return a complaint for every key that the user's settings give to two commands."""
    owners: dict[str, list[str]] = {}
    for entry in COMMANDS:
        for key in keys_of(entry, remapped):
            owners.setdefault(key, []).append(entry.id)
    return [f"key {key} is set for {' and '.join(ids)}" for key, ids in owners.items() if len(ids) > 1]


def _foreign(character: str) -> bool:
    """Tell a letter of an alphabet other than Latin."""
    return character.isalpha() and not unicodedata.name(character, "LATIN").startswith("LATIN")
