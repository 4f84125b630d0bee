"""Private names of Textual stand in one file, and each is there and does what is relied on."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import io
import pkgutil
import re
import signal
import termios
from collections.abc import Callable, Coroutine, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.drivers.headless_driver import HeadlessDriver
from textual.events import Key
from textual.geometry import Region
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input, Static

import tracelane.tui
from tests.corpus import ROOT
from tests.modules import tree_of
from tests.tui.driver import running, wait_until, wait_until_idle
from tracelane.tui.textual_inside import (
    Dispatch,
    KeyParser,
    OpenApp,
    OpenDriver,
    StylesCache,
    binding_of,
    forget_drawing,
    guard_messages,
    put_text,
)

INSIDE = ROOT / "tui" / "textual_inside.py"
NOT_THEIRS = {"_replace", "_fields", "_asdict", "_exit", "_run_exitfuncs"}
"""Names with an underscore that are public: those of named tuples, os._exit; and what ends a process."""
GENERATED = {
    "_merged_bindings",
    "_computes",
    "_reactives",
    "_decorated_handlers",
    "_abc_impl",
    "_default_cursor_blink",
}
"""What Textual's and Python's own metaclasses put into each class."""


def test_texts_are_put_in_one_way() -> None:
    """No part of the viewer changes the text of a Static by itself, which textual may measure too late."""
    files = [path for path in (ROOT / "tui").rglob("*.py") if path != INSIDE]
    wrong = re.compile(r"(?:Static\)|\bbody|\bstatic)\.update\(")
    assert not [path.name for path in files if wrong.search(path.read_text(encoding="utf-8"))]


def _private(names: Iterator[str]) -> set[str]:
    return {name for name in names if name.startswith("_") and not name.startswith("__")}


@cache
def _names_of(kind: type) -> set[str]:
    """Return the private names that a class of Textual or Rich has, attributes of its values included."""
    tree = ast.parse(inspect.cleandoc("\n" + inspect.getsource(inspect.getmodule(kind) or kind)))
    defined = next(
        node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == kind.__name__
    )
    stores = (
        node.attr
        for node in ast.walk(defined)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Name) and node.value.id == "self"
    )
    return _private(iter(vars(kind))) | _private(stores)


def _classes() -> Iterator[tuple[Path, type]]:
    """Yield the classes of tui that are made from one of Textual or Rich."""
    for module in pkgutil.walk_packages(tracelane.tui.__path__, "tracelane.tui."):
        loaded = importlib.import_module(module.name)
        path = ROOT / Path(*module.name.split(".")[1:]).with_suffix(".py")
        for kind in vars(loaded).values():
            if isinstance(kind, type) and kind.__module__ == module.name and path != INSIDE:
                yield path, kind


def test_no_private_name_is_taken_over() -> None:
    """No class of tui uses, overrides or happens to share a private name of its bases in Textual and Rich."""
    wrong = []
    for path, kind in _classes():
        theirs = set[str]()
        for base in kind.__mro__[1:]:
            if base.__module__.partition(".")[0] in ("textual", "rich"):
                theirs |= _names_of(base)
        used = {
            node.attr
            for part in ast.walk(tree_of(path))
            if isinstance(part, ast.ClassDef) and part.name == kind.__name__
            for node in ast.walk(part)
            if isinstance(node, ast.Attribute)
        }
        own = _private(iter((used | set(vars(kind))) & theirs)) - GENERATED
        own -= {name for name in own if name.startswith(("_css_", "_inherit_"))}
        wrong += [f"{path.name}: {kind.__name__}.{name}" for name in sorted(own)]
    assert wrong == []


# -- what is relied on --------------------------------------------------------------------------------------


class Recorded(OpenApp):
    """An App that keeps what is handed on."""

    def __init__(self) -> None:
        super().__init__()
        self.errors: list[Exception] = []
        self.widgets: list[Widget] = []

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static("\n".join("line" for _ in range(200)))

    def take_error(self, error: Exception) -> None:
        self.errors.append(error)

    def take_widget(self, widget: Widget) -> None:
        assert not widget.is_running
        self.widgets.append(widget)

    def action_fail(self) -> None:
        raise ZeroDivisionError("in an action")

    class Question(Message):
        """Fails where it is handled."""

    def on_recorded_question(self) -> None:
        raise KeyError("in a handler")


async def the_driver_is_told() -> None:
    app = Recorded()
    assert app.terminal is None
    async with running(app):
        assert isinstance(app.terminal, HeadlessDriver)


async def errors_outside_of_messages_arrive() -> None:
    app = Recorded()

    def fail() -> None:
        raise ZeroDivisionError("in a timer")

    async with running(app) as pilot:
        app.set_timer(0.001, fail)
        await wait_until(pilot, lambda: bool(app.errors), "the error")
        app.run_worker(asyncio.sleep(0))
        await pilot.pause()
        assert app.is_running and "in a timer" in str(app.errors[0])
    ending = OpenApp()
    with pytest.raises(ZeroDivisionError, match="as textual does"):
        async with running(ending):
            ending.take_error(ZeroDivisionError("as textual does"))


async def errors_in_messages_of_the_app_arrive() -> None:
    app = Recorded()
    async with running(app) as pilot:
        app.post_message(app.Question())
        await wait_until(pilot, lambda: bool(app.errors), "the error")
        assert isinstance(app.errors[0], KeyError)
        app.post_message(app.Question())
        await wait_until(pilot, lambda: len(app.errors) == 2, "the second error: the App goes on")


async def every_widget_comes_in_once() -> None:
    app = Recorded()
    async with running(app, (40, 10)) as pilot:
        await app.mount(Static("mounted later"))
        await app.push_screen(Screen())
        app.pop_screen()
        await wait_until(
            pilot, lambda: any("ScrollBar" in type(one).__name__ for one in app.widgets), "a bar"
        )
        on_screen = [app.screen, *app.screen.walk_children()]
        known = [id(widget) for widget in app.widgets]
        assert len(on_screen) >= 4 and {id(widget) for widget in on_screen} <= set(known)
        assert len(known) == len(set(known))


async def messages_of_a_widget_can_be_guarded() -> None:
    seen: list[str] = []

    async def guarded(dispatch: Dispatch, message: Message) -> None:
        seen.append(type(message).__name__)
        await dispatch(message)

    class Guarding(Recorded):
        def take_widget(self, widget: Widget) -> None:
            guard_messages(widget, guarded)

    async with running(Guarding()) as pilot:
        await pilot.press("a")
        assert {"Mount", "Key"} <= set(seen)


async def what_was_drawn_can_be_forgotten() -> None:
    app = Recorded()
    async with running(app):
        (static,) = app.query(Static)
        drawn = []
        render_line = static.render_line
        static.render_line = lambda y: drawn.append(y) or render_line(y)  # type: ignore[method-assign, func-returns-value]
        crop = Region(0, 0, *static.size)
        static.render_lines(crop)
        drawn.clear()
        static.render_lines(crop)
        assert not drawn
        forget_drawing(static)
        static.render_lines(crop)
        assert drawn
    assert any(hasattr(getattr(one, "__func__", one), "cache_clear") for one in vars(StylesCache).values())


async def a_second_change_is_measured() -> None:
    class Scrolled(OpenApp):
        CSS = "Static { height: auto; }"

        def compose(self) -> ComposeResult:
            yield VerticalScroll(Static("one"))

    app = Scrolled()
    async with running(app) as pilot:
        pane, text = app.query_one(VerticalScroll), app.query_one(Static)
        put_text(text, "two")
        pane.styles.height = 8
        pane._check_refresh()
        app.screen._refresh_layout()
        put_text(text, "three\nlines\nof it")
        await wait_until_idle(app, pilot)
        assert text.size.height == 3


async def bindings_of_a_node_are_told() -> None:
    class Ours(Input):
        BINDINGS: ClassVar[list[BindingType]] = [("f5", "reload", "Reload")]

    class WithInput(OpenApp):
        def compose(self) -> ComposeResult:
            yield Ours()

    app = WithInput()
    async with running(app):
        line = app.query_one(Ours)
        for key, action in (("f5", "reload"), ("backspace", "delete_left")):
            binding = binding_of(line, key)
            assert binding is not None and binding.action == action
        assert binding_of(line, "f9") is None


async def frames_go_where_they_are_sent() -> None:
    driver = OpenDriver(App())
    output = io.StringIO()
    driver.write_to(output)
    assert driver.writer is None
    signals: list[int] = []
    driver.start_application_mode = lambda: signals.append(signal.SIGCONT)  # type: ignore[method-assign]
    thread = driver._writer_thread = _writer_of(driver)
    try:
        assert driver.writer == thread.ident
        driver.write("a frame")
    finally:
        thread.stop()
    assert output.getvalue() == "a frame"


def _writer_of(driver: OpenDriver) -> Any:
    """Begin the thread that writes, as textual does when it takes the terminal."""
    from textual.drivers._writer_thread import WriterThread

    thread = WriterThread(driver._file)
    thread.start()
    return thread


async def signals_of_job_control_are_answered() -> None:
    calls: list[str] = []

    class Driven(OpenDriver):
        can_suspend = True

        def suspend_application_mode(self) -> None:
            calls.append("gives the terminal back")

        def resume_application_mode(self) -> None:
            calls.append("takes it again")

    driver = Driven(App())
    stopped: list[tuple[int, int]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.kill", lambda pid, number: stopped.append((pid, number)))
        driver.stop_as_asked()
        driver.go_on()
    assert calls == ["gives the terminal back", "takes it again"]
    assert [number for _, number in stopped] == [signal.SIGSTOP]


async def local_flags_are_those_of_a_screen() -> None:
    flags = OpenDriver.local_flags(
        termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG | termios.TOSTOP
    )
    assert not flags & (termios.ECHO | termios.ICANON) and flags & termios.TOSTOP


async def esc_and_a_key_are_a_pair() -> None:
    parser = KeyParser()
    messages = [*parser.feed("\x1b?"), *parser.feed("\x1b"), *parser.feed("q")]
    assert [message.key for message in messages if isinstance(message, Key)] == [
        "alt+question_mark",
        "escape",
        "q",
    ]
    assert parser._timeout_time is None


async def what_is_typed_is_logged_where_asked_for() -> None:
    assert OpenDriver(App(), debug=True)._debug and not OpenDriver(App())._debug


async def the_screen_is_a_page() -> None:
    app = Recorded()
    async with running(app):
        page = app.screen_page("a < b {c}")
    assert page.count("line") >= 20 and "<title>a &lt; b {c}</title>" in page


async def a_key_is_carried_out_at_once() -> None:
    app = Recorded()
    async with running(app):
        scroll = app.query_one(VerticalScroll)
        scroll.focus()
        await app.animator.wait_for_idle()
        assert [await app.carry_out("end"), await app.carry_out("x")] == [True, False]


Trial = Callable[[], Coroutine[Any, Any, None]]
RELIED_ON: dict[str, Trial] = {
    "_driver": the_driver_is_told,
    "_handle_exception": errors_outside_of_messages_arrive,
    "_dispatch_message": errors_in_messages_of_the_app_arrive,
    "_dispatch_message of widgets": messages_of_a_widget_can_be_guarded,
    "_register": every_widget_comes_in_once,
    "_registry": every_widget_comes_in_once,
    "_start_widget": every_widget_comes_in_once,
    "_styles_cache": what_was_drawn_can_be_forgotten,
    "_simple_strip": what_was_drawn_can_be_forgotten,
    "_layout_updates": a_second_change_is_measured,
    "_bindings": bindings_of_a_node_are_told,
    "_file": frames_go_where_they_are_sent,
    "_writer_thread": frames_go_where_they_are_sent,
    "_sigtstp_application": signals_of_job_control_are_answered,
    "_sigcont_application": signals_of_job_control_are_answered,
    "_compositor": the_screen_is_a_page,
    "_check_bindings": a_key_is_carried_out_at_once,
    "_xterm_parser": esc_and_a_key_are_a_pair,
    "_sequence_to_key_events": esc_and_a_key_are_a_pair,
    "_timeout_time": esc_and_a_key_are_a_pair,
    "_debug": what_is_typed_is_logged_where_asked_for,
    "_patch_lflag": local_flags_are_those_of_a_screen,
}


@pytest.mark.parametrize("name", RELIED_ON)
async def test_a_private_name_does_what_is_relied_on(name: str) -> None:
    """It is there, and does what the viewer needs of it."""
    await RELIED_ON[name]()


def test_every_private_name_is_tried_and_explained() -> None:
    """Each private name of the file has a trial above, and a docstring that says why it is used."""
    tree, text = tree_of(INSIDE), INSIDE.read_text(encoding="utf-8")
    attributes = (node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))
    sources = (node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom))
    used = _private(attributes) | _private(part for source in sources for part in source.split("."))
    assert used == {name.partition(" ")[0] for name in RELIED_ON}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert all(map(ast.get_docstring, functions))
    overridden = _private(node.name for node in functions)
    assert {name for name in used - overridden if f"`{name}`" not in text} == set()
