"""The findings of a whole large trace, by a process of its own so that the viewer goes on drawing.

    python -m tracelane.core.tables.worker

Its request is {"indexes": [[folder, path, captured graphs], …], "members", "aligned"}, its only answer
{"findings"}.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..base.children import ONE_THREAD, ChildrenError, Message, answer_request, answers_of
from ..base.heap import KEEPING
from ..index.graph_folder import GraphFolder
from ..index.member import Member
from ..index.options import IndexOptions
from ..index.store import Index
from ..read.urls import is_url
from ..trace import Trace
from .findings.finding import Findings
from .findings.forms import findings_object, findings_of, saved_findings, stored_findings
from .findings.leading import NAME
from .frame.cached import cache_file, is_worth_caching, write_cached
from .frame.scope import Scope

MODULE = "tracelane.core.tables.worker"


def findings_by_worker(scope: Scope) -> Findings:
    """Return the findings of a scope; those of a whole trace are cached. Raises Cancelled, TracelaneError."""
    if scope.trace.answers is not None or not is_worth_caching(scope):
        return saved_findings(scope)
    if (stored := stored_findings(scope)) is not None:
        return stored
    try:
        answer = _by_child(scope)
    except ChildrenError:
        return saved_findings(scope)
    write_cached(cache_file(scope, NAME), answer)
    return findings_of(answer, 0)


def _by_child(scope: Scope) -> Any:
    trace = scope.trace
    request = {
        "indexes": [[str(index.folder), index.path, _graphs(index)] for index in trace.indexes],
        "members": [
            member._replace(path=str(member.path), source=None)._asdict() for member in trace.members
        ],
        "aligned": bool(scope.clocks.offsets),
    }
    (answer,) = answers_of(MODULE, request, scope.cancelled, {**ONE_THREAD, **KEEPING}, behind=True)
    return answer["findings"]


def _graphs(index: Index) -> list[Any] | None:
    """Return the folder with the graphs that a source replays, and how it is indexed, as a message."""
    folder = index.graph_folder
    if folder is None:
        return None
    return [str(folder.path), folder.options.to_message(), folder.listed]


# -- in the child -------------------------------------------------------------------------------------------


def _answers(request: Message) -> Iterator[Message]:
    from .findings.judge import findings  # all the rules: only this process needs them

    yield {"findings": findings_object(findings(_scope(request)), 0)}


def _scope(request: Message) -> Scope:
    indexes = []
    for folder, path, graphs in request["indexes"]:
        index = Index.open(Path(folder))
        index.path = path
        if graphs is not None:
            where, options, listed = graphs
            index.graph_folder = GraphFolder(
                where if is_url(where) else Path(where),
                IndexOptions.from_message(options),
                tuple((str(name), int(size), str(version)) for name, size, version in listed),
            )
        indexes.append(index)
    trace = Trace(indexes, [Member(**member) for member in request["members"]])
    return Scope(trace, clocks=trace.clocks) if request["aligned"] else Scope(trace)


if __name__ == "__main__":
    sys.exit(answer_request(_answers))
