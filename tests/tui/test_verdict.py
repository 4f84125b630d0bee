"""The verdict in two lines: shares of states that add up, and a sentence that is never cut within."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.corpus import CORPUS, needs_corpus
from tracelane.core.tables.device_state import state_table
from tracelane.core.tables.findings.finding import Finding
from tracelane.core.tables.findings.saved import saved_findings
from tracelane.core.tables.scope import Scope
from tracelane.core.trace import open_trace
from tracelane.tui.device_shares import device_shares, state_shares, states_over_all
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.header import busy_texts
from tracelane.tui.draw.lines import LineContext, title_cells
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.verdict import StateShares, bar_line, finding_line, sentences, widths

TRACES = [
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_vllm_capture_python_functions.pt.trace.json.gz",
    "verdicts/rtx4090_llama_tp2.json.gz",
    "aiu/sample_flex_3062_job_4.json",
]


def look(width: int, depth: Depth = Depth.TRUECOLOR) -> LineContext:
    return LineContext(Palette(depth), UNICODE, title_cells(width), width - title_cells(width))


def finding(title: str, text: str, ns: int = 0) -> Finding:
    return Finding("rule", title, text, (), ns, 0.5, False, "", "", "", 0, 0, (0,))


@needs_corpus
@pytest.mark.parametrize("path", TRACES)
def test_header_bar_and_table_have_one_denominator(path: str, corpus_cache: Path) -> None:
    """What the bar says of a device is what the table of states says of it, and the header its busy share."""
    trace = open_trace(CORPUS / path, index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    states = states_over_all(scope)
    (share,) = device_shares(scope, states)
    spent = state_shares(scope, states, [share])
    (row,) = state_table(scope).rows()
    assert spent is not None and share.share is not None
    assert spent.of_ns == row["of_ns"] and share.share == pytest.approx(row["busy_share"])
    for state in ("compute", "collective_moving", "collective_unsplit", "copy", "collective_waiting"):
        assert spent.shares[state] == pytest.approx(row[f"{state}_ns"] / row["of_ns"])
    idle = sum(spent.shares[cause] for cause in ("host_wait", "kernel_wait", "other", ""))
    assert idle == pytest.approx(row["idle_ns"] / row["of_ns"])
    busy = sum(spent.shares.values()) - idle - spent.shares["collective_waiting"]
    assert busy == pytest.approx(share.share) and sum(spent.shares.values()) == pytest.approx(1)
    assert f"busy {100 * share.share:.1f} %" in busy_texts([share])[0]


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


@needs_corpus
def test_a_verdict_says_the_cause_at_80_columns(corpus_cache: Path) -> None:
    """Where the sentence has no room behind its title it says which rank is late, not how long all wait."""
    folder = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
    first = saved_findings(Scope(open_trace(sorted(folder.glob("*")), index_dir=corpus_cache))).leading
    line = "".join(part.text for part in finding_line(first, "Enter shows it", look(80)))
    assert line.strip() == "Rank 2 is last in 5 of 8 collectives  Enter shows it"


def test_a_headline_says_its_share_at_80_columns() -> None:
    """A headline costs no time of its own to fall back to: its sentence ends before its conclusion."""
    text = "GPU 0 is busy in 91.9 % of 49.4 ms, mostly with compute: the device is the limit"
    line = "".join(part.text for part in finding_line(finding("Device-bound", text), "", look(80)))
    assert line.strip() == "Device-bound: GPU 0 is busy in 91.9 % of 49.4 ms, mostly with compute"
