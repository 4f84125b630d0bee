"""What a line of 80 columns says of a finding: the culprit, and what it costs in two or three digits."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.corpus import for_files, traces
from tracelane.core.base.errors import UnreadableError
from tracelane.core.tables.findings.finding import SHORT_CELLS, Finding, Findings
from tracelane.core.tables.findings.forms import saved_findings
from tracelane.core.tables.findings.judge import RULES, listed_by_cause
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.trace import open_trace
from tracelane.tui.draw.verdict import sentences

ENDINGS = (".json", ".gz", ".zip")
MAX_BYTES = 40 << 20
FILES = [path for path in traces("**/*") if path.name.endswith(ENDINGS) and path.stat().st_size < MAX_BYTES]
TOO_EXACT = re.compile(r"(?<![\w.])\d+\.\d{3,} (ns|µs|ms|s)\b")


def finding(rule: str, ns: int, share: float) -> Finding:
    return Finding(
        rule=rule,
        title=rule,
        text="",
        evidence=(),
        claimed_ns=ns,
        share=share,
        kind=RULES[rule].kind,
        threshold="",
        origin="",
        helps="",
        in_steps=0,
        of_steps=0,
        sources=(0,),
    )


@pytest.mark.slow
@for_files("path", FILES)
def test_every_rule_has_a_short_form(path: Path, corpus_cache: Path) -> None:
    """Whatever is no note fits beside the key that shows it, whole; no time has more than three digits."""
    try:
        trace = open_trace(path, index_dir=corpus_cache)
    except UnreadableError:
        return
    findings = saved_findings(Scope(trace, clocks=trace.clocks))
    assert findings.leading is None or findings.leading.kind != "note"
    for one in findings.findings:
        if one.kind != "note":
            assert one.short and len(one.short) <= SHORT_CELLS, (one.rule, one.short)
            assert any(len(text) <= SHORT_CELLS for text in sentences(one.as_leading)[:-1]), one.rule
        for text in (one.text, one.short, *sentences(one.as_leading)):
            assert not TOO_EXACT.search(text), text
    trace.close()


@pytest.mark.parametrize(("share", "is_first"), [(0.049, False), (0.05, True), (1.0, True)])
def test_what_is_missing_leads_where_it_is_much(share: float, is_first: bool) -> None:
    """Missing work stands before what costs time where it is a twentieth of the time."""
    some = [finding("launch-gaps", 100, 0.3), finding("lost-kernels", 10, share)]
    assert (listed_by_cause(some)[0].rule == "lost-kernels") is is_first


def test_a_note_is_not_read_first() -> None:
    """Where there are only notes nothing stands out, and a headline goes before them."""
    note, headline = finding("triton", 5, 0.5), finding("device-bound", 0, 0.0)
    assert Findings("", (note,), ()).leading is None
    assert Findings("", listed_by_cause([note, headline]), ()).leading == replace(headline)
