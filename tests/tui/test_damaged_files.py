"""Damaged traces, logs, marks and limits: the same inputs every time; `make fuzz` tries others for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import later
from tests.fuzz.input_files import fuzz_files


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, 20), later((2, 100))])
def test_damaged_files_are_read_or_refused_in_one_line(seed: int, most: int, tmp_path: Path) -> None:
    """No traceback, no undocumented exit code, no foreign byte, and every event in one term of the sum."""
    result = fuzz_files(seconds=200, seed=seed, folder=tmp_path, most=most)
    assert result.wrong == [] and result.inputs > 0
