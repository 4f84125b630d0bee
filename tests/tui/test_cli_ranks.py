"""The ranks command and the options that choose among captures."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tests.json_tables import command_json, flat
from tracelane.tui.cli.main import main

DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"


@needs_corpus
def test_ranks_as_table_and_object(capsys: pytest.CaptureFixture[str]) -> None:
    """The table has ranks, steps and collectives; --json and --format json are the same object."""
    assert main(["ranks", str(DLRM)]) == 0
    text = capsys.readouterr().out
    assert "Came last" in text and "Slowest rank" in text and "all_to_all" in text
    assert "residual 500 ns (median)" in text and "missing: ranks 4-7" in text
    assert main(["ranks", str(DLRM), "--json"]) == 0
    whole = flat(json.loads(capsys.readouterr().out))
    assert [rank["rank"] for rank in whole["ranks"]] == [2, 3, 1, 0], "the worst first"
    assert len(whole["collectives"]) == 8
    assert main(["ranks", str(DLRM), "--format", "json"]) == 0
    assert flat(json.loads(capsys.readouterr().out)) == whole
    assert main(["ranks", str(DLRM), "--format", "csv", "--sort", "kept_waiting_ns", "--rank", "1-3"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].startswith("rank,host") and [row.split(",")[0] for row in rows[1:]] == ["2", "3", "1"]


@needs_corpus
def test_tables_tell_ranks_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """The devices of several ranks stand in one table, by rank."""
    devices = command_json(capsys, "breakdown", DLRM)["devices"]
    assert [device["rank"] for device in devices] == [0, 1, 2, 3]


def test_what_is_left_out_is_said_and_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Tables say on stderr which capture they speak of; --capture takes another, a wrong one is answered."""
    for capture, second in (("old", 1_600_000_000), ("new", 1_700_000_000)):
        for rank in (0, 1):
            path = tmp_path / f"{capture}_rank{rank}.json"
            path.write_text(json.dumps({"traceEvents": [complete(1, 2, capture, "kernel", pid=0)]}))
            os.utime(path, (second, second))
    assert main(["kernels", str(tmp_path), "--format", "csv"]) == 0
    output = capsys.readouterr()
    assert "left out: 1 other capture" in output.err and "new" in output.out and "old" not in output.out
    assert main(["kernels", str(tmp_path), "--capture", "2", "--format", "csv"]) == 0
    assert "old" in capsys.readouterr().out
    assert main(["kernels", str(tmp_path), "--capture", "9"]) == 64
    assert "there is no 9; there is 1 (2023-11-14" in capsys.readouterr().err
