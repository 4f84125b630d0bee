"""Regular expressions that take too long end with a sentence, wherever one is typed, and Esc gives up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.events import complete, write_events
from tests.tui.driver import message, open_viewer, wait_until, wait_until_idle
from tracelane.core.base import pattern as patterns
from tracelane.core.base.pattern import PatternJob
from tracelane.core.query import scan_child
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import main
from tracelane.tui.widgets.prompt import Prompt

NAME = "a" * 50 + "!"
SLOW = "(a+)+$"
EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": NAME}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": NAME}},
    *(complete(10 * number, 8, NAME, "kernel", pid=1, tid=1, args={"x": NAME}) for number in range(50)),
]
COMMANDS = [
    ["slices", "TRACE", "--where", "/PATTERN/"],
    ["slices", "TRACE", "--where", "-/PATTERN/i"],
    ["slices", "TRACE", "--where", "lane:/PATTERN/"],
    ["slices", "TRACE", "--where", "arg.x:/PATTERN/"],
    ["slices", "TRACE", "--lanes", "PATTERN"],
    ["chain", "TRACE", "--name", "PATTERN"],
    ["kernels", "TRACE", "--runs", "PATTERN"],
    ["cut", "TRACE", "--from", "+0ns", "--lanes", "PATTERN", "-o", "cut.json"],
    ["view", "TRACE", "--lanes", "PATTERN"],
    ["view", "TRACE", "--search", "/PATTERN/"],
    ["view", "TRACE", "--where", "/PATTERN/"],
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a trace on whose every name and title the expressions take long."""
    return write_events(tmp_path / "names.json", EVENTS)


@pytest.fixture
def trace(path: Path, tmp_path: Path) -> Trace:
    """Return that trace, open."""
    return open_trace(path, index_dir=tmp_path / "index")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give a text an hour: only whoever asked can give up before."""
    monkeypatch.setattr(patterns, "PatternJob", partial(PatternJob, text_s=3600.0, all_s=3600.0))
    patterns.job_of.cache_clear()
    yield
    patterns.job_of.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_says_so(
    command: list[str],
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What takes too long ends with one line that names the expression, and exit code 64."""
    monkeypatch.chdir(path.parent)
    words = [word.replace("TRACE", str(path)).replace("PATTERN", SLOW) for word in command]
    assert main(words) == 64
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and f"/{SLOW}/ takes too long on 'aaaa" in error


def test_what_repeats_is_answered(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An expression that may take long, and does not, is answered like any other."""
    assert main(["slices", str(path), "--where", "/(a+)+!$/", "--limit", "1"]) == 0
    assert "50 slices" in capsys.readouterr().out


@pytest.mark.slow
def test_arguments_of_a_large_trace(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a process of its own looks through the arguments it is the same line and exit code 64."""
    monkeypatch.setattr(scan_child, "WORTH", 1)
    assert main(["slices", str(path), "--where", f"arg.x:/{SLOW}/"]) == 64
    captured = capsys.readouterr()
    assert captured.err.startswith(f"tracelane: /{SLOW}/ takes too long on 'aaaa")
    assert captured.err.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("line", [f"only {SLOW}", f"hide {SLOW}", f"filter /{SLOW}/"])
async def test_the_viewer_says_so(line: str, trace: Trace) -> None:
    """In the viewer one line says that it takes too long, and the view stays as it was."""
    async with open_viewer(trace) as (app, pilot):
        app.post_message(Prompt.Answered("command-line", line))
        await wait_until(pilot, lambda: "takes too long" in message(app))
        assert not app.session.only and not app.session.hidden_lanes


@pytest.mark.slow
@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("line", [f"only {SLOW}", f"hide {SLOW}", f"filter /{SLOW}/"])
async def test_escape_gives_up(line: str, trace: Trace) -> None:
    """While an expression is looked for the viewer says that Esc stops, goes on drawing, and Esc stops."""
    async with open_viewer(trace) as (app, pilot):
        before = app.session.viewport
        app.post_message(Prompt.Answered("command-line", line))
        await wait_until(pilot, lambda: "Esc stops" in message(app))
        await pilot.press("w")
        await wait_until(pilot, lambda: app.session.viewport != before)
        await pilot.press("escape")
        await wait_until(pilot, lambda: "stopped" in message(app))
        await wait_until_idle(app, pilot)
        assert not app.session.only and not app.session.hidden_lanes


async def test_lookaround_in_lanes(trace: Trace) -> None:
    """An expression that only the job can answer shows and hides lanes like any other."""
    async with open_viewer(trace) as (app, pilot):
        app.post_message(Prompt.Answered("command-line", "only (?<=a)!+$"))
        await wait_until(pilot, lambda: app.session.only == "(?<=a)!+$")
        app.post_message(Prompt.Answered("command-line", "only (?<=b)!+$"))
        await wait_until(pilot, lambda: message(app) == "no lane matches (?<=b)!+$")
