"""Opening what was asked for, and opening anew as long as the viewer asks for that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..session_log import default_log
from .opening import open_files, show, show_while_gathering
from .options import STDIN, is_store_path
from .terminal import can_draw

if TYPE_CHECKING:
    from tracelane.core.base.errors import DamagedIndexError
    from tracelane.core.index.opening import Gathering
    from tracelane.core.index.options import IndexOptions
    from tracelane.core.store.opened import CaptureStore
    from tracelane.core.trace import Trace
    from tracelane.tui.carried import Carried
    from tracelane.tui.prepared import Prepared
    from tracelane.tui.terminal.host import Host

    from .opened import TraceOptions


class Viewing:
    """Traces as they are named on a command line, from the first opening until the user quits."""

    def __init__(
        self,
        options: TraceOptions,
        prepare: Callable[[Trace, Carried | None], Prepared],
        traces_of_store: str = "",
        against: str | None = None,
    ) -> None:
        """Know what is to be opened; `prepare` makes of a trace, and of the view before, what is shown;
        `traces_of_store`: where the traces of a store lie; `against`: a run to be shown below.
        """
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

    def open(self, force: bool = False) -> Trace | Gathering:
        """Return the trace; what is indexing it where a picture can be drawn meanwhile."""
        options = self._options.index_options.with_force(force)
        traces = self._options.traces
        if self._against is not None:
            return self._open_pair(self._against, options)
        if len(traces) == 1 and is_store_path(traces[0]):
            return self._open_store(options)
        if can_draw():
            return open_files(self._options.files, self._title, options)
        from tracelane.core.trace import open_trace
        from tracelane.tui.text.progress import ProgressBar

        with ProgressBar(self._title) as progress:
            return open_trace(traces, options, choice=self._options.choice, progress=progress)

    def show(self, opened: Trace | Gathering, host: Host) -> None:
        """Show it; then another capture, or what has become of the files, as long as one is wanted."""
        from tracelane.core.index.changes import finished_name
        from tracelane.core.index.opening import Gathering

        before: Carried | None = None
        while True:
            if isinstance(opened, Gathering):
                app = show_while_gathering(opened, self._title, self._prepared, before, host)
            else:
                opened.defer_checks()  # or the first picture would wait for checksums
                app = show(self._prepared(opened, before), "" if before is None else before.theme, host)
            if app.wanted_rank is not None:
                self._show_rank(app.wanted_rank, app.theme, host)
                from tracelane.tui.carried import carried

                before = carried(app.trace, app.session, app.theme, app.store.history)
            elif app.rank_grouping:
                self._grouping, before = app.rank_grouping, None
            elif app.wanted_capture is not None:
                self._options, before = replace(self._options, capture=str(app.wanted_capture)), None
            elif app.wants_reload:
                self._store = None  # of which there may be more by now
                if app.damage is not None:
                    self._note_damage(app.damage)
                from tracelane.tui.carried import carried

                before = carried(app.trace, app.session, app.theme, app.store.history)
                traces = tuple(map(finished_name, self._options.traces))
                self._options = replace(self._options, traces=traces)  # whose files are looked at anew
            else:
                return
            opened = self.open()

    def _open_pair(self, against: str, options: IndexOptions) -> Trace:
        """Open two runs, whose pictures need both."""
        from tracelane.core.base.errors import UsageError
        from tracelane.core.tables.pair_answers import paired_runs
        from tracelane.core.trace import open_trace
        from tracelane.tui.text.progress import ProgressBar

        if STDIN in (*self._options.traces, against) or any(
            map(is_store_path, (*self._options.traces, against))
        ):
            raise UsageError(
                "--against shows traces: standard input and capture stores have no lanes to pair"
            )
        runs = []
        for paths in (self._options.traces, (against,)):
            with ProgressBar(self._title) as progress:
                runs.append(open_trace(paths, options, choice=self._options.choice, progress=progress))
        return paired_runs(*runs)

    def _open_store(self, options: IndexOptions) -> Trace:
        from tracelane.core.base.errors import UsageError
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

        from tracelane.core.base.errors import TracelaneError
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
        return replace(prepared, notes=(*notes, *prepared.notes))

    @property
    def _title(self) -> str:
        first, *others = self._options.traces
        name = "standard input" if first == STDIN else Path(first).name
        return f"{name} and {len(others)} more" if others else name


THREE_KEYS = (
    "Three keys to begin with: {zoom-in} zooms in ({zoom-out} out), {details} shows what is at the cursor, "
    "{help} lists all keys"
)


def first_start_notes() -> tuple[str, ...]:
    """Return what is said, once for each user: a file in the user's state folder remembers it.

    Where no file can be written nothing is said, as it would be said every time.
    """
    log = default_log()
    if log is None:
        return ()
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.with_name("started").touch(exist_ok=False)
    except OSError:
        return ()
    return (THREE_KEYS,)
