"""Measure all in one run: indexing, memory, ranks, reopening, frames, panels; other programs beside it.

    .venv/bin/python benchmarks/run.py [TRACE …] [--size 1e9] [--reopen 1e8 5e9] [--only indexing frames …]

Without a trace, traces of the sizes asked for are made, which take 8 GB of disk with that of 5 GB. Prints
Markdown; nothing here passes or fails.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # what tests use is used here too

from benchmarks.asking import asked_twice
from benchmarks.forms import forms
from benchmarks.frames import frames, reopening
from benchmarks.indexing import TRACELANE, indexing, larger
from benchmarks.line import lines
from benchmarks.machine import machine
from benchmarks.made_trace import write_made_trace
from benchmarks.many_ranks import many_ranks
from benchmarks.memory import measured_python
from benchmarks.panels import panels
from benchmarks.readers import readers
from benchmarks.report import into_document, markdown
from benchmarks.shapes import shapes

SCHEMA = 4
LOADED = (
    "tracelane.core.index.indexer",
    "tracelane.core.index.build",
    "tracelane.tui.controllers.gathering",
    "tracelane.tui.cli.index",
    "tracelane.tui.cli.view",
)
PARTS = (
    *("readers", "indexing", "large", "forms", "shapes", "ranks"),
    *("reopening", "frames", "findings", "panels", "lines"),
)
LARGER, LARGE_ROUNDS = 5, 2
"""How many times larger the large trace is, and in how many turns it is indexed."""
SMALLER = 50
FORMS_SHARE = 4
"""How many times smaller the trace is that is written in every form."""
WORKERS = (2, 1)


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Return all measurements that were asked for."""
    result: dict[str, Any] = {"schema": SCHEMA, "machine": machine()}
    _with_bytecode()
    index_dir = folder / "index"
    traces = options.traces or [
        _trace_of_size(folder, size) for size in (options.size / SMALLER, options.size)
    ]
    if "readers" in options.only and not options.traces:
        print("readers", file=sys.stderr, flush=True)
        result["readers"] = readers(
            folder, options.size, options.workers[0], index_dir, options.rounds, options.others
        )
    if "indexing" in options.only:
        say("indexing", traces[-1])
        result["indexing"] = [indexing(traces[-1], options.workers, index_dir, options.rounds)]
    if "large" in options.only and not options.traces:
        result["large"] = _large(options, folder)
    if "forms" in options.only and not options.traces:
        print("forms", file=sys.stderr, flush=True)
        result["forms"] = forms(
            folder, options.size / FORMS_SHARE, options.workers[0], index_dir, options.rounds
        )
    if "shapes" in options.only and not options.traces:
        print("shapes", file=sys.stderr, flush=True)
        result["shapes"] = shapes(folder, options.size, options.workers[0], index_dir)
    if "ranks" in options.only and not options.traces:
        print("ranks", file=sys.stderr, flush=True)
        result["ranks"] = many_ranks(folder, options.ranks, options.rounds)
    if "reopening" in options.only:
        result["reopening"] = [
            {"bytes": trace.stat().st_size, **_reopened(trace, index_dir)}
            for trace in (
                traces if options.traces else [_trace_of_size(folder, size) for size in options.reopen]
            )
        ]
    if "frames" in options.only:
        result["frames"] = [_walked(trace, index_dir) for trace in traces]
    if "findings" in options.only:
        say("findings", traces[-1])
        _indexed(traces[-1], index_dir)
        result["findings"] = asked_twice("findings", traces[-1], index_dir, options.rounds)
    if "panels" in options.only:
        say("panels", traces[-1])
        _indexed(traces[-1], index_dir)
        result["panels"] = panels(traces[-1], index_dir)
    if "lines" in options.only:
        say("slow lines", traces[-1])
        _indexed(traces[-1], index_dir)
        result["lines"] = lines(traces[-1], index_dir)
    return result


def _with_bytecode() -> None:
    """Have all modules compiled before anything is timed, as those of an installed program are."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    measured_python(f"import {', '.join(LOADED)}")


def _large(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Measure a large trace, and remove it and its index: they take most of the room."""
    small = _trace_of_size(folder, options.size)
    large = folder / "large.pt.trace.json"
    index_dir = folder / "large-index"
    try:
        say("making", large)
        write_made_trace(large, size=LARGER * options.size)
        os.sync()
        say("indexing", large)
        return larger(small, large, options.workers[0], index_dir, LARGE_ROUNDS)
    finally:
        large.unlink(missing_ok=True)
        shutil.rmtree(index_dir, ignore_errors=True)


def _reopened(trace: Path, index_dir: Path) -> dict[str, Any]:
    say("reopening", trace)
    _indexed(trace, index_dir)
    return reopening(trace, index_dir)


def _walked(trace: Path, index_dir: Path) -> dict[str, Any]:
    say("frames", trace)
    _indexed(trace, index_dir)
    return frames(trace, index_dir)


def _indexed(trace: Path, index_dir: Path) -> None:
    measured_python(TRACELANE, "index", str(trace), "--index-dir", str(index_dir))


def _trace_of_size(folder: Path, size: float) -> Path:
    path = folder / f"made-{size:.0f}.pt.trace.json"
    if not path.exists():
        say("making", path)
        write_made_trace(path, size=size)
        os.sync()  # or it would be written while others are measured
    return path


def say(what: str, trace: Path) -> None:
    """Tell what is going on, on stderr."""
    print(f"{what}: {trace.name}", file=sys.stderr, flush=True)


def parser() -> argparse.ArgumentParser:
    """Return what the command line understands."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    arguments.add_argument("traces", nargs="*", type=Path, help="measure these, the smallest first")
    arguments.add_argument("--size", type=float, default=1e9, help="bytes of the trace that is made")
    arguments.add_argument(
        "--reopen", type=float, nargs="+", default=[1e8, 1e9], help="bytes of those reopened"
    )
    arguments.add_argument("--workers", type=int, nargs="+", default=WORKERS, help="processes that index")
    arguments.add_argument("--rounds", type=int, default=5, help="turns of what is measured in turns")
    arguments.add_argument("--ranks", type=int, default=64, help="files of ranks that are opened together")
    arguments.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="measure only these parts")
    arguments.add_argument(
        "--others", default=sys.executable, help='the Python that has HTA and TraceLens, "" to run neither'
    )
    arguments.add_argument("--folder", type=Path, help="keep what is made here, and use what is there")
    arguments.add_argument("--json", type=Path, help="write the measurements to this file")
    arguments.add_argument("--markdown", type=Path, help="write the tables to this file")
    arguments.add_argument(
        "--from", dest="source", type=Path, help="measure nothing: take this file of --json"
    )
    arguments.add_argument("--docs", action="store_true", help="put the tables into docs/performance.md")
    return arguments


def main() -> None:
    """Measure what the command line asks for."""
    options = parser().parse_args()
    if options.source:
        result = json.loads(options.source.read_text(encoding="utf-8"))
    elif options.folder:
        options.folder.mkdir(parents=True, exist_ok=True)
        result = measure(options, options.folder)
    else:
        with tempfile.TemporaryDirectory(prefix="tracelane-bench-") as folder:
            result = measure(options, Path(folder))
    text = markdown(result)
    print(text)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(text, encoding="utf-8")
    if options.docs:
        into_document(text)


if __name__ == "__main__":
    main()
