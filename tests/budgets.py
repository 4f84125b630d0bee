"""Print the lines of each room against budgets.toml, and fail where a room has more than its budget."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = tomllib.loads((ROOT / "budgets.toml").read_text(encoding="utf-8"))


def room_of(file: Path) -> str:
    """Return the room of a file below the root: its first two folders, and C apart from Python."""
    return "/".join(file.parent.parts[:2]) + (" in C" if file.suffix in (".c", ".h") else "")


def lines_of_rooms(root: Path) -> Counter[str]:
    """Count the lines of Python and C in core and tui by room."""
    lines: Counter[str] = Counter()
    for top in ("core", "tui"):
        for path in sorted((root / top).rglob("*.*")):
            if path.suffix in (".py", ".pyi", ".c", ".h"):
                lines[room_of(path.relative_to(root))] += len(path.read_bytes().splitlines())
    return lines


def too_long(lines: Counter[str], most: dict[str, int]) -> list[str]:
    """Return the rooms with more lines than their budget, those without a budget among them."""
    return [room for room, count in lines.items() if count > most.get(room, 0)]


def main() -> int:
    """Print a line for each room; return 1 where one is over its budget."""
    lines, most = lines_of_rooms(ROOT), BUDGETS["lines"]
    long = too_long(lines, most)
    print("lines  budget  room")
    for room in sorted(lines.keys() | most):
        print(f"{lines[room]:5}  {most.get(room, 0):6}  {room}{'  OVER ITS BUDGET' if room in long else ''}")
    python = sum(count for room, count in lines.items() if not room.endswith(" in C"))
    print(f"{python:5}  Python in all" + ("; budgets.toml says what to do" if long else ""))
    return bool(long)


if __name__ == "__main__":
    sys.exit(main())
