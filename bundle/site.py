"""Gather the documents as pages of one site, and build it: search and all, nothing is loaded from elsewhere.

python bundle/site.py      # build/site/index.html
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "build" / "pages"
SHORT = {"README.md": "index.md"}
"""Documents at the top -> what their page is called, where not the same."""
LINK = re.compile(r"\]\((?!https?:)([^)\s#]+)")


def gather(pages: Path) -> None:
    """Write all documents and their pictures into a folder, with links as they are there."""
    shutil.rmtree(pages, ignore_errors=True)
    pages.mkdir(parents=True)
    shutil.copytree(ROOT / "screenshots", pages / "screenshots", ignore=shutil.ignore_patterns("*.py"))
    for document in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")):
        text = LINK.sub(_link, document.read_text(encoding="utf-8"))
        (pages / SHORT.get(document.name, document.name)).write_text(text, encoding="utf-8")
    for other in ("python.ipynb", "output.schema.json"):
        shutil.copy(ROOT / "docs" / other, pages)
    shutil.copy(ROOT / "LICENSE", pages)


def _link(match: re.Match[str]) -> str:
    """Return a link to a document as one to its page; all pages lie in one folder."""
    target = match[1].removeprefix("../").removeprefix("docs/")
    return f"]({SHORT.get(target, target)}"


if __name__ == "__main__":
    gather(PAGES)
    sys.exit(subprocess.call([sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"], cwd=ROOT))
