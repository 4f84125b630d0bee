"""Work away from the screen: an error in it is shown in the footer and logged, and never ends the viewer."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from textual import work
from textual.worker import Worker

if TYPE_CHECKING:
    from .base import Viewer

V = TypeVar("V", bound="Viewer")
P = ParamSpec("P")


def background(
    group: str, exclusive: bool = True
) -> Callable[[Callable[Concatenate[V, P], None]], Callable[Concatenate[V, P], Worker[None]]]:
    """Run a method in a thread; one of a group at a time if exclusive, the one before is cancelled."""

    def decorate(method: Callable[Concatenate[V, P], None]) -> Callable[Concatenate[V, P], Worker[None]]:
        @wraps(method)
        def guarded(self: V, *args: P.args, **kwargs: P.kwargs) -> None:
            try:
                method(self, *args, **kwargs)
            except Exception as error:
                with suppress(RuntimeError):  # the viewer is closing
                    self.call_from_thread(self.report_error, error)

        run: Any = work(thread=True, exclusive=exclusive, group=group)(guarded)
        started: Callable[Concatenate[V, P], Worker[None]] = run
        return started

    return decorate
