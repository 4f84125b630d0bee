"""What the details panel says of slices, instants and counter samples."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.style import Style

from tests.corpus import CORPUS, needs
from tests.events import complete, index_of
from tests.graph_pairs import MODEL, capture_events, replay_events, write_pair
from tests.tui.small_file import LONG_NAME
from tracelane.core.query.args import Arguments
from tracelane.core.query.views import SliceId
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.ranks import ranks
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions import view
from tracelane.tui.device_shares import states_over_all
from tracelane.tui.draw.states import DrawnStates
from tracelane.tui.draw.things import Thing, thing_by_id, thing_in
from tracelane.tui.panels.details import (
    Details,
    DetailsStyles,
    details_json,
    details_of,
    details_text,
    shares,
)
from tracelane.tui.panels.fields import MAX_LINES, Field, fields_of, laid_out, value_text, wrap
from tracelane.tui.session import InstantId
from tracelane.tui.times import stamps_of

LOOK = DetailsStyles(Style(), Style(), Style(), Style())
WIDTHS = (20, 40, 78, 118, 198)


def thing_and_details(file_trace: Trace, name: str, number: int = 0) -> tuple[Thing, Details]:
    session = view.first_session(file_trace, 80)
    raw = json.loads(Path(file_trace.sources[0].path).read_text(encoding="utf-8"))["traceEvents"]
    ordinal = [
        position for position, event in enumerate(raw) if event["name"] == name and event["ph"] != "M"
    ][number]
    thing = thing_by_id(file_trace, session.clocks, SliceId(0, ordinal))
    thing = thing or thing_by_id(file_trace, session.clocks, InstantId(0, ordinal))
    assert thing is not None
    return thing, details_of(file_trace, stamps_of(file_trace, session), thing)


def values(details: Details) -> dict[str, str]:
    return {field.label: field.value for field in details.fields}


def test_a_slice_in_full(file_trace: Trace) -> None:
    """A slice has its times three ways, its duration, self time, parent and children."""
    thing, details = thing_and_details(file_trace, "aten::linear", 1)
    texts = values(details)
    assert details.title == "aten::linear"
    assert texts["duration"] == "60 µs"
    assert texts["self"] == "50 µs · 83.3%"
    assert texts["start"] == "+110 µs"
    assert texts["in the file"] == "1110.000 µs"
    assert ":20.001110000 UTC" in texts["wall clock"]
    assert texts["parent"] == "ProfilerStep#1"
    assert texts["children"] == "1"
    assert texts["category"] == "cpu_op"
    assert (texts["lane"], texts["process"]) == (thing.lane.title, thing.lane.process.title)
    parent = next(field for field in details.fields if field.label == "parent")
    step = next(s for s in file_trace.steps if s.label == "1")
    assert parent.jump == f"jump(0, {step.id.ordinal})"


def test_a_kernel_has_its_chain(file_trace: Trace) -> None:
    """A kernel shows kernel ← launch ← op ← annotation, and the flow it came by."""
    _, details = thing_and_details(file_trace, LONG_NAME)
    assert [(part.role, part.via) for part in details.chain][:3] == [
        ("kernel", ""),
        ("launch", "flow"),
        ("op", "enclosing"),
    ]
    assert values(details)["flow from"] == "launch (ac2g)"
    line = details_text(details, None, 100, LOOK).plain.splitlines()
    chain = next(text for text in line if text.startswith("kernel "))
    assert " ← launch launch ← op aten::linear" in chain


def test_a_replayed_kernel_shows_what_captured_it(tmp_path: Path) -> None:
    """What a capture says comes with the arguments, read from files: op, module, shapes, stack, graph."""
    path = write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(MODEL, named=False)})
    trace = open_trace(path, index_dir=tmp_path / "index")
    thing, details = thing_and_details(trace, "embed")
    assert thing.slice is not None
    lines = details_text(details, trace.arguments(thing.slice), 100, LOOK).plain.splitlines()
    at = lines.index("by capture")
    said = " ".join(" ".join(lines[at + 1 : lines.index("arguments")]).split())
    for text in ("op aten::embedding", "module Embedding_0", "stack model.py(12): forward"):
        assert text in said
    assert "graph capture_32_FULL, inferred from count and order" in said
    launch, _ = thing_and_details(trace, "hipGraphLaunch")
    assert launch.slice is not None and not trace.arguments(launch.slice).captured


def test_a_replayed_kernel_shows_why_no_capture_fits(tmp_path: Path) -> None:
    """Where no graph fits a replay, the details of its kernels say why."""
    swapped = [MODEL[1], MODEL[0], *MODEL[2:]]
    path = write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(swapped)})
    trace = open_trace(path, index_dir=tmp_path / "index")
    thing, details = thing_and_details(trace, "embed")
    assert thing.slice is not None
    lines = details_text(details, trace.arguments(thing.slice), 100, LOOK).plain.splitlines()
    assert lines[lines.index("by capture") + 1].strip().startswith("no owner kernel 1 is embed, and ")


def test_what_a_slice_means_stands_behind_its_arguments(file_trace: Trace) -> None:
    """Duration and launch delay come first, then the chain, the arguments, and what such a slice does."""
    _, details = thing_and_details(file_trace, LONG_NAME)
    details = details._replace(means="adds numbers")
    arguments = Arguments({"stream": 1}, slow_reason="compressed")
    lines = details_text(details, arguments, 100, LOOK).plain.splitlines()[1:]
    heads = (
        "duration",
        "kernel ",
        "arguments",
        "stream",
        "arguments: compressed",
        "adds numbers",
        "category",
    )
    rows = [next(at for at, line in enumerate(lines) if line.startswith(head)) for head in heads]
    assert rows == sorted(rows)


@pytest.mark.parametrize(
    ("start", "remark"),
    [(125, "5 µs"), (110, "-10 µs · began while the launch ran"), (90, "-30 µs · clocks disagree")],
)
def test_work_may_begin_while_its_launch_runs(start: int, remark: str, tmp_path: Path) -> None:
    """Only of work that begins before its launch began it is said that clocks disagree."""
    launch = complete(100, 20, "cudaLaunchKernel", "cuda_runtime", args={"correlation": 1})
    kernel = complete(start, 500, "k", "kernel", pid=1, tid=7, args={"correlation": 1, "stream": 7})
    path = tmp_path / "t.json"
    path.write_text(json.dumps([launch, kernel]), encoding="utf-8")
    file_trace = open_trace(path, index_dir=tmp_path / "index")
    session = view.first_session(file_trace, 80)
    thing = thing_by_id(file_trace, session.clocks, SliceId(0, 1))
    assert thing is not None
    assert values(details_of(file_trace, stamps_of(file_trace, session), thing))["launch delay"] == remark


@needs(CORPUS)
def test_a_lost_time_gives_no_launch_delay(corpus_cache: Path) -> None:
    """Of a kernel that stands at 0, far before its launch, it is not said how long after that it began."""
    file_trace = open_trace(CORPUS / "aiu/mlp_trace.json", index_dir=corpus_cache)
    raw = json.loads(Path(file_trace.sources[0].path).read_text(encoding="utf-8"))["traceEvents"]
    ordinal = next(n for n, event in enumerate(raw) if event["ph"] == "X" and event["ts"] == 0)
    session = view.first_session(file_trace, 80)
    thing = thing_by_id(file_trace, session.clocks, SliceId(0, ordinal))
    assert thing is not None
    text = values(details_of(file_trace, stamps_of(file_trace, session), thing))["launch delay"]
    assert text == "not known: the clocks are far apart"


def test_ancestors_are_listed_with_their_times(file_trace: Trace) -> None:
    """A launch lists what is around it, innermost first, with total and self; a kernel its launch's."""
    _, launch = thing_and_details(file_trace, "launch")
    _, kernel = thing_and_details(file_trace, LONG_NAME)
    for details, step, what in ((launch, 0, "around it"), (kernel, 1, "around its launch")):
        assert details.around.what == what
        assert [(entry.name, entry.total, entry.self_time) for entry in details.around.entries] == [
            ("aten::linear", 60_000, 50_000),
            (f"ProfilerStep#{step}", 100_000, 40_000),
        ]
        assert all(entry.jump.startswith("jump(0, ") for entry in details.around.entries)
    lines = details_text(launch, None, 80, LOOK).plain.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("around it"))
    assert lines[at].split()[-2:] == ["total", "self"]
    assert lines[at + 1].split() == ["aten::linear", "60", "µs", "50", "µs"]
    thing, _ = thing_and_details(file_trace, "launch")
    copied = json.loads(details_json(launch, thing, None))
    assert copied["around_it"][1] == {"name": "ProfilerStep#0", "duration_ns": 100_000, "self_ns": 40_000}


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_deep_stack_is_bounded(tmp_path: Path, width: int) -> None:
    """Of Python frames a hundred deep the innermost are listed, modules among them, the rest counted."""
    frames = [complete(at, 1000 - 2 * at, f"f{at}.py({at}): g", "python_function") for at in range(150)]
    frames[-1]["name"] = "nn.Module: Linear_0"
    file_trace = Trace([index_of([*frames, complete(200, 5, "aten::mm", "cpu_op")], tmp_path / "index")])
    session = view.first_session(file_trace, 80)
    thing = thing_by_id(file_trace, session.clocks, SliceId(0, len(frames)))
    assert thing is not None
    details = details_of(file_trace, stamps_of(file_trace, session), thing)
    assert details.around.entries[0].name == "nn.Module: Linear_0" and len(details.around.entries) == 100
    assert details.around.more == 50
    text = details_text(details, Arguments({}), width, LOOK)
    assert text.plain.endswith("\n50 more around these")


