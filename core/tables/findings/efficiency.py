"""Rules for programs that the device limits: what of its work could be spared, by the peak of the device, the
bytes that it moves to and fro, the precision of its products, and how much of the device they fill.
"""

from __future__ import annotations

import re

import numpy as np

from ...base.arrays import AnyArray, distinct, sum_of
from ...base.numbers import whole_number
from ...base.short_names import short_name
from ...base.units import about_ns, count_of, format_share
from ...index.store import Index
from ...query.groups import Groups
from ...query.lookup import promoted_of
from ..device.efficiency import ModelledCalls, recoverable_ns
from ..device.op_costs import passed_by
from ..device.peaks import device_of, peak_of
from ..frame.frame import Frame
from ..rule_threshold import OWN, Limits
from .facts import SourceFacts, share
from .finding import Evidence, NotJudged, Observation, Outcome, brief
from .rule import GUIDE, PYTORCH, Rule

ROOFLINE = "the roofline model (Williams et al., 2009)"
PRODUCTS = ("gemm", "convolution", "moe")
"""Kinds of kernels that are products of matrices."""
IN_FP32 = re.compile(r"sgemm|scudnn|(?<![a-z])simt|f32f32_f32f32|ffma", re.IGNORECASE)
ON_TENSOR_CORES = re.compile(r"tf32|tensorop|s1688|s16816|s884|bf16|f16", re.IGNORECASE)
NAMED = 4
"""So many operators of chains are named."""
NO_SHAPES = NotJudged("no operator with work on the device has input shapes (record_shapes=True)")
NO_PEAK = NotJudged("the trace does not name a device whose peak is known")


def _is_limit(facts: SourceFacts, limits: Limits) -> bool:
    """Tell whether the program waits for what a device computes."""
    return facts.types["compute"].length >= limits["busy_share"] * facts.span_ns > 0


@Rule(
    "below-peak",
    "Far below the peak",
    "a device computes at least {busy_share} of the time looked at, and operators that reach less than "
    "{peak_share} of its peak, of FLOP/s or bytes/s, whichever is nearer, could be shorter by {share} of "
    "that time at the peak",
    f"{ROOFLINE}; the limits are {OWN}",
    {"busy_share": 0.7, "peak_share": 0.5, "share": 0.05},
    helps=(
        "`efficiency` lists them by what could be got back. Products: lower precision, larger sizes, "
        "multiples of 64. Attention: another backend. What only moves memory: contiguous layouts, fusion "
        "(torch.compile)."
    ),
    needs=("device",),
)
def below_peak(facts: SourceFacts, limits: Limits) -> Outcome:
    if not _is_limit(facts, limits):
        return None
    calls = facts.modelled
    if all(cost is None for cost in calls.costs):
        return NO_SHAPES
    if peak_of(*calls.device) is None:
        return NO_PEAK
    gains = np.array(
        [
            recoverable_ns(ns, part) if part < limits["peak_share"] else 0
            for ns, part in zip(calls.key_ns.tolist(), calls.peak_shares.tolist())
        ],
        np.int64,
    )
    gain = sum_of(gains)
    if not gain or gain < limits["share"] * facts.span_ns:
        return None
    top = int(np.argmax(gains))
    name = calls.keys[top].name.removeprefix("aten::")
    text = (
        f"{name.lstrip('_')} at {format_share(float(calls.peak_shares[top]))}: of "
        f"{about_ns(int(calls.key_ns[top]))} it could spare {about_ns(int(gains[top]))}"
    )
    others = int(np.count_nonzero(gains)) - 1
    if others:
        text += f"; with {count_of(others, 'more operator or shape', 'more operators and shapes')} like it "
        text += about_ns(gain)
    work = _work_of(calls, gains[calls.key] > 0)
    first = _work_of(calls, calls.key == top).top("dur", 1)
    evidence = (facts.on_device(f"the longest of {name}", first),)
    peak = format_share(float(calls.peak_shares[top]))
    short = f"{brief(name.lstrip('_'))} at {peak} of peak: {about_ns(int(gains[top]))}"
    return _observation((text, short), evidence, work, gain)


def _observation(
    texts: tuple[str, str], evidence: tuple[Evidence, ...], work: Frame, gain: int
) -> Observation:
    (text, short), claim, positions = texts, work.union(), distinct(work.position)
    return Observation(text, evidence, claim, min(gain, claim.length), work=positions, short=short)


def _work_of(calls: ModelledCalls, which: AnyArray) -> Frame:
    """Return the work that some calls launched."""
    known = np.flatnonzero(calls.call >= 0)
    return calls.work[known[which[calls.call[known]]]]


