"""A kernel's chain and an op's kernels as lines of text."""

from __future__ import annotations

from collections import Counter

from tracelane.core.base.arrays import I64, sum_of
from tracelane.core.base.kineto import ANNOTATIONS, MODULE, OPS, RUNTIME, STEP
from tracelane.core.base.safe_text import safe
from tracelane.core.base.short_names import short_name
from tracelane.core.base.units import count_of, format_count, format_moment, format_ns
from tracelane.core.export.chains import SourceChains
from tracelane.core.query.launches import Launched
from tracelane.core.query.lookup import SliceList

MAX_NAMES = 8
"""The most names of kernels that are listed; the rest is counted."""
MAX_NAME_LENGTH = 60
"""Characters of a name within a list of them."""
MAX_POSITIONS = 5
"""The most positions of a graph that are listed: those whose durations differ most."""
NOT_SAID = "the trace does not say what launched this: no flow, no correlation, no External id leads there"


def chain_text(chains: SourceChains, zero: int, position: int) -> str:
    """Return a kernel's chain, outermost first, a slice a line: start after `zero`, duration, what it is, its
    name.
    """
    chain = chains.chain(position)
    launch = [] if chain.launch is None else [chain.launch]
    slices = chains.slices([*chain.ancestors, *launch, position])
    lines = _lines(slices, zero, kernel=position)
    if not chain.via:
        return "\n".join([*lines, NOT_SAID])
    lines.append(f"known by {chain.via}")
    lines += [f"{key} by capture: {safe(text)}" for key, text in chains.captured(position).items()]
    if chain.launch_delay is not None:
        delay = f"launch delay {format_ns(chain.launch_delay)} (end of the launch to start of the kernel)"
        if chain.launch_delay < 0 and chain.launch is not None:
            is_early = slices.starts[-1] < slices.starts[-2]
            delay += ": their clocks disagree" if is_early else ": it began while the launch ran"
        elif chain.queue_wait:
            delay += f", of it {format_ns(chain.queue_wait)} behind other work of its lane"
        lines.append(delay)
    if chain.launch is not None:
        unit = chains.launched(chain.launch)
        if len(unit.kernels) > 1:
            lines.append(f"this launch started {_amount(unit)}, {_shape(unit)}")
            lines += _replays(chains, chain.launch)
    return "\n".join(lines)


def launched_text(chains: SourceChains, zero: int, position: int) -> str:
    """Return what was launched under a slice: count, device time, and the kernels by name."""
    lines = _lines(chains.slices([position]), zero)
    launched = chains.launched(position)
    if not len(launched.kernels):
        return f"{lines[0]}\nlaunches no device work in the trace"
    by_name: Counter[str] = Counter()
    times: Counter[str] = Counter()
    kernels = chains.slices(launched.kernels)
    for name, duration in zip(kernels.names, kernels.durations.tolist()):
        by_name[name] += 1
        times[name] += duration
    names_text = [
        f"{by_name[name]} × {_short(name)} {format_ns(time)}" for name, time in times.most_common(MAX_NAMES)
    ]
    if len(times) > MAX_NAMES:
        names_text.append(f"{format_count(len(times) - MAX_NAMES)} more names")
    calls = "one launch" if launched.launches == 1 else f"{format_count(launched.launches)} launches"
    lines += [f"launches {_amount(launched)}: {', '.join(names_text)}", f"by {calls}, {_shape(launched)}"]
    return "\n".join([*lines, *_replays(chains, position)])


def _replays(chains: SourceChains, launch: int) -> list[str]:
    """Compare a graph's replays: their kernel time, and the positions whose durations differ most."""
    replays = chains.replays(launch)
    if replays is None or len(replays.launches) < 2:
        return []
    totals = replays.durations.sum(axis=1)
    position = f"{format_count(replays.this + 1)} of {format_count(len(totals))}"
    lines = [f"replay {position} of the same kernels: {_range(totals, replays.this)}"]
    spread = replays.spread
    for column in sorted(range(len(spread)), key=lambda at: (-int(spread[at]), at))[:MAX_POSITIONS]:
        if spread[column]:
            name = chains.slices([replays.kernels[replays.this, column]]).names[0]
            times = _range(replays.durations[:, column], replays.this)
            lines.append(f"  kernel {column + 1:>4} {times}  {_short(name)}")
    return lines


def _range(times: I64, this: int) -> str:
    mean = sum_of(times) // len(times)
    low, high = format_ns(int(times.min())), format_ns(int(times.max()))
    return f"{format_ns(int(times[this]))} here, {format_ns(mean)} mean, {low} to {high}"


def _short(name: str) -> str:
    text = safe(short_name(name))
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def _amount(launched: Launched) -> str:
    return f"{count_of(len(launched.kernels), 'kernel')}, {format_ns(launched.total)}"


def _shape(launched: Launched) -> str:
    text = f"busy {format_ns(launched.busy)} of {format_ns(launched.end - launched.start)}"
    if launched.gaps:
        gaps = count_of(launched.gaps, "gap")
        text += f", {gaps} inside: {format_ns(launched.idle)}, the longest {format_ns(launched.longest_gap)}"
    return text


def _lines(slices: SliceList, zero: int, kernel: int = -1) -> list[str]:
    """Return a line for each slice, each indented below the one before; `kernel` is the position of one."""
    lines = []
    times = slices.starts.tolist(), slices.durations.tolist()
    facts = zip(slices.positions.tolist(), slices.names, slices.categories, *times)
    for depth, (position, name, category, start, duration) in enumerate(facts):
        what = "kernel" if position == kernel else _role(name, category)
        moment = f"{format_moment(start - zero):>20} {format_ns(duration):>12}"
        lines.append(f"{moment}  {what:<10} {' ' * min(depth, 40)}{safe(short_name(name))}")
    return lines


def _role(name: str, category: str) -> str:
    if name.startswith(MODULE):
        return "module"
    if category in ANNOTATIONS:
        return "step" if name.startswith(STEP) else "annotation"
    if category in OPS:
        return "op"
    if category in RUNTIME:
        return "launch"
    return "frame" if category == "python_function" else category or "slice"
