"""Other programs that read a trace, run on the same file: whole-file readers, HTA, Perfetto."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.memory import free_memory, measured, measured_python

OPEN = (
    "import gzip, sys; p = sys.argv[1]; "
    "f = gzip.open(p) if open(p, 'rb').read(2) == b'\\x1f\\x8b' else open(p, 'rb'); "
)
MISSING = "not installed"
ENGINES = ("trace_processor_shell", "trace_processor")


@dataclass(frozen=True)
class Peer:
    """A program, and how many bytes of memory it may need per byte of text."""

    name: str
    program: str  # Python, the trace is its first argument
    needs: str  # the module that must be there
    memory_per_byte: float


PEERS = (
    Peer("json.load, whole file", f"{OPEN}import json; json.load(f)", "json", 9),
    Peer("orjson.loads, whole file", f"{OPEN}import orjson; orjson.loads(f.read())", "orjson", 9),
    Peer(
        "ijson.items, event by event",
        f"{OPEN}import ijson\nfor _ in ijson.items(f, 'traceEvents.item', use_float=True): pass",
        "ijson",
        0,
    ),
    Peer(
        "HolisticTraceAnalysis, parse_trace_file",
        "import sys; from hta.common.trace import parse_trace_file; parse_trace_file(sys.argv[1])",
        "hta",
        12,
    ),
    Peer(
        "Perfetto trace_processor (Python)",
        "import sys; from perfetto.trace_processor import TraceProcessor\n"
        "list(TraceProcessor(trace=sys.argv[1]).query('select count(*) from slice'))",
        "perfetto",
        4,
    ),
)


def peers(trace: Path, text_bytes: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what each other program took for a trace, or why it was not run."""
    for peer in PEERS:
        if find_spec(peer.needs) is None:
            yield peer.name, {"not_run": MISSING}
        elif peer.memory_per_byte * text_bytes > free_memory():
            yield peer.name, {"not_run": "needs more memory than there is"}
        else:
            program = peer.program
            yield peer.name, _cost(lambda program=program: measured_python(program, str(trace)), text_bytes)
    name = "Perfetto trace_processor (native)"
    engine = next((path for name in ENGINES if (path := shutil.which(name))), None)
    if engine is None:
        yield name, {"not_run": MISSING}
    else:
        command = [engine, "-Q", "select count(*) from slice", str(trace)]
        yield name, _cost(lambda: measured(command), text_bytes)


def _cost(run: Callable[[], Any], text_bytes: int) -> dict[str, Any]:
    try:
        cost = run()
    except RuntimeError as error:
        return {"not_run": f"failed: {str(error).splitlines()[-1]}"}
    return {
        "seconds": round(cost.seconds, 2),
        "cpu_s": round(cost.cpu_s, 2),
        "mb_per_s": round(text_bytes / 1e6 / cost.seconds, 1),
        "peak_private_bytes": cost.peak.private,
    }
