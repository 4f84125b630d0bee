"""Programs with one known cause: findings say it first, and say nothing of a clean program."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.causes import CAUSES, NAMES, program, run, write
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import open_trace

NAMED = (
    "late-rank",
    "slow-loader",
    "recompilation",
    "copies",
    "heavy-kernel",
    "uneven-kernel",
    "tiny-kernels",
)
"""Causes that some line names today."""


def losses(cause: str, seed: int, folder: Path) -> list[Finding]:
    """What findings call a loss in one of the programs."""
    path = write(program(seed, cause), folder / "traces")
    return list(findings(Scope(open_trace(path, index_dir=folder / "index"))).losses)


@pytest.mark.parametrize("cause", CAUSES)
def test_the_programs_could_have_run(cause: str) -> None:
    """Work begins after its call, a stream does one thing at a time, slices of a thread nest."""
    for rank in run(program(1, cause)):
        slices = [e for e in rank.events if e["ph"] == "X"]
        calls = {
            e["args"]["correlation"]: e
            for e in slices
            if e["pid"] == rank.host and "correlation" in e["args"]
        }
        work = [e for e in slices if e["pid"] == rank.device]
        assert work and all(calls[e["args"]["correlation"]]["ts"] < e["ts"] for e in work)
        for stream in {e["tid"] for e in work}:
            row = sorted((e["ts"], e["ts"] + e["dur"]) for e in work if e["tid"] == stream)
            assert all(one[1] <= other[0] for one, other in pairwise(row))
        for tid in (1, 2):
            ends: list[float] = []
            for start, end in sorted(
                (e["ts"], -e["ts"] - e["dur"]) for e in slices if (e["pid"], e["tid"]) == (rank.host, tid)
            ):
                while ends and ends[-1] <= start + 1e-6:
                    ends.pop()
                assert not ends or -end <= ends[-1] + 1e-6
                ends.append(-end)


def test_a_seed_is_a_program() -> None:
    """The same seed makes the same trace, another one another."""
    first, again, other = (run(program(seed, "item"))[0].events for seed in (3, 3, 4))
    assert first == again != other


@pytest.mark.slow
@pytest.mark.parametrize("cause", NAMED)
def test_some_line_names_the_cause(cause: str, tmp_path: Path) -> None:
    """Some line names what is wrong with the program."""
    for seed in range(3):
        rules = {finding.rule for finding in losses(cause, seed, tmp_path / str(seed))}
        assert rules & NAMES[cause], seed
