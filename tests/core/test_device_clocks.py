"""Clocks of devices: trouble is seen, the least shift that mends it is proposed, what is asked for is set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.findings_traces import DEVICE, call, kernel, launched, op
from tests.corpus import CORPUS, files, for_files, needs
from tests.events import Event, complete, index_of, metadata
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.device.launches import begun_work
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.device_clocks import (
    device_clocks,
    moved_text,
    offset_of,
    seconds_of,
    troubled,
    with_device_clocks,
)

NONE = Clocks()
SOUND = ("aiu/spyre_torch_profiler/*.json", "gpu/tl_m*.gz", "gpu/hta_a100*")
DELAYS = (7, 20, 3, 900)
"""Of four launches in µs, when the clocks agree."""


def shifted(by: float, more: tuple[Event, ...] = ()) -> list[Event]:
    """Four launches 1 ms apart and their kernels, the device's clock off by some µs."""
    pairs = [
        launched(1000.0 * n + 5000, 5, 1000.0 * n + 5000 + delay + by, 50) for n, delay in enumerate(DELAYS)
    ]
    return [op(5000, 5000), *(event for pair in pairs for event in pair), *more]


def trace_of(events: list[Event], folder: Path) -> Trace:
    return Trace([index_of([metadata("process_labels", DEVICE, labels="AIU 0"), *events], folder)])


@pytest.mark.parametrize(
    ("by", "early", "proposed"),
    [(0, 0, -3_000), (-2.999, 0, -1), (-3.001, 1, 1), (-30, 3, 27_000), (-2000, 4, 1_997_000)],
)
def test_shift_is_undone(by: float, early: int, proposed: int, tmp_path: Path) -> None:
    """The proposed clock puts the quickest launch's kernel at its launch, all others after theirs."""
    trace = trace_of(shifted(by), tmp_path)
    (one,) = device_clocks(trace, NONE)
    assert (one.pairs, one.early, one.proposed_ns, one.apart_ns) == (4, early, proposed, 0)
    assert bool(one.trouble) == (early > 0)
    later = 0 if early else -proposed  # without a shift delays are as they stand
    assert (one.middle_ns - later, one.late_ns - later) == (4_000, 17_000)  # they are 0, 4, 17 and 897 µs
    assert one.needs_shift == (early > 0)
    if early:
        assert one.lead_ns == proposed
        clocks = with_device_clocks(trace, NONE, ["auto"])
        (mended,) = device_clocks(trace, clocks)
        assert (mended.early, mended.trouble, mended.proposed_ns) == (0, "", proposed)
        assert moved_text(trace, clocks).startswith("AIU 0 moved by +")


def test_a_rank_s_clock_is_no_device_s(tmp_path: Path) -> None:
    """A clock of the whole file moves both sides: nothing becomes early by it."""
    trace = trace_of(shifted(0), tmp_path)
    (one,) = device_clocks(trace, NONE.shifted((0, ""), -(10**12)))
    assert (one.early, one.proposed_ns) == (0, -3_000)


def test_devices_of_several_files(tmp_path: Path) -> None:
    """Where several files have devices they are told apart by file, their pids by the file's number."""
    first, second = (index_of(shifted(by), tmp_path / name) for by, name in ((-30, "a"), (0, "b")))
    trace = Trace([first, second])
    (one,) = troubled(trace, NONE)
    assert one.title == f"device 0 of {Path(trace.sources[0].path).name}"
    clocks = with_device_clocks(trace, NONE, ["0:0=auto", "1:0=-0.5"])
    assert dict(clocks.offsets) == {(0, "0"): 27_000, (1, "0"): -500_000_000}


def test_work_far_from_the_host(tmp_path: Path) -> None:
    """A device that ran far from the host's time is told of, later too, and brought back."""
    for by in (-9e9, 9e9):
        trace = trace_of(shifted(by), tmp_path / str(by))
        (one,) = troubled(trace, NONE)
        assert abs(abs(one.apart_ns) - 9e12) < 10**7 and (one.apart_ns > 0) == (by > 0)
        assert one.proposed_ns == -by * 1000 - 3_000
        assert not troubled(trace, with_device_clocks(trace, NONE, ["0=auto"]))


