"""Findings of a whole trace kept beside its index, so that opening it again shows them at once.

    derived/findings-v1-<hash of rules, sources and clocks>.json

Disposable like everything under `derived`: committed by one rename, made anew when missing or damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from ...index.blockstore import FOLDER
from ..scope import Scope
from .finding import Findings
from .forms import findings_object, findings_of
from .judge import findings
from .rules import rules_table

VERSION = 1
"""Counted up when the rules' code finds something else with the same limits."""
PRIVATE = 0o700


def saved_findings(scope: Scope) -> Findings:
    """Return the findings of a scope: those kept beside the index where they are of the whole trace under the
    clocks that it opens with, else found now, and then kept.
    """
    if not _whole(scope):
        return findings(scope)
    found = kept_findings(scope)
    if found is None:
        found = findings(scope)
        _keep(_file(scope), found)
    return found


def kept_findings(scope: Scope) -> Findings | None:
    """Return the findings kept of a whole trace, None where there are none; takes no time."""
    if not _whole(scope):
        return None
    try:
        return findings_of(json.loads(_file(scope).read_bytes()), 0)
    except (OSError, KeyError, TypeError, ValueError):
        return None


def _whole(scope: Scope) -> bool:
    parts = (scope.range, scope.lanes, scope.where, scope.source)
    usual = not scope.clocks.offsets or scope.clocks == scope.trace.clocks
    return all(part is None for part in parts) and usual and bool(scope.trace.indexes)


def _file(scope: Scope) -> Path:
    folders = [index.folder for index in scope.trace.indexes]
    clocks = sorted((*key, ns) for key, ns in scope.clocks.offsets.items())
    text = json.dumps([rules_table(), [folder.name for folder in folders], clocks])
    key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    return folders[0] / FOLDER / f"findings-v{VERSION}-{key}.json"


def _keep(path: Path, found: Findings) -> None:
    """Write the findings; where that is not possible they are found again next time."""
    with suppress(OSError):
        path.parent.mkdir(PRIVATE, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(findings_object(found, 0), file)
            os.replace(name, path)
        except OSError:
            with suppress(OSError):
                os.unlink(name)
            raise
