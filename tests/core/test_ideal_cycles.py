"""Ideal cycles of an AIU's compiler beside its kernels: of a call, and as a share of the time."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs
from tests.events import complete, index_of
from tracelane.core.base.errors import TracelaneError
from tracelane.core.tables.device.aiu_cycles import parse_ideal, read_ideal_cycles
from tracelane.core.tables.device.kernels import analyse_kernels
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace, trace_of

PREFILL = """[DeepRT] ===== Perf BEGIN =====
outside-opCatConv_fp16                 77
~~~~ Ideal/Total Cycles ~~~~
Name                                   Ideal Cy.
convolution_1-opCatConv_fp16           12544
add-opCatBroadcast                     0
mm-BMM_1-opCatBmm_fp16                 1100
weights-LxPreload-opCatStcdpLx         5
plain-NA                               9   \n"""
END = "Total                   13658\n====== Perf Summary End ======\nmm-BMM_1-opCatBmm_fp16    3\n"
CYCLES = {"convolution_1": {12544}, "add": {0}, "mm-BMM_1": {1100}, "plain": {9}}
DECODING = "~~~~ Ideal/Total Cycles ~~~~\nmm-BMM_1-opCatBmm_fp16 550\nadd-opCatBroadcast 0\n"


@pytest.mark.parametrize(
    ("text", "cycles"),
    [
        (PREFILL + END, CYCLES),
        (PREFILL + END + DECODING, {**CYCLES, "mm-BMM_1": {1100, 550}}),
    ],
)
def test_tables_of_a_log_are_read(text: str, cycles: dict[str, set[int]], tmp_path: Path) -> None:
    """A line of a table is a kernel without its category; preloads and sums are none."""
    (tmp_path / "log.txt").write_text(text, encoding="utf-8")
    assert read_ideal_cycles(tmp_path / "log.txt").of_call == cycles


def test_a_cache_folder_of_inductor_is_read(tmp_path: Path) -> None:
    """A kernel is called as its folder; its cycles are the entry TOTAL, else the sum of all."""
    for name, entries in {
        "sdsc_fused_mm_0": [
            {"op_category": "Bmm", "ideal_cycles": 4},
            {"op_category": "TOTAL", "ideal_cycles": 7},
        ],
        "sdsc_fused_mm_1": [
            {"op_category": "Bmm", "ideal_cycles": 4},
            {"op_category": "Conv", "ideal_cycles": 5},
        ],
        "sdsc_fused_mm_2": [],
        "sdsc_fused_add_4": [{"op_category": "Broadcast", "ideal_cycles": 0}],
        "sdsc_fused_mm_3": [{"ideal_cycles": True}, {"ideal_cycles": 10**400}, {"ideal_cycles": -1}, 7],
    }.items():
        folder = tmp_path / "inductor-spyre" / name / "perf"
        folder.mkdir(parents=True)
        (folder / "ideal_cycles.json").write_text(json.dumps(entries), encoding="utf-8")
    assert read_ideal_cycles(tmp_path).of_call == {
        "sdsc_fused_mm_0": {7},
        "sdsc_fused_mm_1": {9},
        "sdsc_fused_add_4": {0},
    }


def test_what_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    """Damaged files, links that lead out and numbers of any length cost no other kernel its cycles."""
    folder = tmp_path / "cache" / "inductor-spyre"
    for name, text in {
        "good": '[{"op_category": "TOTAL", "ideal_cycles": 7}]',
        "cut": '[{"op_category": "TOTAL", "ideal_',
        "deep": "[" * 100_000,
        "long": '[{"ideal_cycles": %s}, {"ideal_cycles": 5}]' % ("9" * 5000),
        "out": None,
        "pipe": None,
    }.items():
        path = folder / name / "perf" / "ideal_cycles.json"
        path.parent.mkdir(parents=True)
        if text is not None:
            path.write_text(text, encoding="utf-8")
        elif name == "pipe":
            os.mkfifo(path)
        else:
            (tmp_path / "other.json").write_text('[{"ideal_cycles": 3}]', encoding="utf-8")
            path.symlink_to(tmp_path / "other.json")
    ideal = read_ideal_cycles(tmp_path / "cache")
    assert ideal.of_call == {"good": {7}, "long": {5}}
    assert [note.split(": ")[0].split()[-1] for note in ideal.notes] == ["cut", "deep", "out", "pipe"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("none.txt", None), ("text.txt", "no table"), ("folder", ""), ("binary.log", "\0\xff" * 99)],
)
def test_what_has_none_is_an_error(name: str, content: str | None, tmp_path: Path) -> None:
    """A path that is not there, or has no such cycles, is named in one line."""
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8") if content else (tmp_path / name).mkdir()
    with pytest.raises(TracelaneError, match=name):
        parse_ideal(f"ideal:{tmp_path / name}@800")


def test_share_is_of_all_calls_of_a_name(tmp_path: Path) -> None:
    """1,100 cycles at 1,100 MHz are 1 µs: of calls of 2 and 6 µs a quarter; what is not listed has none."""
    events = [
        complete(0, 2, "mm-BMM_1 Cmpt Exec", "kernel", tid=9),
        complete(10, 6, "mm-BMM_1 Cmpt Exec", "kernel", tid=9),
        complete(20, 5, "other", "kernel", tid=9),
    ]
    (tmp_path / "log.txt").write_text(PREFILL + END, encoding="utf-8")
    scope = Scope(trace_of("t.json", index_of(events, tmp_path)))
    for mhz, share, notes in (("", 0.25, 1), ("@550", 0.5, 1), ("@100.0", 2.75, 2)):
        table = analyse_kernels(scope, column=[f"ideal:{tmp_path / 'log.txt'}{mhz}"])["kernels"]
        rows = {row["name"]: (row["ideal_cycles"], row["pt_share"]) for row in table.rows()}
        assert rows["mm-BMM_1 Cmpt Exec"] == (1100, pytest.approx(share))
        assert rows["other"] == (None, None) and len(table.notes) == notes


@needs(CORPUS)
def test_kernels_of_a_job_trace_have_a_share(tmp_path: Path) -> None:
    """convolution_1 of the public job trace lasts 35.664 µs and needs 12,544 cycles."""
    (tmp_path / "log.txt").write_text(PREFILL + END, encoding="utf-8")
    trace = open_trace(CORPUS / "aiu" / "sample_flex_3062_job_4.json", index_dir=tmp_path)
    table = analyse_kernels(Scope(trace), column=[f"ideal:{tmp_path / 'log.txt'}"])["kernels"]
    shares = {row["name"]: row["pt_share"] for row in table.rows()}
    assert shares["convolution_1 Cmpt Exec"] == pytest.approx(12_544 / 1100 / 35.664)
    assert shares["add Cmpt Exec"] == 0 and shares["convolution Cmpt Exec"] is None
