"""What a store of many ranks costs, and whether it is the same whoever collects it.

    python benchmarks/store.py RANKS… [--equal] [--with-index] [--work FOLDER]

RANKS are folders of one trace per rank. Each is collected by one process; `ranks` and the printed picture of
the store are measured as well. With --equal each is collected again, by a cluster of two workers of which one
is killed, and by four shards at once of which one runs twice and one is killed and started again: every file
of these stores must have the bytes of the first. With --with-index stores hold the indexes of the ranks, too.
A line of JSON for each folder; exit code 1 where a store is not equal.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cost import TRACELANE, Cost
from benchmarks.machine import machine

WORKER = "from multiprocessing.spawn"
SHARDS = 4
TURN_S = 0.05


def measured(traces: Path, work: Path, *, equal: bool, options: Sequence[str] = ()) -> dict[str, Any]:
    """Return the figures of one folder of ranks."""
    store = work / "alone"
    begins = os.getloadavg()[0]
    collecting, _ = Cost.of("collect", str(traces), "-o", str(store), *options)
    ranks, text = Cost.of("ranks", str(store), "--json", "--worst", "1")
    picture, _ = Cost.of("view", str(store), "--index-dir", str(work / "picture"))
    count = len(list((store / "ranks").iterdir()))
    result = {
        "traces": traces.name,
        "ranks": count,
        "trace_bytes": sum(path.stat().st_size for path in traces.iterdir()),
        "store_bytes": sum(path.stat().st_size for path in store.rglob("*") if path.is_file()),
        "collect": asdict(collecting),
        "processor_ms_per_rank": round(1000 * collecting.processor_s / count, 1),
        "ranks_command": asdict(ranks),
        "picture": asdict(picture),
        "last_rank": json.loads(text)["tables"]["ranks"]["rows"][0]["rank"],
        "load_before": round(begins, 2),
        "load_after": round(os.getloadavg()[0], 2),
    }
    if equal:
        files = files_of(store)
        for name, collect in (("cluster", collect_on_cluster), ("shards", collect_in_shards)):
            began = time.perf_counter()
            collect(traces, work / name, count, options)
            seconds = round(time.perf_counter() - began, 1)
            result[name] = {"equal": files_of(work / name) == files, "files": len(files), "wall_s": seconds}
            shutil.rmtree(work / name)
    return result


def files_of(store: Path) -> dict[str, str]:
    """Return the hash of each file of a store by its name there, hidden files too."""
    return {
        str(path.relative_to(store)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in store.rglob("*")
        if path.is_file()
    }


def collect_on_cluster(traces: Path, store: Path, count: int, options: Sequence[str]) -> None:
    """Collect with two workers; kill one of them when a third of the ranks is there."""
    import psutil

    process = start("collect", traces, store, "--cluster", "local:2", *options)
    wait_for(store, count // 3)
    below = psutil.Process(process.pid).children(recursive=True)
    workers = [child for child in below if WORKER in " ".join(child.cmdline())]
    workers[0].kill()
    expect_success(process)


def collect_in_shards(traces: Path, store: Path, count: int, options: Sequence[str]) -> None:
    """Collect in shards at once, the first twice; kill the last when a third is there, and run it again."""
    shards = [f"{number}/{SHARDS}" for number in range(SHARDS)]
    processes = [
        start("collect", traces, store, "--shard", shard, *options) for shard in [shards[0], *shards]
    ]
    wait_for(store, count // 3)
    os.kill(processes[-1].pid, signal.SIGKILL)
    processes[-1].wait()
    processes[-1] = start("collect", traces, store, "--shard", shards[-1], *options)
    for process in processes:
        expect_success(process)


def start(command: str, traces: Path, store: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start tracelane with a folder of ranks and a store."""
    return subprocess.Popen(
        [*TRACELANE, command, str(traces), "-o", str(store), *options], stdout=subprocess.DEVNULL
    )


def wait_for(store: Path, count: int) -> None:
    """Return when a store has so many summaries."""
    folder = store / "ranks"
    while not folder.is_dir() or sum(1 for _ in folder.glob("*.rank")) < count:
        time.sleep(TURN_S)


def expect_success(process: subprocess.Popen[bytes]) -> None:
    """Wait for a process. Raises CalledProcessError."""
    if code := process.wait():
        raise subprocess.CalledProcessError(code, process.args)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("traces", nargs="+", type=Path, metavar="RANKS")
    parser.add_argument("--equal", action="store_true", help="collect again with a cluster and in shards")
    parser.add_argument("--work", type=Path, help="the folder to write stores to (default: a temporary one)")
    parser.add_argument("--with-index", action="store_true", help="keep the ranks' indexes in the stores")
    options = parser.parse_args()
    print(json.dumps(machine()))
    is_equal = True
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    for traces in options.traces:
        with tempfile.TemporaryDirectory(dir=options.work) as folder:
            more = ["--with-index"] if options.with_index else []
            result = measured(traces, Path(folder), equal=options.equal, options=more)
        is_equal &= all(result[name]["equal"] for name in ("cluster", "shards") if name in result)
        print(json.dumps(result), flush=True)
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
