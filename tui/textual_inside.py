"""What the viewer uses of Textual's inside: every private name of it stands here, each with its reason, and
nowhere else.

Any release of Textual may change one. `tests/tui/test_textual_inside.py` tries each, and `tests/matrix.py`
runs it with the lowest and the newest Textual that pyproject.toml allows.
"""

from __future__ import annotations

import io
import os
import select
from codecs import getincrementaldecoder
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

# `_styles_cache`: what it computed of borders is remembered for ever, and no public name has it forgotten.
from textual._styles_cache import StylesCache as StylesCache

# `_xterm_parser`: what a terminal sends becomes keys there, and nothing public lets a program add to it.
from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.app import App
from textual.binding import Binding
from textual.dom import DOMNode
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key, Paste
from textual.message import Message
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.visual import VisualType
    from textual.widgets import Static

ESC: Final = "\x1b"
GOES_ON: Final = frozenset(f"{ESC}[O")
"""After Esc these begin what terminals send for keys and as answers (CSI and SS3 of ECMA-48, 5.3), or are the
next Esc; any other is a key of its own.
"""
PAGE: Final = """<!DOCTYPE html>
<html><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body {{ background: {background}; color: {foreground} }} pre {{ line-height: 1.2 }}</style></head>
<body><pre style="font-family: Menlo, 'DejaVu Sans Mono', Consolas, monospace">{code}</pre></body></html>
"""
"""A page with a screen, in the form of rich."""
INPUT_BYTES, LOOK_MS = 4096, 100

Dispatch = Callable[[Message], Coroutine[Any, Any, None]]


class OpenApp(App[object]):
    """An App that says which driver it has, and hands on every error and every widget that comes in."""

    @property
    def terminal(self) -> Driver | None:
        """What the App draws on; None before it runs. `_driver`: nothing public tells it."""
        return self._driver

    def screen_page(self, title: str) -> str:
        """Return what is on the screen as a page of HTML: `_compositor`, which has it. Public is only its
        picture in SVG.
        """
        width, height = self.size
        console = Console(
            width=width,
            height=height,
            file=io.StringIO(),
            force_terminal=True,
            color_system="truecolor",
            record=True,
            legacy_windows=False,
        )
        console.print(self.screen._compositor.render_update(full=True))
        page = PAGE.replace("{title}", escape(title).replace("{", "{{").replace("}", "}}"))
        return console.export_html(code_format=page, inline_styles=True)

    async def carry_out(self, key: str) -> bool:
        """Carry out the command that a key has where the focus is; tell whether there is one. Textual itself
        asks by `_check_bindings` only once a key has gone from the focus outwards, part by part, and nothing
        public carries out a key before the next one sets out.
        """
        return await self._check_bindings(key, priority=True) or await self._check_bindings(key)

    def take_error(self, error: Exception) -> None:
        """Do with an error what textual does, which is to end."""
        super()._handle_exception(error)

    def take_widget(self, widget: Widget) -> None:
        """Do nothing with a widget that comes in, before it gets its first message."""

    def _handle_exception(self, error: Exception) -> None:
        """Hand on what textual caught in a timer, a worker, a layout. No public hook is called there."""
        self.take_error(error)

    async def _dispatch_message(self, message: Message) -> None:
        """Hand on what goes wrong in a handler or action of the App, which would end its loop of messages."""
        try:
            await super()._dispatch_message(message)
        except Exception as error:
            self.take_error(error)

    def _register(self, parent: DOMNode, *widgets: Widget, **position: Any) -> list[Widget]:
        """Hand on screens and mounted widgets, which come in here; those in `_registry` are in already."""
        for widget in widgets:
            if widget not in self._registry:
                self.take_widget(widget)
        return super()._register(parent, *widgets, **position)

    def _start_widget(self, parent: Widget, widget: Widget) -> None:
        """Hand on scrollbars, which come in here alone."""
        self.take_widget(widget)
        super()._start_widget(parent, widget)


class AltKey(Key):
    """A key that came with Esc before it in one packet, as terminals send a key with alt."""

    def __init__(self, alone: Key) -> None:
        """`alone` is the key without alt."""
        super().__init__(f"alt+{alone.key}", None)
        self.alone = alone


