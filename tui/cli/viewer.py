"""The viewer: it shows what is asked for, and then what it was left for, until the user quits."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.private import FILE_MODE, make_folders
from tracelane.core.export.marks import index_of_one

from ..session_log import SessionLog, default_log
from ..terminal.taken_screen import Host, LastPicture, TakenScreen, last_picture
from .options import STDIN, is_store_path
from .streams import can_draw, take_keyboard
from .view_request import LeftView

if TYPE_CHECKING:
    from tracelane.core.index.captures import ResolvedFiles
    from tracelane.core.index.opening import Gathering
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.trace import Trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.view_state import Next, PendingFiles, Prepared

    from .trace_options import TraceOptions
    from .view_request import ViewRequest

COLLECTING = (2000, 10, 10)
"""When the collector runs while the viewer does: small and often, so that no frame waits for it."""
MOMENT_S = 0.3
"""Indexes that are there within this time are waited for: a list of files that goes at once only flickers."""
MOMENT_BYTES = 64 << 20
"""More is never indexed in a moment."""
SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a program."""
THREE_KEYS = (
    "Three keys to begin with: {zoom-in} zooms in ({zoom-out} out), {details} shows what is at the cursor, "
    "{help} lists all keys"
)


def view_until_quit(request: ViewRequest, opened: Trace | Gathering, host: Host) -> None:
    """Show what was opened, then what its viewer was left for, until the user quits. Raises what ended it."""
    from tracelane.tui.view_state import OpenRank

    while True:
        source = viewer_source(request, opened)
        left = show(source, request.theme, host, shown_first(request, source))
        keep_picture(request, left)
        if (following := request.after(left)) is None:
            return
        if isinstance(left.following, OpenRank):  # and then all ranks again
            following = show_rank(following, left.following.rank, host)
        request, opened = open_or_less(following, host.screen)


def open_request(
    request: ViewRequest, screen: TakenScreen, force: bool = False
) -> tuple[ViewRequest, Trace | Gathering]:
    """Return the trace, or what is indexing it where a picture can be drawn meanwhile; and the request, which
    has the store then if it is one.
    """
    options = request.options
    index_options = options.index_options._replace(force=force)
    if request.against is not None:
        return request, _open_pair(options, request.against, index_options)
    if len(options.traces) == 1 and is_store_path(options.traces[0]):
        from tracelane.core.store.opened import open_store
        from tracelane.core.store.picture import picture_of_store

        store = request.store or open_store(options.traces[0])
        return request._replace(store=store), picture_of_store(store, index_options, by=request.grouping)
    if can_draw():
        return request, open_files(options.files, options.bar_title, index_options, screen)
    return request, options.read(index_options)


def open_or_less(request: ViewRequest, screen: TakenScreen) -> tuple[ViewRequest, Trace | Gathering]:
    """Open what is shown next; where it cannot be opened, what is left of it, which says why."""
    try:
        return open_request(request, screen)
    except TracelaneError as error:
        less = request.without_what_failed(error)
        if less is None:
            raise
        return open_request(less, screen)


def viewer_source(request: ViewRequest, opened: Trace | Gathering) -> Prepared | PendingFiles:
    """Return what the viewer shows of what was opened."""
    from tracelane.core.index.opening import Gathering
    from tracelane.core.trace import trace_of_opened
    from tracelane.tui.view_state import PendingFiles

    if isinstance(opened, Gathering):
        title = request.options.bar_title
        return PendingFiles(
            opened, title, lambda: request.prepared(trace_of_opened(opened.all())), request.before
        )
    opened.defer_checks()  # or the first picture would wait for checksums
    return request.prepared(opened)


def show(
    source: Prepared | PendingFiles, theme: str, host: Host, last: LastPicture | None = None
) -> LeftView:
    """Show a trace, or those of its files that are there and then all, until the user leaves. Its first
    picture is kept in place of the `last`. Raises what went wrong with the files, and Exit with the code of
    what ended the viewer.
    """
    from tracelane.core.base.private import config_path
    from tracelane.tui.config import read_config
    from tracelane.tui.terminal.first_picture import picture_now
    from tracelane.tui.view_state import OpenRank, Prepared, Reopen, carried

    config = read_config(config_path())
    theme = theme or config.theme
    with ExitStack() as stack:
        if isinstance(source, Prepared):
            picture = picture_now(source.trace, source.session, config._replace(theme=theme))
            is_new = picture != host.screen.picture
            host.screen.show(picture)
            if last is not None and is_new:
                last.write(picture)
        else:
            stack.callback(source.gathering.close)
        from tracelane.tui.app import TracelaneApp  # takes longer than all before

        app = TracelaneApp(source, config=config)
        if theme in app.available_themes:
            app.theme = theme
        run(app, host)
    if app.store.is_ready:
        app.marking.save_view()
    if app.return_code:
        raise click.exceptions.Exit(app.return_code)
    following = cast("Next | None", app.return_value)  # `leave_for` takes nothing else
    before = None
    if isinstance(following, OpenRank | Reopen):
        before = carried(app.trace, app.session, app.theme, app.store.now.history)
    return LeftView(following, app.store.is_ready, app.trace, before, app.config)


