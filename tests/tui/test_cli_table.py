"""Printed tables fit the terminal, and have colours and bars only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import complete
from tests.tui.cli_process import tracelane
from tracelane.core.tables.schema import Column, TableSchema
from tracelane.core.tables.table import Table
from tracelane.tui.cli.main import main
from tracelane.tui.text.table import TableStyle, table_text

TABLE = Table.from_rows(
    TableSchema(
        "kernels",
        "Kernels",
        (
            Column("name", "name", "text"),
            *(Column(f"n{at}", f"number {at}") for at in range(6)),
            Column("share", "share", "share"),
        ),
    ),
    "whole trace",
    [
        {"name": name, **{f"n{at}": 10**at for at in range(6)}, "share": share}
        for name, share in (("gemm", 0.75), ("relu", 0.25))
    ],
    notes=["a note that says much more than fits into one line of a terminal"],
)


def test_bars_and_colours_are_for_terminals() -> None:
    """A coloured table has a bar behind each row; without colours the same text stands there alone."""
    coloured = table_text(TABLE, TableStyle(160, True))
    plain = table_text(TABLE, TableStyle(160))
    assert "\x1b[1m" in coloured and "█" * 6 in coloured and "█" * 7 not in coloured
    assert "\x1b" not in plain and "█" not in plain


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("sort", ["n5", "share"])
def test_the_sorted_column_stays(width: int, sort: str) -> None:
    """Whatever gives way, the column that rows are sorted by does not, and no line is too wide."""
    lines = table_text(TABLE, TableStyle(width), sort=sort).splitlines()
    heading = {"n5": "Number 5", "share": "Share"}[sort]
    assert heading in lines[1] and max(map(len, lines)) <= width


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("command", ["ops", "kernels", "slices", "steps", "memory", "launches", "breakdown"])
@pytest.mark.parametrize(
    "name", ["gpu/hta_a100_resnet_ddp_nccl.json.gz", "aiu/mlp_trace.json", "gpu/tl_torch_compile_triton*"]
)
def test_tables_of_real_traces_fit_80_columns(
    command: str,
    name: str,
    corpus_cache: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With COLUMNS=80 each line of each table has at most 80 characters, also into a pipe."""
    monkeypatch.setenv("COLUMNS", "80")
    path = sorted(CORPUS.glob(name))[0]
    assert main([command, str(path), "--index-dir", str(corpus_cache)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 1 and [line for line in lines if len(line) > 80] == []


@needs_corpus
@pytest.mark.parametrize("command", ["ops", "kernels", "slices", "range"])
def test_generated_kernels_are_told_apart_at_80_columns(
    command: str, corpus_cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels of an AIU that are named by long paths stand there by what differs, whole."""
    monkeypatch.setenv("COLUMNS", "80")
    path = CORPUS / "aiu" / "mlp_trace.json"
    assert main([command, str(path), "--index-dir", str(corpus_cache)]) == 0
    table = capsys.readouterr().out
    for name in ("sdsc_fused_mm_mul_silu_0", "sdsc_fused_mm_1", "sdsc_fused_sum_0"):
        assert f"{name} " in table
    assert "/tmp/" not in table


@pytest.mark.slow
@needs_corpus
def test_what_ended_a_gap_fits_80_columns(tmp_path: Path) -> None:
    """The longest gaps say what ended each, also where the terminal is narrow; no heading comes twice."""
    path = CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz"
    done = tracelane("idle", str(path), "--index-dir", str(tmp_path / "index"), COLUMNS="80")
    gaps = done.stdout.split("Longest gaps", 1)[1]
    assert "Ended by" in gaps and "ncclKernel" in gaps
    wide = tracelane("idle", str(path), "--index-dir", str(tmp_path / "index"), COLUMNS="300")
    headings = [heading for heading in _line_after(wide.stdout, "Idle time").split("  ") if heading.strip()]
    assert len(set(headings)) == len(headings) == 15


def test_moments_of_a_query_count_from_the_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`sql` prints times since the trace begins, none as none; JSON and CSV have the views' own ns."""
    begin = 1_700_000_000_000_000  # µs: as many traces have, since 1970
    trace = tmp_path / "t.json"
    trace.write_text(
        json.dumps([complete(begin + at, 5, f"k{at}", cat="kernel", pid=0, tid=1) for at in (0, 250)])
    )
    query = "select name, ts from kernels union all select 'none', null order by 1"
    assert main(["sql", str(trace), query]) == 0
    text = capsys.readouterr().out
    assert "+250 µs" in text and " d " not in text and f"@{begin}.000" in text
    assert next(line for line in text.splitlines() if line.startswith("none")).split() == ["none", "-"]
    assert main(["sql", str(trace), query, "--format", "csv"]) == 0
    assert f"k250,{(begin + 250) * 1000}" in capsys.readouterr().out


def _line_after(text: str, begun: str) -> str:
    lines = text.splitlines()
    return lines[next(number for number, line in enumerate(lines, 1) if line.startswith(begun))]
