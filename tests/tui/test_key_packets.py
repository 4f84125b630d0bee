"""What a terminal sends in one packet is the keys that were typed: over a slow line they travel together."""

from __future__ import annotations

import asyncio
import os
import pty
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from textual import events
from textual.message import Message

from tests import waiting
from tests.tui.driver import open_viewer, wait_until, wait_until_idle
from tests.tui.slow_line import SlowLine, tracelane_command
from tests.tui.small_file import small_file
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config
from tracelane.tui.lanes.canvas import LaneCanvas
from tracelane.tui.textual_inside import KeyParser, OpenDriver

READ = os.read
ANSWER = "\x1b[12;34R"
PASTE, PASTED = "\x1b[200~", "\x1b[201~"

PACKETS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "letter": (("\x1bx",), ["alt+x"]),
    "capital": (("\x1bX",), ["alt+X"]),
    "digit, no letter of a Mac": (("\x1b1",), ["alt+1"]),
    "punctuation": (("\x1b?",), ["alt+question_mark"]),
    "no word's move": (("\x1bf", "\x1bb"), ["alt+f", "alt+b"]),
    "Enter": (("\x1b\r",), ["alt+enter"]),
    "a letter of two bytes": (("\x1bä",), ["alt+ä"]),
    "between others": (("a\x1bxb",), ["a", "alt+x", "b"]),
    "before an answer": (("\x1bx" + ANSWER,), ["alt+x", "answer"]),
    "behind an answer": ((ANSWER + "\x1bx",), ["answer", "alt+x"]),
    "Esc before an answer": (("\x1b" + ANSWER,), ["escape", "answer"]),
    "Esc twice": (("\x1b\x1bx",), ["escape", "alt+x"]),
    "two packets": (("\x1b", "x"), ["escape", "x"]),
    "two packets, more behind": (("\x1b", "xy"), ["escape", "x", "y"]),
    "two packets, one sequence": (("\x1b", "[A"), ["up"]),
    "three packets, one sequence": (("\x1b", "[", "A"), ["up"]),
    "a sequence, then a pair": (("\x1b[A\x1bx",), ["up", "alt+x"]),
    "F1 and a pair": (("\x1bOP\x1bx",), ["f1", "alt+x"]),
    "within a paste": ((f"{PASTE}a\x1bx{PASTED}",), ["paste a\x1bx"]),
    "within a paste in parts": (
        (PASTE[:3], PASTE[3:] + "a\x1b", "x" + PASTED[:4], PASTED[4:]),
        ["paste a\x1bx"],
    ),
    "behind a paste": ((f"{PASTE}a{PASTED}\x1bx",), ["paste a", "alt+x"]),
}


def said(message: Message) -> str:
    match message:
        case events.Key():
            return message.key
        case events.Paste():
            return f"paste {message.text}"
        case events.CursorPosition():
            return "answer"
        case _:
            return type(message).__name__


@pytest.mark.parametrize("name", PACKETS)
def test_packets_are_the_keys_that_were_typed(name: str) -> None:
    """Esc and a key in one packet are the key with alt, in two both; sequences and pastes are whole."""
    parser = KeyParser()
    packets, expected = PACKETS[name]
    assert [said(message) for packet in packets for message in parser.feed(packet)] == expected


def test_esc_alone_is_esc_once_nothing_follows() -> None:
    """Of Esc alone the message comes once nothing came after it for a while; a key after that is itself."""
    parser = KeyParser()
    assert list(parser.feed("\x1b")) == []
    seen: list[Message] = []
    while not seen:
        seen += parser.tick()
    assert [said(message) for message in (*seen, *parser.tick(), *parser.feed("x"))] == ["escape", "x"]


async def typed(app: TracelaneApp, text: str) -> None:
    """Have the App get what a terminal sends in one packet, as its driver hands it on."""
    for message in KeyParser().feed(text):
        app.post_message(message)
    await asyncio.sleep(0)


async def test_esc_and_a_key_are_both_done(file_trace: Trace) -> None:
    """Esc closes help, prompt or range, and the key in the same packet does what it does after that."""
    async with open_viewer(file_trace) as (app, pilot):
        for opens in ("question_mark", "colon", "slash"):
            await pilot.press(opens)
            await wait_until_idle(app, pilot)
            before = app.session.viewport
            await typed(app, "\x1bw")
            await wait_until(pilot, lambda: isinstance(app.focused, LaneCanvas), f"the end of {opens}")
            await wait_until_idle(app, pilot)
            assert app.session.viewport.span < before.span, opens
        await pilot.press("v", "right")
        assert app.session.anchor is not None
        await typed(app, "\x1bs\x1b?")
        await wait_until(pilot, lambda: app.screen is not app.main, "the help")
        assert app.session.anchor is None


async def test_a_key_with_alt_that_is_bound_is_that_key(file_trace: Trace) -> None:
    """A command to which the settings give a key with alt is done by it, and Esc is not; in a prompt alt+b
    moves by a word.
    """
    async with open_viewer(file_trace, config=Config(keys={"legend": "alt+y"})) as (app, pilot):
        await pilot.press("v", "right")
        await typed(app, "\x1by")
        await wait_until(pilot, lambda: app.session.panel == "legend", "the legend")
        assert app.session.anchor is not None
        await pilot.press("colon", *"only", "space", *"ab")
        await typed(app, "\x1bbx")
        await wait_until_idle(app, pilot)
        assert getattr(app.focused, "value", "") == "only xab"


@pytest.mark.slow
def test_over_a_terminal_both_are_done(tmp_path: Path) -> None:
    """Esc and q, sent as one packet to the viewer on a terminal, close the search and then the viewer."""
    path, index = small_file(tmp_path), tmp_path / "index"
    open_trace(path, index_dir=index)  # a search waits until all is indexed, and the footer does not tell
    command = tracelane_command("view", str(path), "--fresh", "--index-dir", str(index))
    with SlowLine(command, (100, 30)) as line:
        line.wait_for("details")
        line.type("/matmul")
        line.wait_for("matmul")
        line.type("\x1bq")
        assert line.wait_for_end() == 0


class Recorded(OpenDriver):
    """A driver that keeps what it hands on."""

    def __init__(self, fileno: int) -> None:
        self.fileno, self._debug, self.exit_event = fileno, False, threading.Event()
        self.heard: list[str] = []

    def process_message(self, message: Message) -> None:
        self.heard.append(said(message))


def test_bytes_that_are_no_text_end_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no text come in as keys like others. Where the terminal is gone that is read once, and
    the thread waits for the end.
    """
    terminal, keyboard = pty.openpty()
    ends: list[int] = []

    def read(descriptor: int, size: int) -> bytes:
        data = b""
        with suppress(OSError):  # which it is depends on the system
            data = READ(descriptor, size)
        ends.extend([descriptor] * (not data))
        return data

    monkeypatch.setattr("tracelane.tui.textual_inside.os.read", read)
    driver = Recorded(keyboard)
    reading = threading.Thread(target=driver.run_input_thread)
    reading.start()
    try:
        os.write(terminal, b"a\xff\xfeb\n")
        waiting.wait_until(lambda: driver.heard[-2:] == ["b", "ctrl+j"], "the keys")
        os.close(terminal)
        waiting.wait_until(lambda: bool(ends), "the end of the terminal")
        assert reading.is_alive()
    finally:
        driver.exit_event.set()
        reading.join()
        os.close(keyboard)
    assert driver.heard[0] == "a" and ends == [keyboard]
