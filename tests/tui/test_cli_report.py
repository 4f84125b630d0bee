"""`tracelane report`: its sections, the bundle, and what redaction leaves."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.tui.small_file import small_file
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import EXIT_USAGE, main

AIU = "aiu/spyre_torch_profiler/decode_bmm__upstream-main*.json"
BEFORE = "aiu/spyre_torch_profiler/decode_bmm__branch-baseline*.json"
LOG = "aiu_smi/PAIR2_decode_bmm_upstream_newyork_100ms.csv"
SECTIONS = ("Environment", "Steps", "Device time", "Findings", "Ops, as PyTorch prints them", "Kernels")


def test_sections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report has all sections, says how many iterations there are, and draws the one of median length."""
    assert main(["report", str(small_file(tmp_path))]) == 0
    text = capsys.readouterr().out
    for section in SECTIONS:
        assert f"\n## {section}\n" in text
    assert "Iterations: 2 (ProfilerStep#N" in text
    assert "## A picture of step 0" in text
    assert "aten::linear" in text
    assert "Telemetry" not in text
    assert text.count("- [ ] ") == 6


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A report goes to a new file only."""
    out = tmp_path / "report.md"
    trace = str(small_file(tmp_path))
    assert main(["report", trace, "-o", str(out)]) == 0
    assert out.read_text().startswith("# Performance report: small.json")
    assert main(["report", trace, "-o", str(out)]) == EXIT_USAGE
    assert "is there already" in capsys.readouterr().err


@needs_corpus
def test_bundle(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundle has the step shown as a trace, its lines of the log, and nobody's name."""
    (trace,), (before,) = CORPUS.glob(AIU), CORPUS.glob(BEFORE)
    out = tmp_path / "issue.zip"
    arguments = ["report", str(trace), "--smi", str(CORPUS / LOG), "--baseline", str(before)]
    assert main([*arguments, "--bundle", str(out), "--redact"]) == 0
    capsys.readouterr()
    with zipfile.ZipFile(out) as packed:
        assert packed.namelist() == ["report.md", "summary.json", "telemetry-0.csv", "trace.json.gz"]
        packed.extractall(tmp_path)
        everything = packed.read("report.md") + packed.read("summary.json") + packed.read("telemetry-0.csv")
    assert b"adnan" not in everything
    assert b"/home/" not in everything
    report = (tmp_path / "report.md").read_text()
    assert "The log covers step 1 from end to end." in report
    assert "### Metrics" in report and "| kernels.time | " in report and "noise: " in report
    assert "| kernels.calls | 8 | 8 | 0 | +0.00% |" in report
    assert report.count("- [ ] ") == 7 and "of the earlier run: its date, its commit" in report
    assert json.loads((tmp_path / "summary.json").read_text())["command"] == "summary"
    rows = (tmp_path / "telemetry-0.csv").read_text().splitlines()
    assert rows[1].startswith("ID,Date")
    assert len(rows) == 3
    cut = open_trace(tmp_path / "trace.json.gz", index_dir=tmp_path / "index")
    whole = open_trace(trace, index_dir=tmp_path / "index")
    names = {cut.indexes[0].string(int(n)) for n in cut.indexes[0].column("slices.name")}
    assert any(name.startswith("Torch-Compiled Region") for name in names)
    assert not any("adnan" in name for name in names)
    stamps = {int(start) for start in whole.indexes[0].column("slices.start")}
    assert {int(start) for start in cut.indexes[0].column("slices.start")} <= stamps
