"""What is laid out by a widget's size is so from the start, not only once the terminal is resized."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from textual._compositor import Compositor, ReflowResult
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from tests.events import complete, open_events
from tests.tui.driver import open_viewer, press_keys, running, screen_text, wait_until_idle
from tracelane.core.trace import Trace
from tracelane.tui.actions.view import in_view
from tracelane.tui.app import TracelaneApp
from tracelane.tui.panels.panel import GROUPS
from tracelane.tui.terminal.pacing import PacedApp

ROOM = Path(__file__).resolve().parents[2] / "tui"
RESIZE_HANDLERS = {"on_resize", "_on_resize", "on_show", "_on_show"}
RESIZED_BY_TERMINAL = {"App", "Screen"}
"""Whose resizing is told by the terminal, not by a layout."""


def classes(*words: str) -> list[tuple[str, ast.ClassDef]]:
    """Return the classes of the viewer's modules that have one of some words in them, with their modules."""
    nodes = []
    for path in sorted(ROOM.rglob("*.py")):
        module = ".".join(("tracelane.tui", *path.relative_to(ROOM).with_suffix("").parts))
        text = path.read_text(encoding="utf-8")
        if any(word in text for word in words):
            nodes += [(module, node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return nodes


def followers() -> list[tuple[str, str, str]]:
    """Return (module, class, method) of all that follows a widget's size."""
    return [
        (module, node.name, ast.unparse(call.args[1]).removeprefix("self."))
        for module, node in classes("follow_size(")
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "follow_size"
    ]


def tell_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let layouts tell no widget that it is shown or resized, as happens when they find it in their map."""
    reflow: Callable[[Compositor, Widget, Size], ReflowResult] = Compositor.reflow

    def silent(compositor: Compositor, parent: Widget, size: Size) -> ReflowResult:
        return reflow(compositor, parent, size)._replace(shown=set(), resized=set())

    monkeypatch.setattr(Compositor, "reflow", silent)


def test_no_widget_waits_to_be_resized() -> None:
    """Screens and the App are told by the terminal; a widget follows its size, or draws by it."""
    waiting = [
        f"{module}.{node.name}"
        for module, node in classes(*RESIZE_HANDLERS)
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef) and method.name in RESIZE_HANDLERS
        if not any(
            base in ast.unparse(each) for each in node.bases for base in RESIZED_BY_TERMINAL | {"BoundedApp"}
        )
    ]
    assert not waiting


@pytest.mark.parametrize(("module", "name", "method"), followers())
async def test_a_widget_is_fitted_to_its_size(
    module: str, name: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each, however it came to its size, and again when it is resized."""
    kind = getattr(importlib.import_module(module), name)
    needed = [p for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
    widget = kind(*({} for _ in needed))
    fitted: list[Size] = []
    monkeypatch.setattr(kind, method, lambda self: fitted.append(self.outer_size))
    app = PacedApp()
    async with running(app, (80, 24)) as pilot:
        tell_nobody(monkeypatch)
        await (app.push_screen(widget) if isinstance(widget, Screen) else app.mount(widget))
        for size in ((80, 24), (50, 12)):
            await pilot.resize_terminal(*size)
            await wait_until_idle(app, pilot)
            assert fitted and fitted[-1] == widget.outer_size and widget.outer_size.width == size[0]


def is_in_sight(app: TracelaneApp) -> bool:
    """Tell whether the row that the keys are on is in the lanes that are shown."""
    store = app.drawing.store
    return in_view(app.session, store.layout_now, store.now.lane_lines) == app.session


@pytest.mark.parametrize("back", [0, 14])
async def test_the_row_in_sight_stays_in_sight(back: int, tmp_path: Path) -> None:
    """A lower screen shows the row that the keys are on, wherever it was; one that was scrolled out of sight
    does not come back.
    """
    trace = open_events(tmp_path, [complete(10, 5, "n", pid=number) for number in range(60)])
    async with open_viewer(trace, (80, 50)) as (app, pilot):
        await press_keys(app, pilot, *["down"] * 50, *["up"] * back)
        assert is_in_sight(app)
        await pilot.resize_terminal(80, 24)
        await wait_until_idle(app, pilot)
        assert is_in_sight(app) and app.session.scroll > 0
        store = app.drawing.store
        store.dispatch(replace(store.now, session=app.session._replace(scroll=0)))
        await wait_until_idle(app, pilot)
        assert not is_in_sight(app)
        await pilot.resize_terminal(80, 20)
        await wait_until_idle(app, pilot)
        assert app.session.scroll == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for group in GROUPS for name, _ in group.panels), "help"])
async def test_the_screen_is_as_after_a_resize(
    name: str, trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each panel, and the list of commands, as it opens at 80x24 and after a resize there and back."""
    tell_nobody(monkeypatch)
    async with open_viewer(trace, (80, 24)) as (app, pilot):
        if name == "help":
            app.run_command("help")
        else:
            app.action_panel(name)
        await wait_until_idle(app, pilot)
        at_first = screen_text(app)
        monkeypatch.undo()
        for size in ((120, 40), (80, 24)):
            await pilot.resize_terminal(*size)
            await wait_until_idle(app, pilot)
        assert screen_text(app) == at_first
