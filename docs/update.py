"""Bring the key table of tui/commands.py into the README, between its two markers."""

from __future__ import annotations

from pathlib import Path

from tracelane.tui.commands import commands_table

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN = "<!-- keys: written by docs/update.py from tui/commands.py -->\n"
END = "<!-- end of keys -->"


def updated(text: str) -> str:
    """Return the README with the table of today."""
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + commands_table() + END + rest.split(END, 1)[1]


if __name__ == "__main__":
    README.write_text(updated(README.read_text(encoding="utf-8")), encoding="utf-8")
