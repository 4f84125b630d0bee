"""Opening one file in the viewer: at once where it is indexed, else with a provisional picture meanwhile."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import click

from .options import STDIN
from .terminal import take_keyboard

if TYPE_CHECKING:
    from tracelane.core.index.choice import Choice
    from tracelane.core.index.indexing import Indexing
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.index.store import Index
    from tracelane.core.read.source import Source
    from tracelane.core.trace import Trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.carried import Carried
    from tracelane.tui.host import Host
    from tracelane.tui.prepared import Prepared

COLLECTING = (2000, 10, 10)
"""When the collector runs while the viewer does: small and often, so that no frame waits for it."""
TraceFactory: TypeAlias = "Callable[[str, Index], Trace]"
"""What makes a trace of a file and its index."""
MOMENT_S = 0.3
"""An index that is there within this time is waited for: a picture that goes at once only flickers."""
MOMENT_BYTES = 64 << 20
"""Larger files are never indexed in a moment."""


def is_alone(traces: Sequence[str], choice: Choice) -> bool:
    """Tell whether one file is asked for, and not what several say of themselves."""
    from tracelane.core.index.choice import Choice as AnyChoice

    return (
        len(traces) == 1
        and choice == AnyChoice()
        and (traces[0] == STDIN or (os.path.exists(traces[0]) and not os.path.isdir(traces[0])))
    )


def open_alone(
    looked_at: str | Source, new_trace: TraceFactory, title: str, options: IndexOptions
) -> Trace | Indexing:
    """Return the trace of a file, or the process that is indexing it where that takes more than a moment."""
    from tracelane.core.base.children import ChildrenError
    from tracelane.core.index.cache import IndexLocation
    from tracelane.core.index.ingest import find_index, ingest_source, pays_process
    from tracelane.core.read.source import open_source
    from tracelane.tui.text.progress import ProgressBar

    with ProgressBar(title) as progress:
        source = open_source(looked_at, progress=progress) if isinstance(looked_at, str) else looked_at
        location = find_index(source, options)
        if not isinstance(location, IndexLocation):
            return new_trace(source.path, location)
        if pays_process(source) and take_keyboard():
            from tracelane.core.index.indexing import Indexing

            try:
                indexing = Indexing(source, location, options, pictures=True)
                return _after_a_moment(indexing, new_trace)
            except ChildrenError:
                pass  # one process by itself, then, before the viewer starts
        index = ingest_source(source, location, options, progress=progress)
        return new_trace(source.path, index)


def trace_alone(path: str, index: Index) -> Trace:
    """Return the trace of a file that was asked for by itself."""
    from tracelane.core.trace import trace_of  # loading it would only delay a process that indexes

    return trace_of(path, index)


def _after_a_moment(indexing: Indexing, new_trace: TraceFactory) -> Trace | Indexing:
    from tracelane.core.index.ingest import opened_index

    until = time.monotonic() + (MOMENT_S if indexing.source.size < MOMENT_BYTES else 0.0)
    try:
        import tracelane.tui.app
        import tracelane.tui.controllers.opening  # noqa: F401 - while the process starts

        indexing.await_running()
        while not indexing.poll(max(0.0, until - time.monotonic())) and time.monotonic() < until:
            pass
    except BaseException:
        indexing.close()
        raise
    if not indexing.committed:
        return indexing
    indexing.close()
    return new_trace(indexing.source.path, opened_index(indexing.source, indexing.location))


def show(prepared: Prepared, theme: str, host: Host) -> TracelaneApp:
    """Show a trace until the user leaves it; return the App, which knows what is wanted next."""
    from tracelane.core.base.settings import config_path
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


def show_while_indexing(
    indexing: Indexing,
    new_trace: TraceFactory,
    title: str,
    prepare: Callable[[Trace, Carried | None], Prepared],
    before: Carried | None,
    host: Host,
) -> TracelaneApp:
    """Show what is known of a trace, then the trace, until the user leaves it; raises what went wrong with
    it. Of a trace that was shown `before` the time window is kept.
    """
    from tracelane.core.index.ingest import opened_index
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.prepared import OneFile

    with ExitStack() as stack:
        stack.callback(indexing.close)

        def prepared() -> Prepared:
            source, location = indexing.source, indexing.location
            view = prepare(new_trace(source.path, opened_index(source, location)), before)
            stack.enter_context(view.trace.packing())
            return view

        begin = None if before is None else before.session
        app = TracelaneApp(OneFile(indexing, title, prepared, begin))
        app.theme = app.theme if before is None else before.theme
        run(app, host)
    leave(app)
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
