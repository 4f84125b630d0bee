"""Findings as a whole: on real traces, their order, their scope, kept beside the index, and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.core.findings_traces import call, kernel, launched, note, op, step, trace_of
from tests.core.test_findings_rules import CASES
from tests.corpus import CORPUS, file, for_files, needs, traces
from tracelane.core.base.clock import Clocks
from tracelane.core.base.errors import Cancelled, TracelaneError
from tracelane.core.tables.findings.forms import (
    claim_text,
    findings_markdown,
    findings_object,
    findings_of,
    saved_findings,
    stored_findings,
)
from tracelane.core.tables.findings.judge import RULES, findings
from tracelane.core.tables.frame import cached
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import Trace, open_trace

AIU = "aiu/spyre_torch_profiler/"
JAMIE = "jamie_mlp__upstream-main__adnan-cdx-spyre-dev-pf_2295057.1781947926439683971.pt.trace.json"
SMALL = "small_bmm__branch-baseline__adnan-cdx-spyre-dev-pf_2285565.1781942605666606040.pt.trace.json"

EXPECTED: dict[str, tuple[list[str], str]] = {
    # Losses in order, and why one would say so by hand.
    AIU + JAMIE: (
        ["transfer-bound", "device-hotspot"],
        "blocking copies fill 460 of 484 ms on the host, most in aten::_copy_from; the AIU's kernels take "
        "22.8 ms (its allocations are no work), 16.4 of them sdsc_fused_bmm_mul_silu_0",
    ),
    AIU + SMALL: (
        ["transfer-bound", "launch-gaps", "compiled-overhead", "device-hotspot"],
        "3 ms of the host's time, in which the AIU's kernels take 0.19 ms; copies block 2.2 ms, most in "
        "aten::_copy_from, 155 of 1,010 µs in regions are lookups",
    ),
    "aiu/mlp_trace.json": (
        ["lost-kernels", "device-clock"],
        "all 30 kernels have the stamp 0: nothing else can be said about the device",
    ),
    "aiu/sample_flex_3062_job_4.json": (
        ["device-idle"],
        "FLEX: 17 kernels of 2.4 ms in 11.8 ms; nothing of the host is in the file: a cut looks like a gap",
    ),
    "gpu/hta_a100_resnet_ddp_nccl.json.gz": (
        ["overhead-bound", "launch-gaps", "short-kernels"],
        "HTA: 24 % busy, 99.8 % of the idle time is host wait; most launches take longer than their kernel",
    ),
    "gpu/tl_mi300_resnet_train_rank0of8.json.gz": (
        ["communication"],
        "two thirds of the time are NCCL's kernel, not hidden; a collective is no kernel to make faster",
    ),
    "gpu/kineto_tb_gpu_metrics_counters.json": (
        ["overhead-bound", "launch-gaps", "dataloader", "short-kernels"],
        "a tiny network: 50 µs of work in 12 ms; TensorBoard's own sample of a high DataLoader share",
    ),
    "gpu/tl_sglang_decode_graph.json.gz": (
        ["lost-kernels"],
        "cut out of a longer file: for 463 ms the host waits in a copy for work that is not in it",
    ),
    "cpu/torch213_graph_breaks.json": (
        ["graph-breaks", "compiled-overhead"],
        "9 regions in 3 outer ones; 591 of 4,960 µs are lookups and prologues",
    ),
    "cpu/torch213_compile_first_call.json.gz": (
        ["compile-time", "host-hotspot"],
        "19.2 of 19.3 s compile, 16 s of it the C++ compiler",
    ),
    "cpu/torch213_mlp_plain.json": ([], "three even steps on the CPU without annotations that start late"),
    "cpu/torch213_empty_profile.json": ([], "nothing in it"),
}


def _opened(name: str, cache: Path) -> Trace:
    return open_trace(file(name), index_dir=cache)


@for_files("name", EXPECTED)
def test_real_traces(name: str, corpus_cache: Path) -> None:
    """The losses of a real trace are those that one finds by hand, in that order."""
    report = findings(Scope(_opened(name, corpus_cache)))
    assert [finding.rule for finding in report.losses] == EXPECTED[name][0], EXPECTED[name][1]


@needs(CORPUS)
def test_numbers_of_a_real_trace(corpus_cache: Path) -> None:
    """What is claimed of the A100 trace is what HTA's reference says of it: host wait, busy and window."""
    report = findings(Scope(_opened("gpu/hta_a100_resnet_ddp_nccl.json.gz", corpus_cache)))
    bound, gaps = report.losses[:2]
    assert "158 ms of work" in bound.text and "busy in only 23.6 % of 667 ms" in bound.text
    assert (bound.in_steps, bound.of_steps, gaps.caused_by) == (3, 3, "overhead-bound")
    assert bound.claimed_ns + gaps.claimed_ns <= 666_551_000 - 157_500_000
    assert 0 < gaps.caused_ns <= bound.claimed_ns  # of the same time kernels that are too short have some


