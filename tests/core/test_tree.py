"""Call trees and their drawing: against a plain walk over every slice, from the top, bottom and by launch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import file, files, for_files
from tests.events import complete, open_events
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file
from tracelane.core.demo.trace import write_demo
from tracelane.core.index.format import NONE
from tracelane.core.query.filter import parse
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.frame.table import Table
from tracelane.core.tables.host.icicle import Icicle, icicle_of, row_categories
from tracelane.core.tables.host.slice_table import slices_of_node
from tracelane.core.tables.host.tree import (
    MAX_FOLDED_DEPTH,
    UNKNOWN_LAUNCH,
    TreeRoots,
    analyse_tree,
    folded_lines,
    indented,
    largest_rows,
    sandwich,
    tree_table,
)
from tracelane.core.tables.host.tree_nodes import ROOT
from tracelane.core.trace import Trace, open_trace
from tracelane.core.trace.hit_search import hits_at, matches

Path_ = tuple[str, ...]
Sums = dict[Path_, tuple[int, int, int]]
"""By path of names: total, self, calls."""
TRACES = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_vllm_capture_python_functions*",
    "gpu/tl_torch_compile_triton*",
    "aiu/mlp_trace*",
    "multirank/dlrm_8gpu_ranks0-3",
    *("cuda/gloo.pt.trace.json.gz", "cpu/torch_2.13_training.pt.trace.json.gz"),
)


def joined(name: str) -> str:
    """Return a name as the tree has it: the profiler's steps are one."""
    begin, _, number = name.partition("#")
    return f"{begin}#*" if begin == "ProfilerStep" and number.isdigit() else name


def paths_of(table: Table) -> Sums:
    """Return a tree's table as sums by path."""
    sums: Sums = {}
    paths: dict[int, Path_] = {-1: ()}
    for row in table.rows():
        paths[row["node"]] = path = (*paths[row["parent"]], row["name"])
        assert path not in sums and row["depth"] == len(path) - 1
        sums[path] = (row["total_ns"], row["self_ns"], row["calls"])
    return sums


def plain_tree(scope: Scope) -> Sums:
    """Return the tree as its definition says, slice by slice."""
    trace = scope.trace
    spans: dict[tuple[int, int], tuple[int, int]] = {}
    names: dict[tuple[int, int], str] = {}
    for chunk in scope.chunks():
        texts = chunk.index.strings(chunk.names)
        for at, position in enumerate(chunk.positions.tolist()):
            category = chunk.index.categories[int(chunk.categories[at])]
            if trace.lanes[int(chunk.lanes[at])].process.aside or category == "gpu_user_annotation":
                continue
            key = (chunk.source, position)
            spans[key], names[key] = (int(chunk.starts[at]), int(chunk.ends[at])), joined(texts[at])
    around = {key: _around(trace, key, spans) for key in spans}
    children = defaultdict(list)
    for key, above in around.items():
        children[above].append(spans[key])
    sums: dict[Path_, list[int]] = defaultdict(lambda: [0, 0, 0])
    paths: dict[tuple[int, int] | None, Path_] = {None: ()}

    def path(key: tuple[int, int] | None) -> Path_:
        if key not in paths:
            assert key is not None
            paths[key] = (*path(around[key]), names[key])
        return paths[key]

    for key, (start, end) in spans.items():
        entry = sums[path(key)]
        entry[0] += end - start
        entry[1] += end - start - _covered(children[key])
        entry[2] += 1
    return {one: (a, b, c) for one, (a, b, c) in sums.items()}


def _around(trace: Trace, key: tuple[int, int], spans: dict) -> tuple[int, int] | None:  # type: ignore[type-arg]
    source, position = key
    parents = trace.indexes[source].column("slices.parent")
    while (position := int(parents[position])) != NONE:
        if (source, position) in spans:
            return source, position
    return None


def _covered(spans: list[tuple[int, int]]) -> int:
    reach, covered = None, 0
    for start, end in sorted(spans):
        begin = start if reach is None else max(start, reach)
        covered += max(0, end - begin)
        reach = end if reach is None else max(reach, end)
    return covered


