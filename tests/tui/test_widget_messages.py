"""What widgets say reaches the controllers that it concerns, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tracelane.core.trace import Trace
from tracelane.tui.app import TracelaneApp
from tracelane.tui.config import Config
from tracelane.tui.lanes.messages import Panned, TimeAreaResized
from tracelane.tui.widget_message import WidgetMessage
from tracelane.tui.widgets.prompt import Prompt
from tracelane.tui.widgets.table import VirtualTable


@pytest.fixture
def app(trace: Trace) -> TracelaneApp:
    return TracelaneApp(trace, config=Config())


def kinds(of: type[WidgetMessage]) -> Iterator[type[WidgetMessage]]:
    """Yield the kinds of messages that the viewer has; those of tests live until they are collected."""
    for kind in of.__subclasses__():
        if kind.__module__.startswith("tracelane."):
            yield kind
            yield from kinds(kind)


def test_every_message_is_heard(app: TracelaneApp) -> None:
    """No widget says anything that no controller hears."""
    heard = {kind for kind, _ in app.hearers}
    every = list(kinds(WidgetMessage))
    assert len(every) > 20
    assert [kind for kind in every if heard.isdisjoint(kind.__mro__)] == []


@pytest.mark.parametrize(
    ("kind", "about", "names"),
    [
        (VirtualTable.RowChosen, "problems", ["read_report_row_chosen"]),
        (VirtualTable.RowChosen, "findings-rows", ["chosen"]),
        (VirtualTable.RowChosen, "kernels", ["row_chosen"]),
        (Prompt.Typed, "search", ["typed"]),
        (Prompt.Typed, "go-to", []),
        (Prompt.Left, "", ["give_up", "left"]),
        (TimeAreaResized, "", ["resize_time_area"]),
        (Panned, "", ["answer"]),
    ],
)
def test_the_closest_hears_it(
    app: TracelaneApp, kind: type[WidgetMessage], about: str, names: list[str]
) -> None:
    """A message goes to what hears just that, else to what hears its kind; to several in their order."""
    hearers = app.hearers_of(kind, about)
    assert [getattr(getattr(one, "func", one), "__name__", "") for one in hearers] == names


def test_what_holds_no_more_is_not_heard(app: TracelaneApp) -> None:
    """A row of a list that its table shows no longer leads nowhere."""

    class Said(WidgetMessage):
        is_current = False

    heard: list[WidgetMessage] = []
    app.hearers[Said, ""] = [heard.append]
    app.hear(Said())
    assert heard == []
    Said.is_current = True  # type: ignore[assignment,method-assign]
    message = Said()
    app.hear(message)
    assert heard == [message]
