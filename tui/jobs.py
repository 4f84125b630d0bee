"""Work in the background: in a thread, one of a group at a time; an error in it ends at the boundary."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Protocol, TypeVar

from textual.worker import Worker, get_current_worker

from tracelane.core.base.errors import Cancelled, TracelaneError

if TYPE_CHECKING:
    from .terminal.boundary import BoundedApp


class JobRunner:
    """Starts and cancels the jobs of an App."""

    def __init__(self, app: BoundedApp) -> None:
        """Report errors to an App, whose jobs end with it."""
        self._app = app

    def start(self, job: Callable[[], None], group: str, exclusive: bool = True) -> Worker[None]:
        """Run a job in a thread; of an exclusive group the one before is cancelled.

        What goes wrong in the job is shown, unless it is bad input or a disk's refusal in a job that nobody
        waits for any more.
        """

        def guarded() -> None:
            worker = get_current_worker()
            try:
                job()
            except Cancelled:
                return
            except Exception as error:
                if worker.is_cancelled and isinstance(error, (TracelaneError, OSError)):
                    return
                with suppress(RuntimeError):  # the viewer is closing
                    self._app.call_from_thread(self._app.report_error, error)

        return self._app.run_worker(guarded, group=group, exclusive=exclusive, thread=True)

    def cancel(self, group: str) -> None:
        """Ask the jobs of a group to stop."""
        self._app.workers.cancel_group(self._app, group)


class RunsJobs(Protocol):
    """An App with a job runner."""

    @property
    def jobs(self) -> JobRunner:
        """The App's job runner."""
        ...


class OnStage(Protocol):
    """Whoever has such an App."""

    @property
    def app(self) -> RunsJobs:
        """The App."""
        ...


C = TypeVar("C", bound=OnStage)
P = ParamSpec("P")


def background(
    group: str, exclusive: bool = True
) -> Callable[[Callable[Concatenate[C, P], None]], Callable[Concatenate[C, P], Worker[None]]]:
    """Run a controller's method as a job; see JobRunner.start."""

    def decorate(method: Callable[Concatenate[C, P], None]) -> Callable[Concatenate[C, P], Worker[None]]:
        def started(self: C, /, *args: P.args, **kwargs: P.kwargs) -> Worker[None]:
            return self.app.jobs.start(partial(method, self, *args, **kwargs), group, exclusive)

        return started

    return decorate
