"""Opening files in the viewer: at once if they are indexed, else those that are there meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .terminal import take_keyboard

if TYPE_CHECKING:
    from tracelane.core.index.choice import ResolvedFiles
    from tracelane.core.index.opening import Gathering
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.trace import Trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.carried import Carried
    from tracelane.tui.prepared import Prepared
    from tracelane.tui.terminal.host import Host

COLLECTING = (2000, 10, 10)
"""When the collector runs while the viewer does: small and often, so that no frame waits for it."""
MOMENT_S = 0.3
"""Indexes that are there within this time are waited for: a list of files that goes at once only flickers."""
MOMENT_BYTES = 64 << 20
"""More is never indexed in a moment."""


def open_files(files: ResolvedFiles, title: str, options: IndexOptions) -> Trace | Gathering:
    """Return the trace of some files, or what is indexing them where that takes more than a moment."""
    from tracelane.core.base.children import ChildrenError
    from tracelane.core.index.opening import Gathering, open_states, pays_gathering, states_of
    from tracelane.tui.text.progress import ProgressBar

    states = states_of(files, options)
    if pays_gathering(states) and take_keyboard():
        try:
            return _after_a_moment(Gathering(files, states, options))
        except ChildrenError:
            pass  # one process by itself, then, before the viewer starts
    with ProgressBar(title) as progress:
        opened = open_states(files, states, options, progress=progress)
    from tracelane.core.trace import trace_of_opened  # loading it would only delay processes that index

    return trace_of_opened(opened)


def _after_a_moment(gathering: Gathering) -> Trace | Gathering:
    is_large = (gathering.progress.total or 0) >= MOMENT_BYTES
    until = time.monotonic() + (0.0 if is_large else MOMENT_S)
    try:
        import tracelane.tui.app
        import tracelane.tui.controllers.gathering  # noqa: F401 - while the processes start

        gathering.await_running()
        while not (done := gathering.poll(max(0.0, until - time.monotonic()))) and time.monotonic() < until:
            pass
        if not done:
            return gathering
        from tracelane.core.trace import trace_of_opened

        trace = trace_of_opened(gathering.all())
    except BaseException:
        gathering.close()
        raise
    gathering.close()
    return trace


def show(prepared: Prepared, theme: str, host: Host) -> TracelaneApp:
    """Show a trace until the user leaves it; return the App, which knows what is wanted next."""
    from tracelane.core.base.private import config_path
    from tracelane.tui.config import read_config
    from tracelane.tui.terminal.first_picture import first_sight

    config = read_config(config_path())
    theme = theme or config.theme
    config_seen = replace(config, theme=theme)
    with first_sight(prepared.trace, prepared.session, config_seen, host.guard) as screen:
        from tracelane.tui.app import TracelaneApp  # takes longer than all before

        app = TracelaneApp(prepared.trace, prepared.session, config, prepared.notes)
        app.taken_screen = screen
        app.store.resume(prepared)
        if theme in app.available_themes:
            app.theme = theme
        with prepared.trace.packing():
            run(app, host)
    leave(app)
    return app


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
    from tracelane.tui.prepared import PendingFiles

    with ExitStack() as stack:
        stack.callback(gathering.close)

        def prepared() -> Prepared:
            view = prepare(trace_of_opened(gathering.all()), before)
            stack.enter_context(view.trace.packing())
            return view

        app = TracelaneApp(PendingFiles(gathering, title, prepared, before))
        app.theme = app.theme if before is None else before.theme
        run(app, host)
    if app.store.is_ready:
        leave(app)
    elif app.return_code:
        raise click.exceptions.Exit(app.return_code)
    return app


def run(app: TracelaneApp, host: Host) -> None:
    """Run the App, without collections that look through all that was loaded; raises what ended it."""
    if gc.get_threshold() != COLLECTING:  # only once: what a trace shown before has left is garbage
        gc.freeze()
        gc.set_threshold(*COLLECTING)
    app.host = host
    app.run()
    if app.trouble is not None:
        raise app.trouble


def leave(app: TracelaneApp) -> None:
    """Keep the view for the next time; raises where the App has ended with an exit code."""
    app.marking.save_view()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