@Rule(
    "fusable",
    "Elementwise operators that one kernel could do",
    "a device computes at least {busy_share} of the time looked at, and elementwise operators one after "
    "another on a stream, each on what the one before wrote, spend {share} of that time on writing and "
    "reading it",
    f"{PYTORCH} (fusion); the limits are {OWN}",
    {"busy_share": 0.7, "share": 0.05},
    helps=(
        "torch.compile fuses such operators, or a fused kernel of a library (norms, rotary embeddings, "
        "SwiGLU)."
    ),
    needs=("device",),
)
def fusable(facts: SourceFacts, limits: Limits) -> Outcome:
    if not _is_limit(facts, limits):
        return None
    calls = facts.modelled
    if all(cost is None for cost in calls.costs):
        return NO_SHAPES
    spared, follows = _spared(calls)
    gain = sum_of(np.rint(spared).astype(np.int64))
    if not gain or gain < limits["share"] * facts.span_ns:
        return None
    is_link = spared > 0
    chains = int(np.count_nonzero(is_link & ~follows))
    of_key = Groups(calls.key, len(calls.keys)).sums(np.rint(spared).astype(np.int64))
    dearest = np.argsort(-of_key, kind="stable")[: np.count_nonzero(of_key)]
    names = [calls.keys[at].name.removeprefix("aten::") for at in dearest.tolist()]
    some = ", ".join(list(dict.fromkeys(names))[:NAMED])
    text = (
        f"{count_of(int(np.count_nonzero(is_link)), 'elementwise operator')} in {count_of(chains, 'chain')} "
        f"({some}) take {about_ns(sum_of(calls.ns[is_link]))}; {about_ns(gain)} of it goes into writing "
        "and reading what one kernel would keep"
    )
    work = _work_of(calls, is_link)
    longest = _work_of(calls, np.arange(len(spared)) == int(np.argmax(spared)))
    evidence = (facts.on_device("the longest in a chain", longest.top("dur", 1)),)
    short = f"{brief(names[0], 24)} and neighbours, not fused: {about_ns(gain)}"
    return _observation((text, short), evidence, work, gain)


def _spared(calls: ModelledCalls) -> tuple[AnyArray, AnyArray]:
    """Return how many ns of each call one kernel with its neighbours would spare, and whether the call
    follows another of its chain. Of two elementwise operators in a row, where the second reads as many
    elements as the first wrote, one kernel neither writes nor reads them: each spares as much of its time as
    of its bytes.

    Three operators of 10 ns that read and write n elements each: the first spares its write (5 ns), the
    second its read and its write (10 ns), the third its read (5 ns); one kernel of 10 ns is left.
    """
    passed = [passed_by(key.name, key.call) for key in calls.keys]
    spared, follows = np.zeros(len(calls.ns)), np.zeros(len(calls.ns), np.bool_)
    order = np.lexsort((calls.work.start, calls.work.stream, calls.work.device_row))
    call, stream = calls.call[order], np.stack([calls.work.stream, calls.work.device_row])[:, order]
    same = (stream[:, 1:] == stream[:, :-1]).all(axis=0)
    pairs = np.flatnonzero(same & (call[1:] != call[:-1]) & (call[1:] >= 0) & (call[:-1] >= 0))
    first, second = call[pairs], call[pairs + 1]
    links, which = np.unique(np.stack([calls.key[first], calls.key[second]]), axis=1, return_inverse=True)
    parts = np.zeros((2, links.shape[1]))
    for at, (one, other) in enumerate(links.T.tolist()):
        before, after, costs = passed[one], passed[other], (calls.costs[one], calls.costs[other])
        if before is None or after is None or before.output not in after.inputs or None in costs:
            continue
        parts[:, at] = [min(0.5, before.bytes / max(1, cost[1])) for cost in costs if cost is not None]
    which = which.reshape(-1)
    # A call is the first of one pair, and the second of one; with work on several streams that of one stream.
    spared[first] += parts[0, which] * calls.ns[first]
    spared[second] += parts[1, which] * calls.ns[second]
    follows[second[parts[1, which] > 0]] = True
    return spared, follows