@pytest.mark.slow
@for_files("path", traces("**/*.json*"))
def test_no_rule_fails_on_any_file(path: Path, corpus_cache: Path) -> None:
    """Whatever opens is judged without an error; a rule speaks, is silent, or says what it lacks."""
    try:
        trace = open_trace(path, index_dir=corpus_cache)
    except TracelaneError:
        return
    report = findings(Scope(trace))
    rules = [finding.rule for finding in report.findings]
    assert len(set(rules)) == len(rules)
    assert not set(rules) & {rule for rule, _ in report.not_judged}
    low, high = trace.span
    for finding in report.findings:
        assert 0 <= finding.claimed_ns <= high - low
        assert 0 <= finding.in_steps <= finding.of_steps


def test_order(tmp_path: Path) -> None:
    """What the trace lacks comes first, then losses by their cost with what they explain, then notes."""
    report = findings(
        Scope(trace_of([event for events, _, _ in CASES.values() for event in events], tmp_path))
    )
    losses = report.losses
    effects = {one.rule: [other for other in losses if other.caused_by == one.rule] for one in losses}
    roots = [one for one in losses if not one.caused_by]
    costs = [one.claimed_ns + sum(other.claimed_ns for other in effects[one.rule]) for one in roots]
    assert len(losses) > 5
    assert costs == sorted(costs, reverse=True)
    assert {id(one) for one in losses} == {id(one) for root in roots for one in (root, *effects[root.rule])}
    order = {"loss": 0, "headline": 1, "note": 2}
    kinds = [order[finding.kind] for finding in report.findings]
    assert kinds == sorted(kinds) and {0, 2} <= set(kinds)


@pytest.mark.parametrize(("early", "is_first"), [(20, True), (1, False)])
def test_a_clock_that_is_hardly_wrong_is_not_first(early: float, is_first: bool, tmp_path: Path) -> None:
    """A device's clock is told first where what it makes wrong, with each launch, is 5 % of the time."""
    events = [step(0, 0, 1000), *launched(100, 5, 100 - early, 10)]
    for n in range(1, 9):
        events += launched(100 + 100 * n, 5, 110 + 100 * n, 10)
    losses = findings(Scope(trace_of(events, tmp_path))).losses
    assert (losses[0].rule == "device-clock") == is_first and len(losses) > 1


def test_range(tmp_path: Path) -> None:
    """Of a range only what lies in it is judged, with the steps that lie in it."""
    events = [step(n, 1000 * n, 1000) for n in range(3)]
    events += [op(0, 1000, "aten::a"), op(1000, 300, "aten::a"), op(1300, 700, "aten::b")]
    trace = trace_of(events, tmp_path)
    (finding,) = findings(Scope(trace, (1_000_000, 2_000_000))).losses
    assert (finding.rule, finding.claimed_ns, finding.in_steps, finding.of_steps) == (
        "host-hotspot",
        700_000,
        1,
        1,
    )
    assert finding.recurrence == "in the only step"