def plain_bottom_up(top_down: Sums) -> Sums:
    """Return the tree from the bottom as its definition says, from that from the top."""
    sums: dict[Path_, list[int]] = defaultdict(lambda: [0, 0, 0])
    for path, (total, own, calls) in top_down.items():
        backwards = path[::-1]
        nested = path[-1] in path[:-1]
        for length in range(1, len(backwards) + 1):
            entry = sums[backwards[:length]]
            entry[0] += 0 if nested else total
            entry[1] += own
            entry[2] += calls
    return {one: (a, b, c) for one, (a, b, c) in sums.items()}


def plain_launch_tree(scope: Scope) -> Sums:
    """Return device time by launch, kernel by kernel up the host's stack."""
    sums: dict[Path_, list[int]] = defaultdict(lambda: [0, 0, 0])
    met = set()
    for work in work_of(scope).by("device_row"):
        index, source = work.index, work.source_number
        for position, ns, name in zip(work.position.tolist(), work.dur.tolist(), work.name.tolist()):
            launch, _ = scope.trace.launches(source).launch_of(position)
            stack: list[int] = []
            while launch is not None:
                stack.insert(0, launch)
                launch = index.parent(launch)
            path: Path_ = ()
            for slice_ in stack:
                path = (*path, joined(index.string(int(index.column("slices.name")[slice_]))))
                sums[path][0] += ns
                sums[path][2] += (source, slice_) not in met
                met.add((source, slice_))
            if not stack:
                path = (UNKNOWN_LAUNCH,)
                sums[path][0] += ns
            entry = sums[(*path, name)]
            entry[0], entry[1], entry[2] = entry[0] + ns, entry[1] + ns, entry[2] + 1
    return {one: (a, b, c) for one, (a, b, c) in sums.items()}


def check_shape(table: Table) -> None:
    """A row lies below its parent, those beside each other stand by total, and jumps lead to such a slice."""
    last: dict[int, int] = {}
    open_: list[int] = []
    for row in table.rows():
        del open_[row["depth"] :]
        assert row["parent"] == (open_[-1] if open_ else -1)
        open_.append(row["node"])
        assert row["total_ns"] <= last.get(row["parent"], row["total_ns"])
        last[row["parent"]] = row["total_ns"]


@pytest.mark.slow
@for_files("name", TRACES)
def test_trees_are_those_of_a_plain_walk(name: str, corpus_cache: Path) -> None:
    """From the top, from the bottom and by launch: whole, cut by a range, and with a filter."""
    trace = open_trace(next(iter(files(name)), file(name)), index_dir=corpus_cache)
    whole = Scope(trace, clocks=trace.clocks)
    start, end = trace.opening_span
    third = (end - start) // 3
    where = matches(trace, parse("/e/ -cat:cuda_runtime"), trace.clocks).where
    for scope in (whole, replace(whole, range=(start + third, end - third)), replace(whole, where=where)):
        expected = plain_tree(scope)
        table = tree_table(scope)
        assert paths_of(table) == expected
        check_shape(table)
        assert paths_of(tree_table(scope, from_bottom=True)) == plain_bottom_up(expected)
        assert paths_of(tree_table(scope, "launch")) == plain_launch_tree(scope)


@pytest.fixture(scope="module")
def scopes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Scope]]:
    """The whole of a small trace, and of the demo's two ranks."""
    folder = tmp_path_factory.mktemp("tree")
    traces = [
        open_trace(path, index_dir=folder / "index")
        for path in (small_file(folder), write_demo(folder / "demo")[:2])
    ]
    yield [Scope(trace, clocks=trace.clocks) for trace in traces]
    for trace in traces:
        trace.close()


def test_small_trees_are_those_of_a_plain_walk(scopes: list[Scope]) -> None:
    """The same for traces that every checkout has."""
    for scope in scopes:
        expected = plain_tree(scope)
        assert paths_of(tree_table(scope)) == expected
        assert paths_of(tree_table(scope, from_bottom=True)) == plain_bottom_up(expected)
        assert paths_of(tree_table(scope, "launch")) == plain_launch_tree(scope)


