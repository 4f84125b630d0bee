"""Draw the demo's page of HTML as a browser shows it, to be looked at before a release.

python -m screenshots.pages      # dist/pages/400.png, 800.png, 1400.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import tracelane

OUT = Path(__file__).resolve().parent.parent / "dist" / "pages"
WIDTHS = (400, 800, 1400)
HEIGHT = 2600
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--hide-scrollbars",
)


def main() -> int:
    """Draw the page at each width; 1 where there is no browser."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"none of {', '.join(BROWSERS)} is installed", file=sys.stderr)
        return 1
    OUT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        demo = tracelane.demo(Path(folder) / "demo")
        page = tracelane.export(demo, Path(folder) / "demo.html")
        for width in WIDTHS:
            size, picture = f"--window-size={width},{HEIGHT}", f"--screenshot={OUT / f'{width}.png'}"
            subprocess.run([browser, *OPTIONS, size, picture, page.as_uri()], check=True, capture_output=True)
    print(OUT)
    return 0


if __name__ == "__main__":
    sys.exit(main())
