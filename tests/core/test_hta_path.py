"""The critical path against that of Holistic Trace Analysis: its length again, and what ours adds to it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.core.hta_path import DEPENDENCY, OPERATOR, SYNC, HtaPath, events_of
from tests.corpus import CORPUS, GOLDENS, needs_corpus, needs_goldens
from tracelane.core.tables.critical_path import critical_path
from tracelane.core.tables.selection import Selection
from tracelane.core.trace import open_trace

PAUSE, WAIT, RETURN = "a thread pauses", "a call waits", "a call returns"
ENDS = "the path begins and ends anywhere"
INSTANCE = "the instance is the device's copy of the step"
WINDOW = "the path leaves the window"
FREE = {DEPENDENCY: PAUSE, OPERATOR: WAIT, SYNC: RETURN}
"""What weighs nothing in HTA's graph, by the kind of edge."""
FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"


@needs_corpus
@needs_goldens
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "annotation", "step", "theirs", "ours", "reasons", "ends"),
    [
        ("hta_a100_resnet_ddp_nccl", "ProfilerStep", 5, 189_995_701, 219_726_905,
         {PAUSE: 28_703_822, WAIT: 35_239, ENDS: 992_143}, ENDS),
        ("hta_cuda_event_sync", "ProfilerStep", 100, 2_411_000, 3_154_000,
         {PAUSE: 95_000, WAIT: 9_000, RETURN: 8_000, ENDS: 631_000}, ENDS),
        ("hta_mi250_minitoy_rocm62", "ProfilerStep", 1, 747_447, 9_288_291,
         {PAUSE: 147_800, INSTANCE: 8_393_044}, INSTANCE),
        ("hta_overlaid_critical_path_flows", FORWARD, None, 241_724_000, 243_351_000,
         {PAUSE: 884_000, WAIT: 17_000, ENDS: 726_000}, ENDS),
        ("hta_overlaid_critical_path_flows", "", None, 41_435_012_000, 41_602_740_001,
         {PAUSE: 142_220_000, WAIT: 60_000, RETURN: 361_000, ENDS: 25_087_001}, ENDS),
        ("tl_h100_qwen_infer", "ProfilerStep", 6, 33_716_984, 49_378_903,
         {PAUSE: 1_450_867, WAIT: 14_110_220, ENDS: 100_832}, ENDS),
        ("tl_mi300_resnet_train_rank0of8", "ProfilerStep", 16, 15_905_786, 51_225_503,
         {WINDOW: 35_319_717}, WINDOW),
    ],
)  # fmt: skip
def test_each_difference_to_hta_has_a_reason(
    name: str,
    annotation: str,
    step: int | None,
    theirs: int,
    ours: int,
    reasons: dict[str, int],
    ends: str,
    corpus_cache: Path,
) -> None:
    """HTA's exact length and graph come out again; ours is longer by what weighs nothing there, to the ns."""
    golden = json.loads((GOLDENS / "critical_path" / f"{name}.json").read_bytes())
    row = next(
        row
        for row in golden["rows"]
        if row["annotation"] == annotation
        and row["tool_version"] == "f4d0062"
        and row["options"] == {"ns_rounding": False, "zero_weight_launch_edges": False}
    )
    start, stop = row["window"]["start_ns"], row["window"]["start_ns"] + row["window"]["dur_ns"]
    file = CORPUS / golden["input"]
    graph = HtaPath(events_of(file), start, stop)
    path = graph.path()
    kinds = Counter(kind for kind, _ in graph.edges.values())
    assert kinds == {key: one["edges"] for key, one in row["graph"]["edges_by_type"].items()}
    assert sum(graph.edges[edge][1] for edge in path) == row["length_ns_from_exact_times"] == theirs

    if annotation == FORWARD:
        selection = Selection(begin=start, end=stop)
    else:
        selection = Selection(step=step)
    own = critical_path(selection.scope(open_trace(file, index_dir=corpus_cache)))
    assert own.elapsed_ns == ours
    added = Counter[str]()
    for before, after in path:
        kind, weight = graph.edges[before, after]
        if free := graph.time(after) - graph.time(before) - weight:
            added[FREE[kind]] += free
    begin = own.graph.window[0]
    added[ends] += graph.time(path[0][0]) - begin + (begin + ours - graph.time(path[-1][1]))
    assert added == reasons and theirs + sum(reasons.values()) == ours