def test_overlapping_and_recursive_calls(tmp_path: Path) -> None:
    """Children that overlap count once for what their parent has left; a name in itself counts once."""

    def x(name: str, ts: int, dur: int) -> dict[str, object]:
        return {"ph": "X", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur}

    events = [x("a", 0, 100), x("b", 10, 30), x("c", 30, 30), x("a", 70, 20), x("a", 75, 5), x("z", 200, 0)]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    scope = Scope(trace)
    sums = paths_of(tree_table(scope))
    us = 1000
    assert sums["a",] == (100 * us, 30 * us, 1)
    assert sums["a", "a"] == (20 * us, 15 * us, 1) and sums["a", "a", "a"] == (5 * us, 5 * us, 1)
    assert sums["z",] == (0, 0, 1)
    assert paths_of(tree_table(scope, from_bottom=True))["a",] == (100 * us, 50 * us, 3)
    folded = dict(line.split() for line in folded_lines(analyse_tree(scope, bottom_up=True)))
    assert folded == {"a": "30000", "a;a": "15000", "a;a;a": "5000", "b;a": "30000", "c;a": "30000"}
    trace.close()


def test_annotations_of_a_device_are_no_calls(tmp_path: Path) -> None:
    """The host's annotation alone counts, work inside the device's repetition of it stands beside it; Enter
    lists the same slices.
    """

    def x(category: str, name: str, tid: int, ts: int, dur: int) -> dict[str, object]:
        return {"ph": "X", "cat": category, "name": name, "pid": tid // 7, "tid": tid, "ts": ts, "dur": dur}

    events = [
        x("user_annotation", "forward", 1, 0, 50),
        x("cpu_op", "aten::mm", 1, 10, 20),
        x("gpu_user_annotation", "forward", 7, 40, 100),
        x("gpu_user_annotation", "inner", 7, 45, 90),
        x("kernel", "gemm", 7, 45, 5),
        x("kernel", "gemm", 7, 130, 5),
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    scope = Scope(trace)
    us = 1000
    expected = {
        ("forward",): (50 * us, 30 * us, 1),
        ("forward", "aten::mm"): (20 * us, 20 * us, 1),
        ("gemm",): (10 * us, 10 * us, 2),
    }
    assert paths_of(tree_table(scope)) == expected
    shares = {row["name"]: row["share"] for row in tree_table(scope).rows() if not row["depth"]}
    assert shares == {"forward": 50 / 60, "gemm": 10 / 60}
    by_thread = paths_of(tree_table(scope, "thread"))
    assert sorted(sums for path, sums in by_thread.items() if len(path) == 1) == [
        (10 * us, 0, 0),
        (50 * us, 0, 0),
    ]
    assert slices_of_node(scope, ["forward"]).count == 1
    assert slices_of_node(scope, ["gemm"]).count == 2
    trace.close()


def test_threads_are_roots(scopes: list[Scope]) -> None:
    """By thread each lane is a root with the time of its topmost slices; below it its own tree."""
    for scope in scopes:
        by_thread = paths_of(tree_table(scope, "thread"))
        together: dict[Path_, np.ndarray] = defaultdict(lambda: np.zeros(3, np.int64))
        for path, sums in by_thread.items():
            if len(path) > 1:
                together[path[1:]] += np.array(sums)
        assert {path: tuple(sums.tolist()) for path, sums in together.items()} == paths_of(tree_table(scope))
        roots = [path for path in by_thread if len(path) == 1]
        lanes = {lane.title for lane in scope.trace.lanes if lane.slices and not lane.process.aside}
        assert len(roots) >= len(lanes)


def test_the_largest_nodes_keep_what_is_above(scopes: list[Scope]) -> None:
    """A limit takes the nodes with most time, with all above them, in the same order."""
    for scope in scopes:
        whole = tree_table(scope)
        for limit in (1, 3, len(whole) - 1):
            cut = tree_table(scope, limit=limit)
            assert len(cut) == limit and cut.notes
            check_shape(cut)
            totals = sorted(whole["total_ns"].tolist(), reverse=True)
            assert sorted(cut["total_ns"].tolist(), reverse=True) == totals[:limit]
            check_shape(largest_rows(whole, limit))
        names = indented(whole)["name"]
        assert [len(name) - len(name.lstrip()) for name in names][:1] == [0]


def test_folded_stacks_add_up(scopes: list[Scope]) -> None:
    """Each line is a path and its own ns; together they are the own time of all, from either end."""
    for scope in scopes:
        for options in ({}, {"bottom_up": True}, {"by": "launch"}, {"by": "launch", "bottom_up": True}):
            tables = analyse_tree(scope, **options)  # type: ignore[arg-type]
            lines = "".join(folded_lines(tables)).splitlines()
            numbers = [int(line.rpartition(" ")[2]) for line in lines]
            assert all(number > 0 for number in numbers)
            assert sum(numbers) == tables.main.totals["self_ns"]


@pytest.mark.slow
def test_the_command_prints_all_forms(tmp_path: Path) -> None:
    """`tracelane tree` prints a tree, JSON, CSV and folded stacks, and refuses other forms."""
    path = str(small_file(tmp_path))
    text = tracelane_here("tree", path).stdout
    assert "ProfilerStep#*" in text and "ProfilerStep#0" not in text
    assert "\n  aten::linear" in text and "\n    launch" in text
    folded = tracelane_here("tree", path, "--format", "folded", "--step", "1").stdout.splitlines()
    assert "ProfilerStep#*;aten::linear;launch 10000" in folded
    assert tracelane_here("tree", path, "--format", "csv").stdout.startswith(
        "name,total_ns,share,self_ns,calls"
    )
    by_launch = tracelane_here("tree", path, "--by", "launch", "--format", "folded").stdout
    assert by_launch.count(";launch;") == 2
    assert tracelane_here("kernels", path, "--format", "folded").returncode == 64


def test_folded_from_the_bottom_is_that_of_pairs(scopes: list[Scope]) -> None:
    """From the bottom a folded path is one from the top read backwards, where it is whole."""
    for scope in scopes:
        down = {
            tuple(line.rpartition(" ")[0].split(";")): int(line.rpartition(" ")[2])
            for line in folded_lines(analyse_tree(scope))
        }
        up = {
            tuple(line.rpartition(" ")[0].split(";"))[::-1]: int(line.rpartition(" ")[2])
            for line in folded_lines(analyse_tree(scope, bottom_up=True))
        }
        assert up == down


VIEWS: tuple[tuple[TreeRoots, bool], ...] = (
    ("all", False),
    ("all", True),
    ("thread", False),
    ("launch", False),
)
"""Of what the roots are made, and whether the tree is from the bottom."""


@pytest.fixture(scope="module")
def scopes_icicle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Scope]]:
    """The whole of a small trace, of the demo's two ranks, and a third of them."""
    folder = tmp_path_factory.mktemp("icicle")
    traces = [
        open_trace(path, index_dir=folder / "index")
        for path in (small_file(folder), write_demo(folder / "demo")[:2])
    ]
    whole = [Scope(trace, clocks=trace.clocks) for trace in traces]
    start, end = traces[1].opening_span
    third = (end - start) // 3
    yield [*whole, replace(whole[1], range=(start + third, end - third))]
    for trace in traces:
        trace.close()


