"""The analysis `explain`: what costs most, what can be trusted, and answers to questions, in a few KB.

Every number is that of the command named beside it. In commands TRACE stands for what was opened.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ...base.errors import UsageError
from ..doctor.doctor import analyse_doctor
from ..findings.finding import Finding
from ..findings.forms import finding_row, saved_findings
from ..frame.frames import text_in_cell
from ..frame.schema import Column, TableSchema
from ..frame.scope import Scope
from ..frame.table import Table, Tables
from ..registry import BY_NAME

HEADLINE = "0"
"""The number of a headline: it costs no time of its own."""
MAX_CAUSES = 5
"""Causes that are listed; each with what it explains."""
ROOM = {"causes": 3400, "trust": 1600, "answers": 5000}
"""Bytes that the rows of a table take at most as JSON: with columns and notes the whole stays below 8 KB."""
MAX_TEXT_LENGTH = 220
ANSWER_ROWS = 3
CAUSES = TableSchema(
    "causes",
    "What costs time",
    (
        Column("number", "number", "text"),
        Column("rule", "rule", "text"),
        Column("caused_by", "caused by", "text", detail=True),
        Column("short", "what", "text"),
        Column("claimed_ns", "cost", "ns"),
        Column("caused_ns", "by its cause", "ns"),
        Column("share", "of the time", "share"),
        Column("finding", "finding", "text"),
        Column("command", "command", "text"),
    ),
)
CAUSE_KEYS = [column.key for column in CAUSES.columns]
TRUST = TableSchema(
    "trust",
    "What distorts the recording",
    (
        Column("rule", "rule", "text"),
        Column("severity", "severity", "text"),
        Column("count", "count", "count"),
        Column("text", "what", "text"),
        Column("command", "command", "text"),
    ),
)
ANSWERS = TableSchema(
    "answers",
    "Answers",
    (
        Column("question", "question", "text"),
        Column("number", "number", "count"),
        Column("text", "answer", "text"),
        Column("answer", "answer", "object", detail=True),
        Column("command", "command", "text"),
    ),
)


class Question(NamedTuple):
    """What can be asked: the first rows of a table of a command, by a column, and which columns answer."""

    name: str
    text: str
    command: str  # with its options, without trace and range
    columns: tuple[str, ...]
    table: str = ""  # else the first
    sort: str = ""  # column, most first
    options: tuple[tuple[str, Any], ...] = ()
    also: str = ""  # other words in which it is asked


QUESTIONS = (
    Question(
        "busy",
        "How busy are the devices?",
        "breakdown",
        ("rank", "label", "busy_share", "busy_ns", "of_ns", "idle_ns"),
        table="states",
        sort="of_ns",
        also="load occupied share usage used utilisation utilised utilization utilized gpu",
    ),
    Question(
        "idle",
        "Why do streams wait?",
        "idle",
        ("stream", "idle_ns", "host_wait_ns", "kernel_wait_ns", "other_ns"),
        sort="idle_ns",
        also="bubble device gpu nothing runs stalled starved underused unused waiting",
    ),
    Question(
        "gap",
        "Which gaps on the device are longest?",
        "idle",
        ("start_ns", "gap_ns", "after", "before", "class"),
        table="gaps",
        sort="gap_ns",
        also="hole idle largest pause stream",
    ),
    Question(
        "kernel",
        "Which kernels take most time?",
        "kernels",
        ("name", "count", "total_ns", "share"),
        sort="total_ns",
        also="expensive go goes gpu hot hottest slowest spent",
    ),
    Question(
        "kind",
        "Which kinds of kernels take most time?",
        "kernels --by kind",
        ("name", "count", "total_ns", "share"),
        sort="total_ns",
        options=(("by", "kind"),),
        also="attention category communication convolution elementwise gemm norm product softmax type",
    ),
    Question(
        "op",
        "Which operators take most time of the CPU, by themselves?",
        "ops --no-frames --sort self_cpu_ns",
        ("name", "calls", "self_cpu_ns", "cpu_total_ns"),
        sort="self_cpu_ns",
        options=(("no_frames", True),),
        also="cost costs expensive function host operation python slowest",
    ),
    Question(
        "device-op",
        "Which operators take most time of the GPU, by themselves?",
        "ops --sort device_self_ns",
        ("name", "calls", "device_self_ns", "device_busy_ns"),
        sort="device_self_ns",
        also="cost costs device expensive operation",
    ),
    Question(
        "step",
        "How long do steps take?",
        "steps --groups",
        ("group", "count", "mean_ns", "p50_ns", "p95_ns", "max_ns"),
        table="groups",
        sort="count",
        options=(("groups", True),),
        also="average batch duration epoch iteration mean median throughput",
    ),
    Question(
        "slow-step",
        "Which single steps are slowest?",
        "steps --sort length_ns",
        ("step", "length_ns", "wall_ns", "device_busy_ns", "idle_ns", "start_ns"),
        table="steps",
        sort="length_ns",
        also="batch iteration longest outlier slow worst",
    ),
    Question(
        "launch",
        "Which launch calls take most time?",
        "launches --sort call_ns",
        ("name", "count", "call_ns", "delay_median_ns"),
        sort="call_ns",
        also="calls host launches overhead slowest started starts",
    ),
    Question(
        "copy",
        "Which copies move most bytes?",
        "memory --first copies",
        ("name", "memory", "count", "bytes", "time_ns", "bandwidth"),
        table="copies",
        sort="bytes",
        also="copied device dtoh host htod memcpy pageable transfer transferred",
    ),
    Question(
        "memory",
        "How much memory do allocators hold at their peak?",
        "memory",
        ("name", "peak_bytes", "peak_ns"),
        sort="peak_bytes",
        also="allocated allocation allocations gib held leak mib oom",
    ),
    Question(
        "rank",
        "Which ranks keep others waiting?",
        "ranks",
        ("rank", "step_ns", "waited_ns", "kept_waiting_ns", "last"),
        sort="kept_waiting_ns",
        also="behind imbalance last late slow straggler wait",
    ),
    Question(
        "collective",
        "Which collectives take longest, at which bandwidth?",
        "ranks --first collectives",
        ("name", "bytes", "pure_ns", "wait_ns", "algbw", "busbw", "ranks_missing"),
        table="collectives",
        sort="pure_ns",
        also="all allreduce broadcast communication gather nccl reduce scatter",
    ),
    Question(
        "path",
        "What does the length hang on: the critical path by kind?",
        "critical-path --by kind",
        ("name", "count", "duration_ns", "share"),
        table="path",
        options=(("by", "kind"),),
        also="bottleneck bound depends limit limits",
    ),
    Question(
        "efficiency",
        "Which operators achieve how many FLOP/s, of the peak?",
        "efficiency",
        ("name", "shapes", "count", "tflops", "gbs", "peak_share"),
        sort="kernel_ns",
        also="bandwidth flop flops gemm matrix near product products roofline tensor tflops",
    ),
    Question(
        "compile",
        "What did torch.compile compile?",
        "compile",
        ("name", "count", "total_ns"),
        sort="total_ns",
        also="compilation compiled dynamo graph inductor recompilation recompiled triton",
    ),
)
NAMES = {question.name: question for question in QUESTIONS}


def analyse_explain(scope: Scope, question: str = "") -> Tables:
    """Return the largest causes of lost time and what distorts the recording; with a question its answers."""
    if question:
        one = question_of(question)
        return Tables(scope.text, scope.origin, {"answers": lambda: _answers(scope, one)})
    makers = {"causes": lambda: _causes(scope), "trust": lambda: _trust(scope)}
    return Tables(scope.text, scope.origin, makers, totals_of="trust")


def question_of(text: str) -> Question:
    """Return the question of this name, else the one that is meant most likely; UsageError where none is.

    A word that few questions have tells more than one of many ("gpu"); one that is only `also` said of a
    question tells half as much as one of its own.
    """
    if text.strip() in NAMES:
        return NAMES[text.strip()]
    words = _words(text)
    own, also = (
        [_words(f"{one.name} {one.text}") for one in QUESTIONS],
        [_words(one.also) for one in QUESTIONS],
    )
    of_all = Counter(word for mine, others in zip(own, also) for word in mine | others)
    scores = [
        sum((2 if word in mine else 1) / of_all[word] for word in words & (mine | others))
        for mine, others in zip(own, also)
    ]
    if not max(scores):
        raise UsageError(f"no question is like {text!r}; there are {', '.join(NAMES)}")
    return QUESTIONS[scores.index(max(scores))]


COMMON = re.compile(
    r"\b(a|an|and|any|anything|are|at|be|been|by|can|could|did|do|does|for|from|had|has|have|how|i|in|is|it|its|long|"
    r"many|much|my|most|of|often|on|or|over|should|so|takes?|that|the|their|them|there|these|they|this|time|to|"
    r"trace|was|were|what|when|where|which|who|why|with)\b"
)
"""Words that tell no question from another."""


def _words(text: str) -> set[str]:
    """Return the words that tell questions apart, without the s of a plural."""
    words = re.findall("[a-z]+", COMMON.sub(" ", text.lower()))
    return {word.removesuffix("s") for word in words}


def _answers(scope: Scope, question: Question) -> Table:
    analysis = BY_NAME[question.command.partition(" ")[0].replace("-", "_")]
    tables = analysis.run(scope, **dict(question.options))
    table = tables[question.table] if question.table else tables.main
    order = table.order(question.sort, True) if question.sort else None
    command = _command(scope, question.command)
    rows = []
    for number, row in enumerate(table.rows(order, ANSWER_ROWS), 1):
        answer = {key: _short(row[key]) for key in question.columns}
        text = _short(_sentence(table, row, question.columns))
        rows.append(
            {"question": question.text, "number": number, "text": text, "answer": answer, "command": command}
        )
    notes = [f"{question.text} {len(table):,} rows of {command}"]
    return Table.from_rows(ANSWERS, scope.text, _fitting(rows, ROOM["answers"]), notes=notes)


def _sentence(table: Table, row: Mapping[str, Any], keys: Sequence[str]) -> str:
    """Return columns of a row as people read them: `sgemm, count 12, total 3.2 ms`; names need no heading."""
    parts = []
    for column in map(table.column, keys):
        value = text_in_cell(table, column, row[column.key])
        is_clear = column.unit == "text" and not value.isdigit()
        parts.append(value if is_clear else f"{column.title.removesuffix(' %')} {value}")
    return ", ".join(part for part in parts if part)


def _causes(scope: Scope) -> Table:
    """Return the largest causes, each followed by what it explains, and the headlines: first where one of
    them is what `findings` say first, else last.
    """
    report = saved_findings(scope)
    losses = report.losses
    roots = [one for one in losses if not one.caused_by]
    largest = sorted(roots, key=lambda one: -one.claimed_ns)[:MAX_CAUSES]
    rows = [row for at, one in enumerate(largest, 1) for row in _with_effects(scope, one, losses, str(at))]
    heads = [row for one in report.of_kind("headline") for row in _with_effects(scope, one, (), HEADLINE)]
    leads = report.leading is not None and report.leading.kind == "headline"
    rows = [*heads, *rows] if leads else [*rows, *heads]
    notes = [
        f"the numbers are those of {_command(scope, 'findings')}",
        f"--question NAME asks more: {', '.join(NAMES)}",
    ]
    return Table.from_rows(CAUSES, scope.text, _fitting(rows, ROOM["causes"]), notes=notes)


def _with_effects(
    scope: Scope, cause: Finding, losses: Sequence[Finding], number: str
) -> Iterator[Mapping[str, Any]]:
    """Yield the row of a finding and those of what it explains."""
    row = finding_row(cause, scope.origin)
    command = _command(scope, "findings")
    if row["evidence"] and row["evidence"][0]["start_ns"] >= 0:
        where = row["evidence"][0]
        command = f"tracelane slices TRACE --from +{where['start_ns']}ns --to +{where['end_ns']}ns"
    yield {key: _short(row.get(key)) for key in CAUSE_KEYS} | {"number": number, "command": command}
    effects = [one for one in losses if one.caused_by == cause.rule]
    for at, one in enumerate(effects, 1):
        yield from _with_effects(scope, one, losses, f"{number}.{at}")


def _trust(scope: Scope) -> Table:
    """Return what doctor warns of in the whole files, whatever the scope."""
    whole = replace(scope, range=None, work=None, label="", lanes=None, where=None)
    tables = analyse_doctor(whole)
    keys = ("rule", "severity", "count", "text")
    grave = [row for row in tables.main.rows() if row["severity"] != "note"]
    rows = [{**{key: _short(row[key]) for key in keys}, "command": "tracelane doctor TRACE"} for row in grave]
    totals = {key: tables.totals[key] for key in ("errors", "warnings", "notes")}
    totals["untrusted_ns"] = sum(tables["untrusted"].numbers("ns").tolist())
    return Table.from_rows(TRUST, scope.text, _fitting(rows, ROOM["trust"]), totals=totals)


def _command(scope: Scope, words: str) -> str:
    """Return a command as typed, with the range or step of the scope."""
    step = scope.label.removeprefix("step ")
    if scope.work is not None and step != scope.label:
        return f"tracelane {words} TRACE --step {step}"
    if scope.range is None:
        return f"tracelane {words} TRACE"
    start, end = (time - scope.origin for time in scope.range)
    return f"tracelane {words} TRACE --from +{start}ns --to +{end}ns"


def _short(value: Any) -> Any:
    """Return a value, of a long text its beginning."""
    if isinstance(value, str) and len(value) > MAX_TEXT_LENGTH:
        return value[: MAX_TEXT_LENGTH - 1] + "…"
    return value


def _fitting(rows: Iterable[Mapping[str, Any]], room: int) -> Sequence[Mapping[str, Any]]:
    """Return the first rows that take no more than so many bytes as JSON."""
    chosen = []
    for row in rows:
        room -= len(json.dumps(row, default=str)) + 8
        if room < 0:
            break
        chosen.append(row)
    return chosen
