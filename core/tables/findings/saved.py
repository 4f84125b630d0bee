"""Findings of a whole trace, stored beside its index: opening it again shows them at once."""

from __future__ import annotations

from abc import abstractmethod

from ..cached import cache_file, is_whole, read_cached, write_cached
from ..scope import Scope
from ..table import Answers
from .finding import Findings
from .forms import findings_object, findings_of

NAME = "findings"


class JudgedAnswers(Answers):
    """Answers of a capture store that has findings, too."""

    @abstractmethod
    def findings(self) -> Findings:
        """Return the findings about all ranks."""


def saved_findings(scope: Scope) -> Findings:
    """Return the findings of a scope; those of a whole trace are computed once and stored."""
    from .judge import findings  # all the rules, which reading findings does not need

    if isinstance(scope.trace.answers, JudgedAnswers):
        return scope.trace.answers.findings()
    if not is_whole(scope):
        return findings(scope)
    stored = stored_findings(scope)
    if stored is None:
        stored = findings(scope)
        write_cached(cache_file(scope, NAME), findings_object(stored, 0))
    return stored


def stored_findings(scope: Scope) -> Findings | None:
    """Return the findings stored of a whole trace, None where there are none; takes no time."""
    if scope.trace.answers is not None or not is_whole(scope):
        return None
    try:
        return findings_of(read_cached(cache_file(scope, NAME)), 0)
    except (OSError, KeyError, TypeError, ValueError):
        return None