def test_long_and_blank_names(file_trace: Trace) -> None:
    """A long name is short in the title and whole below; a blank one is said to be blank."""
    _, long = thing_and_details(file_trace, LONG_NAME)
    assert len(long.title) < len(LONG_NAME)
    text = details_text(long, None, 80, LOOK).plain
    assert LONG_NAME.replace(" ", "") in text.replace("\n", "").replace(" ", "")
    _, blank = thing_and_details(file_trace, "  ")
    assert "blank name" in details_text(blank, None, 80, LOOK).plain


def test_instants_and_samples(file_trace: Trace) -> None:
    """Instants say what they are, samples their value."""
    _, instant = thing_and_details(file_trace, "mark\x1b[31m")
    assert values(instant)["what"] == "instant"
    _, sample = thing_and_details(file_trace, "power", 1)
    assert values(sample)["value"] == "21.5"
    assert values(sample)["start"] == "+100 µs"


def test_what_is_odd_is_remarked(file_trace: Trace) -> None:
    """An unclosed begin is marked as such."""
    _, details = thing_and_details(file_trace, "open")
    assert any("never ends" in remark for remark in details.remarks)


def test_arguments_come_from_the_file(file_trace: Trace) -> None:
    """Arguments are those of the event, nested ones as JSON, and the copy holds them as they are."""
    thing, details = thing_and_details(file_trace, "aten::linear")
    assert thing.slice is not None
    arguments = file_trace.arguments(thing.slice)
    text = details_text(details, arguments, 80, LOOK).plain
    assert "[[8, 16], [16, 4], []]" in text
    copied = json.loads(details_json(details, thing, arguments))
    assert copied["schema"] == 1
    assert copied["args"] == {"External id": 3, "Input Dims": [[8, 16], [16, 4], []], "Ev Idx": 0}
    assert (copied["start_ns"], copied["duration_ns"]) == (1_010_000, 60_000)
    assert copied["name"] == "aten::linear"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (None, "reading…"),
        (Arguments({}), "no arguments"),
        (Arguments({"a": 1}, slow_reason="compressed"), "compressed"),
        (Arguments({}, problem="the file is gone"), "the file is gone"),
        (Arguments({"a": 1}, {"b": 2}), "arguments of its end"),
    ],
)
def test_the_state_of_arguments_is_said(file_trace: Trace, arguments: Arguments | None, said: str) -> None:
    """While they are read, when there are none, when they were slow or cannot be read: it is said."""
    _, details = thing_and_details(file_trace, "launch")
    assert said in details_text(details, arguments, 80, LOOK).plain


