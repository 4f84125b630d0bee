"""Where the corpus of real traces lies, and the reference numbers beside it."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("TRACELANE_CORPUS", ROOT.parent / "shared" / "traces")).absolute()
GOLDENS = Path(os.environ.get("TRACELANE_GOLDENS", CORPUS.parent / "goldens"))

CASES = Path(os.environ.get("TRACELANE_CASES", CORPUS.parent / "cases"))
HOSTILE_MAKER = CASES / "trust" / "hostile.py"
"""A program that makes real traces hostile: `hostile.py FOLDER CORPUS`."""

needs_corpus = pytest.mark.skipif(
    not CORPUS.is_dir(), reason=f"no corpus of real traces at {CORPUS} (set TRACELANE_CORPUS)"
)
needs_goldens = pytest.mark.skipif(
    not GOLDENS.is_dir(), reason=f"no reference numbers at {GOLDENS} (set TRACELANE_GOLDENS)"
)
needs_cases = pytest.mark.skipif(
    not CASES.is_dir(), reason=f"no small cases at {CASES} (set TRACELANE_CASES)"
)
needs_hostile_maker = pytest.mark.skipif(
    not HOSTILE_MAKER.is_file(), reason=f"no maker of hostile traces at {HOSTILE_MAKER}"
)


@cache
def accounting() -> dict[str, Any]:
    """Return accounting.json's entries by corpus path; empty when it is absent."""
    path = GOLDENS / "accounting.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}


@cache
def recoverable() -> dict[str, int]:
    """Return how many events must at least be read from files that are no valid JSON."""
    path = GOLDENS / "recoverable.json"
    return dict(json.loads(path.read_bytes())["files"]) if path.is_file() else {}
