"""Reading one trace, by tracelane and by others, in turns: each in a process of its own; medians count."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.forms import FORMS
from benchmarks.indexing import COMMITTED
from benchmarks.made_trace import write_made_trace
from benchmarks.memory import free_memory, measured

ENGINE = "TRACELANE_PERFETTO"
"""Names the script that runs Perfetto's engine under node; it prints JSON: `total_s`, `rssMB`, `version`."""
ENGINE_MEMORY = 3
"""Bytes of memory that the engine may need per byte of text."""
EXCERPT = 60_000_000
IJSON = f"""
import sys, ijson
class Head:
    def __init__(self, file): self.file, self.left = file, {EXCERPT}
    def read(self, size=-1):
        data = self.file.read(min(size, self.left) if size >= 0 else self.left)
        self.left -= len(data)
        return data
try:
    for _ in ijson.items(Head(open(sys.argv[1], "rb")), "traceEvents.item", use_float=True): pass
except ijson.IncompleteJSONError: pass
"""
TENTH = 10
"""Programs that take minutes read a trace so many times shorter, and what they take is scaled."""
VERSION = (
    "import sys, platform, importlib.metadata as installed\n"
    "names = installed.packages_distributions().get(sys.argv[1], [sys.argv[1]])\n"
    "print(installed.version(names[0]) if sys.argv[1] else platform.python_version())"
)


@dataclass(frozen=True)
class Program:
    """Another program that reads a trace whole, in Python, and what a user has then."""

    name: str
    package: str  # what it imports, whatever brings that along; "" for what Python has itself
    text: str  # the trace is its first argument
    memory_per_byte: float  # what it may need, by the trace's bytes
    lacks: str
    better: str


PROGRAMS = (
    Program(
        "HolisticTraceAnalysis, `parse_trace_file`",
        "hta",
        "import sys; from hta.common.trace import parse_trace_file; parse_trace_file(sys.argv[1])",
        18,
        "the whole trace in memory, read anew each time; only what Kineto writes",
        "the events are a pandas table in a notebook",
    ),
    Program(
        "TraceLens, `TreePerfAnalyzer.from_file`",
        "TraceLens",
        "import sys; from TraceLens import TreePerfAnalyzer; TreePerfAnalyzer.from_file(sys.argv[1])",
        18,
        "the whole trace in memory, read anew each time; no picture",
        "models of more operators; spreadsheets",
    ),
    Program(
        "orjson.loads",
        "orjson",
        "import sys, orjson; orjson.loads(open(sys.argv[1], 'rb').read())",
        9,
        "objects in memory and nothing else",
        "any JSON",
    ),
    Program(
        "json.load",
        "",
        "import sys, json; json.load(open(sys.argv[1], 'rb'))",
        9,
        "objects in memory and nothing else",
        "any JSON; nothing to install",
    ),
)


@dataclass(frozen=True)
class Run:
    """What one run took; 0 bytes where its memory was not looked at."""

    seconds: float
    memory: int = 0
    version: str = ""  # where the program itself tells it


@dataclass(frozen=True)
class Reader:
    """A way to read the trace; `missing` says why it is left out."""

    name: str
    text: int  # bytes of JSON
    run: Callable[[bool], Run]  # told whether its memory is to be watched, which makes some of them slower
    version: str = ""
    missing: str = ""
    once: bool = False  # it takes minutes
    lacks: str = ""
    better: str = ""


