"""Fuzzers, briefly and with the same inputs every time; `make fuzz` tries others for long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import later
from tests.fuzz.input_files import fuzz_files
from tests.fuzz.viewer_keys import MOST_GROWTH_MIB, endure
from tracelane.core.demo.trace import write_demo


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, 20), later((2, 100))])
def test_damaged_files_are_read_or_refused_in_one_line(seed: int, most: int, tmp_path: Path) -> None:
    """No traceback, no undocumented exit code, no foreign byte, and every event in one term of the sum: of
    damaged traces, logs, marks and limits.
    """
    result = fuzz_files(seconds=200, seed=seed, folder=tmp_path, most=most)
    assert result.wrong == [] and result.inputs > 0


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads memory from /proc")
def test_the_viewer_neither_fails_nor_grows(tmp_path: Path) -> None:
    """Under 250 random keys, pastes, mouse events and sizes it runs to the end, logs no error and does not
    grow in the second half.
    """
    run = endure(write_demo(tmp_path)[0], seconds=0, seed=20261122, most_inputs=250)
    assert not run.errors
    assert run.growth_mib < MOST_GROWTH_MIB
