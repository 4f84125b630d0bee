"""Frames wait for the terminal's answers: on a slow line they merge, a silent terminal is not waited for."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs
from tests.fuzz.viewer_keys import private_mib
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.terminal_screen import NOT_DRAWN
from tests.waiting import wait_until
from tracelane.tui.terminal.driver import (
    MAX_UNANSWERED,
    PATIENCE_S,
    PATIENCE_WITH_KNOWN_S,
    UNANSWERED,
    UNHINDERED,
    Pace,
)

pytestmark = pytest.mark.slow

REAL = "gpu/hta_a100_resnet_ddp_nccl.json.gz"
OVER_SSH = {"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22"}
BITS_PER_S, DELAY_S = 2e6, 0.08
LAG_S = 0.8
A_MOMENT_S = 0.3
MAX_GROWTH_STALLED_MIB = 4.0
"""Of 2,000 keys, of which each took 2 to 6 KB when it had to wait for the terminal."""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One index folder: the viewer is started often here."""
    return tmp_path_factory.mktemp("index")


def line_to(
    trace: Path,
    index: Path,
    size: tuple[int, int] = (200, 50),
    bits_per_s: float = BITS_PER_S,
    answers: bool = True,
) -> SlowLine:
    command = tracelane_command("view", str(trace), "--fresh", "--index-dir", str(index))
    delay = DELAY_S if bits_per_s else 0.0
    return SlowLine(command, size, bits_per_s=bits_per_s, delay_s=delay, answers=answers, environ=OVER_SSH)


def zoomed_in(line: SlowLine) -> None:
    """Wait for the first picture, then zoom in so far that there is room to pan."""
    line.wait_for("details")
    line.wait_for_quiet(A_MOMENT_S)
    for key in ("W", "W"):
        line.type(key)
        line.wait_for_quiet(A_MOMENT_S)


@needs(CORPUS)
def test_a_held_key_stops_with_its_release(index: Path) -> None:
    """On a line of 2 Mbit/s and 80 ms few frames are ever under way, so few come after a held key's release.

    Those that have no answer yet are counted: keys that a loaded machine has not read by then draw, too.
    """
    with line_to(CORPUS / REAL, index) as line:
        zoomed_in(line)
        before = line.questions
        line.hold("d", 4.0)
        line.wait_for_quiet(1.5 * LAG_S)
        # Were answers late by more than the patience, they would be expected no more, and as many asked anew.
        assert line.most_unanswered <= MAX_UNANSWERED + UNANSWERED
        assert line.questions - before > 2  # it did move meanwhile
        line.type("q")
        assert line.wait_for_end() == 0


@pytest.mark.slow
def test_what_is_shown_at_last_is_the_last_state(demo: Path, index: Path) -> None:
    """Keys typed faster than the line draws end in the picture that they end in when typed slowly."""
    keys = "wwwwdddddaass"
    screens = []
    for bits_per_s, pause in ((BITS_PER_S / 4, 0.0), (0.0, 0.05)):
        with line_to(demo, index, (120, 40), bits_per_s) as line:
            line.wait_for("details")
            line.wait_for_quiet(A_MOMENT_S)
            for key in keys:
                line.type(key)
                line.run(pause)
            line.wait_for_quiet(2 * A_MOMENT_S)
            screens.append(line.screen.lanes)
    assert screens[0] == screens[1]


@pytest.mark.slow
def test_nothing_is_lost_when_resized_while_held_back(demo: Path, index: Path) -> None:
    """A resize in the middle of frames that wait leaves no cell undrawn: all anew looks the same."""
    with line_to(demo, index, bits_per_s=BITS_PER_S / 4) as line:
        zoomed_in(line)
        line.hold("d", 0.5)
        line.resize(150, 44)
        line.hold("a", 0.3)
        line.resize(110, 35)
        line.wait_for_quiet(3 * A_MOMENT_S)
        drawn = line.screen.lanes
        assert NOT_DRAWN not in line.screen.text
        os.kill(line.pid, signal.SIGCONT)  # draws all anew
        line.wait_for_quiet(3 * A_MOMENT_S)
        assert line.screen.lanes == drawn


@pytest.mark.slow
def test_answers_are_no_keys(demo: Path, index: Path) -> None:
    """No answer is taken for a key, and none is left for the shell when the viewer ends."""
    with line_to(demo, index) as line:
        line.wait_for("details")
        line.hold("w", 0.5)
        line.hold("s", 0.5)
        line.wait_for_quiet(A_MOMENT_S)
        assert "no command" not in line.screen.text and "does nothing" not in line.screen.text
        line.hold("w", 0.3)
        line.wait_until(lambda: line.questions > UNANSWERED, "more frames than go unanswered")
        line.type("q")
        line.wait_for_end()
        assert line.answers_on_the_way == 0


