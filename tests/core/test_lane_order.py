"""The order in which a file has its lanes matters to no number."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.events import Event
from tracelane.core.base.errors import TracelaneError
from tracelane.core.demo.trace import write_demo
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import Trace, open_trace

NUMBERED = {"ordinal", "slice_id", "node", "parent"}
"""What only numbers the events of a file or the rows of a table."""


def lane_of(event: Event) -> tuple[str, str]:
    return str(event["pid"]), str(event.get("tid"))


def opened(folder: Path, ranks: list[dict[str, Any]], first: tuple[str, str], index_dir: Path) -> Trace:
    """Write the ranks of a run, each with the events of one lane before all others, and open them."""
    folder.mkdir(exist_ok=True)
    for number, content in enumerate(ranks):
        events = sorted(content["traceEvents"], key=lambda event: lane_of(event) != first)
        path = folder / f"rank{number}.pt.trace.json"
        path.write_text(json.dumps(content | {"traceEvents": events}), encoding="utf-8")
    return open_trace(folder, index_dir=index_dir)


def answers(trace: Trace) -> Iterator[tuple[str, object]]:
    """Yield the rows of each table of each analysis, in any order, or why there are none."""
    for analysis in ANALYSES:
        try:
            tables = list(analysis.run(Scope(trace, clocks=trace.clocks)))
        except TracelaneError as error:
            yield analysis.name, str(error)
        else:
            for table in tables:
                rows = (json.dumps(unnumbered(row), sort_keys=True) for row in table.rows())
                yield f"{analysis.name}: {table.name}", Counter(rows)


def unnumbered(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [unnumbered(one) for one in value]
    if isinstance(value, dict):
        return {key: unnumbered(one) for key, one in value.items() if key not in NUMBERED}
    return value


@pytest.mark.slow
def test_any_lane_may_begin_a_file(tmp_path: Path) -> None:
    """Whichever lane begins the files, every table of every analysis has the same rows."""
    write_demo(tmp_path / "demo")
    ranks = [json.loads(path.read_text("utf-8")) for path in sorted((tmp_path / "demo").glob("rank*.json"))]
    lanes = sorted({lane_of(event) for event in ranks[0]["traceEvents"] if event["ph"] == "X"})
    assert len(ranks) > 1 and len(lanes) > 5
    lanes = lanes[::2]
    expected: dict[str, object] = {}
    for number, lane in enumerate(lanes):
        tables = dict(answers(opened(tmp_path / "run", ranks, lane, tmp_path / f"index{number}")))
        expected = expected or tables
        assert tables.keys() == expected.keys()
        for name, rows in tables.items():
            assert rows == expected[name], (lane, name)
