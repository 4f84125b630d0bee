"""Names and logs, however long and whatever they repeat, take time in proportion to their length."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import in_turn
from tests.events import write_events
from tests.linear import assert_linear
from tests.tui import small_file
from tests.tui.driver import open_viewer, screen_text, wait_until_idle
from tests.tui.small_file import events
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

pytestmark = pytest.mark.slow

CHARACTERS = 6_000
UNITS = ("x y ", "a::日本<\u202e/1**|`👩\u200d👩")
"""What a name repeats: words; wide and hidden characters, and what names are cut or coloured at."""
COMMANDS = (
    ("info",),
    ("view", "--width", "120", "--height", "40"),
    ("view", "--width", "120", "--height", "40", "--search", "x", "--lanes", "."),
    ("steps",),
    ("ops", "--by", "step"),
    ("kernels", "--by", "short"),
    ("slices",),
    ("slices", "--format", "md"),
    ("slices", "--where", "/x+y$/"),
    ("tree",),
    ("range", "--by", "lane"),
    ("findings",),
    ("doctor",),
    ("breakdown",),
    ("idle",),
    ("launches",),
    ("memory",),
    ("compile",),
    ("sections",),
    ("report",),
    ("summary", "--json"),
    ("telemetry",),
    ("ranks",),
    ("chain", "--name", ".", "--all"),
    ("sql", "select * from slices"),
)
KEYS = (
    "down",
    "down",
    "enter",
    "l",
    "L",
    "t",
    "w",
    "w",
    "i",
    "2",
    "3",
    "escape",
    "/",
    "x",
    "enter",
    "n",
    "0",
)
"""Choose, zoom, look at the details, the table of what is in view, its flame and tree, search."""


def long_events(text: str) -> list[dict[str, Any]]:
    """Return the events of the small trace with a text in every name, title, label, key and value."""
    events: list[dict[str, Any]] = []
    for number, event in enumerate(small_file.events()):
        args = event.get("args", {})
        if event["ph"] == "M":
            args = {key: value + text for key, value in args.items()}
        elif event["ph"] == "C":
            args = {key + text: value for key, value in args.items()}
        elif args:
            args = {**args, "key" + text: text, "list": [text]}
        named = event["ph"] != "M" and ("ProfilerStep" not in event["name"] or number % 2)
        event = event | {"name": event["name"] + text} if named else dict(event)
        if number % 7 == 0 and "cat" in event:
            event["cat"] += text
        events.append(event | {"args": args} if args else event)
    odd = {"pid": "p" + text, "tid": "t" + text, "cat": text, "id": text, "name": text}
    phases: tuple[dict[str, Any], ...] = (
        *({"ph": "X", "dur": 5}, {"ph": "i", "s": "g", "args": {text: text}}, {"ph": "C", "args": {text: 3}}),
        *({"ph": "b"}, {"ph": "e"}),
    )
    return events + [odd | phase | {"ts": 1003 + number} for number, phase in enumerate(phases)]


def write_trace(path: Path, text: str) -> Path:
    """Write such a trace."""
    whole = {"deviceProperties": [{"id": 0, "name": text}], "host_name": text}
    path.write_text(json.dumps(whole | {"traceEvents": long_events(text)}), encoding="utf-8")
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "unit"), [*in_turn(COMMANDS, UNITS, 1), *in_turn(COMMANDS, UNITS[::-1], 1)]
)
def test_commands(
    command: tuple[str, ...], unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command on a trace whose every name is four times as long takes about four times as long."""
    name, *options = command

    def prepare(size: int) -> Callable[[], object]:
        path = write_trace(tmp_path / f"{size}.json", unit * (size // len(unit)))

        def work() -> None:
            assert main([name, str(path), *options]) in (0, 1, 64)
            assert "should not have happened" not in capsys.readouterr().err

        work()  # reads it; tests/core/test_damage.py times that
        return work

    assert_linear(prepare, CHARACTERS)


@pytest.mark.corpus
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_the_viewer(unit: str, tmp_path: Path) -> None:
    """So does walking through it: opening, choosing, zooming, tables, searching."""

    def prepare(size: int) -> Callable[[], object]:
        path = write_trace(tmp_path / f"{size}.json", unit * (size // len(unit)))
        open_trace(path, index_dir=tmp_path / "index")
        return lambda: asyncio.run(walk(path, tmp_path / "index"))

    assert_linear(prepare, CHARACTERS, can_stop=False)


async def walk(path: Path, index_dir: Path) -> None:
    """Look at a trace as a person would."""
    async with open_viewer(open_trace(path, index_dir=index_dir), (120, 40)) as (app, pilot):
        for key in KEYS:
            await pilot.press(key)
        await wait_until_idle(app, pilot)
        screen_text(app)
        assert app.is_running


CHARACTERS_LOGS = 25_000
UNITS_LOGS = ("x", ",", ", ", "1", '"', "\n", " \n", "=\t")
LOGS: dict[str, Callable[[str], str]] = {
    "heading": lambda text: (
        f"timestamp,power.draw [W],{text}\n2026-06-20 07:10:00,1,2\n2026-06-20 07:10:01,1,2\n"
    ),
    "cell": lambda text: (
        f"timestamp,power.draw [W],x\n2026-06-20 07:10:00,1,{text}\n2026-06-20 07:10:01,1,2\n"
    ),
    "stamp": lambda text: (
        f"timestamp,power.draw [W]\n{text},1\n2026-06-20 07:10:01,1\n2026-06-20 07:10:02,1\n"
    ),
    "line": lambda text: f"{text}\ntimestamp,power.draw [W]\n2026-06-20 07:10:01,1\n2026-06-20 07:10:02,1\n",
    "quoted": lambda text: f'timestamp,power.draw [W]\n2026-06-20 07:10:01,"{text}\n2026-06-20 07:10:02,1\n',
}


@pytest.mark.parametrize(("form", "unit"), product(LOGS, UNITS_LOGS))
def test_logs(form: str, unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log with a text four times as long takes at most eight times as long, read or refused."""
    trace = write_events(tmp_path / "trace.json", events())

    def prepare(size: int) -> Callable[[], object]:
        log = tmp_path / f"{size}.csv"
        log.write_text(LOGS[form](unit * (size // len(unit))), encoding="utf-8")

        def work() -> None:
            assert main(["telemetry", str(trace), "--smi", str(log)]) in (0, 2, 64)
            capsys.readouterr()

        return work

    assert_linear(prepare, CHARACTERS_LOGS)
