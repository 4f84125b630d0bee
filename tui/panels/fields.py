"""Laying out labelled values in as many columns as there is room for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tracelane.core.base.safe_text import safe
from tracelane.core.query.views import SliceId

COLUMN = 40
"""The width of a value (cells) that has a line of its own beside its label."""
SHORT = 60
"""A field of at most this many cells, label and value together, may stand beside others."""
NARROWEST = 12
"""The least width of a column, in cells."""
LABEL = 22
"""The greatest width of a label, in cells."""
MAX_LINES = 2_000
"""Lines of one value that are shown; the rest is counted."""
GAP = 3


class Field(NamedTuple):
    """A label and its value; `jump` names the command or slice that a click goes to, e.g. "jump(0, 17)"."""

    label: str
    value: str
    jump: str = ""
    names_key: bool = False  # whether the value names a command by its id, `{kernel}`, for its key


def jump_to(identity: SliceId) -> str:
    return f"jump({identity.source}, {identity.ordinal})"


def fields_of(values: dict[str, Any]) -> list[Field]:
    """Return a JSON object's members as fields, what is nested as JSON text."""
    return [Field(str(key), value_text(value)) for key, value in values.items()]


def value_text(value: Any) -> str:
    """Return a JSON value as text: strings bare, everything else as JSON, large values on many lines."""
    if isinstance(value, str):
        return value if value.strip() else json.dumps(value, ensure_ascii=False)
    flat = json.dumps(value, ensure_ascii=False, default=str)
    if len(flat) <= COLUMN * 2 or not isinstance(value, dict | list):
        return flat
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def laid_out(fields: Sequence[Field], width: int, label_style: Style, jump_style: Style) -> list[Text]:
    """Return fields as lines: short ones side by side, column by column, long ones over the whole width."""
    width = max(10, width)
    lines: list[Text] = []
    short: list[Field] = []
    for field in fields:
        size = cell_len(safe(field.label)) + 1 + cell_len(safe(field.value))
        if "\n" not in field.value and size <= min(SHORT, width):
            short.append(field)
            continue
        lines.extend(_side_by_side(short, width, label_style, jump_style))
        short = []
        lines.extend(_long(field, min(LABEL, cell_len(safe(field.label))), width, label_style))
    lines.extend(_side_by_side(short, width, label_style, jump_style))
    return lines


def _side_by_side(fields: Sequence[Field], width: int, label_style: Style, jump_style: Style) -> list[Text]:
    """Return fields in as many columns as fit, each as wide as it must be."""
    pairs = [(safe(field.label), safe(field.value)) for field in fields]
    for columns in range(min(len(pairs), width // NARROWEST), 0, -1):
        height = -(-len(pairs) // columns)
        groups = [range(first, min(first + height, len(pairs))) for first in range(0, len(pairs), height)]
        labels = [max(cell_len(pairs[i][0]) for i in group) for group in groups]
        values = [max(cell_len(pairs[i][1]) for i in group) for group in groups]
        if columns == 1 and labels[0] + 1 + values[0] > width:
            labels = [0]  # too narrow to align the values
        if sum(labels) + sum(values) + len(groups) + GAP * (len(groups) - 1) <= width or columns == 1:
            break
    else:
        return []
    lines = [Text(no_wrap=True, overflow="ellipsis", end="") for _ in range(height)]
    left = 0
    for group, label_cells, value_cells in zip(groups, labels, values):
        for line, number in zip(lines, group):
            label, value = pairs[number]
            line.append(" " * (left - line.cell_len))
            line.append(label + " " * max(1, label_cells - cell_len(label) + 1), label_style)
            jump = fields[number].jump
            line.append(value, jump_style + Style(meta={"@click": f"app.{jump}"}) if jump else Style())
        left += label_cells + 1 + value_cells + GAP
    return lines


def _long(field: Field, room: int, width: int, label_style: Style) -> list[Text]:
    """Return a value that takes several lines, its label before the first."""
    label = safe(field.label)
    on_line = cell_len(label) <= room and width - room > COLUMN // 2
    indent = room + 1 if on_line else 2
    heads = [] if on_line else wrap(label, width)
    lines = [Text(head, label_style, no_wrap=True, end="") for head in heads]
    wrapped: list[str] = []
    for part in field.value.split("\n"):
        wrapped.extend(wrap(safe(part), max(1, width - indent)))
        if len(wrapped) > MAX_LINES:
            break
    for number, part in enumerate(wrapped[:MAX_LINES]):
        text = Text(no_wrap=True, end="")
        text.append((label if on_line and number == 0 else "").ljust(indent), label_style)
        text.append(part)
        lines.append(text)
    if len(wrapped) > MAX_LINES:
        lines.append(Text(f"{' ' * indent}… cut after {MAX_LINES:,} lines; a copy has all", label_style))
    return lines


def wrap(text: str, width: int) -> list[str]:
    """Return text cut into lines of at most `width` cells, anywhere: names have no words to break at."""
    if cell_len(text) <= width:
        return [text]
    lines: list[str] = []
    line = ""
    used = 0
    for character in text:
        size = cell_len(character)
        if used + size > width and line:
            lines.append(line)
            line, used = "", 0
        line += character
        used += size
    return [*lines, line]
