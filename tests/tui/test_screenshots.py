"""The pictures of the README can be drawn: options and keys of theirs are the viewer's."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from screenshots.make import FRAMES, SHOTS, TOUR, Frame, drawn
from tracelane.core.demo.trace import write_demo

TITLE = Frame("tracelane")


def words(picture: str) -> str:
    """Return the text of a picture."""
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    return html.unescape(" ".join(texts)).replace("\xa0", " ")


@pytest.mark.slow
async def test_the_pictures_show_what_is_said_of_them(tmp_path: Path) -> None:
    """The tour ends at the launch after the gap of the slow step; the stills show what they are named for."""
    traces = [path for path in write_demo(tmp_path) if path.suffix == ".json"]
    tour = [words(picture) for picture in await drawn(traces[:1], TOUR, FRAMES)]
    assert len(tour) == len(FRAMES)
    assert "153.533 ms" in tour[1] and "host wait: the host was late" in tour[3]
    assert "sdsc_fused_embedding_12" in tour[4] and "launch_kernel:sdsc_fused_embedding_12" in tour[5]
    stills = {}
    for shot in SHOTS:
        (picture,) = await drawn(traces if shot.has_logs else traces[:1], shot, (TITLE,))
        stills[shot.name] = words(picture)
    assert "sdsc_fused_bmm_softmax_backward_9" in stills["flow"]
    whole = stills["screen"]
    assert "AIU 0" in whole and "compute 88 %" in whole and "[ProfilerStep#3" in whole
    assert "pwr W" in stills["telemetry"] and "One rank keeps the others waiting" in stills["telemetry"]
