"""The tests that tests/flaky.txt pardons: a failure of theirs is reported, and fails no run for some days.

`python -m tests.flaky` runs these alone, where they must pass.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

LIST = Path(__file__).with_name("flaky.txt")
MAX = 3
MAX_DAYS = 14
_ENTRY = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) (?P<name>tests/\S+\.py::\S+): (?P<known>\S.+)")


class Flaky(NamedTuple):
    """A test, or all cases of one, since when it is listed, and what is known."""

    day: datetime.date
    name: str
    known: str

    def has(self, node: str) -> bool:
        """Tell whether a test's id names this test or a case of it."""
        return node == self.name or node.startswith((f"{self.name}[", f"{self.name}::"))


def flaky_tests(text: str) -> list[Flaky]:
    """Return what a list has; ValueError with the line that is no entry."""
    entries = []
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            entry = _ENTRY.fullmatch(line)
            if entry is None:
                raise ValueError(f"not `DAY tests/FILE.py::TEST: what is known`: {line}")
            entries.append(Flaky(datetime.date.fromisoformat(entry["day"]), entry["name"], entry["known"]))
    return entries


def faults(entries: list[Flaky], today: datetime.date) -> list[str]:
    """Return what is wrong with a list: too many, too old, of days to come, twice."""
    names = [entry.name for entry in entries]
    return [
        *(f"{len(names)} tests, more than {MAX}" for _ in names[MAX : MAX + 1]),
        *(f"{name}: twice" for name in dict.fromkeys(names) if names.count(name) > 1),
        *(
            f"{entry.name}: listed for {(today - entry.day).days} days, not for 0 to {MAX_DAYS}"
            for entry in entries
            if not 0 <= (today - entry.day).days <= MAX_DAYS
        ),
    ]


def pardon(items: Iterable[pytest.Item], entries: list[Flaky]) -> None:
    """Let failures of the listed tests be reported without failing the run."""
    for item in items if entries else ():
        for entry in entries:
            if entry.has(item.nodeid):
                item.add_marker(pytest.mark.xfail(reason=f"flaky since {entry.day}: {entry.known}"))


def main() -> int:
    """Run the listed tests alone, without pardon."""
    names = [entry.name for entry in flaky_tests(LIST.read_text(encoding="utf-8"))]
    return int(pytest.main(["-m", "", "--runxfail", *names])) if names else 0


if __name__ == "__main__":
    sys.exit(main())
