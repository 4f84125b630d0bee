"""What all sources keep to: one list of rules, and one walk that looks at each file once for all of them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from tests.corpus import ROOT
from tests.modules import files_of

from . import commands, doors, names, numbers, texts, vendors
from .rule import EVERYWHERE, Exempt, SourceFile
from .rule import Rule as Rule

RULES = (
    *names.RULES,
    *texts.RULES,
    *commands.RULES,
    *vendors.RULES,
    *numbers.RULES,
    *doors.RULES,
)
"""Each with what it forbids; a new one is a function that yields what is wrong in a file, and a row."""


class Look(NamedTuple):
    """What a look at all sources has seen."""

    breaches: Mapping[str, list[str]]  # by rule
    needed: frozenset[Exempt]  # exceptions that something falls under
    defined: Mapping[str, list[str]]  # files of core and tui by the class or public function that they define
    classes: frozenset[str]  # those of core and tui, private ones too
    compounds: Mapping[str, list[str]]  # where the texts of core and tui have a word that may be a class


@cache
def look() -> Look:
    """Look at every file once."""
    breaches = defaultdict[str, list[str]](list)
    needed = set[Exempt]()
    defined, compounds = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    classes = set[str]()
    for path in files_of(*EVERYWHERE):
        file = SourceFile.of(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for rule in RULES:
            if file.is_in(rule.rooms):
                for line, what in rule.breaches(file):
                    exempt = rule.exempt(file.name, what)
                    needed.update(exempt)
                    if not exempt:
                        breaches[rule.name].append(f"{file.name}:{line}: {what[:80]}")
        if file.is_in(("core", "tui")):
            for name in names.defined_in(file):
                defined[name].append(file.name)
            classes.update(node.name for node in file.tree.body if isinstance(node, ast.ClassDef))
            for line, word in texts.compounds_in(file):
                compounds[word].append(f"{file.name}:{line}: {word}")
    return Look(breaches, frozenset(needed), defined, frozenset(classes), compounds)
