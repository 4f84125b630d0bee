"""Two recordings of the same: each row meets its own, and nothing has changed."""

from __future__ import annotations

import numpy as np
import pytest

from tests.rank_files import straggler_files
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.compare.compare import BOTH, PRESENCE, compare, delta_key
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import Trace, open_trace

OF_FILES = frozenset({"doctor", "explain", "findings", "sections"})
"""Analyses whose rows say which file they are of, or that look at the file."""
ORDINALS = ("rank", "number", "slowest", "worst", "step")
"""Numbers that name something: they have no change."""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[Trace]:
    """Two ranks, recorded into two folders under other names."""
    folder = tmp_path_factory.mktemp("twice")
    traces = []
    for name in ("first", "second"):
        ranks = sorted(straggler_files(folder / name, 2, 1).iterdir())
        files = [path.rename(path.with_name(f"{name}-{path.name}")) for path in ranks]
        traces.append(open_trace(files, index_dir=folder / "index"))
    return traces


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in OF_FILES])
def test_rows_meet_their_own(name: str, recordings: list[Trace]) -> None:
    """Whatever files are called, no row is new or gone, and no number differs, names of ranks among them."""
    try:
        past, now = (BY_NAME[name].run(Scope(trace, clocks=trace.clocks)) for trace in recordings)
        tables = {table: compare(now[table], past[table]) for table in now.names}
    except UsageError:
        pytest.skip("not of such a trace")
    for table in tables.values():
        assert set(table.texts(PRESENCE)) <= {BOTH}, table.name
        keys = {column.key for column in table.columns}
        for key in keys & {delta_key(key) for key in keys}:
            values = np.asarray(table.data[key], np.float64)
            assert not values[~np.isnan(values)].any(), (table.name, key)
        assert not keys & {delta_key(key) for key in ORDINALS}