def path_of(table: Table, icicle: Icicle, row: int) -> list[str]:
    """Return the names of a call and what it lies in, the outermost first."""
    path = []
    while row != ROOT:
        path.append(str(table.data["name"][row]))
        row = int(icicle.parents[row])
    return path[::-1]


@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
def test_calls_lie_in_what_calls_them(scopes_icicle: list[Scope], by: TreeRoots, from_bottom: bool) -> None:
    """Each call is as wide as its time and lies within its caller, beside those of the same caller, the
    longest first; its subtree is the rows up to `behind`.
    """
    for scope in scopes_icicle:
        table = tree_table(scope, by, from_bottom)
        icicle = icicle_of(table)
        widths = icicle.ends - icicle.starts
        assert (widths >= table.numbers("total_ns")).all()
        for row, parent in enumerate(icicle.parents.tolist()):
            if parent != ROOT:
                assert icicle.starts[parent] <= icicle.starts[row] <= icicle.ends[row] <= icicle.ends[parent]
                assert parent < row < icicle.behind[parent] and icicle.behind[row] <= icicle.behind[parent]
        for level in icicle.levels:
            assert (icicle.starts[level][1:] >= icicle.ends[level][:-1]).all()
            same = icicle.parents[level][1:] == icicle.parents[level][:-1]
            totals = table.numbers("total_ns")[level]
            assert (totals[1:][same] <= totals[:-1][same]).all()
        assert icicle.width == widths[icicle.levels[0]].sum() if len(icicle) else icicle.width == 0