def test_work_far_away_without_launches(tmp_path: Path) -> None:
    """Where no launch is known only the distance is, and the clock can be set by hand alone."""
    trace = trace_of([op(5000, 5000), kernel(10**9, 5)], tmp_path)
    (one,) = troubled(trace, NONE)
    assert one.apart_ns == 10**12 - 10_000_000 and one.proposed_ns is None
    with pytest.raises(UsageError, match="cannot be estimated"):
        with_device_clocks(trace, NONE, ["auto"])
    assert with_device_clocks(trace, NONE, ["0=-999.99"]).offset(0, "0") == -999_990_000_000


def test_lost_times(tmp_path: Path) -> None:
    """Work at 0 in the file binds no clock: what has a time is estimated without it."""
    lost = launched(9500, 5, 0, 50)
    (one,) = troubled(trace_of(shifted(-30, tuple(lost)), tmp_path / "some"), NONE)
    assert (one.early, one.stampless, one.proposed_ns, one.lead_ns) == (4, 1, 27_000, 9_500_000)
    only = trace_of([op(5000, 5000), *lost], tmp_path / "all")
    (one,) = troubled(only, NONE)
    assert one.proposed_ns is None and "times are lost" in one.trouble
    with pytest.raises(UsageError, match="no times, so the clock"):
        with_device_clocks(only, NONE, ["0=auto"])


def test_a_device_in_the_host_s_process(tmp_path: Path) -> None:
    """A device whose lanes share a process with the host's has no clock of its own to be set."""
    work = complete(4000, 5, "k", "kernel", pid=1, tid=7, args={"correlation": 1})
    trace = trace_of([call(5000, 5, "cudaLaunchKernel", correlation=1), work], tmp_path)
    (one,) = troubled(trace, NONE)
    assert one.early == 1 and not one.alone
    with pytest.raises(UsageError, match="no clock of its own"):
        with_device_clocks(trace, NONE, ["1=0.001"])


@pytest.mark.parametrize("text", ["auto=1=2", "0", "7=auto", "0=soon", "0=nan", "0=1e12", "0="])
def test_nonsense(text: str, tmp_path: Path) -> None:
    """What names no device or no time is refused in words."""
    with pytest.raises(UsageError):
        with_device_clocks(trace_of(shifted(0), tmp_path), NONE, [text])


def test_seconds_are_exact() -> None:
    """Seconds typed are taken to the ns, and written so that they are read the same."""
    for ns in (1, -27_000, 5_533_068_183_087_742, 10**9):
        assert offset_of(seconds_of(ns)) == ns


def test_tables_follow_the_clock(tmp_path: Path) -> None:
    """Under the estimated clock the table has the delays behind each call, and its scope names the clock."""
    trace = trace_of(shifted(-2000), tmp_path)
    clocks = with_device_clocks(trace, NONE, ["auto"])
    scope = Scope(trace, clocks=clocks)
    assert "AIU 0 moved by +1.997 ms" in scope.text and "moved" not in Scope(trace).text
    assert begun_work(scope).delay.tolist() == [
        0,
        12_000,
        0,
        892_000,
    ]  # calls last 5 µs, the third is the quickest


@pytest.mark.slow
@for_files(
    "path",
    files("aiu/spyre_torch_profiler/*.json", "gpu/tl_m*.gz", "gpu/hta_a100*", "cuda/*.pt.trace.json.gz"),
)
def test_sound_traces_are_not_blamed(path: Path, tmp_path: Path) -> None:
    """Of real traces with sound clocks nothing is said."""
    trace = open_trace(path, index_dir=tmp_path)
    assert device_clocks(trace, trace.clocks) and not troubled(trace, trace.clocks)


@needs(CORPUS)
def test_the_sample_without_times(tmp_path: Path) -> None:
    """The AIU sample whose 30 kernels all stand at 0 is told of, and not moved."""
    trace = open_trace(CORPUS / "aiu" / "mlp_trace.json", index_dir=tmp_path)
    (one,) = troubled(trace, trace.clocks)
    assert (one.stampless, one.early, one.pairs, one.proposed_ns) == (30, 30, 30, None)
