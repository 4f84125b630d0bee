"""Whatever a name repeats, to index and to analyse what has it takes time in proportion to its length."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.events import Event, complete, index_of, metadata
from tests.linear import assert_linear
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import trace_of

UNITS = (
    *'aA1é_/- .(<,=[]\t#"{}\\:|*+',
    *("::", "a1", "a/", "A_", "a.", "[a]", "a (", "->", "0.", "x(", "nccl", "Mem", "-op1", ".py(1): "),
)
"""What names of kernels, files, templates, paths and encoded bytes are made of."""
CHARACTERS = 10_000


def events_called(name: str) -> list[Event]:
    """Return a process, operators, calls, functions, and work of a device, all of one name."""
    ids = {"External id": 1, "correlation": 1}
    stack = {"External id": 1, "Call stack": name, "Input Dims": name}
    host = {"pid": 1, "tid": 1}
    return [
        metadata("process_name", 1, name=name),
        metadata("process_labels", 1, labels=name),
        metadata("thread_name", 1, 1, name=name),
        complete(0, 100, name, "cpu_op", **host, args=stack),
        complete(10, 50, name, "user_annotation", **host),
        complete(20, 5, name, "cuda_runtime", **host, args=ids),
        complete(26, 5, name, "python_function", **host),
        complete(32, 5, name, name[:100], **host),
        complete(40, 30, name, "kernel", pid=0, tid=7, args={**ids, "device": 0, "stream": 7}),
        complete(75, 3, name, "gpu_memcpy", pid=0, tid=7, args={"device": 0, "stream": 7}),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_a_long_name_takes_linear_time(unit: str, tmp_path: Path) -> None:
    """An index and all analyses of a trace whose names are four times as long take about four times as long,
    or next to nothing.
    """

    def prepare(size: int) -> Callable[[], object]:
        events = events_called(unit * (size // len(unit)) + "!")

        def work() -> object:
            index = index_of(events, Path(mkdtemp(dir=tmp_path)))
            scope = Scope(trace_of("t.json", index))
            return [list(one.run(scope)) for one in ANALYSES if one.name != "sections"]  # which reads a file

        return work

    assert_linear(prepare, CHARACTERS)