@pytest.mark.slow
@pytest.mark.parametrize("cells", [0, 1, 7, 80, 300])
def test_a_cell_shows_what_lies_at_its_middle(scopes_icicle: list[Scope], cells: int) -> None:
    """As a plain search over all calls of the depth says, of the whole and of a call."""
    for scope in scopes_icicle:
        icicle = icicle_of(tree_table(scope))
        for root in (ROOT, 0, len(icicle) // 2):
            left, right = icicle.window(root)
            for depth, level in enumerate(icicle.levels):
                drawn = [ROOT] * cells
                for box in icicle.boxes(depth, (left, right), cells):
                    if box.nodes > 1:
                        assert box.right - box.left == 1
                    drawn[box.left : box.right] = [box.row] * (box.right - box.left)
                for cell in range(cells):
                    middle = left + (2 * cell + 1) * (right - left) // (2 * cells)
                    at = [row for row in level if icicle.starts[row] <= middle < icicle.ends[row]]
                    assert drawn[cell] == (at[0] if at else ROOT)


def _chain(widths: list[int]) -> Icicle:
    """Return calls one below the other."""
    count = len(widths)
    starts, rows = np.zeros(count, np.int64), np.arange(count)
    return Icicle(starts, np.array(widths, np.int64), rows, rows - 1, np.full(count, count))


def test_calls_as_wide_as_what_calls_them_are_one_line() -> None:
    """Wherever they are; the first and the last of them stay lines of their own, two between them are one."""
    for widths, lines in (
        ([100, 100, 100, 100, 50, 50], [0, 1, 1, 2, 3, 4]),
        ([100, 100, 100], [0, 1, 2]),
        ([100, 60, 60, 60, 60], [0, 1, 2, 2, 3]),
        ([], []),
    ):
        icicle = _chain(widths)
        assert icicle.lines.tolist() == lines
        assert [len(rows) for rows in icicle.levels] == [1] * len(set(lines))
        drawn = [int(rows[0]) for rows in icicle.levels]
        assert [drawn[line] for line in lines] == [icicle.drawn_row(row) for row in range(len(widths))]
        assert [lines.index(line) for line in lines] == [icicle.first_row(row) for row in range(len(widths))]


def test_callers_and_callees_of_a_name(scopes_icicle: list[Scope]) -> None:
    """Both begin with the name and its time; what it calls is what its outermost calls hold, path by path."""
    for scope in scopes_icicle:
        table = tree_table(scope)
        icicle, names = icicle_of(table), table.texts("name")
        total, own = table.numbers("total_ns"), table.numbers("self_ns")
        for name in sorted(set(names))[::7]:
            paths = [path_of(table, icicle, row) for row in range(len(table))]
            callers, callees = sandwich(table, icicle.parents, name)
            expected: dict[tuple[str, ...], int] = {}
            for path, ns in zip(paths, own.tolist()):
                if name in path:
                    below = tuple(path[path.index(name) :])
                    expected[below] = expected.get(below, 0) + ns
            drawn = icicle_of(callees)
            assert {
                tuple(path_of(callees, drawn, row)): ns
                for row, ns in enumerate(callees.numbers("self_ns").tolist())
            } == expected
            outermost = [
                row for row, path in enumerate(paths) if path[-1:] == [name] and path.count(name) == 1
            ]
            assert int(callers.numbers("total_ns")[0]) == int(total[outermost].sum())
            assert callers.texts("name")[0] == callees.texts("name")[0] == name


def test_walking(scopes_icicle: list[Scope]) -> None:
    """Beside a call stands the next one that is wide enough, below it the one with most time."""
    icicle = icicle_of(tree_table(scopes_icicle[1]))
    level = icicle.levels[0]
    assert icicle.neighbour(int(level[0]), -1, 0) == level[0]
    assert icicle.neighbour(int(level[0]), 1, 0) == level[1]
    assert icicle.neighbour(int(level[0]), 1, icicle.width) == level[0]
    assert icicle.parents[icicle.child(0)] == 0
    leaf = int(np.flatnonzero(icicle.behind == np.arange(len(icicle)) + 1)[0])
    assert icicle.child(leaf) == leaf


@pytest.mark.slow
@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
def test_a_call_leads_to_its_slices(scopes_icicle: list[Scope], by: TreeRoots, from_bottom: bool) -> None:
    """As many as the table counts, of its name, and the longest of them is the one that the row leads to."""
    for scope in scopes_icicle:
        check_slices(scope, by, from_bottom, 60)


@pytest.mark.slow
@pytest.mark.parametrize(("by", "from_bottom"), VIEWS)
@for_files(
    "name",
    [
        "gpu/hta_a100_resnet_ddp_nccl*",
        "gpu/tl_vllm_capture_python_functions*",
        "cuda/gloo.pt.trace.json.gz",
    ],
)
def test_calls_of_real_traces_lead_to_their_slices(
    name: str, by: TreeRoots, from_bottom: bool, corpus_cache: Path
) -> None:
    """The same for real traces, some of their rows."""
    trace = open_trace(next(iter(files(name)), file(name)), index_dir=corpus_cache)
    check_slices(Scope(trace, clocks=trace.clocks), by, from_bottom, 10)


def check_slices(scope: Scope, by: TreeRoots, from_bottom: bool, most: int) -> None:
    """Hold the slices of so many rows against the table."""
    table = tree_table(scope, by, from_bottom)
    icicle = icicle_of(table)
    assert table.positions is not None and table.sources is not None
    counted = 0
    for row in range(0, len(table), max(1, len(table) // most)):
        path = path_of(table, icicle, row)
        hits = slices_of_node(scope, path, by, from_bottom)
        calls = int(table.numbers("calls")[row])
        # Work without a launch has no calls; a lane is no call; not every call of a name launches work.
        if not path[0].startswith("(no launch") and not (by == "thread" and len(path) == 1):
            counted += 1
            launching = hits.count >= calls if by == "launch" else hits.count == calls
            assert launching, (path, hits.count, calls)
        source, position = int(table.sources[row]), int(table.positions[row])
        assert position in hits.positions[source].tolist(), path
    assert counted


def test_categories_are_those_of_the_slices(scopes_icicle: list[Scope]) -> None:
    """Each row has the category of the slice that it leads to."""
    scope = scopes_icicle[0]
    table = tree_table(scope)
    assert len(table)
    for row, category in enumerate(row_categories(scope.trace, table)):
        jump = table.jump(row)
        assert jump is not None
        detail = scope.trace.detail(scope.trace.slice_id_of(*jump))
        assert detail is not None and detail.category == category


def test_slices_as_hits_stand_where_they_are(scopes_icicle: list[Scope]) -> None:
    """Positions as hits have the starts of the slices in trace time."""
    trace = scopes_icicle[1].trace
    hits = hits_at(trace, [np.array([0, 1], np.uint32) for _ in trace.indexes], trace.clocks, "two each")
    assert hits.count == 2 * len(trace.indexes) and hits.filter.text == "two each"
    for source in range(len(trace.indexes)):
        positions, starts = hits.starts(source)[0]
        for position, start in zip(positions.tolist(), starts.tolist()):
            row, at = trace.find(trace.slice_id_of(source, position)) or (None, 0)
            assert row is not None and trace.bounds(row, at, trace.clocks)[0] == start


def test_folded_stacks_are_bounded(tmp_path: Path) -> None:
    """Of calls 3,000 deep no line names more than 500 and one that says so; no time is lost."""
    events = [
        {"ph": "X", "name": f"call{at % 7}", "pid": 1, "tid": 1, "ts": at, "dur": 6000 - 2 * at}
        for at in range(3000)
    ]
    path = tmp_path / "t.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    lines = list(folded_lines(analyse_tree(Scope(trace))))
    assert len(lines) == MAX_FOLDED_DEPTH + 1
    assert max(line.count(";") for line in lines) == MAX_FOLDED_DEPTH
    assert sum("(deeper than 500 calls)" in line for line in lines) == 1
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == 6000 * 1000


@pytest.mark.parametrize("from_bottom", [False, True])
@pytest.mark.parametrize("path", [["a"], ["a", "b"], ["b", "a", "c"]])
def test_nodes_by_launch_without_device_work(path: list[str], from_bottom: bool, tmp_path: Path) -> None:
    """Where nothing runs on a device no node by launch has slices, however the tree came to be open."""
    trace = open_events(tmp_path, [complete(0, 10, "a"), complete(1, 5, "b")])
    assert not slices_of_node(Scope(trace), path, "launch", from_bottom).count
