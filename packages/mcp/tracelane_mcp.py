"""Answers agents' questions about traces over the Model Context Protocol: read-only, replies bounded."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tracelane
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.inputs import expanded
from tracelane.core.python.opened import OpenedTrace
from tracelane.core.read.source import open_source
from tracelane.core.read.urls import is_url
from tracelane.core.tables.analysis import Option
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.registry import BY_NAME

MAX_BYTES = 16_000
"""A reply has at most so many bytes of JSON: rows at the end give way."""
MAX_ROWS, MAX_FILES, MAX_OPEN = 100, 200, 4
ENDINGS = (".json", ".json.gz", ".json.zip", ".json.zst", ".gz", ".zip", ".zst")
INSTRUCTIONS = (
    "Questions about profiler traces (PyTorch, Kineto, Chrome). Begin with `explain`: its rows name the "
    "commands behind their numbers, and `table` gives rows of such a command. Times are ns from the trace's "
    "beginning."
)


class Folder:
    """The traces that may be read: those below some folders. Links count as what they lead to."""

    def __init__(self, folders: list[Path]) -> None:
        self.folders = [folder.resolve() for folder in folders]
        self._open: dict[str, tuple[list[str], OpenedTrace]] = {}

    def traces(self) -> list[str]:
        """Return the files below the folders whose names end as traces' do, newest first."""
        files = [path for folder in self.folders for path in folder.rglob("*") if path.name.endswith(ENDINGS)]
        ours = [path for path in files if path.is_file() and self._is_below(path.resolve())]
        ours.sort(key=lambda path: (-path.stat().st_mtime_ns, str(path)))
        return [str(path) for path in ours[:MAX_FILES]]

    def trace(self, path: str) -> OpenedTrace:
        """Return a trace or folder of ranks below the folders, opened; anew where one of its files is not
        what it was. Raises ValueError where it, or a file in it, lies elsewhere.
        """
        whole = self.below(path)
        prints = [self._fingerprint(Path(file)) for file in expanded([str(whole)])]
        before, opened = self._open.pop(str(whole), ([], None))
        if opened is None or before != prints:
            opened = tracelane.open(str(whole))
        self._open[str(whole)] = prints, opened
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]
        return opened

    def below(self, path: str) -> Path:
        """Return where a path leads, of a relative one in the first folder. Raises ValueError where that is
        not below the folders, whether anything is there or not.
        """
        if is_url(path):
            raise ValueError("URLs are not read here")
        try:
            named = Path(path).expanduser()
            whole = (named if named.is_absolute() else self.folders[0] / named).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise ValueError(f"{path[:200]!r} is no path: {error}") from None
        if not self._is_below(whole):
            raise ValueError(f"{path} does not lie below {', '.join(map(str, self.folders))}")
        return whole

    def _is_below(self, whole: Path) -> bool:
        return any(whole.is_relative_to(folder) for folder in self.folders)

    def _fingerprint(self, file: Path) -> str:
        """Return what tells a member of a trace from what stood there before. Raises ValueError for one that
        a link leads out to: it names the link, not what lies there.
        """
        for part in (*reversed(file.parents), file):
            if not self._is_below(part.resolve()) and any(map(part.is_relative_to, self.folders)):
                raise ValueError(f"{part} is a link that does not lie below the folders")
        if file.exists() and not file.is_file():
            raise ValueError(f"{file} is no file")
        try:
            return json.dumps([str(file), open_source(file).fingerprint])
        except UnreadableError as error:  # a folder may hold what is no trace
            return str(error)

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

        options: its own by name, and table (another of its tables), step, begin and end (ns), lanes, where;
        paths in them lie below the server's folders. sort: a column, greatest first. Analyses: see the
        server's instructions.
        """
        row = BY_NAME.get(analysis.replace("-", "_"))
        if row is None:
            raise ValueError(f"there is no analysis {analysis!r}; there are {', '.join(BY_NAME)}")
        given = dict(options or {})
        for option in row.options:
            if option.name in given:
                given[option.name] = self._value(option, given[option.name])
        rows = getattr(self.trace(trace), row.name)(**given)
        return reply(rows.sort(sort) if sort else rows, max(1, min(limit, MAX_ROWS)))

    def _value(self, option: Option, value: Any) -> Any:
        """Return the value of an option: paths in it lead below the folders, and another trace is opened."""
        if isinstance(value, list):
            return [self._value(option, each) for each in value]
        if not (option.path or option.is_side) or value in ("", None):
            return value
        if not isinstance(value, str):
            raise ValueError(f"{option.name} is a text, not {value!r}")
        if option.is_side:
            return self.trace(value)
        match = re.fullmatch(option.path, value, re.DOTALL)
        if match is None:
            return value  # names no path
        begin, end = match.span("path")
        return f"{value[:begin]}{self.below(match['path'])}{value[end:]}"


def reply(table: Table, limit: int = MAX_ROWS, **more: Any) -> str:
    """Return a table as JSON of at most MAX_BYTES, and how many rows are left out."""
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
        if len(text) <= MAX_BYTES:
            return text
        if not rows:
            raise ValueError("one row is longer than a reply may be: ask for fewer columns or another table")
        rows = rows[: len(rows) * MAX_BYTES // len(text)]


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
