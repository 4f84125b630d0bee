"""Opening several files in the viewer: at once if they are indexed, else those that are there meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from .opening import MOMENT_S, leave, run
from .options import STDIN
from .terminal import take_keyboard

if TYPE_CHECKING:
    from tracelane.core.index.choice import ResolvedFiles
    from tracelane.core.index.gathering import Gathering
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.index.store import Index
    from tracelane.core.trace import Trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.carried import Carried
    from tracelane.tui.host import Host
    from tracelane.tui.prepared import Prepared


def open_several(files: ResolvedFiles, title: str, options: IndexOptions) -> Trace | Gathering:
    """Return the trace of some files, or the processes that are indexing them where that takes more than a
    moment.
    """
    from tracelane.core.base.children import ChildrenError
    from tracelane.core.index.gathering import gather
    from tracelane.core.index.opening import open_indexes
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(title) as progress:
        if STDIN not in files.named and take_keyboard():
            try:
                gathering = gather(files, options)
                if gathering is not None:
                    return _after_a_moment(gathering)
            except ChildrenError:
                pass  # one process by itself, then, before the viewer starts
        opened = open_indexes(files, options, progress=progress)
    from tracelane.core.trace import trace_of_opened  # loading it would only delay processes that index

    return trace_of_opened(opened)


def trace_of_file(files: ResolvedFiles, path: str, index: Index) -> Trace:
    """Return the trace of the only file , with notes on those left out."""
    from tracelane.core.index.opening import no_trace_error, together
    from tracelane.core.trace import trace_of_opened

    error = no_trace_error(files, path, index)
    if error is not None:
        raise error
    return trace_of_opened(together(files, [(files.members[0], index)], ()))


def _after_a_moment(gathering: Gathering) -> Trace | Gathering:
    until = time.monotonic() + MOMENT_S
    try:
        import tracelane.tui.app
        import tracelane.tui.controllers.gathering  # noqa: F401 - while the processes start

        gathering.await_running()
        while not (done := gathering.poll(max(0.0, until - time.monotonic()))) and time.monotonic() < until:
            pass
        if not done:
            return gathering
        from tracelane.core.trace import trace_of_opened

        trace = trace_of_opened(gathering.opened())
    except BaseException:
        gathering.close()
        raise
    gathering.close()
    return trace


def show_while_gathering(
    gathering: Gathering,
    title: str,
    prepare: Callable[[Trace, Carried | None], Prepared],
    before: Carried | None,
    host: Host,
) -> TracelaneApp:
    """Show the files that are there, then all of them, until the user leaves; raises what went wrong with
    them. Of a trace that was shown `before` the view is kept.
    """
    from tracelane.core.trace import trace_of_opened
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.prepared import SeveralFiles

    with ExitStack() as stack:
        stack.callback(gathering.close)

        def prepared() -> Prepared:
            view = prepare(trace_of_opened(gathering.opened()), before)
            stack.enter_context(view.trace.packing())
            return view

        app = TracelaneApp(SeveralFiles(gathering, title, prepared, before))
        app.theme = app.theme if before is None else before.theme
        run(app, host)
    if app.store.is_ready:
        leave(app)
    elif app.return_code:
        raise click.exceptions.Exit(app.return_code)
    return app
