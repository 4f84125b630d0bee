"""Measure one trace: indexing, memory, size of the index, drawing, reopening; beside it whole-file readers.

    .venv/bin/python benchmarks/run.py TRACE [--peers] [--json FILE]

Prints Markdown; nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memory import Cost, measured_python

from tracelane.core.trace import Trace, open_trace
from tracelane.tui.session import Session, Viewport
from tracelane.tui.text.picture import picture

WIDTH, HEIGHT = 200, 50
ZOOMS = 16
PANS = 8
REOPENINGS = 5
PEERS_UP_TO = 200e6
"""Whole-file readers run without being asked only below this many bytes: they need a multiple of it."""
TRACELANE = "import sys; from tracelane.tui.cli.main import main; sys.exit(main(sys.argv[1:]))"
OPEN = (
    "import gzip, sys; p = sys.argv[1]; "
    "f = gzip.open(p) if open(p, 'rb').read(2) == b'\\x1f\\x8b' else open(p, 'rb')"
)
PEERS = {
    "json.load": f"{OPEN}; import json; json.load(f)",
    "orjson.loads": f"{OPEN}; import orjson; orjson.loads(f.read())",
    "ijson.basic_parse": f"{OPEN}; import ijson\nfor _ in ijson.basic_parse(f): pass",
}


def measure(trace: Path, peers: bool, index_dir: Path) -> dict[str, Any]:
    """Return all measurements of a trace."""
    size = trace.stat().st_size
    arguments = ["index", str(trace), "--force", "--json", "--index-dir", str(index_dir)]
    cost = measured_python(TRACELANE, *arguments)
    facts = json.loads(cost.output)
    with contextlib.closing(open_trace(trace, index_dir=index_dir)) as opened:
        blocks = opened.indexes[0]
        text = int(blocks.column("blocks.offset")[-1] + blocks.column("blocks.length")[-1])
    result: dict[str, Any] = {
        "trace": trace.name,
        "bytes": size,
        "text_bytes": text,
        "events": facts["events"],
        "slices": facts["slices"],
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "indexing": {**_cost(cost, text), "seconds_inside": facts["seconds"]},
        "index_bytes": facts["index_bytes"],
        "index_bytes_per_slice": round(facts["index_bytes"] / max(1, facts["slices"]), 1),
    }
    reopening = []
    for _ in range(REOPENINGS):
        began = time.perf_counter()
        opened = open_trace(trace, index_dir=index_dir)
        reopening.append((time.perf_counter() - began) * 1000)
    result["reopen_ms"] = _spread(reopening)
    command = measured_python(TRACELANE, "info", str(trace), "--json", "--index-dir", str(index_dir))
    result["info_command_ms"] = round(command.seconds * 1000)
    result["draw_ms"] = _draw(opened)
    if peers or size < PEERS_UP_TO:
        result["peers"] = {}
        for name, program in PEERS.items():
            try:
                result["peers"][name] = _cost(measured_python(program, str(trace)), text)
            except RuntimeError as error:
                result["peers"][name] = {"failed": str(error).strip().splitlines()[-1]}
    return result


def _cost(cost: Cost, size: int) -> dict[str, Any]:
    return {
        "seconds": round(cost.seconds, 2),
        "mb_per_s": round(size / 1e6 / cost.seconds, 1),
        "peak_bytes": cost.own,
        "peak_rss_bytes": cost.resident,
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 2), "max": round(max(values), 2)}


def _views(trace: Trace) -> Iterator[Viewport]:
    """Yield a walk: from the whole trace inwards about its middle, at every depth some steps to the right."""
    start, end = trace.opening_span
    middle, span = (start + end) // 2, max(1, end - start)
    for depth in range(ZOOMS):
        seen = max(WIDTH, span >> depth)
        for pan in range(PANS):
            yield Viewport(middle - seen // 2 + seen * pan * 3 // 10, seen, WIDTH)


def _draw(trace: Trace) -> dict[str, Any]:
    times = []
    for viewport in _views(trace):
        session = Session(viewport, viewport.start)
        began = time.perf_counter()
        picture(trace, session, WIDTH, HEIGHT)
        times.append((time.perf_counter() - began) * 1000)
    return {
        "first": round(times[0], 2),
        **_spread(times[1:]),
        "frames": len(times),
        "size": f"{WIDTH}x{HEIGHT}",
    }


def markdown(result: dict[str, Any]) -> str:
    """Return the measurements as Markdown."""
    indexing, draw = result["indexing"], result["draw_ms"]
    peak = f"{_mb(indexing['peak_bytes'])} (RSS {_mb(indexing['peak_rss_bytes'])})"
    reopen = f"{result['reopen_ms']['median']} ms (`info` from the shell: {result['info_command_ms']} ms)"
    drawn = f"{draw['median']} ms, at most {draw['max']} ms, the first {draw['first']} ms"
    rows = [
        ("trace", f"{result['trace']}, {_mb(result['bytes'])} on disk, {_mb(result['text_bytes'])} of JSON"),
        ("events, slices", f"{result['events']:,}, {result['slices']:,}"),
        ("indexing", f"{indexing['seconds']} s, {indexing['mb_per_s']} MB/s of JSON"),
        ("peak memory, all processes", peak),
        ("index", f"{_mb(result['index_bytes'])}, {result['index_bytes_per_slice']} bytes per slice"),
        ("reopen", reopen),
        ("draw a frame", f"{drawn} ({draw['frames']} views, {draw['size']})"),
    ]
    for name, peer in result.get("peers", {}).items():
        if "failed" in peer:
            rows.append((f"{name}, whole file", f"failed: {peer['failed']}"))
        else:
            told = f"{peer['seconds']} s, {peer['mb_per_s']} MB/s, peak {_mb(peer['peak_bytes'])}"
            rows.append((f"{name}, whole file", told))
    lines = [f"Measured on {result['machine']}.", "", "| what | measured |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {value} |" for what, value in rows)])


def _mb(size: int | None) -> str:
    return "not known" if size is None else f"{size / 1e6:,.1f} MB"


def main() -> None:
    """Measure the trace that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--peers", action="store_true", help="run whole-file readers on a large trace too")
    parser.add_argument("--json", type=Path, help="write the measurements to this file as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tracelane-bench-") as folder:
        result = measure(options.trace, options.peers, Path(folder))
    print(markdown(result))
    if options.json:
        options.json.write_text(json.dumps({"schema": 1, **result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
