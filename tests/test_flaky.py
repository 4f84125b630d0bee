"""Few tests are pardoned, for few days, and only while they pass alone."""

from __future__ import annotations

import datetime
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.flaky import LIST, Flaky, faults, flaky_tests

ROOT = LIST.parent.parent
TODAY = datetime.date(2026, 1, 31)


def entry(day: str = "2026-01-31", name: str = "a") -> Flaky:
    return Flaky(datetime.date.fromisoformat(day), f"tests/test_it.py::test_{name}", "slow disk")


def test_the_list() -> None:
    """The list itself has at most three tests, which are there, none for longer than 14 days."""
    entries = flaky_tests(LIST.read_text(encoding="utf-8"))
    assert not faults(entries, datetime.datetime.now(datetime.UTC).date())
    for one in entries:
        file, _, name = one.name.partition("::")
        assert f"def {name.partition('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), one.name


@pytest.mark.parametrize(
    ("entries", "count"),
    [
        ([], 0),
        ([entry("2026-01-17")], 0),
        ([entry("2026-01-16")], 1),
        ([entry("2026-02-01")], 1),
        ([entry(name=name) for name in "abc"], 0),
        ([entry(name=name) for name in "abcd"], 1),
        ([entry(), entry()], 1),
        ([entry("2025-01-01", name) for name in "abcd"], 5),
    ],
)
def test_what_is_wrong_with_a_list(entries: list[Flaky], count: int) -> None:
    """More than three, more than 14 days, days to come and names listed twice are named, each."""
    assert len(faults(entries, TODAY)) == count


def test_lines() -> None:
    """A line has a day, a test and what is known; comments are none, and what is no entry is an error."""
    line = "2026-01-31 tests/test_it.py::test_a[1-x]: slow: the disk"
    (read,) = flaky_tests(f"# all\n\n{line}\n")
    assert read == (TODAY, "tests/test_it.py::test_a[1-x]", "slow: the disk")
    for wrong in (line.partition(": ")[0], line[11:], line.replace("31", "32"), line.replace(".py::", " ")):
        with pytest.raises(ValueError):
            flaky_tests(wrong)


TESTS = """
import pytest
def test_fails(): assert 0
def test_passes(): pass
@pytest.mark.parametrize("of", [0, 1])
def test_either(of): assert of
"""
HOOK = """
import datetime
from tests.flaky import Flaky, pardon
def pytest_collection_modifyitems(items):
    pardon(items, [Flaky(datetime.date(2026, 1, 31), f"test_it.py::{name}", "load") for name in NAMES])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "options", "ends"),
    [
        ([], (), "2 failed, 2 passed"),
        (["test_fails", "test_either"], (), "1 passed, 2 xfailed, 1 xpassed"),
        (["test_fails", "test_either[0]", "test_passes"], (), "1 passed, 2 xfailed, 1 xpassed"),
        (["test_fail", "test_either"], (), "1 failed, 1 passed, 1 xfailed, 1 xpassed"),
        (["test_fails", "test_either"], ("--runxfail",), "2 failed, 2 passed"),
    ],
)
def test_what_is_listed_does_not_fail_a_run(
    names: list[str], options: tuple[str, ...], ends: str, tmp_path: Path
) -> None:
    """Failures of listed tests and cases are reported as known; of others, and of all where these run alone,
    they fail the run.
    """
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(f"NAMES = {names}\n{HOOK}", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert ends in done.stdout.splitlines()[-1], done.stdout
    assert (done.returncode == 0) == ("failed" not in ends.replace("xfailed", ""))
