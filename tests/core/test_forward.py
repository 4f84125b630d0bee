"""The forward operator of a backward one, by sequence numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.corpus import for_files, traces
from tests.events import Event, arrow, complete, open_events
from tracelane.core.query.forward import forward_of
from tracelane.core.query.views import SliceId
from tracelane.core.trace import open_trace
from tracelane.tui.actions.scene import Refusal
from tracelane.tui.actions.select import back_from

FORWARD, BACKWARD = {"pid": 5, "tid": 5}, {"pid": 5, "tid": 6}
NODE = "autograd::engine::evaluate_function: AddmmBackward0"
MAX_ARROWS = 300
"""So many arrows of a file are looked at."""


def numbers(sequence: int, thread: int) -> dict[str, int]:
    return {"Sequence number": sequence, "Fwd thread id": thread}


STEP: list[Event] = [
    complete(0, 40, "aten::linear", "cpu_op", **FORWARD, args=numbers(7, 0)),
    complete(5, 20, "aten::addmm", "cpu_op", **FORWARD, args=numbers(7, 0)),
    complete(50, 10, "aten::relu", "cpu_op", **FORWARD, args=numbers(8, 0)),
    complete(100, 50, NODE, "cpu_op", **BACKWARD),
    complete(110, 20, "AddmmBackward0", "cpu_op", **BACKWARD, args=numbers(7, 1)),
    complete(112, 5, "aten::mm", "cpu_op", **BACKWARD),
    complete(200, 5, "aten::addmm", "cpu_op", **FORWARD, args=numbers(7, 0)),
]
ADDMM, NODE_AT, ADDMM_BACKWARD, MM = 1, 3, 4, 5


@pytest.mark.parametrize("slice_number", [NODE_AT, ADDMM_BACKWARD])
@pytest.mark.parametrize("has_arrow", [False, True])
def test_a_backward_operator_leads_to_its_forward_one(
    tmp_path: Path, slice_number: int, has_arrow: bool
) -> None:
    """With an arrow or without one, from the operator and from autograd's node around it: to the innermost
    that began before; a later pass with the same number is not meant.
    """
    ends = arrow(3, {"ts": 5, **FORWARD}, {"ts": 110, **BACKWARD}, "fwdbwd")
    trace = open_events(tmp_path, [*STEP, *(ends if has_arrow else ())])
    targets = back_from(trace, SliceId(0, slice_number))
    assert [(one.id, one.via) for one in targets] == [
        (SliceId(0, ADDMM), "fwdbwd" if has_arrow else "sequence number")
    ]
    for other in (ADDMM, MM):
        with pytest.raises(Refusal):
            back_from(trace, SliceId(0, other))
    trace.close()


def test_threads_with_the_same_number_are_both_named(tmp_path: Path) -> None:
    """Two threads number for themselves: the last before it of each."""
    other = complete(3, 9, "aten::mul", "cpu_op", pid=5, tid=9, args=numbers(7, 0))
    trace = open_events(tmp_path, [*STEP, other])
    names = [trace.detail(one.id).name for one in back_from(trace, SliceId(0, ADDMM_BACKWARD))]  # type: ignore[union-attr]
    assert names == ["aten::mul", "aten::addmm"]
    trace.close()


@for_files("path", traces("cpu/*", "gpu/*"))
def test_arrows_of_kineto_say_the_same(path: Path, corpus_cache: Path) -> None:
    """Where a file has arrows from forward to backward, the numbers name the same operator."""
    trace = open_trace([path], index_dir=corpus_cache)
    index = trace.indexes[0]
    categories = index.column("flows.category")
    own = [number for number, name in enumerate(index.categories) if name == "fwdbwd"]
    arrows = np.flatnonzero(np.isin(categories, own))[:MAX_ARROWS]
    sources, targets = index.column("flows.source")[arrows], index.column("flows.target")[arrows]
    known = 0
    for source, target in zip(sources.tolist(), targets.tolist()):
        forward = forward_of(index, target)
        starts = [index.start(one) for one in forward]  # an arrow says no more of two that begin together
        assert not forward or index.start(source) in starts, (target, forward, source)
        known += bool(forward)
    assert known or not len(arrows) or not index.column("promoted.fwd_thread.value").any()
    trace.close()