@pytest.mark.parametrize("width", WIDTHS)
def test_no_control_character_and_no_long_line(file_trace: Trace, width: int) -> None:
    """Whatever names and arguments hold, lines fit and no control character comes through."""
    hostile: dict[str, Any] = {
        "\x1b]0;x\x07key": "\x1b[2J\u202eabc",
        "many\nlines": "a\nb\tc\r\n" * 3,
        "wide": "漢字" * 200,
        "deep": {"a": [{"b": ["c" * 90]}]},
        "empty": "",
        "long" * 20: 1,
    }
    for name in ("mark\x1b[31m", LONG_NAME):
        _, details = thing_and_details(file_trace, name)
        details = details._replace(fields=(*details.fields, Field("x\x1b", "y\x9b")))
        text = details_text(details, Arguments(hostile), width, LOOK)
        assert not [c for c in text.plain if c != "\n" and not c.isprintable()]
        too_long = [
            line.plain for line in text.split() if line.cell_len > max(width, 20) and " ← " not in line.plain
        ]
        assert not [line for line in too_long if not line.startswith(("⚠", "arguments", "the file"))], (
            too_long
        )


def test_fields_stand_side_by_side_where_there_is_room() -> None:
    """Eight short fields take eight lines at 20 cells, fewer where it is wide; none is lost."""
    fields = [Field(f"label {n}", f"value {n}") for n in range(8)]
    heights = []
    for width in WIDTHS:
        lines = laid_out(fields, width, Style(), Style())
        heights.append(len(lines))
        text = "\n".join(line.plain for line in lines)
        assert all(f"label {n} value {n}" in text for n in range(8))
    assert heights[0] == 8 and heights[-1] == 1
    assert heights == sorted(heights, reverse=True)


