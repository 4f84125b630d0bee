"""The host whispers: where a device works, its lanes stand out from the host's on the first screen."""

from __future__ import annotations

from contextlib import closing
from itertools import accumulate
from pathlib import Path
from statistics import median

import pytest
from rich.color import Color
from rich.segment import Segment

from tests.corpus import file, for_files, needs
from tracelane.core.base.colours import RGB, contrast
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import LaneRole, Trace, open_trace
from tracelane.tui.actions.view import first_session
from tracelane.tui.device_shares import counted_facts
from tracelane.tui.draw.glyphs import UNICODE
from tracelane.tui.draw.layout import Layout
from tracelane.tui.draw.line_context import LineContext, title_cells
from tracelane.tui.draw.lines import line_segments
from tracelane.tui.draw.palette import Depth, Palette
from tracelane.tui.draw.rows import RowReader
from tracelane.tui.fitting import fit_to_screen

BUSY = 0.1
TRACES = [
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_h100_qwen_infer.json.gz",
    "gpu/tl_mi300_qwen_infer.json.gz",
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz",
    "gpu/tl_torch_compile_triton.json.gz",
    "gpu/tl_vllm_decode_cudagraph_exec.json.gz",
    "gpu/hta_mtia_inference_rank0.json.gz",
    "gpu/kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
    "verdicts/gh200_transformer_shapes.json.gz",
    "verdicts/pageable_copies.json.gz",
    "verdicts/rtx4090_llama_tp2.json.gz",
    "verdicts/vllm_h100_tp4_graphs.json.gz",
]
SAMPLES = ["cuda/inference.pt.trace.json.gz", "cuda/stacks.pt.trace.json.gz"]


def ink(segments: list[Segment], palette: Palette) -> float:
    """Return by how much cells stand out from empty ones: the contrast beyond 1, as much of each as is
    filled; letters and lines fill nothing.
    """

    def beyond(colour: Color | None) -> float:
        return 0.0 if colour is None else contrast(rgb(colour), palette.surface) - 1

    total = 0.0
    for text, style, _ in segments:
        assert style is not None
        for character in text:
            filled = 0.0
            for glyphs in (UNICODE.bars, UNICODE.lefts, UNICODE.shades):
                if character in glyphs[1:]:
                    filled = glyphs.index(character) / (len(glyphs) - 1)
            total += filled * beyond(style.color) + (1 - filled) * beyond(style.bgcolor)
    return total


def rgb(colour: Color) -> RGB:
    triplet = colour.get_truecolor()
    return (triplet.red, triplet.green, triplet.blue)


def device_share(trace: Trace, size: tuple[int, int], dark: bool) -> float | None:
    """Return the share of device lanes in the ink of all lanes of slices on the first screen; None where no
    device is busy.
    """
    facts = counted_facts(Scope(trace, clocks=trace.clocks))
    if max((one.share or 0.0 for one in facts.shares), default=0.0) < BUSY:
        return None
    fit = fit_to_screen(trace, first_session(trace, size[0]), *size, has_marks=False)
    titles = title_cells(size[0])
    look = LineContext(Palette(Depth.TRUECOLOR, dark), UNICODE, titles, size[0] - titles)
    reader, amounts = RowReader(trace), {LaneRole.DEVICE: 0.0, LaneRole.HOST: 0.0}
    reader.know(facts.states)
    for line in Layout(trace, fit.session).visible(0, fit.lanes):
        if line is not None and line.lane is not None and line.lane.role in amounts:
            drawn = line_segments(line, reader, fit.session, look)
            ends = accumulate(segment.cell_length for segment in drawn)
            area = [segment for segment, end in zip(drawn, ends) if end > titles]
            amounts[line.lane.role] += ink(area, look.palette)
    return amounts[LaneRole.DEVICE] / sum(amounts.values())


@pytest.mark.slow
@for_files("path", [*SAMPLES, *TRACES])
@pytest.mark.parametrize(("size", "least"), [((80, 24), 0.55), ((120, 40), 0.45)])
def test_a_device_stands_out(path: str, size: tuple[int, int], least: float, corpus_cache: Path) -> None:
    """However many rows the host has, the lanes of a busy device have a good part of the ink."""
    with closing(open_trace(file(path), index_dir=corpus_cache)) as trace:
        share = device_share(trace, size, dark=True)
    assert share is not None and share >= least


@pytest.mark.slow
@needs(*TRACES)
@pytest.mark.parametrize(
    ("size", "dark", "least"),
    [((80, 24), True, 0.8), ((80, 24), False, 0.7), ((120, 40), True, 0.7), ((120, 40), False, 0.55)],
)
def test_devices_have_half_of_the_ink(
    size: tuple[int, int], dark: bool, least: float, corpus_cache: Path
) -> None:
    """Of the traces with a device busy a tenth and more, all but one or two give half of the ink to the lanes
    of the devices.
    """
    shares = []
    for path in TRACES:
        with closing(open_trace(file(path), index_dir=corpus_cache)) as trace:
            shares.append(device_share(trace, size, dark))
    known = [share for share in shares if share is not None]
    assert median(known) >= least and sum(share < 0.5 for share in known) <= 2 - dark