def test_a_silent_terminal_is_waited_for_once(demo: Path, index: Path) -> None:
    """A terminal that never answers is held back for a second at most, then asked no more."""
    with line_to(demo, index, (100, 30), bits_per_s=0.0, answers=False) as line:
        line.wait_for("details")
        line.hold("w", PATIENCE_S + 0.3)
        line.wait_for_quiet(PATIENCE_S + A_MOMENT_S)  # it has given up asking
        questions = line.questions  # fewer where it gave up before the first key
        assert 0 < questions <= UNANSWERED
        for number in range(3):
            before = len(line.delivered)
            line.type("ws"[number % 2])
            line.wait_until(lambda: len(line.delivered) > before, "a frame")  # noqa: B023
        assert line.questions == questions
        line.type("q")
        assert line.wait_for_end() == 0


def test_a_stalled_terminal_costs_no_memory(demo: Path, index: Path, tmp_path: Path) -> None:
    """While a terminal takes nothing keys are carried out and none wait in memory; then it shows the last."""
    log = tmp_path / "viewer.log"
    command = tracelane_command("view", str(demo), "--index-dir", str(index), "--log", str(log))
    with SlowLine(command, (200, 50)) as line:
        line.wait_for("details")
        line.wait_for_quiet(A_MOMENT_S)

        def typed_unread(keys: str, times: int) -> float:
            """Type without reading what comes, until all is carried out; return the memory in use then."""
            for _ in range(times):
                due = commands_in(log) + len(keys)
                os.write(line.terminal, keys.encode())
                wait_until(lambda: commands_in(log) == due, "the last key")  # noqa: B023
            return private_mib(line.pid)

        warm = typed_unread("wdsa" * 25, 10)
        assert typed_unread("wdsa" * 25, 20) - warm < MAX_GROWTH_STALLED_MIB
        line.type("W")
        line.wait_for_quiet(3 * PATIENCE_S)
        drawn = line.screen.lanes
        assert NOT_DRAWN not in line.screen.text
        os.kill(line.pid, signal.SIGCONT)  # draws all anew
        line.wait_for_quiet(A_MOMENT_S)
        assert line.screen.lanes == drawn
        line.type("q")
        assert line.wait_for_end() == 0


def commands_in(log: Path) -> int:
    return log.read_text(encoding="utf-8").count(" command ")


def test_the_pace() -> None:
    """Two frames go out unanswered; silence ends the asking, a late answer begins it again."""
    pace = Pace()
    assert not pace.full and pace.patience == PATIENCE_S
    for _ in range(UNANSWERED):
        assert not pace.full
        pace.count_question()
    assert pace.full
    pace.count_answer()
    assert not pace.full and pace.patience == PATIENCE_WITH_KNOWN_S
    pace.count_question()
    pace.lost()
    assert pace.asks and not pace.full and pace.patience == PATIENCE_S  # it has answered before: once more
    pace.lost()
    assert not pace.asks
    pace.count_answer()
    assert pace.asks and not pace.full


def test_more_frames_on_a_long_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """While answers take no longer than the way there and back more frames go out, until one had to wait
    behind others, or none comes.
    """
    now = 0.0
    monkeypatch.setattr("tracelane.tui.terminal.driver.monotonic", lambda: now)
    pace = Pace()

    def under_way() -> int:
        count = 0
        while not pace.full:
            pace.count_question()
            count += 1
        return count

    assert under_way() == UNANSWERED
    now += 0.16
    pace.count_answer()
    assert under_way() == MAX_UNANSWERED - UNANSWERED + 1
    now += 0.16 * (UNHINDERED - 1) / 2
    pace.count_answer()
    assert not pace.full
    now += 0.16 * UNHINDERED
    pace.count_answer()
    assert pace.full  # two are under way still
    pace.count_answer()
    assert under_way() == 1
    pace.lost()
    assert under_way() == UNANSWERED


def test_settling() -> None:
    """Leaving waits for the answers that are due, no longer than it may, and for none that are not."""
    pace = Pace()
    pace.settle(patience_s=3600)
    pace.count_question()
    began = time.monotonic()
    pace.settle(patience_s=0.05)
    assert time.monotonic() - began >= 0.05
    assert not pace.full
