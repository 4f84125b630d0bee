"""Viewing the source files that a slice names."""

from __future__ import annotations

from pathlib import Path

from textual.worker import get_current_worker

from tracelane.core.base.ids import SliceId
from tracelane.core.tables.artefacts import read_artefacts

from ..jobs import background
from ..screens.source import SourceScreen
from ..source_lines import existing, lines_of, source_lines_in, texts_in
from .controller import Commands, Controller

MOST_FRAMES = 200
"""The most enclosing slices whose names are looked at."""


class SourceController(Controller):
    """The command that shows source."""

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {
            "source": self.do_source,
        }

    def do_source(self) -> None:
        """Show the file that the selection, a frame around it, or a compiler names."""
        thing = self.store.selected
        name = self.store.trace.name(thing.row, thing.index)
        self._find_source(thing.id.source, thing.id.ordinal, thing.slice, name)

    @background("source")
    def _find_source(self, source: int, ordinal: int, slice_id: SliceId | None, name: str) -> None:
        """Read the arguments and the file away from the screen."""
        trace = self.store.trace
        arguments = trace.event_arguments(source, ordinal) if slice_id is None else trace.arguments(slice_id)
        origin = read_artefacts("", [trace.sources[source].path]).origin_of(name)
        compiled = () if origin is None else origin.lines
        texts = [*(f"{line.file}:{line.line}" for line in compiled), name, *texts_in(arguments.merged)]
        for frame in [] if slice_id is None else trace.ancestors(slice_id, MOST_FRAMES):
            if (at := trace.find(frame)) is not None:
                texts.append(trace.name(*at))
        files = source_lines_in(texts)
        folders = (Path(trace.sources[source].path).absolute().parent, Path.cwd())
        file = existing(files, folders)
        if get_current_worker().is_cancelled:
            return
        if file is None:
            said = f"{files[0].path} is not on this machine" if files else "this names no source file"
            said += f"; {compiled[0]}: {compiled[0].code}" if compiled and compiled[0].code else ""
            self.app.call_from_thread(self.app.say, said)
            return
        lines = lines_of(file[0])
        self.app.call_from_thread(
            self.app.push_screen, SourceScreen(file[0], lines, max(1, min(file[1], len(lines))))
        )
