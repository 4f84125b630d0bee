"""Each moment of a device has one state, and waiting for a peer is told apart only where it is certain."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CORPUS, file, for_files, needs, traces
from tests.events import complete, open_events
from tests.rank_files import REDUCE
from tracelane.core.base.arrays import merge
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import TracelaneError
from tracelane.core.sql.query import run_query
from tracelane.core.tables.device.breakdown import analyse_breakdown
from tracelane.core.tables.device.device_state import device_states, flattened, looked_at
from tracelane.core.tables.device.kernels import kernels, longest_work
from tracelane.core.tables.device.states import CAUSES, PRECEDENCE, DeviceState
from tracelane.core.tables.device.untrusted_periods import untrusted
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.devices import device_keys, devices

DLRM = "multirank/dlrm_8gpu_ranks0-3"
US = 1000
LATE = {0: 0, 1: 250, 2: 100}
"""How many µs after the first each rank comes to every collective; all end 400 µs after the first came."""


def open_ranks(
    folder: Path,
    ranks: int,
    world: int | None,
    size: int | None = None,
    *,
    copy: bool = False,
    alone: bool = False,
) -> Trace:
    """Return a trace of so many ranks: in each of 20 steps of 1,000 µs a collective of 400 µs, then 100 µs of
    computing; with `copy` a copy on another stream in the collective's first 50 µs, with `alone` another
    collective of 200 µs beside it, which rank 0 alone has.
    """
    for rank in range(ranks):
        more = {} if size is None else {"Group size": size}
        events = []
        for at in range(1000, 21_000, 1000):
            if alone and rank == 0:
                group = {"Process Group Name": "1", "Collective name": "broadcast"}
                own = "ncclDevKernel_Broadcast_RING_LL(x)"
                events.append(complete(at + 20, 200, own, "kernel", pid=0, tid=9, args=group))
            events.append(
                complete(at - 20, 980, f"ProfilerStep#{at // 1000}", "user_annotation", pid=9, tid=9)
            )
            late = LATE[rank]
            args = {"Process Group Name": "0", "Collective name": "allreduce", **more}
            events.append(complete(at + late, 400 - late, REDUCE, "kernel", pid=0, tid=7, args=args))
            events.append(complete(at + 500, 100, "gemm", "kernel", pid=0, tid=7))
            if copy:
                events.append(complete(at, 50, "Memcpy HtoD", "gpu_memcpy", pid=0, tid=8))
        info = {"rank": rank} | ({} if world is None else {"world_size": world})
        text = json.dumps({"distributedInfo": info, "traceEvents": events})
        (folder / f"rank{rank}.json").write_text(text, encoding="utf-8")
    paths = sorted(folder.glob("rank*.json"))
    return open_trace(paths, index_dir=folder / "index")


def us(states: tuple[DeviceState, ...]) -> list[dict[str, int]]:
    """Return the µs of each device in each state it was in, but idle."""
    return [{name: ns // US for name, ns in one.ns.items() if ns and name != "idle"} for one in states]


def scope_of(trace: Trace) -> Scope:
    return Scope(trace, clocks=trace.clocks)


def opened(path: str, cache: Path) -> Trace:
    where = file(path)
    return open_trace(sorted(where.glob("*")) if where.is_dir() else where, index_dir=cache)


@pytest.mark.parametrize(
    ("world", "size", "split"),
    [
        (3, None, "collective_moving"),  # all of the world's files are open
        (None, 3, "collective_moving"),  # all members of the group are there
        (8, 3, "collective_moving"),  # a group of three within a larger world
        (8, None, "collective_unsplit"),
        (None, 8, "collective_unsplit"),
        (3, 8, "collective_unsplit"),
        (None, None, "collective_unsplit"),  # nothing says how many there are
    ],
)
def test_what_follows_waiting(world: int | None, size: int | None, split: str, tmp_path: Path) -> None:
    """A rank waits from its start to the last one's; then it moves data where all members' files are open."""
    trace = open_ranks(tmp_path, 3, world, size)
    waits = [250, 0, 150]
    assert us(device_states(scope_of(trace))) == [
        {"compute": 2000, split: 20 * 150} | ({"collective_waiting": 20 * wait} if wait else {})
        for wait in waits
    ]


def test_kernels_say_what_of_them_was_waiting(tmp_path: Path) -> None:
    """`kernels` tells how long its runs waited for other ranks, also within a range; the longest work is that
    without its waits.
    """
    scope = scope_of(open_ranks(tmp_path, 3, 3))
    table = kernels(scope)
    assert {row["name"]: row["waited_ns"] // US for row in table.rows()} == {
        REDUCE: 20 * (250 + 0 + 150),
        "gemm": 0,
    }
    assert {work.duration // US for work in longest_work(scope, 60)} == {150}
    begin = scope.trace.opening_span[0]
    early = kernels(replace(scope, range=(begin, begin + 120 * US)))
    (waited,) = (row["waited_ns"] for row in early.rows() if row["name"] == REDUCE)
    assert waited == sum(
        int(state.within(begin, begin + 120 * US).ns["collective_waiting"]) for state in device_states(scope)
    )
    alone = kernels(scope_of(open_ranks(new(tmp_path), 1, 3)))
    assert "waited_ns" not in [column.key for column in alone.columns]


def new(folder: Path) -> Path:
    (folder / "alone").mkdir()
    return folder / "alone"


def test_nothing_is_split_for_a_single_rank(tmp_path: Path) -> None:
    """One rank of three tells nothing of the others, though its file says that there are some."""
    trace = open_ranks(tmp_path, 1, 3, 3)
    assert us(device_states(scope_of(trace))) == [{"compute": 2000, "collective_unsplit": 20 * 400}]


def test_nothing_is_split_on_clocks_set_by_hand(tmp_path: Path) -> None:
    """Once a rank's clock is moved, who waited for whom is not certain any longer."""
    trace = open_ranks(tmp_path, 3, 3)
    moved = Clocks({(1, ""): trace.clocks.offset(1) + 90 * US})
    states = us(device_states(Scope(trace, clocks=moved)))
    assert all("collective_waiting" not in one and "collective_moving" not in one for one in states)


