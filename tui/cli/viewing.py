"""The viewer: opening what was asked for, and opening it anew as long as the viewer asks for that."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

import click

from tracelane.core.base.errors import TracelaneError, UsageError
from tracelane.core.base.private import FILE_MODE, make_folders
from tracelane.core.export.marks import index_of_one

from ..session_log import SessionLog, default_log
from ..terminal.taken_screen import Host, LastPicture, TakenScreen, last_picture
from .options import STDIN, is_store_path
from .printing import can_draw, take_keyboard

if TYPE_CHECKING:
    from tracelane.core.base.errors import DamagedIndexError
    from tracelane.core.index.captures import ResolvedFiles
    from tracelane.core.index.opening import Gathering
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.store.opened import CaptureStore
    from tracelane.core.trace import Trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.view_state import Carried, PendingFiles, Prepared

    from .opened import TraceOptions

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

View: TypeAlias = Literal["asked for", "kept", "fresh"]
"""Which view a trace is opened in: of options, of the last time, or its own."""


class Viewing:
    """Traces as they are named on a command line, from the first opening until the user quits."""

    def __init__(
        self,
        options: TraceOptions,
        prepare: Callable[[Trace, Carried | None], Prepared],
        traces_of_store: str = "",
        against: str | None = None,
        view: View = "asked for",
    ) -> None:
        """Know what is to be opened; `prepare` makes of a trace, and of the view before, what is shown;
        `traces_of_store`: where the traces of a store lie; `against`: a run to be shown below.
        """
        self._own_view = view
        self._against = against
        self._traces_of_store = traces_of_store
        self._store: CaptureStore | None = None
        self._grouping = "host"  # what groups the ranks of a store
        self._options = options
        self._prepare = prepare
        self._damaged: list[Path | None] = []  # indexes that were discarded
        self._notes = (
            first_start_notes() if can_draw() else ()
        )  # what is said when a trace is shown the next time

    @property
    def _view(self) -> View:
        """Which view is shown: of two runs no picture is kept, as none is of what options ask for."""
        return "asked for" if self._against else self._own_view

    def glance(self, screen: TakenScreen) -> None:
        """Show the picture of the last time, where one is kept of the file that is to be opened."""
        traces = self._options.traces
        is_other = self._view == "asked for" or self._options.force
        if is_other or STDIN in traces or is_store_path(traces[0]) or not (can_draw() and take_keyboard()):
            return
        from tracelane.core.index.cache import committed_index
        from tracelane.core.read.source import Source

        sources = [member.source for member in self._options.files.members]
        if len(sources) == 1 and isinstance(sources[0], Source):
            fingerprint = dict(sources[0].fingerprint)
            location = committed_index(fingerprint, self._options.index_dir)
            if location is not None and (
                last := last_picture(fingerprint, location.folder, self._view == "fresh", os.environ)
            ):
                screen.show(last.read())

    def _last_picture_of(self, trace: Trace, is_fresh: bool) -> LastPicture | None:
        """Return where the picture of a trace in its own view is kept; None for one of several files, or with
        logs.
        """
        own = None if self._view == "asked for" else index_of_one(trace)
        return None if own is None else last_picture(*own, is_fresh, os.environ)

    def _keep_picture(self, app: TracelaneApp) -> None:
        """Keep the picture of the view that was just left, as it is when it is opened the next time."""
        if (last := self._last_picture_of(app.trace, is_fresh=False)) is not None:
            from tracelane.tui.terminal.first_picture import picture_now
            from tracelane.tui.view_state import saved_session

            last.write(picture_now(app.trace, saved_session(app.trace), app.config))

    def open(self, screen: TakenScreen, force: bool = False) -> Trace | Gathering:
        """Return the trace; what is indexing it where a picture can be drawn meanwhile."""
        options = self._options.index_options._replace(force=force)
        traces = self._options.traces
        if self._against is not None:
            return self._open_pair(self._against, options)
        if len(traces) == 1 and is_store_path(traces[0]):
            return self._open_store(options)
        if can_draw():
            return open_files(self._options.files, self._options.bar_title, options, screen)
        return self._options.read(options)

    def show(self, opened: Trace | Gathering, host: Host) -> None:
        """Show it; then another capture, or what has become of the files, as long as one is wanted."""
        from tracelane.core.index.changes import finished_name
        from tracelane.tui.view_state import (
            GroupRanks,
            OpenCapture,
            OpenRank,
            Prepared,
            Reopen,
            ShowAgainst,
            carried,
        )

        before: Carried | None = None
        while True:
            source = self._source(opened, before)
            last = None
            if before is None and isinstance(source, Prepared):
                last = self._last_picture_of(source.trace, self._view == "fresh")
            app = show(source, "" if before is None else before.theme, host, last)
            if app.store.is_ready:
                self._keep_picture(app)
            match app.return_value:
                case OpenRank(rank):
                    self._show_rank(rank, app.theme, host)
                    before = carried(app.trace, app.session, app.theme, app.store.now.history)
                case GroupRanks(by):
                    self._grouping, before = by, None
                case OpenCapture(number):
                    self._options, before = replace(self._options, capture=str(number)), None
                case ShowAgainst(path):
                    self._against, before = path or None, None
                case Reopen(damage):
                    self._store = None  # of which there may be more by now
                    if damage is not None:
                        self._note_damage(damage)
                    before = carried(app.trace, app.session, app.theme, app.store.now.history)
                    traces = tuple(map(finished_name, self._options.traces))
                    self._options = replace(self._options, traces=traces)  # whose files are looked at anew
                case _:
                    return
            opened = self._open_again(host.screen)

    def _open_again(self, screen: TakenScreen) -> Trace | Gathering:
        """Open what is to be shown next; where another run cannot be shown below, the first one alone, which
        says why.
        """
        try:
            return self.open(screen)
        except TracelaneError as error:
            if self._against is None:
                raise
            self._against, self._notes = None, (f"against {self._against}: {error}",)
            return self.open(screen)

    def _source(self, opened: Trace | Gathering, before: Carried | None) -> Prepared | PendingFiles:
        """Return what the viewer shows of it; of what was shown `before` the view is kept."""
        from tracelane.core.index.opening import Gathering
        from tracelane.core.trace import trace_of_opened
        from tracelane.tui.view_state import PendingFiles

        if isinstance(opened, Gathering):

            def prepared() -> Prepared:
                return self._prepared(trace_of_opened(opened.all()), before)

            return PendingFiles(opened, self._options.bar_title, prepared, before)
        opened.defer_checks()  # or the first picture would wait for checksums
        return self._prepared(opened, before)

    def _open_pair(self, against: str, options: IndexOptions) -> Trace:
        """Open two runs, whose pictures need both."""
        from tracelane.core.tables.explain.pair_answers import paired_runs

        if STDIN in (*self._options.traces, against) or any(
            map(is_store_path, (*self._options.traces, against))
        ):
            raise UsageError(
                "--against shows traces: standard input and capture stores have no lanes to pair"
            )
        other = replace(self._options, traces=(against,))
        return paired_runs(self._options.read(options), other.read(options))

    def _open_store(self, options: IndexOptions) -> Trace:
        from tracelane.core.store.opened import open_store
        from tracelane.core.store.picture import picture_of_store

        self._store = self._store or open_store(self._options.traces[0])
        try:
            return picture_of_store(self._store, options, by=self._grouping)
        except UsageError as error:  # no file says so
            self._grouping, self._notes = "host", (str(error),)
            return picture_of_store(self._store, options)

    def _show_rank(self, rank: int, theme: str, host: Host) -> None:
        """Show one rank of the store until the user leaves it; what fails is said over all ranks."""
        from tempfile import TemporaryDirectory

        from tracelane.core.store.picture import opened_rank
        from tracelane.tui.text.progress import ProgressBar

        if self._store is None:
            return
        with TemporaryDirectory(prefix="tracelane-rank-") as folder:
            try:
                with ProgressBar(self._store.ranks[rank].title) as progress:
                    trace = opened_rank(
                        self._store,
                        rank,
                        Path(folder),
                        self._traces_of_store,
                        self._options.index_options,
                        progress,
                    )
            except TracelaneError as error:
                self._notes = (str(error),)
                return
            app = show(self._prepared(trace, None), theme, host)
            app.trace.close()

    def _note_damage(self, damage: DamagedIndexError) -> None:
        """Have it said that an index is rebuilt; raises the damage where that did not help."""
        if damage.folder in self._damaged:
            raise damage
        self._damaged.append(damage.folder)
        self._notes = (f"{damage}; it was rebuilt",)

    def _prepared(self, trace: Trace, before: Carried | None) -> Prepared:
        prepared = self._prepare(trace, before)
        notes, self._notes = self._notes, ()
        return prepared._replace(notes=(*notes, *prepared.notes))


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


def show(
    source: Prepared | PendingFiles, theme: str, host: Host, last: LastPicture | None = None
) -> TracelaneApp:
    """Show a trace, or those of its files that are there and then all, until the user leaves; return the App,
    whose return value says what to open next. Its first picture is kept in place of the `last`. Raises what
    went wrong with the files.
    """
    from tracelane.core.base.private import config_path
    from tracelane.tui.config import read_config
    from tracelane.tui.terminal.first_picture import picture_now
    from tracelane.tui.view_state import Prepared

    config = read_config(config_path())
    theme = theme or config.theme
    with ExitStack() as stack:

        def packed(prepared: Prepared) -> Prepared:
            stack.enter_context(prepared.trace.packing())
            return prepared

        if isinstance(source, Prepared):
            picture = picture_now(source.trace, source.session, replace(config, theme=theme))
            if last is not None and picture != host.screen.picture:
                last.write(picture)
            host.screen.show(picture)
        else:
            prepare = source.prepare
            stack.callback(source.gathering.close)
            source = source._replace(prepare=lambda: packed(prepare()))
        from tracelane.tui.app import TracelaneApp  # takes longer than all before

        app = TracelaneApp(source, config=config)
        if theme in app.available_themes:
            app.theme = theme
        if isinstance(source, Prepared):
            packed(source)
        run(app, host)
    if app.store.is_ready:
        app.marking.save_view()
    if app.return_code:
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