def run(app: TracelaneApp, host: Host) -> None:
    """Run the App, without collections that look through all that was loaded; raises what ended it."""
    if gc.get_threshold() != COLLECTING:  # only once: what a trace shown before has left is garbage
        gc.freeze()
        gc.set_threshold(*COLLECTING)
    app.host = host
    app.run()
    if app.trouble is not None:
        raise app.trouble


def show_rank(request: ViewRequest, rank: int, host: Host) -> ViewRequest:
    """Show one rank of a store until the user leaves it; return what is shown then, and says what failed."""
    from tempfile import TemporaryDirectory

    from tracelane.core.store.picture import opened_rank
    from tracelane.tui.text.progress import ProgressBar

    store, options = request.store, request.options.index_options
    if store is None:
        return request
    with TemporaryDirectory(prefix="tracelane-rank-") as folder:
        try:
            with ProgressBar(store.ranks[rank].title) as progress:
                trace = opened_rank(store, rank, Path(folder), request.traces_of_store, options, progress)
        except TracelaneError as error:
            return request._replace(notes=(str(error),))
        show(request._replace(before=None).prepared(trace), request.theme, host).trace.close()
    return request


def _open_pair(options: TraceOptions, against: str, index_options: IndexOptions) -> Trace:
    """Open two runs, whose pictures need both."""
    from tracelane.core.tables.explain.pair_answers import paired_runs

    if any(path == STDIN or is_store_path(path) for path in (*options.traces, against)):
        raise UsageError("--against shows traces: standard input and capture stores have no lanes to pair")
    other = replace(options, traces=(against,))
    return paired_runs(options.read(index_options), other.read(index_options))


def show_last_picture(request: ViewRequest, screen: TakenScreen) -> None:
    """Show the picture of the last time, where one is kept of the file that is to be opened."""
    options = request.options
    is_other = request.view == "asked for" or options.force
    if is_other or STDIN in options.traces or is_store_path(options.traces[0]):
        return
    if not (can_draw() and take_keyboard()):
        return
    from tracelane.core.index.cache import committed_index
    from tracelane.core.read.source import Source

    sources = [member.source for member in options.files.members]
    if len(sources) == 1 and isinstance(sources[0], Source):
        fingerprint = dict(sources[0].fingerprint)
        location = committed_index(fingerprint, options.index_dir)
        if location is not None and (
            last := last_picture(fingerprint, location.folder, request.view == "fresh", os.environ)
        ):
            screen.show(last.read())


def shown_first(request: ViewRequest, source: Prepared | PendingFiles) -> LastPicture | None:
    """Return where the first picture of a trace in its own view is kept; None where it is shown again, for
    several files, and with logs.
    """
    from tracelane.tui.view_state import Prepared

    if request.view == "asked for" or request.before is not None or not isinstance(source, Prepared):
        return None
    own = index_of_one(source.trace)
    return None if own is None else last_picture(*own, request.view == "fresh", os.environ)


def keep_picture(request: ViewRequest, left: LeftView) -> None:
    """Keep the picture of the view that was just left, as it is when it is opened the next time."""
    own = index_of_one(left.trace) if left.is_ready and request.view != "asked for" else None
    if own is not None and (last := last_picture(*own, False, os.environ)) is not None:
        from tracelane.tui.terminal.first_picture import picture_now
        from tracelane.tui.view_state import saved_session

        last.write(picture_now(left.trace, saved_session(left.trace), left.config))


def open_files(
    files: ResolvedFiles, title: str, options: IndexOptions, screen: TakenScreen
) -> Trace | Gathering:
    """Return the trace of some files, or what is indexing them where that takes more than a moment: then the
    screen is given back.
    """
    from tracelane.core.base.children import ChildrenError
    from tracelane.core.index.cached import IndexJob
    from tracelane.core.index.opening import Gathering, open_states, pays_gathering, states_of
    from tracelane.tui.text.progress import ProgressBar

    states = states_of(files, options)
    if any(isinstance(state, IndexJob) for _, state in states):
        screen.give_back()
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
        import tracelane.tui.app  # noqa: F401 - while the processes start
        import tracelane.tui.controllers.gathering  # noqa: F401

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


@contextmanager
def viewer_host(log_file: str | None) -> Iterator[Host]:
    """Log to a file, or upon an error to the default one; guard the terminal if there is one. Raises
    UsageError where the file cannot be written.
    """
    default = default_log()
    try:
        log = SessionLog(None if log_file is None else Path(log_file), default)
    except OSError as error:
        raise UsageError(f"--log: {log_file}: {error.strerror}") from None
    guard = None
    if can_draw():
        from tracelane.tui.terminal.guard import start_guard

        guard = start_guard(log.target)
    reason, host = "", Host(log, guard, TakenScreen(guard))
    try:
        yield host
    except click.exceptions.Exit as ended:
        reason = _signal_name(ended.exit_code)
        raise
    finally:
        host.screen.give_back()
        if guard is not None:
            guard.close(reason)


def _signal_name(exit_code: int) -> str:
    try:
        return signal.Signals(exit_code - SIGNALLED).name
    except ValueError:
        return ""


def first_start_notes() -> tuple[str, ...]:
    """Return what is said, once for each user: a file in the user's state folder remembers it.

    Where no file can be written nothing is said, as it would be said every time.
    """
    log = default_log()
    if log is None:
        return ()
    try:
        make_folders(log.parent)
        log.with_name("started").touch(FILE_MODE, exist_ok=False)
    except OSError:
        return ()
    return (THREE_KEYS,)