def readers(
    folder: Path, size: float, threads: int, index_dir: Path, rounds: int, others: str
) -> list[dict[str, Any]]:
    """Return the median seconds of each reader of a made trace of so many bytes, all of them, and its memory.

    `others` is the Python that has the other programs installed, "" to leave them out. What a first run of
    each takes with its memory watched counts only for readers that run once.
    """
    paths = {}
    for form, (name, options) in FORMS.items():
        paths[form] = folder / f"made-{size:.0f}-{name}"
        if not paths[form].exists():
            write_made_trace(paths[form], size=size, **options)
    os.sync()  # or it would be written while others are measured
    plain = next(iter(paths.values()))
    text = plain.stat().st_size
    own = version_of(sys.executable, "tracelane")
    taking_part = [
        Reader(f"tracelane, {form}", size, partial(_indexing, path, threads, index_dir), own)
        for form, path in paths.items()
        for size in (text if path.suffix == ".gz" else path.stat().st_size,)
    ]
    taking_part.append(Reader("tracelane, one thread", text, partial(_indexing, plain, 1, index_dir), own))
    taking_part.append(_ijson(plain, text))
    taking_part.append(_engine(plain, text))
    if others:
        tenth = folder / f"made-{size / TENTH:.0f}-plain.json"
        write_made_trace(tenth, size=size / TENTH)
        taking_part += [_program(program, tenth, text, others) for program in PROGRAMS]
    there = [each for each in taking_part if not each.missing]
    watched = {each.name: each.run(True) for each in there}
    runs: dict[str, list[Run]] = {each.name: [] for each in there}
    for _ in range(rounds):
        for each in there:
            if not each.once:
                runs[each.name].append(each.run(False))
    return [
        {"name": each.name, "not_run": each.missing}
        if each.missing
        else _result(each, runs[each.name], watched[each.name])
        for each in taking_part
    ]


def _result(reader: Reader, runs: list[Run], watched: Run) -> dict[str, Any]:
    runs = runs or [watched]
    median = statistics.median(run.seconds for run in runs)
    return {
        "name": reader.name,
        "version": reader.version or watched.version,
        "seconds": round(median, 2),
        "mb_per_s": round(reader.text / 1e6 / median, 1),
        "seconds_of_all": sorted(round(run.seconds, 2) for run in runs),
        "memory_bytes": watched.memory,
        "lacks": reader.lacks,
        "better": reader.better,
    }


def _run(command: list[str], watched: bool, scale: float = 1, memory_scale: float = 1) -> Run:
    cost = measured(command, watched=watched)
    return Run(cost.seconds * scale, int(cost.peak.private * memory_scale))


def _indexing(path: Path, threads: int, index_dir: Path, watched: bool) -> Run:
    """Index a trace anew, up to the committed index."""
    return _run([sys.executable, "-c", COMMITTED, str(path), str(threads), str(index_dir)], watched)


def _ijson(path: Path, text: int) -> Reader:
    scale = max(1.0, text / EXCERPT)
    return Reader(
        "ijson.items, the first 60 MB scaled",
        text,
        lambda watched: _run([sys.executable, "-c", IJSON, str(path)], watched, scale),
        version_of(sys.executable, "ijson"),
        lacks="event by event, nothing is left of it",
        better="any JSON, in the least memory",
    )


def _program(program: Program, path: Path, text: int, python: str) -> Reader:
    """Return a program that another Python runs on a shorter trace, scaled, or why it is left out."""
    version = version_of(python, program.package)
    scale = text / path.stat().st_size
    missing = ""
    if not version:
        missing = "left out: not installed"
    elif path.stat().st_size * program.memory_per_byte > free_memory():
        missing = "left out: it needs more memory than there is"
    return Reader(
        f"{program.name}, a tenth of it scaled",
        text,
        lambda watched: _run([python, "-c", program.text, str(path)], watched, scale, scale),
        version,
        missing,
        once=True,
        lacks=program.lacks,
        better=program.better,
    )


def _engine(path: Path, text: int) -> Reader:
    """Return Perfetto's engine, or why it is left out."""
    script, node = os.environ.get(ENGINE, ""), shutil.which("node")
    missing = ""
    if not Path(script).is_file():
        missing = f"left out: {ENGINE} names no script that runs it"
    elif node is None:
        missing = "left out: there is no node"
    elif text * ENGINE_MEMORY > free_memory():
        missing = "left out: it needs more memory than there is"

    def run(watched: bool) -> Run:
        output = json.loads(measured([node or "node", script, str(path)], watched=False).output)
        return Run(
            float(output["total_s"]), int(output.get("rssMB", 0)) * 1_000_000, str(output.get("version", ""))
        )

    return Reader(
        "Perfetto's engine, as its page runs it",
        text,
        run,
        missing=missing,
        lacks="read anew each time; no memory for 5 GB",
        better="SQL with a library of its own; system traces, heap profiles",
    )


def version_of(python: str, package: str) -> str:
    """Return which version a Python has of what is imported by a name, "" if none; of no name its own."""
    done = subprocess.run(
        [python, "-c", VERSION, package], check=False, capture_output=True, encoding="utf-8"
    )
    return done.stdout.strip() if done.returncode == 0 else ""
