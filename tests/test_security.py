"""Each promise of docs/security.md names tests that are there, and its figures are those of the tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.core.test_damage import HOSTILE

TESTS = Path(__file__).resolve().parent
TEXT = (TESTS.parent / "docs" / "security.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in TEXT.splitlines() if ".py` |" in line]


def test_each_promise_names_its_tests() -> None:
    """Every row of the table names files that hold tests."""
    assert len(ROWS) >= 10
    for promise, files in ROWS:
        names = re.findall(r"`(tests/[\w/]+\.py)`", files)
        assert names, promise
        for name in names:
            assert "def test_" in (TESTS.parent / name).read_text(encoding="utf-8"), name


def test_figures_are_those_of_the_tests() -> None:
    """The count of kinds of hostile text and the fuzzers in the table are those that run."""
    assert f" {len(HOSTILE)} kinds of hostile text" in TEXT
    fuzzers = {path.stem for path in (TESTS / "fuzz").glob("[a-z]*.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == fuzzers