class KeyParser(XTermParser):
    """What a terminal sends as messages. Esc and another key in one packet are the key with alt: a terminal
    sends the same for both. Textual makes of some pairs a word's move, of others a letter of a Mac's keyboard
    or a circumflex.

    `ESC x` gives alt+x, `ESC` and, in the next packet, `x` gives escape and x, `ESC [ A` gives up.
    """

    def __init__(self, debug: bool = False) -> None:
        """Begin where nothing has come yet."""
        super().__init__(debug)
        self.after_esc = False
        self.pasted: str | None = None  # what came of a paste that has begun
        self.recent = ""  # as many of the last characters as a mark of pastes has

    def feed(self, data: str) -> Iterator[Message]:
        """Yield the messages of what came in one packet; of an empty one the last."""
        if not data:
            yield from super().feed(data)
        for at, character in enumerate(data):
            self.recent = (self.recent + character)[-len(BRACKETED_PASTE_START) :]
            pair = self.after_esc and character not in GOES_ON
            if self.pasted is not None:
                self.pasted += character
                if self.recent == BRACKETED_PASTE_END:
                    text = self.pasted.removesuffix(BRACKETED_PASTE_END).replace("\x00", "")
                    self.pasted = None
                    yield Paste(text)
                continue
            if pair and at:
                self.esc_alone()
                for key in self._sequence_to_key_events(character):
                    yield AltKey(key)
            else:
                if pair:
                    yield from self.esc_alone()
                yield from super().feed(character)
            self.after_esc = character == ESC
            if self.recent == BRACKETED_PASTE_START:
                self.pasted = ""
                list(super().feed(BRACKETED_PASTE_END))  # Textual takes Esc for a key within one

    def tick(self) -> Iterator[Message]:
        """Yield what is no beginning of more, as nothing came since: Esc."""
        for message in super().tick():
            self.after_esc = False
            yield message

    def esc_alone(self) -> list[Message]:
        """End the Esc that waits for what it may begin: `_timeout_time`, when it would do so by itself. What
        a key is called `_sequence_to_key_events` knows.
        """
        self._timeout_time = 0.0
        return list(super().tick())


class OpenDriver(LinuxDriver):
    """Textual's driver of terminals, with what of its inside our own needs."""

    def run_input_thread(self) -> None:
        """Hand on what the terminal sends until the end: `_debug`. Textual's own has no other parser, ends at
        a byte that is no text, and never sleeps where a terminal is gone.
        """
        parser = KeyParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        is_open = True
        while not self.exit_event.is_set():
            if not is_open:
                self.exit_event.wait(LOOK_MS / 1000)
            elif poll.poll(LOOK_MS):
                data = b""
                with suppress(OSError):  # as where the other end was closed
                    data = os.read(self.fileno, INPUT_BYTES)
                is_open = bool(data)
                for message in parser.feed(text) if (text := decode(data)) else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def write_to(self, file: Any) -> None:
        """Write to a file in place of stderr: `_file`, which the thread that writes gets when it begins."""
        self._file = file

    def stop_as_asked(self) -> None:
        """Give the terminal back and stop. Textual has `_sigtstp_application` called between any two steps of
        the program: in the middle of a write it would wait for a lock for ever.
        """
        self._sigtstp_application()

    def go_on(self) -> None:
        """Take the terminal again after a stop: `_sigcont_application`, for the same reason."""
        self._sigcont_application()

    @property
    def writer(self) -> int | None:
        """The thread that writes to the terminal, while there is one: `_writer_thread`, to be woken where the
        terminal takes nothing.
        """
        thread = self._writer_thread
        return None if thread is None else thread.ident

    @classmethod
    def local_flags(cls, flags: int) -> int:
        """Return the terminal's local flags as textual sets them: `_patch_lflag`, by which a terminal that is
        left so is known.
        """
        patched: int = cls._patch_lflag(flags)
        return patched


def guard_messages(widget: Widget, guarded: Callable[[Dispatch, Message], Coroutine[Any, Any, None]]) -> None:
    """Have a widget's messages and actions dispatched by a function, which gets what dispatches them and the
    message. All of them go through `_dispatch_message`; an error there ends the widget's loop of messages.
    """
    dispatch = widget._dispatch_message
    widget._dispatch_message = lambda message: guarded(dispatch, message)  # type: ignore[method-assign]


def forget_drawing(widget: Widget) -> None:
    """Forget what a widget has drawn: `_styles_cache` and the line in its `_simple_strip`. Textual remembers
    the caches of 1024 widgets that are gone, so that each list opened and closed would take 0.3 MB.
    """
    widget._styles_cache.clear()
    widget._styles_cache._simple_strip = None


def put_text(body: Static, text: VisualType) -> None:
    """Show a text in a widget that is as large as its text: `_layout_updates`, by which its sizes are known.
    Textual counts the second of two changes as the first if no Idle lies between; a layout may.
    """
    body.update(text)
    body._layout_updates += 1


def binding_of(node: DOMNode, key: str) -> Binding | None:
    """Return a node's own binding of a key, those of its classes included: `_bindings`. What is public has
    the bindings of the focused widget and all around it.
    """
    return next(iter(node._bindings.key_to_bindings.get(key, ())), None)
