"""Questions about a whole large trace, answered by a process of its own so that the viewer goes on drawing.

    python -m tracelane.core.tables.worker

Its request is {"question", "indexes": [[folder, path, captured graphs], …], "members", "aligned"}, its only
answer {"answer"}.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from ..base.children import ONE_THREAD, ChildrenError, Message, answer_request, answers_of
from ..base.heap import KEEPING
from ..base.private import read_sealed_json
from ..index.graph_folder import GraphFolder
from ..index.member import Member
from ..index.options import IndexOptions
from ..index.store import Index
from ..read.urls import is_url
from ..trace import Trace
from ..trace.device_clocks import troubled
from .findings.finding import Findings
from .findings.forms import findings_object, findings_of, saved_findings
from .frame.cached import cache_file, is_worth_caching, write_cached
from .frame.scope import Scope

MODULE = "tracelane.core.tables.worker"
Answer = TypeVar("Answer")


class ClockTroubles(NamedTuple):
    """The devices whose clocks cannot be right, and why."""

    sentences: tuple[str, ...]
    movable: bool  # whether the clock of one of them can be moved


def findings_by_worker(scope: Scope) -> Findings:
    """Return the findings of a scope; those of a whole trace are cached. Raises Cancelled, TracelaneError."""
    if scope.trace.answers is not None or not is_worth_caching(scope):
        return saved_findings(scope)
    return _answered(scope, "findings", lambda answer: findings_of(answer, 0))


def clock_troubles(scope: Scope) -> ClockTroubles:
    """Return which devices of a scope have clocks that cannot be right. Raises Cancelled, TracelaneError."""
    return _answered(
        scope,
        "device-clocks",
        lambda answer: ClockTroubles(tuple(map(str, answer["troubles"])), bool(answer["movable"])),
    )


def _answered(scope: Scope, question: str, read: Callable[[Any], Answer]) -> Answer:
    """Return the answer to one of QUESTIONS; an answer about a whole large trace is cached with its index."""
    if not is_worth_caching(scope):
        return read(QUESTIONS[question](scope))
    path = cache_file(scope, question)
    with suppress(OSError, KeyError, TypeError, ValueError):
        return read(read_sealed_json(path))
    try:
        answer = _by_child(scope, question)
    except ChildrenError:
        answer = QUESTIONS[question](scope)
    write_cached(path, answer)
    return read(answer)


def _findings(scope: Scope) -> Any:
    from .findings.judge import findings  # all the rules: only the worker needs them

    return findings_object(findings(scope), 0)


def _device_clocks(scope: Scope) -> Any:
    clocks = troubled(scope.trace, scope.clocks)
    movable = any(one.proposed_ns is not None and one.needs_shift and one.alone for one in clocks)
    return {"troubles": [one.trouble for one in clocks], "movable": movable}


QUESTIONS: Final[Mapping[str, Callable[[Scope], Any]]] = {
    "findings": _findings,
    "device-clocks": _device_clocks,
}


def _by_child(scope: Scope, question: str) -> Any:
    trace = scope.trace
    request = {
        "question": question,
        "indexes": [[str(index.folder), index.path, _graphs(index)] for index in trace.indexes],
        "members": [
            member._replace(path=str(member.path), source=None)._asdict() for member in trace.members
        ],
        "aligned": bool(scope.clocks.offsets),
    }
    (answer,) = answers_of(MODULE, request, scope.cancelled, {**ONE_THREAD, **KEEPING}, behind=True)
    return answer["answer"]


def _graphs(index: Index) -> list[Any] | None:
    """Return the folder with the graphs that a source replays, and how it is indexed, as a message."""
    folder = index.graph_folder
    if folder is None:
        return None
    return [str(folder.path), folder.options.to_message(), folder.listed]


# -- in the child -------------------------------------------------------------------------------------------


def _answers(request: Message) -> Iterator[Message]:
    yield {"answer": QUESTIONS[request["question"]](_scope(request))}


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
