"""Call trees of whole large traces: kept beside the index, built again where what is kept is not sound."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.corpus import ROOT
from tracelane.core.base.arrays import AnyArray
from tracelane.core.base.private import read_sealed_json, write_sealed_json
from tracelane.core.export.formats import as_json
from tracelane.core.index.store import Index
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host import kept_trees, tree
from tracelane.core.tables.host.kept_trees import kept_tree, tree_file
from tracelane.core.tables.host.tree import TreeRoots, analyse_tree
from tracelane.core.trace import open_trace

SAMPLE = ROOT / "tests" / "samples" / "cuda" / "activities.pt.trace.json.gz"
BY: tuple[TreeRoots, ...] = ("all", "thread", "launch")
Stored = dict[str, Any]


@pytest.fixture
def scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scope:
    """A trace that counts as large."""
    monkeypatch.setattr("tracelane.core.tables.frame.cached.MIN_SLICES", 1)
    return Scope(open_trace(SAMPLE, index_dir=tmp_path))


def answer(scope: Scope, by: TreeRoots, bottom_up: bool = False) -> str:
    return as_json(analyse_tree(scope, by, bottom_up), "tree")


@pytest.mark.parametrize("by", BY)
def test_a_tree_is_built_once(by: TreeRoots, scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the top and from the bottom it is the one that was built, to the last digit."""
    before = [answer(scope, by, bottom_up) for bottom_up in (False, True)]
    path = tree_file(scope, by)
    assert path is not None
    path.unlink()
    again = answer(scope, by, True), answer(scope, by)
    monkeypatch.setattr(tree, "_built", None)
    assert [answer(scope, by), answer(scope, by, True)] == before == [*reversed(again)]


def with_column(key: str, value: int) -> Callable[[Stored], Stored]:
    """Return what puts a number first into a column."""

    def change(stored: Stored) -> Stored:
        columns = {**stored["columns"], key: [value, *stored["columns"][key][1:]]}
        return {**stored, "columns": columns}

    return change


WRONG: dict[str, Callable[[Stored], Any]] = {
    "nothing": lambda _: None,
    "a list": lambda stored: [stored],
    "no texts": lambda stored: {**stored, "texts": []},
    "no columns": lambda stored: {"texts": stored["texts"]},
    "a column less": lambda stored: {**stored, "columns": {**stored["columns"], "own": []}},
    "texts for numbers": lambda stored: {**stored, "columns": {**stored["columns"], "own": ["x"]}},
    "no such name": with_column("names", 10**6),
    "a name before the first": with_column("names", -1),
    "a node in itself": with_column("parents", 0),
    "a parent before the root": with_column("parents", -2),
    "no such file": with_column("sources", 1),
    "no such slice": with_column("positions", 10**9),
    "a slice before the first": with_column("positions", -2),
    "a number beyond 64 bits": with_column("total", 1 << 70),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_sound_is_built_again(name: str, scope: Scope) -> None:
    """Whatever stands in the file in place of a tree, that of the trace is listed, and kept anew."""
    before, path = answer(scope, "all"), tree_file(scope, "all")
    assert path is not None
    write_sealed_json(path, WRONG[name](read_sealed_json(path)))
    assert kept_tree(scope, "all") is None
    assert answer(scope, "all") == before and kept_tree(scope, "all") is not None


def every(_: Index, positions: AnyArray) -> AnyArray:
    """Leave all slices."""
    return np.ones(len(positions), np.bool_)


def test_parts_of_a_trace_are_not_kept(scope: Scope) -> None:
    """Neither is a range, what a filter leaves, a small trace, nor a tree of very many nodes."""
    start, end = scope.trace.opening_span
    for part in ({"range": (start, end - 1)}, {"where": every}, {"lanes": [0]}):
        some = Scope(scope.trace, **part)  # type: ignore[arg-type]
        answer(some, "all")
        assert tree_file(some, "all") is None
    assert not list(scope.trace.indexes[0].folder.rglob("tree-*"))


def test_large_trees_are_not_kept(scope: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes as long to read as to build leaves no file."""
    monkeypatch.setattr(kept_trees, "MAX_NODES", 3)
    answer(scope, "all")
    assert kept_tree(scope, "all") is None
