"""Fuzzers, briefly and with the same inputs every time; `make fuzz` tries others for long."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.corpus import later
from tests.fuzz import invariants
from tests.fuzz.input_files import fuzz_files
from tests.fuzz.invariants import fuzz_invariants
from tests.fuzz.viewer_keys import MAX_GROWTH_MIB, endure
from tracelane.core.demo.trace import write_demo
from tracelane.core.read.deflated import GzipReader


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, 20), later((2, 100))])
def test_damaged_files_are_read_or_refused_in_one_line(seed: int, most: int, tmp_path: Path) -> None:
    """No traceback, no undocumented exit code, no foreign byte, and every event in one term of the sum: of
    damaged traces, logs, marks and limits.
    """
    result = fuzz_files(seconds=200, seed=seed, folder=tmp_path, most=most)
    assert result.wrong == [] and result.inputs > 0


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, 12), later((2, 60))])
def test_every_reader_and_output_keeps_the_rules(seed: int, most: int, tmp_path: Path) -> None:
    """JSON and packets, packed and damaged, artefacts: what is written of them is bounded, harmless, where it
    was asked for, and says the damage.
    """
    result = fuzz_invariants(seconds=200, seed=seed, folder=tmp_path, most=most)
    assert result.wrong == [] and result.commands > result.inputs


def test_silence_about_damage_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a reader says nothing of what gzip finds, the fuzzer does."""
    data = gzip.compress(json.dumps({"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "name": "a"}]}).encode())
    monkeypatch.setattr(
        invariants, "new_input", lambda choose: ("t.json.gz", data[:-8] + bytes(8), "gz", 100)
    )
    monkeypatch.setattr(GzipReader, "_finish", lambda self: None)
    result = fuzz_invariants(seconds=200, seed=1, folder=tmp_path, most=1)
    assert any("says nothing of" in wrong for wrong in result.wrong)


@pytest.mark.corpus
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads memory from /proc")
def test_the_viewer_neither_fails_nor_grows(tmp_path: Path) -> None:
    """Under 250 random keys, pastes, mouse events and sizes it runs to the end, logs no error and does not
    grow in the second half.
    """
    run = endure(write_demo(tmp_path)[0], seconds=0, seed=20261122, most_inputs=250)
    assert not run.errors
    assert run.growth_mib < MAX_GROWTH_MIB
