"""Call trees of large traces, kept beside the index: a few hundred nodes for millions of slices, and the same
ones are listed from the top and from the bottom.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...base.private import read_sealed_json
from ..frame.cached import cache_file, is_worth_caching, write_cached
from ..frame.scope import Scope
from .tree_nodes import CallTree

MAX_NODES = 100_000
"""Those of so many take 7 MB, and 0.1 s to read: a tree of more is built each time."""
COLUMNS = ("names", "parents", "total", "own", "calls", "longest", "positions", "sources")


def tree_file(scope: Scope, by: str) -> Path | None:
    """Return where the tree of a scope is kept, None where it is not."""
    return cache_file(scope, f"tree-{by}") if is_worth_caching(scope) else None


def keep_tree(scope: Scope, by: str, tree: CallTree) -> None:
    """Keep the tree of a whole large trace; a failure is ignored, it is built again the next time."""
    path = tree_file(scope, by)
    if path is not None and len(tree) <= MAX_NODES:
        columns = {key: getattr(tree, key).tolist() for key in COLUMNS}
        write_cached(path, {"texts": tree.texts, "columns": columns})


def kept_tree(scope: Scope, by: str) -> CallTree | None:
    """Return the tree that was built of a scope before, None where it has to be built."""
    path = tree_file(scope, by)
    if path is None:
        return None
    try:
        stored = read_sealed_json(path)
        columns = {key: np.array(stored["columns"][key], np.int64) for key in COLUMNS}
        tree = CallTree(**columns, texts=tuple(map(str, stored["texts"])), levels=0)
        return tree if _is_sound(tree, scope) else None
    except (OSError, KeyError, TypeError, ValueError, OverflowError):
        return None


def _is_sound(tree: CallTree, scope: Scope) -> bool:
    """Tell whether all columns are equally long, and lead to texts, nodes and slices that are there."""
    columns = [getattr(tree, key) for key in COLUMNS]
    if {column.shape for column in columns} != {(len(tree),)}:
        return False
    slices = np.array([index.length("slices.start") for index in scope.trace.indexes])
    return bool(
        ((tree.names >= 0) & (tree.names < len(tree.texts))).all()
        and ((tree.parents >= -1) & (tree.parents < np.arange(len(tree)))).all()
        and ((tree.sources >= -1) & (tree.sources < len(slices))).all()
        and ((tree.positions >= -1) & (tree.positions < slices[tree.sources])).all()
    )
