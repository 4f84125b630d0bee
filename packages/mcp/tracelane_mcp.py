"""Answers agents' questions about traces over the Model Context Protocol: read-only, replies bounded."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import tracelane
from tracelane.core.python.opened import OpenedTrace
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.tables.table import Table

MOST_BYTES = 16_000
"""A reply has at most so many bytes of JSON: rows at the end give way."""
MOST_ROWS, MOST_FILES, MOST_OPEN = 100, 200, 4
ENDINGS = (".json", ".json.gz", ".json.zip", ".json.zst", ".gz", ".zip", ".zst")
INSTRUCTIONS = (
    "Questions about profiler traces (PyTorch, Kineto, Chrome). Begin with `explain`: its rows name the "
    "commands behind their numbers, and `table` gives rows of such a command. Times are ns from the trace's "
    "beginning."
)


class Folder:
    """The traces that may be read: those below some folders."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self._open = lru_cache(MOST_OPEN)(tracelane.open)

    def traces(self) -> list[str]:
        """Return the files below the folders whose names end as traces' do, newest first."""
        files = [path for folder in self.folders for path in folder.rglob("*") if path.is_file()]
        ours = [path for path in files if path.name.endswith(ENDINGS)]
        ours.sort(key=lambda path: (-path.stat().st_mtime_ns, str(path)))
        return [str(path) for path in ours[:MOST_FILES]]

    def trace(self, path: str) -> OpenedTrace:
        """Return a trace or folder of ranks below the folders, opened. Raises ValueError elsewhere."""
        whole = Path(path).expanduser()
        whole = (whole if whole.is_absolute() else self.folders[0] / whole).resolve()
        if not any(whole.is_relative_to(folder) for folder in self.folders):
            raise ValueError(f"{path} does not lie below {', '.join(map(str, self.folders))}")
        return self._open(str(whole))

    def explain(self, trace: str, question: str = "", step: str = "") -> str:
        """Say what costs most time in a trace and what can be trusted; with a question only its answer.

        question: a name (busy, idle, gap, kernel, kind, op, device-op, step, slow-step, launch, copy, memory,
        rank, collective, path, efficiency, compile) or words. step: only this step, by label or as nth:-1.
        """
        opened = self.trace(trace)
        part: dict[str, Any] = {"step": step} if step else {}
        if question:
            return reply(opened.explain(question=question, **part))
        return reply(opened.explain(**part), trust=list(opened.explain(table="trust", **part).rows()))

    def table(
        self,
        trace: str,
        analysis: str,
        options: dict[str, Any] | None = None,
        sort: str = "",
        limit: int = 20,
    ) -> str:
        """Return rows of an analysis.

        options: its own by name, and table (another of its tables), step, begin and end (ns), lanes, where.
        sort: a column, greatest first. Analyses: see the server's instructions.
        """
        row = BY_NAME.get(analysis.replace("-", "_"))
        if row is None:
            raise ValueError(f"there is no analysis {analysis!r}; there are {', '.join(BY_NAME)}")
        if sides := {option.name for option in row.options if option.is_side} & set(options or {}):
            raise ValueError(f"{', '.join(sides)} reads another trace, which is not allowed here")
        rows = getattr(self.trace(trace), row.name)(**(options or {}))
        return reply(rows.sort(sort) if sort else rows, max(1, min(limit, MOST_ROWS)))


def reply(table: Table, limit: int = MOST_ROWS, **more: Any) -> str:
    """Return a table as JSON of at most MOST_BYTES, and how many rows are left out."""
    rows: list[Mapping[str, Any]] = list(table.rows(limit=limit))
    while True:
        whole = {
            "table": table.name,
            "scope": table.scope,
            "units": {column.key: column.unit for column in table.columns},
            "rows": rows,
            "more_rows": len(table) - len(rows),
            "totals": dict(table.totals),
            "notes": list(table.notes),
            **more,
        }
        text = json.dumps(whole, default=str)
        if len(text) <= MOST_BYTES:
            return text
        if not rows:
            raise ValueError("one row is longer than a reply may be: ask for fewer columns or another table")
        rows = rows[: len(rows) * MOST_BYTES // len(text)]


def server(folder: Folder) -> Any:
    """Return the server with its tools."""
    from mcp.server.mcpserver import MCPServer
    from mcp.types import ToolAnnotations

    known = "; ".join(f"{row.name}: {row.help.partition(chr(10))[0]}" for row in BY_NAME.values())
    one = MCPServer("tracelane", instructions=f"{INSTRUCTIONS} Analyses: {known}")
    for tool in (folder.traces, folder.explain, folder.table):
        one.tool(annotations=ToolAnnotations(read_only_hint=True), structured_output=False)(tool)
    return one


def main() -> None:
    """Serve the folders named, else the current one, over stdin and stdout."""
    folders = [Path(name) for name in sys.argv[1:]] or [Path()]
    if bad := [str(folder) for folder in folders if not folder.is_dir()]:
        sys.exit(f"tracelane-mcp: no folder: {', '.join(bad)}")
    server(Folder(folders)).run("stdio")


if __name__ == "__main__":
    main()
