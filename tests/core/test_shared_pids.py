"""A pid that is a program's and a device's: containers number programs from 1, Kineto devices from 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.events import Event, complete, index_of, metadata, open_events
from tracelane.core.sql.query import run_query
from tracelane.core.tables.device.idle import analyse_idle
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import LaneRole, Trace
from tracelane.core.trace.devices import device_keys, devices
from tracelane.tui.draw.line import lane_key, process_key
from tracelane.tui.text.summary import summary, trace_info

PROGRAM, STREAM = 1, 7
CPU, GPU = "python 1 · CPU", "python 1 · GPU 1"


def called(pid: int, label: str, sort: int) -> list[Event]:
    """What Kineto says of a program or a device."""
    return [
        metadata("process_name", pid, 0, name="python"),
        metadata("process_labels", pid, 0, labels=label),
        metadata("process_sort_index", pid, 0, sort_index=sort),
    ]


def said() -> list[Event]:
    """What it says in a container: its own pid first, then the devices that there might be."""
    of_devices = [one for gpu in range(4) for one in called(gpu, f"GPU {gpu}", 5_000_000 + gpu)]
    return [*called(PROGRAM, "CPU", PROGRAM), *of_devices]


def ran(*gpus: int) -> Iterator[Event]:
    """Operators of two threads that launch to devices in turn."""
    for n in range(6):
        thread, at = (1, 23)[n % 2], 1000 * n
        yield complete(at, 90, "aten::mm", pid=PROGRAM, tid=thread)
        yield complete(at + 10, 10, "cudaLaunchKernel", "cuda_runtime", pid=PROGRAM, tid=thread, args=_id(n))
        for gpu in gpus[n % len(gpus) :][:1] if gpus else ():
            yield complete(at + 50, 100, "gemm", "kernel", pid=gpu, tid=STREAM, args=_id(n))


def _id(number: int) -> dict[str, int]:
    return {"correlation": number + 1}


def titles(trace: Trace) -> list[tuple[str, int]]:
    """Title and number of lanes of each process that has some, in display order."""
    return [(process.title, len(process.lanes)) for process in trace.processes if process.lanes]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ((1,), [(CPU, 2), (GPU, 1)]),
        ((0, 1), [(CPU, 2), ("python 0 · GPU 0", 1), (GPU, 1)]),
        ((0,), [(CPU, 2), ("python 0 · GPU 0", 1)]),
        ((), [(CPU, 2)]),
    ],
)
@pytest.mark.parametrize("order", ["as Kineto", "devices first"])
def test_what_runs_in_lanes_tells_whose_they_are(
    gpus: Sequence[int], expected: list[tuple[str, int]], order: str, tmp_path: Path
) -> None:
    """A program with a device's pid is called as the program, and apart from the device's lanes."""
    names = said() if order == "as Kineto" else [*said()[3:], *said()[:3]]
    trace = open_events(tmp_path, [*names, *ran(*gpus)])
    assert titles(trace) == expected
    assert [device.label for device in devices(trace)] == [f"GPU {gpu}" for gpu in gpus]
    roles = {lane.title: lane.role for lane in trace.lanes}
    assert {role is LaneRole.DEVICE for title, role in roles.items() if title == f"thread {STREAM}"} <= {True}
    assert roles["thread 1"] is roles["thread 23"] is LaneRole.HOST


def test_where_the_file_is_cut_tells_nothing(tmp_path: Path) -> None:
    """The processes are the same however many parts a file is read in, and whatever is said again."""
    events = [*said(), *ran(0, 1), *said()]
    for number, cuts in enumerate(([], [2, 5, 17], [*range(1, len(events), 3)])):
        trace = Trace([index_of(events, tmp_path / str(number), cuts)])
        assert titles(trace) == [(CPU, 2), ("python 0 · GPU 0", 1), (GPU, 1)]


def test_of_one_pid_each_has_its_own_clock_and_folds(tmp_path: Path) -> None:
    """A device is moved and folded without the program that has its pid."""
    trace = open_events(tmp_path, [*said(), *ran(1)])
    program, device = (process for process in trace.processes if process.lanes)
    assert device_keys(trace).keys() == {"1"}
    clocks = trace.clocks.shifted((0, device_keys(trace)["1"].pid), 500)
    offsets = {lane.title: clocks.offset(0, lane.pid) for lane in trace.lanes}
    assert offsets == {"thread 1": 0, "thread 23": 0, f"thread {STREAM}": 500}
    assert process_key(program) != process_key(device)
    assert len({lane_key(lane).pid for lane in trace.lanes}) == 2


def test_all_that_names_processes_says_the_same(tmp_path: Path) -> None:
    """info, its JSON, SQL and the table of gaps tell the program from the device; both have pid 1."""
    trace = open_events(tmp_path, [*said(), *ran(1)])
    assert f"  {CPU}\n    thread 1: 6 slices" in summary(trace)
    rows = [(one["pid"], one["labels"]) for one in trace_info(trace)["processes"] if one["lanes"]]
    assert rows == [(1, "CPU"), (1, "GPU 1")]
    query = "select process, pid, count(*) from slices group by 1, 2 order by 1"
    with run_query(trace, query, "sqlite") as answer:
        assert list(answer.rows) == [(CPU, "1", 12), (GPU, "1", 6)]
    assert list(analyse_idle(Scope(trace))["gaps"].data["host"]) == ["aten::mm"] * 5


def test_a_device_labelled_alone_may_hold_a_program(tmp_path: Path) -> None:
    """Operators run in no device; what submits to a device's streams stays beside them, as MTIA has it."""
    label = metadata("process_labels", 1, 0, labels="GPU 1")
    trace = open_events(tmp_path, [label, *ran(1)])
    assert titles(trace) == [("process 1", 2), ("process 1 · GPU 1", 1)]
    calls = [one for one in ran(1) if one["cat"] != "cpu_op"]
    assert titles(Trace([index_of([label, *calls], tmp_path / "calls")])) == [("process 1 · GPU 1", 3)]


def test_a_program_may_hold_its_device(tmp_path: Path) -> None:
    """Where metadata speak of no device the file wants lanes of both in one process."""
    trace = open_events(tmp_path, [metadata("process_name", 1, 0, name="train.py"), *ran(1)])
    assert titles(trace) == [("train.py 1", 3)]
