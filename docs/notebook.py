"""Write docs/python.ipynb: run its cells on the demo trace and keep what they show, pictures as SVG.

.venv/bin/python docs/notebook.py
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from tracelane.core.demo.trace import write_demo

NOTEBOOK = Path(__file__).resolve().parent / "python.ipynb"
CELLS: tuple[tuple[str, str], ...] = (
    (
        "markdown",
        "# A trace in a notebook\n\nThe demo trace: two ranks of a training run on an AIU, three steps "
        "(the first line writes it). All that is used here is told in "
        "[python.md](python.md).",
    ),
    ("code", 'import tracelane\n\nt = tracelane.open(tracelane.demo("demo"))\nt.info'),
    ("markdown", "## The timeline\n\nThe first step; hover over a slice for its name and length."),
    ("code", "t.plot(step=t.info.steps[0], rows=24)"),
    ("markdown", "Only the devices, over the whole trace:"),
    ("code", 't.plot(lanes="AIU|Stream", rows=16)'),
    ("markdown", "## Where the time goes"),
    ("code", "t.breakdown()"),
    ("code", 't.kernels(by="short").sort("total_ns").head(8)'),
    ("code", "t.steps()"),
    ("markdown", "## Why the device waits"),
    ("code", 't.idle(table="gaps").head(8)'),
    ("markdown", "## Single slices as columns\n\nEach column is a numpy array, times in whole ns."),
    (
        "code",
        'slices = t.slices(where="cat:kernel", columns=("name", "duration_ns", "step"))\n'
        'slices["duration_ns"].sum(), slices["duration_ns"].dtype, len(slices)',
    ),
    ("code", 'slices.sort("duration_ns").head(5)'),
    ("markdown", "## What stands out"),
    ("code", "t.findings()"),
)


def run_cell(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Run the source of a cell and return its outputs as a notebook holds them."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": _data(value)})
    return outputs


def _data(value: Any) -> dict[str, list[str]]:
    for kind, method in (("image/svg+xml", "_repr_svg_"), ("text/html", "_repr_html_")):
        draw = getattr(value, method, None)
        if draw is not None:
            return {kind: _lines(draw()), "text/plain": [f"<{type(value).__name__}>"]}
    return {"text/plain": _lines(repr(value))}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook() -> dict[str, Any]:
    """Return the notebook with its outputs; the demo lies in `demo` of the working directory."""
    names: dict[str, Any] = {}
    cells = []
    for number, (kind, source) in enumerate(CELLS):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
        cell["source"] = _lines(source)
        if kind == "code":
            cell |= {"execution_count": None, "outputs": run_cell(source, names)}
        cells.append(cell)
    names["t"].close()
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_demo(Path(folder) / "demo")
        here = Path.cwd()
        os.chdir(folder)
        text = json.dumps(notebook(), indent=1, ensure_ascii=False) + "\n"
        os.chdir(here)
    NOTEBOOK.write_text(text, encoding="utf-8")
