"""Every sample and trace of the corpus opens, and every lane that holds something is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import file, for_files, traces
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.captures import Choice
from tracelane.core.index.inputs import expanded
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import view_of
from tracelane.tui.draw.glyphs import ASCII
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line import LineKind, lane_key, process_key
from tracelane.tui.draw.line_context import LineContext
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, palette_for
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.session import Session
from tracelane.tui.text.picture import plain_picture

TITLES = 20
AREA = 200
MAX_LINES = 1500
"""Lines drawn per file; of more, an even choice."""
NO_TRACE = {"empty.json", "html_not_json.json"}
ENDINGS = (".json", ".gz", ".zip", ".tmp")
FILES = [path for path in traces("**/*") if path.name.endswith(ENDINGS)]


def _everything(trace: Trace) -> Session:
    start, end = trace.span
    unfolded = {lane_key(lane) for lane in trace.lanes} | {process_key(p) for p in trace.processes}
    return Session(view_of(start, end, AREA), start, unfolded=frozenset(unfolded), show_quiet=True)


@pytest.mark.slow
@for_files("path", FILES)
def test_every_lane_is_on_the_screen(path: Path, corpus_cache: Path) -> None:
    """With all folds open each lane has a title line, and no row of it is blank over the whole span."""
    if path.name in NO_TRACE:
        with pytest.raises(UnreadableError) as refused:
            open_trace(path, index_dir=corpus_cache)
        assert "\n" not in str(refused.value)
        return
    trace = open_trace(path, index_dir=corpus_cache)
    session = _everything(trace)
    layout = Layout(trace, session)
    look = LineContext(palette_for(Depth.NONE, True, None, False), ASCII, TITLES, AREA)
    reader = RowReader(trace)
    lines = [line for line in layout.lines(0, layout.height) if line.kind is LineKind.ROW and line.lane]
    assert {line.lane.number for line in lines if line.lane} == set(range(len(trace.lanes)))
    for line in lines[:: max(1, len(lines) // MAX_LINES)]:
        drawn = "".join(segment.text for segment in line_segments(line, reader, session, look))
        assert drawn[TITLES:].strip(), f"{line.title} row {line.depth} is blank"
    trace.close()


@pytest.mark.slow
@for_files("name", ["gpu", "multirank/dlrm_8gpu_ranks0-3", "aiu/spyre_torch_profiler"])
def test_a_folder_opens_as_one_trace(name: str, corpus_cache: Path) -> None:
    """All captures of a folder open together, one source each."""
    trace = open_trace(file(name), index_dir=corpus_cache, choice=Choice(capture="all"))
    assert len(trace.sources) == len(expanded([file(name)]))
    assert plain_picture(trace, _everything(trace)).strip()
    trace.close()