@Rule(
    "fp32-products",
    "Products in fp32 without tensor cores",
    "a device with tensor cores computes at least {busy_share} of the time looked at, and products in fp32 "
    "that do not use them could be shorter by {share} of that time with TF32, by the device's peaks",
    f"{GUIDE} (tensor cores); the limits are {OWN}",
    {"busy_share": 0.5, "share": 0.05},
    helps=(
        'torch.set_float32_matmul_precision("high") lets fp32 products use TF32 '
        "(torch.backends.cudnn.allow_tf32 convolutions); autocast to bf16 halves their memory, too."
    ),
    needs=("device",),
)
def fp32_products(facts: SourceFacts, limits: Limits) -> Outcome:
    if not _is_limit(facts, limits):
        return None
    work = facts.work
    plain = work.named(IN_FP32) & ~work.named(ON_TENSOR_CORES) & _are_products(work)
    if not plain.any():
        return None
    peak = peak_of(*device_of(facts.index))
    if peak is None:
        return NO_PEAK
    quick, slow = (peak.get(kind, {}).get(form) for kind, form in (("matrix", "tf32"), ("vector", "fp32")))
    if not quick or not slow or quick <= slow:
        return None
    own = work[plain]
    whole = sum_of(own.dur)
    gain = round(whole * (1 - slow / quick))
    if gain < limits["share"] * facts.span_ns:
        return None
    longest = own.top("dur", 1)
    text = (
        f"{count_of(len(own), 'product')} in fp32 without tensor cores, most of all "
        f"{short_name(longest.name.tolist()[0])}, take {about_ns(whole)}, "
        f"{format_share(share(whole, sum_of(work.dur)))} of the kernel time; with TF32 at most "
        f"{about_ns(gain)} less"
    )
    short = f"{brief(short_name(longest.name.tolist()[0]))} in fp32: {about_ns(gain)} to spare"
    return _observation((text, short), (facts.on_device("the longest of them", longest),), own, gain)


def _are_products(work: Frame) -> AnyArray:
    products: AnyArray = np.any([work.is_kind(kind) for kind in PRODUCTS], axis=0)
    return products


@Rule(
    "few-blocks",
    "Products that fill little of the device",
    "a device computes at least {busy_share} of the time looked at, and its products of matrices with at "
    "most {fill_share} as many blocks as it has multiprocessors leave the rest of them without work for "
    "{share} of that time",
    f"{GUIDE} (occupancy); the limits are {OWN}",
    {"busy_share": 0.7, "fill_share": 0.5, "share": 0.05},
    helps=(
        "A larger batch, several products in one (batched or grouped), split-K, or other work on a second "
        "stream meanwhile."
    ),
    needs=("device",),
)
def few_blocks(facts: SourceFacts, limits: Limits) -> Outcome:
    count = _multiprocessors(facts.index)
    if not _is_limit(facts, limits) or not count:
        return None
    work = facts.work[_are_products(facts.work)]
    blocks = _blocks_of(facts.index, work)
    few = (blocks > 0) & (blocks <= limits["fill_share"] * count)
    gain = sum_of(np.rint(work.dur[few] * (1 - blocks[few] / count)).astype(np.int64))
    if not gain or gain < limits["share"] * facts.span_ns:
        return None
    own = work[few]
    longest = own.top("dur", 1)
    name, usual = short_name(longest.name.tolist()[0]), int(np.median(blocks[few]))
    text = (
        f"{len(own):,} of {count_of(len(work), 'product')} fill few of the {count} multiprocessors, half of "
        f"them {usual:,} or fewer: of {about_ns(sum_of(own.dur))} a full device could spare "
        f"{about_ns(gain)}; the longest is {name}"
    )
    short = f"{brief(name, 24)}: too few blocks, {about_ns(gain)} to spare"
    return _observation((text, short), (facts.on_device("the longest of them", longest),), own, gain)


def _multiprocessors(index: Index) -> int:
    """Return how many multiprocessors the devices of a file have, 0 where it does not say, or they differ."""
    said = {one.get("numSms") for one in index.device_properties}
    count = said.pop() if len(said) == 1 else 0
    return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0


def _blocks_of(index: Index, work: Frame) -> AnyArray:
    """Return how many blocks each piece of work has, 0 where that is not known."""
    numbers = promoted_of(index, "grid", work.position.astype(np.int64), -1)
    counts = {number: _product(index.string(number)) for number in distinct(numbers[numbers >= 0]).tolist()}
    return np.array([counts.get(number, 0) for number in numbers.tolist()], np.int64)


def _product(grid: str) -> int:
    """Return the product of the numbers of a grid: "[132, 1, 1]" -> 132; 0 for other text."""
    parts = re.findall(r"\d{1,9}", grid)
    return int(np.prod([whole_number(part) for part in parts], dtype=np.float64)) if len(parts) == 3 else 0
