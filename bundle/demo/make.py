"""Makes the demo's files: two ranks' traces and one aiu-smi log, the same bytes on every platform.

    python -m bundle.demo.make

writes core/demo/files.zip, which is what the package has.
"""

from __future__ import annotations

from collections.abc import Iterator
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tracelane.core.demo.trace import FILES

from .kineto import (
    BASE_TIME_NS,
    DemoHeader,
    Track,
    arguments_json,
    footer,
    instant_text,
    metadata_text,
    slice_text,
)
from .rank import COLLECTIVE, COMPUTE, COPY_IN, COPY_OUT, MEMORY, MS, Rank
from .smi import smi_log
from .training import train

SEED = 20_260_622
START_NS = 1_782_123_312_408_000_000
"""Wall clock of the demo's first moment: 2026-06-22 10:15:12.408 UTC."""
RANKS = 2
CPU_SORT_SPANS = 536_870_912
DEVICE_SORT = 5_000_000


def made_files() -> dict[str, bytes]:
    """Return the demo by file name: one trace per rank, then the log of both devices."""
    origin = START_NS - BASE_TIME_NS
    ranks = tuple(Rank(number, origin, START_NS, SEED) for number in range(RANKS))
    train(ranks)
    files = {f"rank{rank.number}.pt.trace.json": _trace(rank).encode() for rank in ranks}
    end = max(rank.now for rank in ranks)
    log = smi_log([(rank.busy, rank.moved) for rank in ranks], START_NS, end, SEED)
    return {**files, "aiu-smi.log": log.encode()}


def _trace(rank: Rank) -> str:
    name = f"demo/rank{rank.number}.pt.trace.json"
    header = DemoHeader(rank.number, RANKS, f"spyre-pod-{rank.number}", rank.noise.word(32).upper())
    events: list[str] = [*_metadata(rank)]
    events += [text for _, _, text in sorted(rank.ops)]
    events += rank.instants
    events += [text for _, _, text in sorted(rank.frames)]
    events += rank.device
    events += _closing(rank)
    return header.text() + ",".join(events) + footer(name)


def _metadata(rank: Rank) -> Iterator[str]:
    cpu = rank.pid
    time = rank.origin - 600_000
    processes: list[tuple[int, str, int]] = [(0, "AIU 0", DEVICE_SORT), (cpu, "CPU", cpu)]
    for pid, labels, sort in processes:
        yield metadata_text("process_name", (pid, 0), time, "name", "python")
        yield metadata_text("process_labels", (pid, 0), time, "labels", labels)
        yield metadata_text("process_sort_index", (pid, 0), time, "sort_index", sort)
    threads: list[tuple[Track, str, int]] = [
        ((cpu, rank.main), f"thread {rank.main} (python)", rank.main),
        ((cpu, rank.autograd), f"thread {rank.autograd} (pt_autograd_0)", rank.autograd),
        ((0, COMPUTE), f"Stream {COMPUTE}", 1000 + COMPUTE),
        ((0, COLLECTIVE), f"Stream {COLLECTIVE}", 1000 + COLLECTIVE),
        ((0, COPY_IN), "Memcpy (HtoD):", COPY_IN),
        ((0, COPY_OUT), "Memcpy (DtoH):", COPY_OUT),
        ((0, MEMORY), "Memory management:", MEMORY),
    ]
    for track, name, sort in threads:
        yield metadata_text("thread_name", track, time, "name", name)
        yield metadata_text("thread_sort_index", track, time, "sort_index", sort)


def _closing(rank: Rank) -> Iterator[str]:
    start, duration = rank.origin - MS // 2, rank.now + MS
    for span, operations in (("PyTorch Profiler", 0), ("__aiu_profiler__", len(rank.device))):
        body = arguments_json(("Op count", operations))
        yield slice_text("Trace", f"{span} (0)", ("Spans", span), start, duration, body)
        yield metadata_text("process_sort_index", ("Spans", 0), start, "sort_index", CPU_SORT_SPANS)
        track = ("Traces", f"Trace {span}")
        yield instant_text("", "g", f"Iteration Start: {span}", track, start, "")
    yield instant_text("", "g", "Record Window End", ("", ""), start + duration, "")


if __name__ == "__main__":
    with ZipFile(FILES, "w") as archive:
        for name, data in made_files().items():
            archive.writestr(ZipInfo(name), data, ZIP_DEFLATED, 9)  # ZipInfo: always the same date