def test_a_huge_value_is_cut_and_counted() -> None:
    """A value of very many lines ends with a line that says so."""
    lines = laid_out([Field("x", "a\n" * (3 * MAX_LINES))], 80, Style(), Style())
    assert len(lines) == MAX_LINES + 1
    assert "cut" in lines[-1].plain


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", '""'),
        (True, "true"),
        (None, "null"),
        (1.5, "1.5"),
        ([1, {"a": "ä"}], '[1, {"a": "ä"}]'),
        (list(range(60)), json.dumps(list(range(60)), indent=2)),
    ],
)
def test_values_as_text(value: Any, text: str) -> None:
    """Strings stand bare, everything else as JSON, long lists on many lines."""
    assert value_text(value) == text
    assert fields_of({"k": value}) == [Field("k", text)]


@pytest.mark.parametrize("text", ["abcdef" * 9, "漢字" * 20, "a漢bc字" * 9])
@pytest.mark.parametrize("width", range(2, 30))
def test_each_line_is_as_full_as_can_be(text: str, width: int) -> None:
    """Lines put together are the text; each fits, and the first character of the next one would not."""
    lines = wrap(text, width)
    assert "".join(lines) == text and max(map(cell_len, lines)) <= width
    assert all(cell_len(line + following[0]) > width for line, following in pairwise(lines))


def test_wrap_and_shares() -> None:
    """Wrapping loses nothing and never splits a wide character; short texts get all, long ones share."""
    assert wrap("abcdef", 4) == ["abcd", "ef"]
    assert wrap("漢字漢", 5) == ["漢字", "漢"]
    assert wrap("", 4) == [""]
    assert shares([3, 50, 50], 43) == [3, 20, 20]
    assert shares([3, 4], 100) == [3, 4]


@needs(CORPUS)
@pytest.mark.slow
def test_collectives_lead_with_their_waiting(corpus_cache: Path) -> None:
    """A collective's details begin with how long it waits for a peer; over all of a rank's that is what the
    table of ranks says, and nothing is said of other work.
    """
    file_trace = open_trace(CORPUS / "multirank" / "dlrm_8gpu_ranks0-3", index_dir=corpus_cache)
    scope, session = Scope(file_trace, clocks=file_trace.clocks), view.first_session(file_trace, 80)
    states = DrawnStates.of(file_trace.clocks, states_over_all(scope) or ())
    waited = dict.fromkeys(range(4), 0.0)
    for lane in (file_trace.lanes[number] for number in sorted(file_trace.device_lanes)):
        for row in file_trace.rows(lane):
            for index in range(row.count):
                is_collective = file_trace.name(row, index).startswith("nccl")
                if not is_collective and index % 100:
                    continue
                thing = thing_in(file_trace, session.clocks, row, index)
                assert thing is not None
                details = details_of(file_trace, stamps_of(file_trace, session), thing, states=states)
                assert (details.fields[0].label == "waits for a peer") == is_collective
                if is_collective:
                    number, unit = details.fields[0].value.split(" · ")[0].split()
                    waited[lane.source] += float(number) * {"ns": 1, "µs": 1e3, "ms": 1e6}[unit]
    for one in ranks(scope).ranks:
        assert waited[one.source] == pytest.approx(one.waited_ns, abs=20_000)
