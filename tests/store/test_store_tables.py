"""A store answers as the traces that it was made of, and what is damaged in it is said in a line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.corpus import CORPUS, file, for_files
from tests.rank_files import rank_files, straggler_files
from tests.tui.cli_process import tracelane_here
from tests.tui.test_every_command import SHORT_FORMS
from tracelane.core.store.collect import collect, one_after_another, planned
from tracelane.core.store.groups import STEP_NUMBERS
from tracelane.core.store.opened import open_store
from tracelane.core.store.tables import STORE_TABLES, findings_of_store, store_tables, summary_of_store
from tracelane.core.tables.findings.forms import findings_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.ranks.rank_tables import analyse_ranks
from tracelane.core.tables.steps.steps import steps
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

NOT_STORED = ("algorithm", "peers", "steps", "enqueue_ns", "host_wait_ns", "exposed_ns", "exposed_share")


def store_of(traces: Path, store: Path) -> Path:
    """Collect traces in this process."""
    assert not any(
        result.unreadable
        for result in collect(planned([str(traces)], str(store)), str(store), one_after_another)
    )
    return store


@pytest.mark.slow
@for_files("name", ["dlrm_8gpu_ranks0-3", "torch213_ddp_gloo_2ranks"])
def test_ranks_of_a_store_are_those_of_its_traces(name: str, tmp_path: Path) -> None:
    """Every table of `ranks`, to the ns, but for where the files lie, slices to jump to, and what a store
    has not of collectives, which is none there.
    """
    traces = CORPUS / "multirank" / name
    store = open_store(str(store_of(traces, tmp_path / "store")))
    trace = open_trace(traces)
    local, stored = analyse_ranks(Scope(trace, clocks=trace.clocks)), store_tables(store, "ranks", {})
    assert stored.origin_ns == local.origin_ns and stored.names == local.names
    for table in local:
        ours, theirs = list(stored[table.name].rows()), list(table.rows())
        for row in ours if table.name == "collectives" else ():
            assert not any(row[key] for key in NOT_STORED)
        for row in (*ours, *theirs):
            for key in ("path", *(NOT_STORED if table.name == "collectives" else ())):
                row.pop(key, None)
        assert ours == theirs
    assert stored.main.totals == local.main.totals


def test_tables_of_all_ranks(tmp_path: Path) -> None:
    """Steps of each rank; kernels with the rank that spends most on them; groups by host are refused where no
    file tells a host; a comparison with itself has no change.
    """
    traces = rank_files(tmp_path / "traces", 3)
    store = open_store(str(store_of(traces, tmp_path / "store")))
    steps = store_tables(store, "steps", {}).main
    assert len(steps) == 60 and set(steps.numbers("wall_ns").tolist()) == {900_000}
    kernels = {row["name"]: row for row in store_tables(store, "kernels", {}).main.rows()}
    assert kernels["gemm_2"]["most_rank"] == 2 and kernels["gemm_2"]["ranks"] == 1
    assert sum(row["count"] for row in kernels.values()) == 3 * 40
    assert {str(row["place"]) for row in store_tables(store, "findings", {}).main.rows()} <= {
        f"rank {n}" for n in range(3)
    }
    done = tracelane_here("diff", str(tmp_path / "store"), str(tmp_path / "store"))
    assert done.returncode == 0 and "nothing changed" in done.stdout
    assert summary_of_store(store).metrics["step.count"].value == 60


def test_waiting_is_told_once(tmp_path: Path) -> None:
    """What a rank waits for another is no communication to make less of, though the summary of one rank does
    not know of the other; and it is said in how many steps.
    """
    steps = 4
    store = open_store(str(store_of(straggler_files(tmp_path / "traces", 4, 2, steps), tmp_path / "store")))
    by_rule = {one.rule: one for one in findings_of_store(store).findings}
    late, moved = by_rule["rank-imbalance"], by_rule["communication"]
    assert late.sources == (2,) and (late.in_steps, late.of_steps) == (steps, steps)
    assert moved.caused_by == "rank-imbalance" and moved.caused_ns > moved.claimed_ns
    alone = [one for rank in store.ranks for one in findings_of(rank.findings, 0).findings]
    claims = [one.claimed_ns for one in alone if one.rule == "communication"]
    assert moved.claimed_ns + moved.caused_ns in claims


@for_files(
    "path", ["aiu/mlp_trace.json", "cpu/torch_2.14_training.pt.trace.json.gz", "cuda/gloo.pt.trace.json.gz"]
)
def test_steps_are_those_of_the_trace(path: str, tmp_path: Path) -> None:
    """Every number of a step is that of the trace; what is not known there is not 0 in the store."""
    folder = tmp_path / "traces"
    folder.mkdir()
    shutil.copy(file(path), folder)
    store = open_store(str(store_of(folder, tmp_path / "store")))
    own = list(steps(Scope(open_trace(file(path), index_dir=tmp_path / "index"))).rows())
    stored = list(store_tables(store, "steps", {})["steps"].rows())
    assert len(stored) == len(own) > 0
    for one, other in zip(stored, own):
        assert {key: one[key] for key in STEP_NUMBERS} == {key: other[key] for key in STEP_NUMBERS}
    metric = summary_of_store(store).metrics["step.device_busy.median"]
    assert (metric.value is None) == any(row["device_busy_ns"] is None for row in own)


@pytest.mark.slow
def test_what_needs_traces_is_refused(tmp_path: Path) -> None:
    """Other analyses and parts of traces: one line, exit code 64."""
    store = str(store_of(rank_files(tmp_path / "traces", 2), tmp_path / "store"))
    for words in (["ops", store], ["ranks", store, "--from", "+1ms"], ["kernels", store, "--runs", "x"]):
        done = tracelane_here(*words)
        assert done.returncode == 64 and done.stderr.count("\n") == 1 and "trace" in done.stderr
    for name in STORE_TABLES:
        assert json.loads(tracelane_here(name, store, "--json").stdout)["command"] == name


@pytest.mark.slow
def test_every_command_answers_of_a_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each answers, or says with exit code 64 that this is a store, which is no damaged trace."""
    store = str(store_of(rank_files(tmp_path / "traces", 2), tmp_path / "store"))
    said = {}
    for name, (words, *_) in SHORT_FORMS.items():
        if name in ("collect", "history"):  # of folders of traces, of summaries
            continue
        line = [word.format(trace=store, out=tmp_path / "out", summary=store) for word in words]
        code = main([*line, f"--index-dir={tmp_path / 'index'}"])
        error = capsys.readouterr().err
        if code and (code != 64 or "a store of summaries" not in error):
            said[name] = f"{code}: {error}"
    assert not said


def test_a_group_that_is_damaged_costs_nothing(tmp_path: Path) -> None:
    """The summaries of single ranks stand beside it."""
    folder = store_of(rank_files(tmp_path / "traces", 3), tmp_path / "store")
    (group,) = folder.glob("groups/*")
    group.write_bytes(group.read_bytes()[:-1] + b"x")
    whole = open_store(str(folder))
    assert len(whole.ranks) == 3
    group.write_bytes(b"nothing of the kind")
    store = open_store(str(folder))
    assert len(store.ranks) == 3 and "is not a file of a capture store" in store.notes[0]
