"""Expressions that are compiled when they are first used."""

from __future__ import annotations

import importlib
import pkgutil
import re
from types import SimpleNamespace

import pytest

import tracelane
from tracelane.core.base.late_pattern import LatePattern, late_pattern


def test_nothing_is_compiled_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """An expression that is made and never used is not compiled; one that is used is compiled once."""
    compiled: list[object] = []

    def noted(expression: str, flags: int) -> re.Pattern[str]:
        compiled.append(expression)
        return re.compile(expression, flags)

    monkeypatch.setattr("tracelane.core.base.late_pattern.re", SimpleNamespace(compile=noted))
    pattern = late_pattern("(A)b+", re.IGNORECASE)
    assert pattern.pattern == "(A)b+" and not compiled
    assert [match[1] for text in ("xabb", "AB", "b") if (match := pattern.search(text))] == ["a", "A"]
    assert compiled == ["(A)b+"]


def test_all_of_the_project_can_be_compiled() -> None:
    """No module holds an expression that fails when it is first used."""
    count = 0
    for module in pkgutil.walk_packages(tracelane.__path__, "tracelane."):
        if module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, LatePattern):
                assert re.compile(value.pattern, value.flags).pattern
                count += 1
    assert count > 50
