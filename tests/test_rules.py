"""Sources keep the rules of tests/rules, each of which sees what it forbids."""

from __future__ import annotations

import re

import pytest

from tests.corpus import ROOT
from tests.rules import RULES, look
from tests.rules.rule import Exempt, Rule

ENTRY = "main"
"""The function that every process begins with."""
GLOSSARY = ROOT / "docs" / "glossary.md"
OF_LIBRARIES = frozenset({"Segment"})
"""Classes that come from Rich or Textual."""


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_all_sources_keep_it(rule: Rule) -> None:
    """No file does what the rule forbids, but for what is exempt."""
    assert not look().breaches[rule.name], "\n".join(
        (f"{rule.breaches.__module__}: {rule.breaches.__doc__}", *look().breaches[rule.name])
    )


@pytest.mark.slow
@pytest.mark.parametrize("exempt", [one for rule in RULES for one in rule.but], ids=lambda one: one.file)
def test_every_exception_is_needed(exempt: Exempt) -> None:
    """Something falls under it: one that is left over would let a new file off."""
    assert exempt in look().needed


@pytest.mark.parametrize(
    ("rule", "code", "count"),
    [
        pytest.param(rule, code, count, id=f"{rule.name}: {code[:30]}")
        for rule in RULES
        for code, count in rule.examples
    ],
)
def test_what_breaks_it_is_seen(rule: Rule, code: str, count: int) -> None:
    """Each example breaks the rule as often as it says."""
    assert rule.broken_by(code) == count


def test_every_rule_has_examples_of_both() -> None:
    """Each rule has code that breaks it, and code that does not."""
    assert [rule.name for rule in RULES if {count > 0 for _, count in rule.examples} != {True, False}] == []


@pytest.mark.slow
def test_names_are_there_once() -> None:
    """No two files define a class or public function of one name."""
    double = {name: files for name, files in look().defined.items() if len(files) > 1 and name != ENTRY}
    assert not double, f"say which: {double}"


@pytest.mark.slow
def test_no_text_names_a_class() -> None:
    """What people read has no name of a class of ours in it, as a mass renaming would leave there."""
    assert not [where for name in look().defined for where in look().compounds.get(name, ())]


@pytest.mark.slow
def test_classes_that_the_glossary_names_exist() -> None:
    """Every class that a row names is one of tracelane's, or a library's."""
    rows = [line.strip("|").split("|") for line in GLOSSARY.read_text(encoding="utf-8").splitlines()]
    named = {name for row in rows if len(row) == 4 for name in re.findall(r"`(\w+)`", row[3])}
    assert len(named) > 30 and named <= look().classes | OF_LIBRARIES