def test_a_window_holds_the_states_of_its_time(tmp_path: Path) -> None:
    """Cut to any window each state lasts as long as it does within, none of them for no time at all."""
    (state, *_) = device_states(Scope(open_ranks(tmp_path, 3, 3)))
    times = sorted({int(edge) + by for edge in state.edges[:9] for by in (-1, 0, 1)})
    for start, end in combinations(times[1:], 2):
        part, low = state.within(start, end), max(start, int(state.edges[0]))
        assert part.edges[0] == low and part.edges[-1] == end and (np.diff(part.edges) > 0).all()
        seconds = np.diff(np.clip(state.edges, low, end))
        assert part.ns == {
            name: int(seconds[state.states == number].sum()) for number, name in enumerate(PRECEDENCE)
        }


def test_a_copy_while_waiting_is_busy(tmp_path: Path) -> None:
    """What else the device does counts before waiting, so that waiting is never busy."""
    (first, *_) = device_states(scope_of(open_ranks(tmp_path, 3, 3, copy=True)))
    assert first.ns["copy"] == 20 * 50 * US and first.ns["collective_waiting"] == 20 * 200 * US
    assert first.busy_ns == 20 * (50 + 150 + 100) * US


def test_a_collective_of_one_rank_alone_is_no_waiting(tmp_path: Path) -> None:
    """What only one rank has in the files may move data while another collective of the device waits."""
    trace = open_ranks(tmp_path, 3, 3, alone=True)
    first, *others = us(device_states(scope_of(trace)))
    assert first["collective_unsplit"] == 20 * 200 and first["collective_waiting"] == 20 * 50
    assert all("collective_unsplit" not in one for one in others)


