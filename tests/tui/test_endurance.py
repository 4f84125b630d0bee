"""The viewer under random keys, pastes, mouse and sizes; `make fuzz` does the same at length."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import LATER
from tests.fuzz.viewer_keys import MOST_GROWTH_MIB, endure
from tracelane.core.demo.trace import write_demo

pytestmark = [
    *LATER,
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads memory from /proc"),
]


def test_it_neither_fails_nor_grows(tmp_path: Path) -> None:
    """Under 250 random inputs it runs to the end, logs no error and does not grow in the second half."""
    run = endure(write_demo(tmp_path)[0], seconds=0, seed=20261122, most_inputs=250)
    assert not run.errors
    assert run.growth_mib < MOST_GROWTH_MIB
