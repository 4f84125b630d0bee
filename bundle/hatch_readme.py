"""What hatchling calls for the metadata: README.md with links that lead somewhere from a package index too.

On the forge the links are relative. An index shows the text alone, and no SVG pictures: there each link names
the file of this version at the project's address, and each picture the PNG beside the SVG.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
README = "README.md"


class ReadmeHook(MetadataHookInterface):
    """Fills in `readme`, which pyproject.toml declares to be dynamic."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Put the text for an index into the metadata."""
        text = (Path(self.root) / README).read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": index_text(text, metadata["urls"]["Homepage"], metadata["version"]),
        }


def index_text(text: str, home: str, version: str) -> str:
    """Return a README whose relative links are absolute, those of SVG pictures to the PNG beside each."""

    def absolute(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if "://" in target or target.startswith(("#", "mailto:")):
            return match[0]
        if picture:
            drawn = f"{target.removesuffix('.svg')}.png" if target.endswith(".svg") else target
            return f"![{words}]({home}/raw/v{version}/{drawn})"
        return f"[{words}]({home}/blob/v{version}/{target})"

    return LINK.sub(absolute, text)
