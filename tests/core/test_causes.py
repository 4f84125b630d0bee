"""Programs with one known cause: findings say it first, and say nothing of a clean program."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from shutil import rmtree

import pytest

from tests.causes import CAUSES, NAMES, SECOND, Program, Rank, program, run, write
from tests.corpus import later
from tracelane.core.base.short_names import short_name
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.judge import RULES, findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

SEEDS = [0, SECOND], later([1, 2, SECOND + 1, SECOND + 2])
"""Of each cause and family; other seeds do as well."""


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


def says(p: Program, first: Finding | None) -> bool:
    """Tell whether the first finding names the cause of a program, and the rank or kernel to blame."""
    if first is None or first.rule not in NAMES[p.cause]:
        return first is None and not NAMES[p.cause]
    if p.cause == "late-rank":
        return f"{'Process' if p.merged else 'Rank'} {late_number(p)} is last in" in first.text
    if p.cause in ("heavy-kernel", "uneven-kernel"):
        return short_name(p.chosen) in first.text
    return True


def late_number(p: Program) -> int:
    """Return how the late rank is called in its trace."""
    return Rank(p, p.late).host if p.merged else p.late


@pytest.mark.slow
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_first_line_names_the_cause(seeds: list[int], tmp_path: Path) -> None:
    """In 95 of 100 programs the first loss is the one cause; clean programs have none."""
    missed = []
    for cause in CAUSES:
        for seed in seeds:
            p = program(seed, cause)
            folder = tmp_path / f"{cause}-{seed}"
            path = write(p, folder / "traces")
            report = findings(Scope(open_trace(path, index_dir=folder / "index")))
            if not says(p, next(iter(report.losses), None)):
                missed.append((cause, seed, [finding.rule for finding in report.losses]))
            rmtree(folder)
    assert not [one for one in missed if one[0] == "clean"]
    assert len(missed) <= 0.05 * len(seeds) * len(CAUSES), missed


@pytest.mark.slow
@pytest.mark.parametrize("cause", ["late-rank", "first-use", "item", "copies", "lost-kernels"])
def test_a_stretch_of_time_is_claimed_once(cause: str, tmp_path: Path) -> None:
    """What the losses of a program claim adds up to no more than the time looked at; effects have a cause."""
    path = write(program(2, cause), tmp_path / "traces")
    report = findings(Scope(open_trace(path, index_dir=tmp_path / "index")))
    span = next(one.claimed_ns / one.share for one in report.losses if one.share)
    of_part: dict[str, int] = {}
    for one in report.losses:
        of_part[one.of_part] = of_part.get(one.of_part, 0) + one.claimed_ns
        assert not one.caused_by or one.rule in RULES[one.caused_by].explains
    assert max(of_part.values()) <= 1.001 * span
    assert all(not one.claimed_ns for one in report.of_kind("headline"))
