"""Draw the pictures of the README: the demo in the real viewer, three stills and a moving picture.

The GIF and the PNGs need resvg_py, pillow and the font Fira Code (Debian: fonts-firacode).
"""

from __future__ import annotations

import asyncio
import html
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len

HERE = Path(__file__).resolve().parent
FONT = "Fira Code"
NOT_IN_FONT = re.compile("[▾▸▴◂⋯⌇⚠\u2801-\u28ff]")
"""Characters that Fira Code lacks: for one of them resvg draws its whole run in another font."""
TEXT = re.compile(
    r'<text (?P<before>[^>]*?) x="(?P<x>[\d.]+)"(?P<between>[^>]*?) textLength="[\d.]+"(?P<after>[^>]*)>'
    r"(?P<text>[^<]*)</text>"
)
CELL = 12.2
"""Width of a cell in Textual's SVG."""


@dataclass(frozen=True)
class Shot:
    """One picture: the screen's size in cells, the options of `view`, and the keys pressed before."""

    name: str
    size: tuple[int, int]
    begin: str | None = None
    end: str | None = None
    lanes: str | None = None
    keys: tuple[str, ...] = ()
    has_logs: bool = False  # with the aiu-smi log beside the trace


@dataclass(frozen=True)
class Frame:
    """One frame of the moving picture: its title, the keys pressed before it, and how long it stays."""

    title: str
    keys: tuple[str, ...] = ()
    seconds: float = 2.5


SHOTS = (
    Shot("screen", (120, 40)),
    Shot(
        "flow",
        (112, 26),
        "+800ms",
        "+875ms",
        "Stream 0|autograd",
        (*"g+850ms", "enter", "shift+down", "shift+down", "enter"),
    ),
    Shot(
        "telemetry",
        (132, 30),
        "step:4",
        None,
        "Stream|MiB|pwr|busy",
        ("escape", "escape", "2"),
        has_logs=True,
    ),
)
TOUR = Shot("tour", (112, 34))
FRAMES = (
    Frame("tracelane rank0.pt.trace.json"),
    Frame("5: steps - step 4 is slow, its device idle", ("5",)),
    Frame("go to step 4", ("1", *"g4", "enter")),
    Frame("i: the gap of Stream 0 - the host was late", ("i",), 4),
    Frame("right: the kernel that ended the gap", ("right",)),
    Frame("b: what launched it, right after read_shard", ("b",), 4),
)


async def drawn(traces: list[Path], shot: Shot, frames: tuple[Frame, ...]) -> list[str]:
    """Return the viewer's screen as SVG after the keys of a shot, and of each frame."""
    from tests.tui.driver import wait_until_idle
    from tracelane.core.logs.header import nearby_logs
    from tracelane.core.logs.overlay import LogOptions, open_overlay
    from tracelane.core.trace import open_trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.cli.trace_options import TraceOptions
    from tracelane.tui.cli.view_request import ViewOptions, session_of_options

    trace = open_trace(traces)
    if shot.has_logs:
        trace = open_overlay(trace, nearby_logs(trace), LogOptions())
    options = ViewOptions(TraceOptions(begin=shot.begin, end=shot.end, lanes=shot.lanes))
    app = TracelaneApp(trace, session_of_options(trace, options, shot.size[0]))
    pictures = []
    async with app.run_test(size=shot.size) as pilot:
        await wait_until_idle(app, pilot)
        await pilot.press(*shot.keys)
        for frame in frames:
            for key in frame.keys:
                await pilot.press(key)
                await wait_until_idle(app, pilot)
            await wait_until_idle(app, pilot)
            pictures.append(app.export_screenshot(title=frame.title))
    return pictures


def main() -> None:
    """Draw all pictures."""
    os.environ.update(TEXTUAL_ANIMATIONS="none", COLORTERM="truecolor", TERM="xterm-256color", TZ="UTC")
    os.environ.pop("NO_COLOR", None)
    from tracelane.core.demo.trace import write_demo

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        home = Path(folder, "demo")  # the pictures show its name
        home.mkdir()
        traces = [path.relative_to(home) for path in write_demo(home) if path.suffix == ".json"]
        os.chdir(home)
        for shot in SHOTS:
            (svg,) = asyncio.run(drawn(traces if shot.has_logs else traces[:1], shot, (Frame("tracelane"),)))
            target = HERE / f"{shot.name}.svg"
            target.write_text(svg, encoding="utf-8")
            target.with_suffix(".png").write_bytes(png_of(svg))
        write_gif(asyncio.run(drawn(traces[:1], TOUR, FRAMES)), HERE / f"{TOUR.name}.gif")
    for path in sorted(HERE.glob("*.*g*")):
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB")


def png_of(svg: str) -> bytes:
    """Return an SVG as PNG."""
    import resvg_py

    return bytes(
        resvg_py.svg_to_bytes(
            svg_string=TEXT.sub(_in_runs, svg).replace("font-family: arial", f"font-family: {FONT}"),
            font_family=FONT,
            monospace_family=FONT,
        )
    )


def _in_runs(match: re.Match[str]) -> str:
    """Return a run of text as several, each character that the font lacks in one of its own."""
    text, at = html.unescape(match["text"]), 0
    if not NOT_IN_FONT.search(text):
        return match[0]
    runs = []
    for part in filter(None, re.split(f"({NOT_IN_FONT.pattern})", text)):
        x, length = float(match["x"]) + at * CELL, cell_len(part) * CELL
        attributes = f'{match["before"]} x="{x:g}"{match["between"]} textLength="{length:g}"{match["after"]}'
        runs.append(f"<text {attributes}>{html.escape(part).replace(chr(160), '&#160;')}</text>")
        at += cell_len(part)
    return "".join(runs)


def write_gif(pictures: list[str], target: Path) -> None:
    """Write the frames as a GIF that begins anew at its end."""
    from PIL import Image

    def images() -> Iterator[Image.Image]:
        for svg in pictures:
            picture = Image.open(io.BytesIO(png_of(svg))).convert("RGB")
            yield picture.resize((picture.width * 3 // 4, picture.height * 3 // 4), Image.Resampling.LANCZOS)

    first, *others = images()
    durations = [int(frame.seconds * 1000) for frame in FRAMES]
    palette = first.quantize(128)
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in (first, *others)]
    frames[0].save(target, save_all=True, append_images=frames[1:], duration=durations, loop=0, optimize=True)


if __name__ == "__main__":
    main()
