"""What a device that limits a program spends its time on: its widest kernel, else its widest kind of kernels,
for which operator and module, and what of that could be got back at the device's peak.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.arrays import AnyArray, sum_of
from ...base.safe_text import safe
from ...base.short_names import comparable_name, short_name
from ...base.units import about_ns, count_of, format_share
from ...query.groups import Groups, dense
from ...query.lookup import promoted_of
from ..device.efficiency import recoverable_ns
from ..frame.frame import Frame
from ..frame.frame_columns import module_label
from ..frame.kinds import UNKNOWN, KernelType, kind_table
from .facts import SourceFacts, share
from .finding import Evidence, brief
from .kernels import kernels_alike

FIRST_SHARE = 0.1
"""A kernel, an operator or a module with a smaller share of the time is not named beside what limits a
program.
"""
HALF_SHARE = 0.5
"""Beside a kernel with less than this share of the time its widest kind is told; shapes are told of an
operator that has this share of its time with them.
"""
SPREAD_SHARE = 0.25
"""Where no kind has this share of the time, it is spread over all."""
SPREAD = (
    "No single kernel is worth much here: what shortens many at once helps. Fuse them (torch.compile), lower "
    "the precision, change batch or sequence length; `kernels --by kind`, `--by op` and `--by module` say "
    "which have how much."
)


class LimitingWork(NamedTuple):
    """What is said of the work that limits a program, and the longest piece of it."""

    text: str
    short: str
    longest: Evidence
    helps: str = ""  # where no kernel alone is worth looking at


def limiting_work(facts: SourceFacts, work: Frame, kind: KernelType) -> LimitingWork | None:
    """Return what is said of a device's work of one type, None without any. Shares are of its kernels' time:
    what computes is not to blame for what waits for other ranks, nor the other way round.
    """
    every = work if kind == "memory" else work[work.is_type("compute", "communication")]
    own = every[every.is_type(kind)]
    whole = sum_of(own.dur) if kind == "memory" else sum_of(every.dur)
    if not len(own) or not whole:
        return None
    alike, names = kernels_alike(own)
    total = alike.sums(own.dur)
    top = int(np.argmax(total))
    part, name, runs = share(int(total[top]), whole), names[top], own[alike.codes == top]
    longest = facts.on_device(f"its longest run: {name}", runs.top("dur", 1))
    if part < FIRST_SHARE:
        return _of_many(facts, own, whole, f"{name}, {format_share(part)}", len(names))
    text = f"; {format_share(part)} of it in {name}{_of_peak(facts, runs)}"
    widest = _widest_kind(own)
    if part < HALF_SHARE and (rest := share(sum_of(widest.dur), whole)) > part:
        text += f"; {_kind_text(widest)} take {format_share(rest)}{_gain_text(facts, widest)}"
    return LimitingWork(text, f"{format_share(part)} {brief(name, 24)}", longest)


def _of_many(facts: SourceFacts, own: Frame, whole: int, first: str, count: int) -> LimitingWork:
    """Return what is said of work of which no kernel has a share worth naming: `first` is the widest of
    `count` kernels, and its share.
    """
    widest = _widest_kind(own)
    part = share(sum_of(widest.dur), whole)
    kind = _kind_text(widest)
    text = f"; none of {count_of(count, 'kernel')} has a tenth of it (the widest is {first})"
    text += f", and no kind a quarter: {kind} have most," if part < SPREAD_SHARE else f": {kind} take"
    text += f" {format_share(part)}"
    text += _gain_text(facts, widest) + _owners_text(widest, whole)
    longest = widest.top("dur", 1)
    evidence = facts.on_device(f"the longest of {kind}: {short_name(longest.name.tolist()[0])}", longest)
    return LimitingWork(text, f"{format_share(part)} {kind}", evidence, SPREAD)


def _widest_kind(own: Frame) -> Frame:
    """Return the work of the kind that takes most time."""
    total = Groups(own.kind.astype(np.int64), len(kind_table().names)).sums(own.dur)
    return own[own.kind == np.argmax(total)]


def _kind_text(work: Frame) -> str:
    """Return what kernels of one kind are called within a sentence."""
    name = kind_table().names[int(work.kind[0])]
    if name == UNKNOWN:
        return "kernels of unknown kind"
    return f"{name} kernels" if work.is_type("compute")[0] else f"{name}s"


def _owners_text(work: Frame, whole: int) -> str:
    """Return which operator, on which shapes, and which module own most of some work, as far as they have a
    share of the whole that is worth naming.
    """
    parts = []
    owned = work[work.op_at >= 0]
    if (op := _widest(owned, owned.op.codes, whole)) is not None:
        name = short_name(owned.op.texts[int(owned.op.codes[op][0])])
        of_op = owned[op]
        part = format_share(share(sum_of(of_op.dur), whole))
        parts.append(f"{part} is for {brief(name)}{_shapes_text(of_op)}")
    inside = work[work.module_at >= 0]
    if len(inside):
        labels = [comparable_name(module_label(name)) for name in inside.module.texts]
        numbers = {label: at for at, label in enumerate(dict.fromkeys(labels))}
        codes = np.array([numbers[label] for label in labels], np.int64)[inside.module.codes]
        if (module := _widest(inside, codes, whole)) is not None:
            name = safe(list(numbers)[int(codes[module][0])])
            parts.append(f"{format_share(share(sum_of(inside.dur[module]), whole))} in {brief(name)}")
    return f"; {', '.join(parts)}" if parts else ""


def _widest(work: Frame, codes: AnyArray, whole: int) -> AnyArray | None:
    """Return which rows have the code with most time, None where that is no share worth naming."""
    if not len(work):
        return None
    total = Groups(codes.astype(np.int64), int(codes.max()) + 1).sums(work.dur)
    top = int(np.argmax(total))
    is_top: AnyArray = codes == top
    return is_top if share(int(total[top]), whole) >= FIRST_SHARE else None


def _shapes_text(work: Frame) -> str:
    """Return the input shapes of the operators that own some work, where most of its time has the same."""

    def dims_of(part: Frame) -> AnyArray:
        return promoted_of(part.owner_index, "input_dims", part.op_at, -1)

    dims = work.from_parts(dims_of, "owner_row").astype(np.int64)
    known = work[dims >= 0]
    if not len(known):
        return ""
    codes, numbers = dense(dims[dims >= 0])
    total = Groups(codes, len(numbers)).sums(known.dur)
    top = int(np.argmax(total))
    if total[top] < HALF_SHARE * sum_of(work.dur):
        return ""
    shapes = known[codes == top][:1].owner_index.string(int(numbers[top]))
    return f" on {brief(safe(shapes), 48)}"


def _gain_text(facts: SourceFacts, work: Frame) -> str:
    """Return how much of some work could be got back at the peak, where that is known of most of it."""
    known = _peak_shares(facts, work)
    if known is None:
        return ""
    ns, shares = known
    gains = [recoverable_ns(one, part) for one, part in zip(ns.tolist(), shares.tolist())]
    gain = sum_of(np.array(gains, np.int64))
    return f" (at most {about_ns(gain)} could be got back)" if gain else ", all of it at the peak"


def _of_peak(facts: SourceFacts, work: Frame) -> str:
    """Return which share of the device's peak some work reaches, where that is known of most of its time."""
    known = _peak_shares(facts, work)
    if known is None:
        return ""
    ns, shares = known
    return f", at {format_share(float(np.average(shares, weights=ns)))} of the peak"


def _peak_shares(facts: SourceFacts, work: Frame) -> tuple[AnyArray, AnyArray] | None:
    """Return (ns, share of the peak that it reaches) of each piece of some work of which that is known; None
    where that is less than half of its time.
    """
    calls = facts.modelled
    if not len(calls.keys):
        return None
    own = np.isin(calls.work.position, work.position) & (calls.call >= 0)
    ns, shares = calls.work.dur[own], calls.peak_shares[calls.key[calls.call[own]]]
    known = np.isfinite(shares)
    return None if 2 * sum_of(ns[known]) < sum_of(work.dur) else (ns[known], shares[known])
