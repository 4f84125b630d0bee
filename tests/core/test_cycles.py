"""What an analysis computed goes with its answer: no cycle of objects keeps columns until Python looks for
cycles, which a viewer that stands still may not do for hours.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest

from tests.corpus import ROOT
from tracelane.core.base.errors import TracelaneError
from tracelane.core.tables.analysis import Analysis
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import Trace, open_trace

SAMPLES = ROOT / "tests" / "samples"
NAMES = ("cuda/activities.pt.trace.json.gz", "cuda/gloo.pt.trace.json.gz", "compiled/model.pt.trace.json.gz")
RUNS = [
    (row, dict(options))
    for row in ANALYSES
    for options in dict.fromkeys([(), *(panel.options for panel in row.panels)])
]


@contextmanager
def cycles() -> Iterator[list[Any]]:
    """Collect in the list what is left in cycles that nobody holds."""
    left: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield left
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def columns_of(objects: list[Any]) -> list[str]:
    """Return what holds a column among some objects, and how long that is."""
    return [
        f"{type(one).__name__}: {len(each):,}"
        for one in objects
        for each in gc.get_referents(one)
        if isinstance(each, np.ndarray) and each.base is None and each.ndim and len(each) > 1
    ]


@pytest.fixture(scope="module", params=NAMES)
def trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return open_trace(SAMPLES / request.param, index_dir=tmp_path_factory.mktemp("cycles"))


@pytest.mark.parametrize(("row", "options"), RUNS, ids=lambda each: getattr(each, "name", None))
def test_no_columns_stay_in_cycles(row: Analysis, options: dict[str, Any], trace: Trace) -> None:
    """After an answer has gone, no cycle holds a column that was computed for it."""
    with cycles() as left, suppress(TracelaneError):  # what this trace cannot be asked
        list(row.run(Scope(trace), **options))
    assert columns_of(left) == []


def test_a_cycle_is_seen() -> None:
    """A column in a cycle is told of, by what holds it."""
    with cycles() as left:
        held: list[Any] = [np.arange(7)]
        held.append(held)
        del held
    assert columns_of(left) == ["list: 7"]
