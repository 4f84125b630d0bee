"""Draw the pictures of the README: the demo in the real viewer, as SVG (PNG too where resvg_py is there)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Shot:
    """One picture: the screen's size in cells, what is asked of `view`, and the keys pressed before."""

    name: str
    size: tuple[int, int]
    begin: str | None = None
    end: str | None = None
    lanes: str | None = None
    keys: tuple[str, ...] = ()
    logs: bool = False  # with the aiu-smi log beside the trace


SHOTS = (
    Shot("demo", (132, 44)),
    Shot("telemetry", (132, 30), "step:11", None, "AIU|pwr|busy", ("2",), logs=True),
    Shot("details", (132, 40), "+745ms", "+855ms", "Stream|autograd|Mem|AIU m", (*"JJJJJ", "enter")),
    Shot("small", (80, 24)),
)


async def shoot(traces: list[Path], shot: Shot) -> str:
    """Return the viewer's screen as SVG after these keys."""
    from tracelane.core.logs.counters import with_cheap_lanes
    from tracelane.core.logs.nearby import nearby_logs
    from tracelane.core.logs.opening import LogOptions, open_overlay
    from tracelane.core.trace import open_trace
    from tracelane.tui.app import TracelaneApp
    from tracelane.tui.cli.view import Asked, asked_session

    trace = open_trace(traces)
    trace = with_cheap_lanes(open_overlay(trace, nearby_logs(trace), LogOptions()) if shot.logs else trace)
    asked = Asked(begin=shot.begin, end=shot.end, lanes=shot.lanes)
    app = TracelaneApp(trace, asked_session(trace, asked, shot.size[0]))
    async with app.run_test(size=shot.size) as pilot:
        await pilot.pause()
        for key in shot.keys:
            await pilot.press(key)
        await pilot.pause(0.5)
        return app.export_screenshot(title="tracelane")


def main() -> None:
    """Draw all pictures."""
    os.environ.update(TEXTUAL_ANIMATIONS="none", COLORTERM="truecolor", TERM="xterm-256color", TZ="UTC")
    os.environ.pop("NO_COLOR", None)
    from tracelane.core.demo.trace import write_demo

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        traces = [path for path in write_demo(Path(folder)) if path.suffix == ".json"]
        os.chdir(folder)
        for shot in SHOTS:
            svg = asyncio.run(shoot([path.relative_to(folder) for path in traces], shot))
            target = HERE / f"{shot.name}.svg"
            target.write_text(svg, encoding="utf-8")
            print(target.name)
            _png(target)


def _png(svg: Path) -> None:
    """Draw the PNG that a package index shows beside an SVG. Needs Fira Code (Debian: fonts-firacode)."""
    try:
        import resvg_py
    except ImportError:
        return
    drawn = resvg_py.svg_to_bytes(svg_path=str(svg), font_family="Fira Code", monospace_family="Fira Code")
    svg.with_suffix(".png").write_bytes(bytes(drawn))


if __name__ == "__main__":
    main()
