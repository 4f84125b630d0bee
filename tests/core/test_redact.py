"""Redaction: hosts, users, addresses and folders go, names of kernels and times stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.tui.small_file import events
from tracelane.core.export.redact import Redaction
from tracelane.core.trace import Trace, open_trace

KERNEL = "/tmp/torchinductor_jane/inductor-spyre/sdsc_fused_mm_0_434jgp19/bundle.mlir"


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """A trace of host `build-7`, taken by jane, whose file torch named."""
    path = tmp_path / "build-7_1234.1781947844789580072.pt.trace.json"
    path.write_text(json.dumps({"host_name": "build-7", "tw_user": "jane_d", "traceEvents": events()}))
    return open_trace(path, index_dir=tmp_path / "index")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("on build-7 at 10.2.3.44", "on redacted at redacted"),
        ("build-7_1234.178.pt.trace.json", "redacted_1234.178.pt.trace.json"),
        ("by jane_d in rebuild-70", "by redacted in rebuild-70"),
        ("/home/user1/model/run.py(12): step", "/redacted/run.py(12): step"),
        ('"cwd": "/home/user1/x/y", "user": "user1"', '"cwd": "/redacted/y", "user": "redacted"'),
        (KERNEL, "/redacted/sdsc_fused_mm_0_434jgp19/bundle.mlir"),
        ("torch/nn/modules/linear.py(103): forward", "torch/nn/modules/linear.py(103): forward"),
        ("1/2 of 3/4 s/step", "1/2 of 3/4 s/step"),
        ('"ts": 5533068085033.188, "v": "2.9.1"', '"ts": 5533068085033.188, "v": "2.9.1"'),
    ],
)
def test_what_is_hidden(text: str, hidden: str, trace: Trace) -> None:
    """Each kind goes wherever it stands, whole words only."""
    assert Redaction.of(trace)(text) == hidden


def test_words_of_this_machine(trace: Trace) -> None:
    """More words can be given; those too short to mean anyone are not hidden."""
    hide = Redaction.of(trace, ["login3", "me"])
    assert hide("me on login3") == "me on redacted"
