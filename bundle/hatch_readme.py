"""What hatchling calls for the metadata: the project's URLs, and README.md as a package index shows it.

In the repository the README's links are relative. An index shows the text alone, and no SVG pictures: there
each link names the file of this version at the project's address, and each picture the PNG beside the SVG. As
long as pyproject.toml names no address there are no URLs, links are words, and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
README = "README.md"


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme` and `urls`, which pyproject.toml declares to be dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the text for an index and the addresses into the metadata."""
        text = (Path(self.root) / README).read_text(encoding="utf-8")
        home = str(self.config["home"]).rstrip("/")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": index_text(text, home, metadata["version"]),
        }
        metadata["urls"] = addresses(home)


def addresses(home: str) -> dict[str, str]:
    """Return the URLs of the metadata; none without an address of the project."""
    if not home:
        return {}
    return {
        "Homepage": home,
        "Documentation": f"{home}/tree/main/docs",
        "Changelog": f"{home}/blob/main/CHANGELOG.md",
        "Issues": f"{home}/issues",
    }


def index_text(text: str, home: str, version: str) -> str:
    """Return a README whose relative links are absolute, those of SVG pictures to the PNG beside each.

    Without an address of the project a link is its words and the file's path, and pictures are left out.
    """

    def absolute(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        if not home:
            return "" if picture else words if words == target else f"{words} ({target})"
        if picture:
            drawn = f"{target.removesuffix('.svg')}.png" if target.endswith(".svg") else target
            return f"![{words}]({home}/raw/v{version}/{drawn})"
        return f"[{words}]({home}/blob/v{version}/{target})"

    return LINK.sub(absolute, text)