@needs(CORPUS)
def test_dlrms_ranks_wait(corpus_cache: Path) -> None:
    """With four of eight ranks the waits are those of `ranks`, and what follows is not split."""
    trace = opened(DLRM, corpus_cache)
    states = device_states(scope_of(trace))
    assert [one.ns["collective_waiting"] // US for one in states] == [2313, 7852, 32, 6293]
    waited = sum(kernels(scope_of(trace)).numbers("waited_ns").tolist())
    assert waited == sum(one.waits.length for one in states)
    assert all(one.ns["collective_unsplit"] and not one.ns["collective_moving"] for one in states)


@pytest.mark.parametrize("seed", range(40))
def test_each_moment_has_the_first_state(seed: int) -> None:
    """The states are those of a loop over every ns, whatever overlaps, touches or has no length."""
    pick = random.Random(seed)
    low, high = pick.choice([(0, 60), (10, 45), (30, 30)])
    spans = [
        [(start := pick.randrange(60), start + pick.randrange(12)) for _ in range(pick.randrange(6))]
        for _ in range(3)
    ]
    layers = [merge(*(np.array(side, np.int64) for side in zip(*one))) for one in spans if one]
    spans = [one for one in spans if one]
    edges, states = flattened(layers, (low, high))
    expected = [
        next((n for n, one in enumerate(spans) if any(a <= at < b for a, b in one)), len(spans))
        for at in range(low, high)
    ]
    assert np.repeat(states, np.diff(edges)).tolist() == expected
    assert (edges[0], edges[-1]) == (low, high) and (states[1:] != states[:-1]).all()


def doubted_idle_ns(scope: Scope, one: DeviceState) -> int:
    """Return how much of a device's idle time lies where it is not known what the device did."""
    idle = PRECEDENCE.index("idle")
    doubted = [
        (period.start, period.end)
        for period in untrusted(scope)
        if period.trouble not in ("open-ended",) and period.device in (None, one.device.device)
    ]
    edges = np.array(sorted({*one.edges.tolist(), *chain.from_iterable(doubted)}), np.int64)
    edges = edges[(edges >= one.edges[0]) & (edges <= one.edges[-1])]
    total = 0
    for start, end in zip(edges.tolist(), edges[1:].tolist()):
        state = one.states[np.searchsorted(one.edges, start, "right") - 1]
        total += end - start if state == idle and any(low <= start < high for low, high in doubted) else 0
    return total


TRACES = traces("*/*.json*")


@for_files("path", [*TRACES, DLRM])
def test_states_add_up(path: str, corpus_cache: Path) -> None:
    """On every real trace the states fill the time looked at, and what is not idle is the union of the work
    in it; SQL has the same, and so has the table, whose idle time is what is known to be idle.
    """
    try:
        trace = opened(path, corpus_cache)
    except TracelaneError as error:  # files that are no traces are other tests' matter
        pytest.skip(str(error))
    scope = scope_of(trace)
    low, high = looked_at(scope)
    states = device_states(scope)
    working = {one.first_device.device: one for one in work_of(scope).by("device_row")}
    for one in states:
        work = working[one.device.device]
        covered = work.union(~work.is_type("sync")).clipped(low, high).length
        assert sum(one.ns.values()) == one.of_ns == high - low
        assert one.of_ns - one.ns["idle"] == covered
    table = analyse_breakdown(scope)["states"]
    for name in PRECEDENCE:
        expected = [one.ns[name] - (doubted_idle_ns(scope, one) if name == "idle" else 0) for one in states]
        assert table[f"{name}_ns"].tolist() == expected
    with run_query(
        trace, "select state, cause, sum(dur) from device_states group by 1, 2", "sqlite"
    ) as answer:
        in_sql = {(state, cause or ""): ns for state, cause, ns in answer.rows}
    times: Counter[tuple[str, str]] = Counter()
    for one in states:
        for state, cause, ns in zip(one.states.tolist(), one.causes.tolist(), np.diff(one.edges).tolist()):
            times[PRECEDENCE[state], CAUSES[cause]] += ns
    assert in_sql == dict(times)


def test_each_device_has_a_key(tmp_path: Path) -> None:
    """Every device has a key of its own, by which logs are laid over it, also where pids are 1 and "1"."""
    events = [complete(10 * n, 5, "gemm", "kernel", pid=pid, tid=7) for n, pid in enumerate((1, "1", 2))]
    trace = open_events(tmp_path, events)
    keys = device_keys(trace)
    assert set(keys) == {"0:1", '0:"1"', "2"} and set(keys.values()) == set(devices(trace))


@pytest.mark.parametrize(
    ("around", "category", "name", "whole"),
    [
        ("Model_Forward", "user_annotation", "layer_{}", True),
        ("forward", "cpu_op", "layer_{}", False),  # an operator is no unit of the program
        ("", "", "layer_{}", False),
        (
            "Model_Forward",
            "user_annotation",
            "ProfilerStep#{}",
            False,
        ),  # marked: what is before them is not theirs
    ],
)
def test_parts_of_one_annotation(around: str, category: str, name: str, whole: bool, tmp_path: Path) -> None:
    """Steps that nothing marks and that one annotation holds are its parts: all of it is looked at."""
    events = [complete(0, 5000, around, category, pid=1, tid=1)] if around else []
    for n in range(4):
        at = 1000 + 500 * n
        events.append(complete(at, 400, name.format(n), "user_annotation", pid=1, tid=1))
        call = {"correlation": n + 1}
        events.append(complete(at + 10, 5, "cudaLaunchKernel", "cuda_runtime", pid=1, tid=1, args=call))
        events.append(
            complete(at + 20, 300, "k", "kernel", pid=0, tid=7, args=call | {"stream": 7, "device": 0})
        )
    low, high = looked_at(Scope(open_events(tmp_path, events)))
    assert (low, high) == ((0, 5000 * US) if whole else (1000 * US, 2900 * US))
