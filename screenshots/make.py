"""Draw the pictures of the README: the demo in the real viewer, as SVG (PNG too where resvg_py is there)."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHOTS: dict[str, tuple[tuple[int, int], tuple[str, ...]]] = {
    "demo": ((132, 40), ()),
    "details": ((132, 40), (">", "J", "J", "enter")),
    "small": ((80, 24), ()),
}
"""Name -> size in cells, keys pressed before."""


async def shoot(traces: list[Path], size: tuple[int, int], keys: tuple[str, ...]) -> str:
    """Return the viewer's screen as SVG after these keys."""
    from tracelane.core.trace import open_trace
    from tracelane.tui.app import TracelaneApp

    app = TracelaneApp(open_trace(traces))
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        return app.export_screenshot(title="tracelane")


def main() -> None:
    """Draw all pictures."""
    os.environ.update(TEXTUAL_ANIMATIONS="none", COLORTERM="truecolor", TZ="UTC")
    from tracelane.core.demo.trace import write_demo

    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        traces = [path for path in write_demo(Path(folder)) if path.suffix == ".json"]
        os.chdir(folder)
        for name, (size, keys) in SHOTS.items():
            svg = asyncio.run(shoot([path.relative_to(folder) for path in traces], size, keys))
            (HERE / f"{name}.svg").write_text(svg, encoding="utf-8")
            print(HERE / f"{name}.svg")
            _png(HERE / f"{name}.svg")


def _png(svg: Path) -> None:
    """Draw a PNG beside an SVG, for looking at it; it is not committed."""
    try:
        import resvg_py
    except ImportError:
        return
    svg.with_suffix(".png").write_bytes(bytes(resvg_py.svg_to_bytes(svg_path=str(svg))))


if __name__ == "__main__":
    main()
