"""A row of numbers as a plot of text: columns of blocks, the least and the greatest value beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.cells import cell_len

HEIGHT = 8
BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII_BLOCKS = "    ::::#"
GAP = "·"
"""Stands on the axis where there is no value."""


def plot_text(
    values: Sequence[float | None], written: Callable[[float], str], width: int, ascii_only: bool = False
) -> str:
    """Return columns from the least value (an eighth of a line high) to the greatest (HEIGHT lines high).

    With more values than cells the last ones are drawn. "" where there is no value at all.
    """
    present = [value for value in values if value is not None]
    if not present:
        return ""
    low, high = min(present), max(present)
    labels = [written(high), written(low)]
    margin = max(map(cell_len, labels)) + 1
    room = max(1, width - margin - 1)
    drawn = list(values)[-room:]
    wide = max(1, min(4, room // max(1, len(drawn))))
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    heights = [_height(value, low, high) for value in drawn]
    lines = []
    for line in range(HEIGHT - 1, -1, -1):
        label = labels[0] if line == HEIGHT - 1 else labels[1] if line == 0 else ""
        cells = "".join(_cell(height, line, blocks, ascii_only) * wide for height in heights)
        edge = "|" if ascii_only else "│"
        lines.append(f"{' ' * (margin - 1 - cell_len(label))}{label} {edge}{cells}".rstrip())
    return "\n".join(lines)


def _height(value: float | None, low: float, high: float) -> int | None:
    """Return how many eighths of a line a column is high; None for no value."""
    if value is None:
        return None
    full = 8 * HEIGHT
    return full // 2 if high <= low else 1 + round((value - low) / (high - low) * (full - 1))


def _cell(height: int | None, line: int, blocks: str, ascii_only: bool) -> str:
    if height is None:
        return ("." if ascii_only else GAP) if line == 0 else " "
    return blocks[max(0, min(8, height - 8 * line))]
