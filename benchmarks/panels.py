"""What the panels take, one after another in one viewer, of a trace beside whose index no answer is kept."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.asking import forget_answers
from tests.tui.driver import delayed, unfinished
from tests.tui.walk import SIZE, RecordedApp
from tests.waiting import PATIENCE_S
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.commands.table import command
from tracelane.tui.config import Config
from tracelane.tui.draw.line import lane_key
from tracelane.tui.keys import NO_KEYS, keys_text
from tracelane.tui.panels.panel import GROUPS, QUERY, TREE_SLICES
from tracelane.tui.session import RowKey
from tracelane.tui.widgets.table import VirtualTable

WITHOUT_ROWS = ("details", "legend", "hits", QUERY, TREE_SLICES)
"""Panels that show what somebody selected or asked, or no rows."""
GAP = "longest-gap"
"""A command that counts before it goes somewhere."""
TURN_S = 0.005
QUIET_TURNS = 20
"""So many turns in a row nothing is under way until a panel is complete."""


def panels(trace: Path, index_dir: Path) -> dict[str, Any]:
    """Return for each panel with rows the processor time until its first rows are there, and until it is
    complete, with all processes that it has asked; that of the viewer before, until all is known.
    """
    forget_answers(index_dir)
    opened = open_trace(trace, index_dir=index_dir)
    result = asyncio.run(_costs(opened))
    slices = opened.sources[0].read_report["slices"]
    opened.close()
    return {"slices": slices, **result}


async def _costs(trace: Trace) -> dict[str, Any]:
    app = RecordedApp(trace, config=Config())
    rows: list[dict[str, Any]] = []
    async with app.run_test(headless=False, size=SIZE):
        before = await _until_complete(app, lambda: None)
        for group in GROUPS:
            for name, title in group.panels:
                if name not in WITHOUT_ROWS:
                    cost = await _until_complete(app, partial(app.action_panel, name), name)
                    rows.append({"key": _key(group.command), "title": title, **cost})
        busiest = max(trace.device_lanes, key=lambda number: trace.lanes[number].slices, default=0)
        focus = RowKey(lane_key(trace.lanes[busiest]), 0)
        app.store.show(app.session._replace(focus=focus, panel="details"))
        await _until_complete(app, lambda: None)
        cost = await _until_complete(app, partial(app.run_command, GAP))
        rows.append({"key": _key(GAP), "title": command(GAP).title, **cost})
    return {"start_cpu_s": before["cpu_s"], "panels": rows}


async def _until_complete(app: RecordedApp, act: Callable[[], object], name: str = "") -> dict[str, Any]:
    """Do something, and wait until it has led to all that it leads to; of a panel until it has rows, too."""
    began, until, first = _cpu_s(), time.perf_counter() + PATIENCE_S, None
    act()
    quiet = 0
    while quiet < QUIET_TURNS:
        assert time.perf_counter() < until, f"{name or act} is not complete"
        await asyncio.sleep(TURN_S)
        if first is None and name and _row_count(app, name):
            first = round(_cpu_s() - began, 3)
        quiet = 0 if unfinished(app) or delayed(app) or not app.painted else quiet + 1
    cost = {"cpu_s": round(_cpu_s() - began, 3)}
    return {**cost, "first_cpu_s": first, "rows": _row_count(app, name)} if name else cost


def _row_count(app: RecordedApp, name: str) -> int:
    tables = list(app.main.query(f"#{name}").results(VirtualTable))
    tables += app.main.query(f"#{name} VirtualTable").results(VirtualTable)
    return max((table.row_count for table in tables if table.is_mounted), default=0)


def _cpu_s() -> float:
    """Return the processor time of this process, and of those that it has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def _key(command_id: str) -> str:
    return keys_text(command(command_id), NO_KEYS) if command_id else ""
