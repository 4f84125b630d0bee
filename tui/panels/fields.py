"""Laying out labelled values in as many columns as there is room for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from tracelane.core.base.safe_text import safe

COLUMN = 40
"""Cells that a column takes at least."""
LABEL = 22
"""Cells that a label takes at most."""
LONGEST_LINES = 2_000
"""Lines of one value that are shown; the rest is counted."""
GAP = 2


@dataclass(frozen=True)
class Field:
    """A label and its value; `jump` names the command or slice that a click goes to, e.g. "jump(0, 17)"."""

    label: str
    value: str
    jump: str = ""


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
    columns = max(1, (width + GAP) // (COLUMN + GAP))
    size = (width - GAP * (columns - 1)) // columns
    lines: list[Text] = []
    short: list[Text] = []
    room = min(LABEL, max((cell_len(safe(field.label)) for field in fields), default=0))
    for field in fields:
        text = _field(field, room, label_style, jump_style)
        if "\n" not in field.value and text.cell_len <= size:
            short.append(text)
            continue
        lines.extend(_side_by_side(short, columns, size))
        short = []
        lines.extend(_long(field, room, width, label_style))
    lines.extend(_side_by_side(short, columns, size))
    return lines


def _field(field: Field, room: int, label_style: Style, jump_style: Style) -> Text:
    text = Text(no_wrap=True, end="")
    label = safe(field.label)
    text.append(label + " " * (room - cell_len(label)), label_style)
    text.append(" ")
    style = jump_style + Style(meta={"@click": f"app.{field.jump}"}) if field.jump else Style()
    text.append(safe(field.value.replace("\n", " ")), style)
    return text


def _side_by_side(short: Sequence[Text], columns: int, size: int) -> list[Text]:
    if not short:
        return []
    height = -(-len(short) // columns)
    lines = []
    for row in range(height):
        line = Text(no_wrap=True, end="")
        for column in range(columns):
            number = column * height + row
            if number >= len(short):
                break
            line.append(" " * (column * (size + GAP) - line.cell_len))
            line.append_text(short[number])
        lines.append(line)
    return lines


def _long(field: Field, room: int, width: int, label_style: Style) -> list[Text]:
    """Return a value that takes several lines, its label before the first."""
    label = safe(field.label)
    beside = cell_len(label) <= room and width - room > COLUMN // 2
    indent = room + 1 if beside else 2
    lines = [] if beside else [Text(label, label_style, no_wrap=True, end="")]
    wrapped: list[str] = []
    for part in field.value.split("\n"):
        wrapped.extend(wrap(safe(part), max(1, width - indent)))
        if len(wrapped) > LONGEST_LINES:
            break
    for number, part in enumerate(wrapped[:LONGEST_LINES]):
        text = Text(no_wrap=True, end="")
        text.append((label if beside and number == 0 else "").ljust(indent), label_style)
        text.append(part)
        lines.append(text)
    if len(wrapped) > LONGEST_LINES:
        lines.append(
            Text(f"{' ' * indent}… cut after {LONGEST_LINES:,} lines; y copies it whole", label_style)
        )
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
