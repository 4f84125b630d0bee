"""How long work ran that an operator launched, itself or through others, by brute force."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tracelane.core.tables.host import op_sums
from tracelane.core.tables.host.op_sums import LinkedWork

WORK = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 12), st.integers(-1, 6)), max_size=12)
"""(start, ns, node) of pieces of work; -1 is no node."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    work=WORK,
    parents=st.tuples(*(st.integers(-1, at - 1) for at in range(7))),
    codes=st.lists(st.integers(0, 3), min_size=7, max_size=7),
    piece=st.sampled_from([1, 2, 5, 1 << 16]),
)
def test_time_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
    work: list[tuple[int, int, int]],
    parents: tuple[int, ...],
    codes: list[int],
    piece: int,
) -> None:
    """Of each code the moments in which any work ran that was launched in its nodes or below them, however
    much of it at once, however deep, and however many pieces are looked at together.
    """
    monkeypatch.setattr(op_sums, "PIECE", piece)
    ran: list[set[int]] = [set() for _ in range(4)]
    for start, ns, node in work:
        while node >= 0:
            ran[codes[node]] |= set(range(start, start + ns))
            node = parents[node]
    start, ns, nodes = (np.array([row[at] for row in work], np.int64) for at in range(3))
    frame: Any = SimpleNamespace(start=start, full_ns=ns, scope=SimpleNamespace(check=lambda: None))
    linked = LinkedWork(frame, nodes, np.array(parents, np.int32))
    assert linked.busy_ns(np.array(codes, np.int64), 4).tolist() == [len(moments) for moments in ran]