def test_clocks(tmp_path: Path) -> None:
    """A device whose clock is moved is judged where it then lies."""
    events = [call(100, 100, "cudaDeviceSynchronize"), kernel(50, 100)]
    trace = trace_of(events, tmp_path)
    rules = {
        shift: [f.rule for f in findings(Scope(trace, clocks=Clocks({(0, "0"): shift * 1000}))).losses]
        for shift in (0, 50)
    }
    assert "sync" in rules[0] and "sync" not in rules[50]


def test_several_files_tell_once(tmp_path: Path) -> None:
    """A rule that holds in several files is told for the one with the greatest claim; none are added."""
    copy = ("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy")
    parts = [
        trace_of([kernel(0, 1000 - us), kernel(1000 - us, us, *copy)], tmp_path / str(us)).indexes[0]
        for us in (100, 190, 150)
    ]
    parts[1].path = "runs/two.json"
    (finding,) = findings(Scope(Trace(parts))).losses
    assert (finding.rule, finding.claimed_ns, finding.sources) == ("pageable-copies", 190_000, (1, 0, 2))
    assert claim_text(finding).endswith("in 3 files, most in two.json")


def test_stray_device_work_is_not_judged(tmp_path: Path) -> None:
    """Where kernels end before their launches, and before all else, the device is not said to be idle."""
    events = [*(op(9000 + 10 * n, 10) for n in range(50)), *launched(9001, 2, 5, 5)]
    events += [*launched(9005, 2, 9008, 1), *launched(9400, 2, 9405, 1)]
    report = findings(Scope(trace_of(events, tmp_path)))
    assert not [finding for finding in report.findings if "idle" in finding.rule or "bound" in finding.rule]
    assert ("overhead-bound", "device work (1 piece) is on another clock") in report.not_judged


def test_cancelled(tmp_path: Path) -> None:
    """Nobody waits any more: it stops."""
    with pytest.raises(Cancelled):
        findings(Scope(trace_of([op(0, 1)], tmp_path), cancelled=lambda: True))


def test_kept_beside_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found once, they are read next time; a range is not kept, damage or another version is found anew."""
    trace = trace_of([note(0, 100, "a"), *launched(0, 1, 10, 90)], tmp_path)
    scope = Scope(trace)
    assert stored_findings(scope) is None
    report = saved_findings(scope)
    assert stored_findings(scope) == report == findings(scope)
    (file,) = (tmp_path / "derived").iterdir()
    assert saved_findings(Scope(trace, (0, 50_000))) != report
    assert list((tmp_path / "derived").iterdir()) == [file]
    file.write_text("{}", encoding="utf-8")
    assert stored_findings(scope) is None
    assert saved_findings(scope) == report == stored_findings(scope)
    monkeypatch.setattr(cached, "code_hash", lambda: "other")
    assert stored_findings(scope) is None


def test_not_kept_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Where the index's folder takes no file, findings are found again, without a word."""
    trace = trace_of([kernel(0, 100)], tmp_path)
    (tmp_path / "derived").write_text("in the way", encoding="utf-8")
    assert saved_findings(Scope(trace)).findings


def test_object_and_back(tmp_path: Path) -> None:
    """The JSON object holds all of a finding; read again, it is the same."""
    report = findings(
        Scope(trace_of([event for events, _, _ in CASES.values() for event in events], tmp_path))
    )
    answer = json.loads(json.dumps(findings_object(report, 1234)))
    assert answer["schema"] == 1 and answer["rows"][0]["rule"] == report.findings[0].rule
    assert answer["rows"][0]["evidence"][0]["start_ns"] == report.findings[0].evidence[0].start - 1234
    assert findings_of(answer, 1234) == report
    with pytest.raises(ValueError, match="schema"):
        findings_of({**answer, "schema": 99}, 1234)
    markdown = findings_markdown(report)
    assert all(f"`{finding.rule}`" in markdown for finding in report.findings)


def test_rules_read_well() -> None:
    """Every rule's threshold is filled in, and its texts end like sentences where they are some."""
    for rule in RULES.values():
        assert not set("{}") & set(rule.threshold)
        assert rule.helps.endswith(".") and not rule.threshold.endswith(".")
        assert all(f"{{{key}}}" in rule.test for key in rule.limits)
