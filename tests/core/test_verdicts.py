"""What must and what must not be said of traces on which an outside reader tried the findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import CASES, CORPUS, for_files, needs
from tracelane.core.tables.findings.finding import Findings
from tracelane.core.tables.findings.judge import findings
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace

REAL: dict[str, tuple[str, set[str], set[str]]] = {
    # file: the first loss ("" for any), what else must be said, what must not
    "vllm_h100_tp4_graphs": ("", {"device-bound"}, {"lost-kernels", "uneven-kernel", "short-kernels"}),
    "gh200_transformer_shapes": ("", set(), {"uneven-kernel"}),
    "rtx4090_llama_tp2": ("first-use", {"communication"}, {"lost-kernels", "host-hotspot"}),
    "a100_first_run": ("first-use", set(), {"overhead-bound", "host-hotspot", "launch-gaps"}),
    "pageable_copies": ("transfer-bound", {"device-bound"}, {"short-kernels"}),
    "resnet50_lost_memsets": ("", {"lost-kernels", "overhead-bound"}, set()),
    "first_kernel_late": ("first-kernel", set(), {"overhead-bound"}),
    "rpd_matmul": ("", {"copies"}, {"lost-kernels"}),
    "zoology_all_kernels_lost": ("lost-kernels", set(), {"device-idle", "launch-gaps"}),
}
SYNTHETIC: dict[str, tuple[str, set[str], set[str]]] = {
    "c1_ts0": ("lost-kernels", {"device-clock"}, set()),
    "c2_dropfirst": ("lost-kernels", set(), {"device-idle"}),
    "c3_collapse": ("lost-kernels", set(), {"device-bound", "device-hotspot"}),
    "v4_merged": ("rank-imbalance", {"communication"}, {"lost-kernels"}),
    "v9_syncflows": ("", set(), {"lost-kernels"}),
}


def _check(report: Findings, first: str, must: set[str], never: set[str]) -> None:
    rules = [finding.rule for finding in report.losses]
    assert not first or rules[:1] == [first]
    said = {finding.rule for finding in report.findings}
    assert must <= said and not never & said


@for_files("name", REAL)
def test_real_traces(name: str, corpus_cache: Path) -> None:
    """Each trace is said to have what it has, the cause first."""
    trace = open_trace(CORPUS / "verdicts" / f"{name}.json.gz", index_dir=corpus_cache)
    _check(findings(Scope(trace)), *REAL[name])


@needs(CASES)
@pytest.mark.parametrize("name", SYNTHETIC)
def test_small_traces(name: str, tmp_path: Path) -> None:
    """What is lost is said first and left out of what else is said."""
    trace = open_trace(CASES / "verdicts" / f"{name}.json", index_dir=tmp_path)
    _check(findings(Scope(trace)), *SYNTHETIC[name])


@needs(CORPUS)
def test_what_is_left_of_effects_of_a_first_use(corpus_cache: Path) -> None:
    """Of a first run the calls that load code are taken out; what a symptom has beyond them stands below."""
    trace = open_trace(CORPUS / "verdicts" / "a100_first_run.json.gz", index_dir=corpus_cache)
    report = findings(Scope(trace))
    (effect,) = [finding for finding in report.losses if finding.caused_by == "first-use"]
    assert effect.rule == "step-gap" and effect.claimed_ns > effect.caused_ns // 10


def test_json_names_the_cause(tmp_path: Path) -> None:
    """Rows of JSON say what kind they are and which rule explains them."""
    from tests.causes import program, write
    from tracelane.core.tables.findings.forms import findings_object

    path = write(program(1, "slow-loader"), tmp_path / "traces")
    report = findings(Scope(open_trace(path, index_dir=tmp_path / "index")))
    rows = json.loads(json.dumps(findings_object(report, 0)))["rows"]
    assert rows[0]["rule"] == "dataloader" and rows[0]["kind"] == "loss" and rows[0]["caused_by"] == ""
    assert any(row["caused_by"] == "dataloader" and row["caused_ns"] > 0 for row in rows)
