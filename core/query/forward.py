"""The forward operator that a backward one belongs to, by autograd's sequence numbers.

Autograd numbers the operators of a thread that it will differentiate. The backward operator has the number of
its forward one, and the number of that one's thread (`Fwd thread id`, 0 of forward operators). Of operators
inside each other that have one number the innermost is meant, as Kineto draws its arrows: the last to begin.
"""

from __future__ import annotations

import numpy as np

from ..base.arrays import I64
from ..base.kineto import OPS
from ..index.store import Index
from .lookup import category_mask, lanes_of, promoted_of

SEQUENCE, FORWARD_THREAD = "sequence", "fwd_thread"


def forward_of(index: Index, position: int) -> list[int]:
    """Return the positions of the operators that a backward one may belong to, one of each lane, by start:
    the last with its number that begins before it. Nothing for a slice that is no backward operator.

    Numbers are a thread's own, so two threads may have the same.
    """
    own = np.array([position], np.int64)
    number = int(promoted_of(index, SEQUENCE, own, -1)[0])
    if number < 0 or not int(promoted_of(index, FORWARD_THREAD, own)[0]):
        return []
    alike = index.column(f"promoted.{SEQUENCE}.value") == number
    positions = index.column(f"promoted.{SEQUENCE}.position")[alike].astype(np.int64)
    is_op = category_mask(index, OPS)[index.column("slices.category")[positions]]
    is_forward = promoted_of(index, FORWARD_THREAD, positions) == 0
    positions = positions[is_op & is_forward]
    starts = index.column("slices.start")[positions].astype(np.int64)
    is_earlier = starts < index.start(position)
    return _last_of_each_lane(index, positions[is_earlier], starts[is_earlier])


def _last_of_each_lane(index: Index, positions: I64, starts: I64) -> list[int]:
    last: dict[int, tuple[int, int]] = {}
    for lane, start, position in zip(
        lanes_of(index, positions).tolist(), starts.tolist(), positions.tolist()
    ):
        last[lane] = max(last.get(lane, (start, position)), (start, position))
    return [position for _, position in sorted(last.values())]
