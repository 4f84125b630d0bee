"""What `make` knows, as CONTRIBUTING.md lists it: each target with the words that `make help` has for it."""

from __future__ import annotations

import re

_TARGET = re.compile(r"^([a-z0-9 -]+):.*?## (.+)$", re.MULTILINE)


def make_targets(makefile: str) -> str:
    """Return the targets of a Makefile as a table, in its order."""
    rows = [
        f"| {', '.join(f'`make {name}`' for name in names.split())} | {text} |"
        for names, text in _TARGET.findall(makefile)
    ]
    return "\n".join(["| to run | what it does |", "|---|---|", *rows, ""])
