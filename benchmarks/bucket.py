"""Ranks of any size through object storage, one at a time: made, put into a bucket, collected, removed.

    python benchmarks/bucket.py --ranks 16 --gb 1.0 [--url s3://bucket] [--work FOLDER]

Each rank is a real trace many times over (make_big.py of the corpus of traces). The communication kernels of
every rank but the straggler begin 0.5 ms earlier and end as before, so that the others wait for it. The store
must name the straggler, and a summary takes at most 1 % of its trace or 64 KB. A line of JSON for each rank
and one for the store; exit code 1 where one of these does not hold. What the store has is not made again.

Without --url moto's server is started, which reads a whole object for every range of it: take another server
for large ranks, with AWS_ENDPOINT_URL and keys in the environment.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.cost import Cost
from benchmarks.machine import machine

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("TRACELANE_CORPUS", ROOT.parent / "shared" / "traces"))
SOURCE = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
MAKE_BIG = CORPUS / "tools" / "make_big.py"
EARLIER_US = Decimal(500)
EVENT = re.compile(r"\n  \{\n.*?\n  \}", re.DOTALL)
NUMBER = r"(\d+(?:\.\d+)?)"
MIN_ROOM, SHARE = 64 << 10, 0.01
KEYS = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nothing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
PATIENCE_S = 60.0
SERVER_PATIENCE_S = 900
"""A server may take minutes to put the parts of a large object together."""


def write_early_source(path: Path) -> Path:
    """Write the trace that ranks are made of with communication kernels that begin earlier."""
    text = gzip.decompress(SOURCE.read_bytes()).decode()
    path.write_bytes(gzip.compress(EVENT.sub(lambda match: earlier(match[0]), text).encode(), 1))
    return path


def earlier(event: str) -> str:
    """Return the text of an event, beginning earlier and ending as before if it is communication."""
    if '"cat": "kernel"' not in event or "nccl" not in event:
        return event
    event = re.sub(rf'"ts": {NUMBER}', lambda match: f'"ts": {Decimal(match[1]) - EARLIER_US}', event)
    return re.sub(rf'"dur": {NUMBER}', lambda match: f'"dur": {Decimal(match[1]) + EARLIER_US}', event)


@contextmanager
def bucket_of_moto() -> Iterator[str]:
    """Start moto's server with one bucket; yield its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_server(port)
        os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
        import s3fs

        s3fs.S3FileSystem().mkdir("ranks")
        yield "s3://ranks"
    finally:
        server.terminate()
        server.wait()


def wait_for_server(port: int) -> None:
    """Return when a server answers. Raises TimeoutError."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"no server on port {port}")


def collect_rank(
    rank: int, options: argparse.Namespace, source: Path, work: Path, url: str, system: Any
) -> dict[str, Any]:
    """Make a rank, put it into the bucket, collect it and remove it; return what that took."""
    path = work / f"rank{rank}.json"
    sizes = ["--rank", str(rank), "--world", str(options.ranks), "--gb", str(options.gb)]
    began = time.perf_counter()
    make = [sys.executable, str(MAKE_BIG), "--src", str(source), *sizes, str(path)]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)
    written, size = time.perf_counter(), path.stat().st_size
    system.put_file(str(path), f"{url}/run/{path.name}")
    path.unlink()
    put = time.perf_counter()
    cost, _ = Cost.of("collect", f"{url}/run", "-o", f"{url}/store", "--index-dir", str(work / "index"))
    system.invalidate_cache()
    system.rm_file(f"{url}/run/{path.name}")
    (summary,) = system.glob(f"{url}/store/ranks/{rank:06d}-*")
    summary_bytes = system.size(summary)
    return {
        "rank": rank,
        "bytes": size,
        "make_s": round(written - began, 1),
        "put_s": round(put - written, 1),
        "collect_s": cost.wall_s,
        "collect_processor_s": cost.processor_s,
        "summary_bytes": summary_bytes,
        "fits": summary_bytes <= max(MIN_ROOM, SHARE * size),
    }


def straggler_of(store: str) -> dict[str, Any]:
    """Return whom the others wait for most, and how long, as the store says."""
    cost, text = Cost.of("ranks", store, "--json")
    first = json.loads(text)["tables"]["ranks"]["rows"][0]
    names = ("rank", "last", "collectives", "kept_waiting_ns")
    return {**{name: first[name] for name in names}, "ranks_processor_s": cost.processor_s}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranks", type=int, default=16)
    parser.add_argument("--gb", type=float, default=1.0, help="10^9 bytes of each")
    parser.add_argument("--straggler", type=int, help="the rank that comes last (default: a third of all)")
    parser.add_argument("--url", help="a bucket that is there; without it moto's server is started")
    parser.add_argument("--work", type=Path, help="where a rank is made (default: a temporary folder)")
    options = parser.parse_args()
    late = options.ranks // 3 if options.straggler is None else options.straggler
    print(json.dumps(machine()), flush=True)
    if options.work is not None:
        options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        work = Path(folder)
        early = write_early_source(work / "early.json.gz")
        if options.url:
            return run(options, late, early, work, options.url)
        with bucket_of_moto() as url:
            return run(options, late, early, work, url)


def run(options: argparse.Namespace, late: int, early: Path, work: Path, url: str) -> int:
    """Collect all ranks; return the exit code."""
    import s3fs

    system = s3fs.S3FileSystem(config_kwargs={"read_timeout": SERVER_PATIENCE_S})
    sound = True
    for rank in range(options.ranks):
        if system.glob(f"{url}/store/ranks/{rank:06d}-*"):
            continue  # collected before
        result = collect_rank(rank, options, SOURCE if rank == late else early, work, url, system)
        sound &= result["fits"]
        print(json.dumps(result), flush=True)
    worst = straggler_of(f"{url}/store")
    print(json.dumps({"straggler": late, **worst}), flush=True)
    return 0 if sound and worst["rank"] == late else 1


if __name__ == "__main__":
    sys.exit(main())
