"""Job traces of FLEX, the runtime of the AIU's older software: device work told by names alone.

They hold no categories and no labels: pids are ranks, and what a slice is stands at the end of its name
(`addmm_MatMul Cmpt Exec`). Names as in IBM's aiu-trace-analyzer, which reads the same files.
"""

from __future__ import annotations

import re

import numpy as np

from ..base.arrays import U32, distinct
from ..base.kineto import COLLECTIVE_STEP
from ..base.late_pattern import late_pattern
from ..base.numbers import whole_number
from .store import Index

WORK = late_pattern(r"\bCmpt Exec\b|\bDma[IO]\b|\bSenRdma(Send|Rec)|\bAllReduce\b|^\[\w+,\w*,\d*\]")
"""Computing, moving data in and out, and between cards. `Cmpt Prep` is none: kernels are prepared while
others run, several at a time (TS2 to TS3 of four in a public sample overlap), and wait for their turn.
"""
PREPARES = late_pattern(r"\bCmpt Prep\b")
"""A kernel is prepared: by the device where the stamps of its slices say so, else by the host."""
SYNC_GROUP = late_pattern(r"\[sync=([^\]]+)\]")
"""In names of what takes part in a collective: `SenRdmaSend_1 [sync=AllReduce_all_reduce_4_s3_r0x7_6]`."""
ROUND_TRIP = late_pattern(r"\b(Flex|AIU) Round ?[Tt]rip\b|\bExecute Graph\b")
"""One job from its start to its end: what repeats where jobs do."""
BYTES = late_pattern(r"\[(\d+) ?B\]")
"""In names of what moves data between cards: `SenRdmaSend_2 [524288B] [sync=…]`."""
IN_NAMES = {"bytes": BYTES, "peer": late_pattern(r"Recv_(\d+)_", re.IGNORECASE)}
"""Arguments that names hold where a slice has none: `SenRdmaRecv_3_1` receives from rank 3. The number at the
end counts, as in aiu-trace-analyzer.
"""
_MARKS = (
    " Cmpt Exec",
    " Cmpt Prep",
    "Flex RoundTrip",
    "AIU Roundtrip",
    "SenRdmaSend",
    "SenRdmaRec",
    "DmaI",
    "DmaO",
)


def is_flex(index: Index) -> bool:
    """Tell whether a source is a FLEX job trace: no categories, and names as FLEX gives them."""
    if any(index.categories):
        return False
    return any(index.string_numbers(mark, inside=True, limit=1) for mark in _MARKS)


def flex_work(index: Index) -> U32:
    """Return the numbers of the names that device work has in a FLEX job trace, ascending."""
    return _numbers(index, WORK)


def sync_groups(index: Index) -> dict[int, str]:
    """Return the sync group of each name (by its number) that tells one in a FLEX job trace; of a name that
    says its collective, as COLLECTIVE_STEP has it, that part.
    """
    numbers = flex_work(index)
    names = zip(numbers.tolist(), index.strings(numbers))
    return {
        number: match[1]
        for number, name in names
        if (match := COLLECTIVE_STEP.match(name) or SYNC_GROUP.search(name))
    }


def numbers_in_names(index: Index, key: str, names: U32) -> list[int | None]:
    """Return an argument of IN_NAMES as each of these names (numbers) has it, None where there is none."""
    numbers, which = np.unique(names, return_inverse=True)
    matches = [IN_NAMES[key].search(text) for text in index.strings(numbers)]
    values = [None if match is None else whole_number(match[1]) for match in matches]
    return [values[at] for at in which.tolist()]


def preparations(index: Index) -> U32:
    """Return the numbers of the names of kernels being prepared, ascending."""
    return _numbers(index, PREPARES)


def round_trips(index: Index) -> U32:
    """Return the numbers of the names of whole jobs, ascending."""
    return _numbers(index, ROUND_TRIP)


def host_calls(index: Index) -> U32:
    """Return the numbers of the names of all else, ascending: preparing, waiting, converting."""
    names = distinct(index.column("slices.name"))
    return names[~np.isin(names, np.concatenate([flex_work(index), round_trips(index)]))]


def _numbers(index: Index, pattern: re.Pattern[str]) -> U32:
    names = distinct(index.column("slices.name"))
    fits = [bool(pattern.search(text)) for text in index.strings(names)]
    return names[np.array(fits, np.bool_)]
