"""The header and the verdict: what is open, how busy its devices are, in the width that there is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.corpus import CORPUS, file, for_files, needs
from tracelane.core.tables.device.device_state import state_table
from tracelane.core.tables.findings.forms import saved_findings
from tracelane.core.tables.findings.leading import Leading
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.ranks import ranks
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.device_shares import (
    device_shares,
    rank_notes,
    skew_of_ranks,
    state_shares,
    states_over_all,
)
from tracelane.tui.draw.glyphs import ASCII, UNICODE
from tracelane.tui.draw.header import GAP, DeviceShare, busy_texts, header_of
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line_context import LineContext, title_cells
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.draw.verdict import StateShares, bar_line, finding_line, sentences, widths

DLRM = "multirank/dlrm_8gpu_ranks0-3"
LOST = "aiu/mlp_trace.json"


def opened(path: str, cache: Path) -> Trace:
    where = file(path)
    return open_trace(sorted(where.glob("*")) if where.is_dir() else where, index_dir=cache)


def scope_of(trace: Trace) -> Scope:
    return Scope(trace, clocks=trace.clocks)


def header_at(trace: Trace, width: int) -> str:
    texts = busy_texts(device_shares(scope_of(trace), states_over_all(scope_of(trace))))
    pieces = header_of(trace, first_session(trace, width), width, "…", texts)
    return (" " * GAP).join(piece.text for piece in pieces)


def devices_of_ranks(count: int, devices: int = 1) -> list[DeviceShare]:
    """Return devices of ranks that work the more the higher their number."""
    return [
        DeviceShare(f"AIU {device}", rank, (rank * devices + device + 1) / (count * devices + 1))
        for rank in range(count)
        for device in range(devices)
    ]


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ([], []),
        ([DeviceShare("GPU 0", None, 0.2381)], ["GPU 0 busy 23.8 %"]),
        ([DeviceShare("GPU 0", None, 0.5, of_ns=20_000_000)], ["GPU 0 busy 50.0 % of 20 ms", "busy 50.0 %"]),
        ([DeviceShare("AIU 0", None, None)], ["AIU 0 busy ?"]),
        ([DeviceShare("AIU 0", None, None, work_ns=5_000)], ["AIU 0 busy ?, 5 µs of work", "AIU 0 busy ?"]),
        (
            devices_of_ranks(2),
            ["rank 0 busy 33.3 %  rank 1 busy 66.7 %", "busy: rank 0 33.3 %, rank 1 66.7 %"],
        ),
        (devices_of_ranks(1, 2), ["rank 0 AIU 0 busy 33.3 %  rank 0 AIU 1 busy 66.7 %"]),
        (devices_of_ranks(8), ["8 ranks busy 11 % (rank 0) to 89 % (rank 7)", "busy 11 % (rank 0) to 89 %"]),
        (devices_of_ranks(64), ["64 ranks busy 2 % (rank 0) to 98 % (rank 63)", "busy 2 % (rank 0) to 98 %"]),
        (devices_of_ranks(2, 2), ["4 devices busy 20 % (rank 0 AIU 0) to 80 % (rank 1 AIU 1)"]),
    ],
)
def test_busy_shares_name_their_device(devices: list[DeviceShare], text: list[str]) -> None:
    """Of two devices of one name each is named by its rank; of many the least and the most busy is."""
    texts = busy_texts(devices)
    assert texts[: len(text)] == text
    assert [cell_len(one) for one in texts] == sorted((cell_len(one) for one in texts), reverse=True)


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 60, 80, 132, 200])
@pytest.mark.parametrize(
    ("path", "at_80"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", "GPU 0 busy 23.6 % of 667 ms"),
        ("gpu/tl_vllm_capture_python_functions.pt.trace.json.gz", "GPU 2 busy 0.5 %"),
        (LOST, "+ 30 on another clock  10 steps  AIU 0 busy ?"),
        ("gpu/tl_vllm_decode_cudagraph_exec.json.gz", "device 2 busy 99.8 %"),
        ("gpu/tl_h100_qwen_infer.json.gz", "GPU 0 busy 91.9 % of 49.4 ms"),
        (DLRM, "busy 21 % (rank 2) to 22 %"),
    ],
)
def test_the_header_fits(path: str, at_80: str, width: int, corpus_cache: Path) -> None:
    """No header is wider than the screen, and at 80 cells each says how busy its devices are."""
    text = header_at(opened(path, corpus_cache), width)
    assert cell_len(text) <= width
    if width == 80 or (width > 80 and path != DLRM):
        assert at_80 in text


@needs(CORPUS)
def test_slices_on_another_clock_are_counted(corpus_cache: Path) -> None:
    """What lies before the opening span is on another clock; of kernels that all stand at 0 no
    share is said, only what they take, added up, as `breakdown` does.
    """
    trace = opened(LOST, corpus_cache)
    index, (low, high) = trace.indexes[0], trace.opening_span
    starts = np.asarray(index.column("slices.start"), np.int64)
    ends = starts + index.duration(np.arange(len(starts)))
    assert trace.on_other_clock(0).tolist() == np.flatnonzero((ends < low) | (starts > high)).tolist()
    (share,) = device_shares(scope_of(trace), states_over_all(scope_of(trace)))
    kernels = [number for number, start in enumerate(starts.tolist()) if start < low]
    added_ns = sum(int(index.duration(np.array([number]))[0]) for number in kernels)
    assert len(kernels) == 30 and share.share is None and share.work_ns == added_ns
    assert share.work_ns == int(work_of(Scope(trace, clocks=trace.clocks)).dur.sum())


@needs(CORPUS)
@pytest.mark.parametrize(
    ("titles", "glyphs", "lines", "marks"),
    [
        (16, UNICODE, 1, ["rank 0 ", "rank 1 ", "rank 2 slow", "rank 3 "]),
        (30, UNICODE, 1, ["waited 2.3 ms", "waited 7.8 ms", "last in 6 of 8", "waited 6.3 ms"]),
        (11, ASCII, 1, ["rank 0 ", "rank 1 ", "rank 2 <", "rank 3 "]),
        (16, UNICODE, 3, ["waited 2.3 ms", "waited 7.8 ms", "last in 6 of 8", "waited 6.3 ms"]),
    ],
)
def test_ranks_say_who_waits(titles: int, glyphs, lines: int, marks: list[str], corpus_cache: Path) -> None:
    """Beside each folded rank stands how long it waits, and beside the one they wait for in how many
    collectives it comes last, or a mark; the numbers are those of `ranks`.
    """
    trace = opened(DLRM, corpus_cache)
    session = first_session(trace, 80)._replace(rank_lines=lines)
    look = LineContext(Palette(Depth.TRUECOLOR), glyphs, titles, 80)
    reader, layout = RowReader(trace), Layout(trace, session)

    def drawn(look: LineContext) -> list[str]:
        visible = layout.visible(0, layout.height)
        texts = ("".join(one.text for one in line_segments(line, reader, session, look)) for line in visible)
        return [text[:titles] for text in texts]

    scope = Scope(trace, clocks=trace.clocks)
    notes = rank_notes(scope, (), skew_of_ranks(scope))
    texts = drawn(look._replace(ranks=notes))
    at = [number for number, text in enumerate(texts) if "rank" in text]
    assert [mark in texts[first + lines // 2] for first, mark in zip(at, marks)] == [True] * 4
    assert all(" slow" not in text and "waited" not in text for text in drawn(look))
    waits = {one.source: one for one in ranks(Scope(trace, clocks=trace.clocks)).ranks}
    assert notes.slowest == 2 and waits[2].last == 6 and waits[2].collectives == 8


@for_files(
    "path",
    [
        "gpu/hta_a100_resnet_ddp_nccl.json.gz",
        "gpu/tl_h100_qwen_infer.json.gz",
        "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
        "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    ],
)
def test_shares_of_very_many_slices_are_close_estimates(path: str, corpus_cache: Path) -> None:
    """Where a device has too many slices to count them exactly, prefix sums tell its share to half a percent,
    and the header says that it is an estimate.
    """
    scope = Scope(opened(path, corpus_cache))
    assert states_over_all(scope, most_slices=1) is None
    exact, estimated = device_shares(scope, states_over_all(scope)), device_shares(scope, None)
    assert [one.share for one in exact] == pytest.approx([one.share for one in estimated], abs=0.005)
    assert busy_texts(estimated)[0].count("≈") == len(exact) and "≈" not in busy_texts(exact)[0]


TRACES = [
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz",
    "verdicts/rtx4090_llama_tp2.json.gz",
    # of these it is not known for some of the time what the device did
    *("gpu/tl_sglang_decode_graph.json.gz", "gpu/tl_vllm_decode_cudagraph_exec.json.gz"),
    "verdicts/resnet50_lost_memsets.json.gz",
    "aiu/sample_flex_3062_job_4.json",
    *("cuda/inference.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"),
]


def look(width: int, depth: Depth = Depth.TRUECOLOR) -> LineContext:
    return LineContext(Palette(depth), UNICODE, title_cells(width), width - title_cells(width))


def finding(title: str, text: str, ns: int = 0) -> Leading:
    return Leading(
        title=title, text=text, short="", rule="", kind="loss", claimed_ns=ns, share=0.5, has_places=False
    )


@for_files("path", TRACES)
def test_header_bar_and_table_have_one_denominator(path: str, corpus_cache: Path) -> None:
    """What the bar says of a device is what the table of states says of it, and the header its busy share."""
    trace = open_trace(file(path), index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    states = states_over_all(scope)
    (share,) = device_shares(scope, states)
    spent = state_shares(scope, states, [share])
    (row,) = state_table(scope).rows()
    assert spent is not None and share.share is not None
    ns = {state: part * spent.of_ns for state, part in spent.shares.items()}
    assert spent.of_ns - ns["unrecorded"] == pytest.approx(row["of_ns"])
    assert share.share == pytest.approx(row["busy_share"])
    for state in (
        "compute",
        "collective_moving",
        "collective_unsplit",
        "copy",
        "prepare",
        "collective_waiting",
    ):
        assert ns[state] == pytest.approx(row[f"{state}_ns"])
    idle = sum(ns[cause] for cause in ("host_wait", "kernel_wait", "other", ""))
    assert idle == pytest.approx(row["idle_ns"]) and sum(spent.shares.values()) == pytest.approx(1)
    busy = row["of_ns"] - idle - ns["collective_waiting"]
    assert busy / row["of_ns"] == pytest.approx(share.share)
    assert f"busy {100 * share.share:.1f} %" in busy_texts([share])[0]


@example([0.75] * 5 + [0.375, 0.0625, 0.0625], 20)
@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=8), st.integers(20, 300))
def test_parts_of_the_bar_fill_it(shares: list[float], cells: int) -> None:
    """Every share has a cell at least, and together they fill the bar."""
    parts = widths(shares, cells)
    assert sum(parts) == cells and min(parts) >= 1


@pytest.mark.parametrize("depth", list(Depth))
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_lines_have_their_width(width: int, depth: Depth) -> None:
    """Both lines are as wide as the screen, in every mode, and the largest share says how much it is."""
    shares = {"compute": 0.2, "collective_waiting": 0.3, "copy": 0.0001, "host_wait": 0.4999}
    drawn = bar_line(StateShares("GPU 0", 10**6, shares), look(width, depth))
    text = "".join(part.text for part in drawn)
    assert cell_len(text) == width and "50 %" in text and UNICODE.shades[1] in text
    for one in (None, finding("T" * 300, "x"), finding("Short", "It is so; it is not", 5)):
        line = finding_line(one, "Enter shows it", look(width, depth))
        assert cell_len("".join(part.text for part in line)) == width


@pytest.mark.parametrize(
    ("width", "said"),
    [
        (120, "Two runs: -118 µs in 3 steps; mm -50.8 ms a step"),
        (36, "Two runs: -118 µs in 3 steps"),
        (24, "-118 µs in 3 steps"),
        (16, "Two runs"),
    ],
)
def test_a_short_form_has_a_beginning(width: int, said: str) -> None:
    """A sentence whose short form is too long, too, says the beginning of that before its title alone."""
    leading = finding("Two runs", "x" * 200)._replace(short="-118 µs in 3 steps; mm -50.8 ms a step")
    assert "".join(part.text for part in finding_line(leading, "", look(width))).strip() == said


@pytest.mark.parametrize("percent", range(20, 101, 8))
def test_a_part_of_the_bar_says_its_share(percent: int) -> None:
    """Beside its name stands how much of the time it is, in whole percent, and that it is an estimate."""
    shares = {"compute": percent / 100, "copy": 1 - percent / 100}
    for is_estimate, about in ((False, ""), (True, "≈")):
        drawn = bar_line(StateShares("GPU 0", 10**6, shares, is_estimate), look(160))
        assert f"compute {about}{percent} %" in "".join(part.text for part in drawn)


def test_a_sentence_is_never_cut_within() -> None:
    """What is left of it ends where a sentence may end; the title goes before the cause does, and the cost is
    said where that is too long.
    """
    one = finding("Host late", "The GPU sat idle for 503 ms; the next kernel came late. Launch ahead", 503)
    texts = sentences(one)
    assert texts[0].startswith("Host late: The GPU") and texts[-1] == "Host late"
    assert texts.index("The GPU sat idle for 503 ms") < texts.index("Host late: 503 ns, 50.0 % of the time")
    for width in range(20, 120):
        line = "".join(part.text for part in finding_line(one, "Enter shows it", look(width)))
        said = line.strip().removesuffix("Enter shows it").strip()
        assert said in texts, (width, said)


@needs(CORPUS)
def test_a_verdict_says_the_cause_at_80_columns(corpus_cache: Path) -> None:
    """Where the sentence has no room behind its title it says which rank is late, and how long all wait."""
    folder = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
    first = saved_findings(Scope(open_trace(sorted(folder.glob("*")), index_dir=corpus_cache))).leading
    assert first is not None
    line = "".join(part.text for part in finding_line(first.as_leading, "Enter shows it", look(80)))
    assert line.strip() == "Rank 2 is last in 5 of 8, others wait 16.4 ms  Enter shows it"


def test_a_headline_says_its_share_at_80_columns() -> None:
    """A headline costs no time of its own to fall back to: its sentence ends before its conclusion."""
    text = "GPU 0 is busy in 91.9 % of 49.4 ms, mostly with compute: the device is the limit"
    line = "".join(part.text for part in finding_line(finding("Device-bound", text), "", look(80)))
    assert line.strip() == "Device-bound: GPU 0 is busy in 91.9 % of 49.4 ms, mostly with compute"
