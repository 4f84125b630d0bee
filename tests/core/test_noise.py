"""A change is called slower or faster only beyond the noise of what repeats."""

from __future__ import annotations

import random

import pytest

from tracelane.core.tables.noise import compare_values, spread_of, student_limit


def runs(seed: int, count: int, middle: float, deviation: float) -> list[float]:
    """Return normal values, every tenth or so far off, as first steps and collections make them."""
    pick = random.Random(seed)
    return [
        pick.gauss(middle, deviation) + (5 * deviation * pick.random() if pick.random() < 0.1 else 0)
        for _ in range(count)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("count", "most"), [(3, 40), (4, 20), (8, 20), (30, 20), (200, 20)])
def test_unchanged_runs_are_within_the_noise(count: int, most: int) -> None:
    """Of 1,000 pairs of runs of one program 20 are called changed at most (of three steps 40)."""
    wrong = sum(
        compare_values(runs(2 * n, count, 100, 5), runs(2 * n + 1, count, 100, 5)).verdict
        != "within the noise"
        for n in range(1000)
    )
    assert wrong <= most


@pytest.mark.parametrize(("count", "change"), [(8, 12.0), (30, 6.0), (200, 3.0)])
def test_real_changes_are_found(count: int, change: float) -> None:
    """Changes well beyond the error of the median are told, with their sign."""
    verdicts = [
        compare_values(runs(2 * n, count, 100, 2), runs(2 * n + 1, count, 100 + sign * change, 2)).verdict
        for n, sign in ((n, 1 if n % 2 else -1) for n in range(200))
    ]
    right = sum(verdict == ("slower" if n % 2 else "faster") for n, verdict in enumerate(verdicts))
    assert right >= 190


def test_one_value_tells_no_noise() -> None:
    """Where neither side repeats the noise is unknown; where one does, it stands for both."""
    assert compare_values([100.0], [104.7]).verdict == "noise unknown"
    assert compare_values([100.0, 100.0], [104.7]).verdict == "noise unknown"
    assert compare_values([100.0], [100.1, 99.9, 100.0, 100.2]).verdict == "within the noise"
    assert compare_values([150.0], [100.1, 99.9, 100.0, 100.2]).verdict == "faster"


def test_one_step_that_is_off_does_not_move_the_median() -> None:
    """A first step ten times as long changes neither median nor verdict."""
    usual = [100.0, 101.0, 99.0, 100.0, 102.0, 98.0]
    assert compare_values(usual, [1000.0, *usual]).verdict == "within the noise"
    assert spread_of([5.0, 5.0, 5.0, 5.0, 9.0]).deviation > 0
    assert spread_of([5.0, 5.0, 5.0]).deviation == 0
    assert compare_values([5.0] * 4, [5.0] * 4).verdict == "within the noise"


def test_few_values_need_more() -> None:
    """The limit falls from that of few degrees of freedom to three standard deviations."""
    limits = [student_limit(n) for n in range(2, 200)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] > 9 and limits[-1] == 3.0
