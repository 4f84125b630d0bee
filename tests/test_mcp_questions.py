"""What agents ask: questions in words with answers that are known, each by one call of at most 8 KB."""

from __future__ import annotations

import ast
import gzip
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from tests.corpus import SAMPLES
from tests.mcp_server import mcp_module
from tracelane.core.tables.explain.questions import NAMES

MAX_BYTES = 8_000
Events = list[dict[str, Any]]
WORK = ("kernel", "gpu_memcpy", "gpu_memset")
H100, INFERENCE = "cuda/activities.pt.trace.json.gz", "cuda/inference.pt.trace.json.gz"
TRAINING, COMPILED = "cpu/torch_2.14_training.pt.trace.json.gz", "cpu/torch_2.13_compiled.pt.trace.json.gz"
RANKS = "ranks"


@cache
def events_of(sample: str) -> Events:
    """Return the slices and instants of a sample as Python's own decoder reads them."""
    whole = json.loads(gzip.decompress((SAMPLES / sample).read_bytes()))
    return [event for event in whole["traceEvents"] if event.get("ph") in ("X", "i")]


def of(sample: str, *categories: str) -> Events:
    return [event for event in events_of(sample) if event.get("cat") in categories]


def totals(events: Events) -> dict[str, int]:
    """Return the ns of each name."""
    sums: dict[str, float] = defaultdict(float)
    for event in events:
        sums[event["name"]] += event["dur"]
    return {name: round(us * 1000) for name, us in sums.items()}


def most(amounts: dict[str, int]) -> str:
    return max(amounts, key=lambda name: amounts[name])


def busy_ns(events: Events) -> int:
    """Return the ns in which any of them runs."""
    covered, reach = 0.0, 0.0
    for start, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        covered += max(0.0, end - max(start, reach))
        reach = max(reach, end)
    return round(covered * 1000)


def longest_gap_ns(events: Events) -> int:
    """Return the longest time on a stream from where nothing runs any more to the next start."""
    longest = 0.0
    for stream in {event["tid"] for event in events}:
        own = sorted((event["ts"], event["ts"] + event["dur"]) for event in events if event["tid"] == stream)
        reach = own[0][1]
        for start, end in own:
            longest, reach = max(longest, start - reach), max(reach, end)
    return round(longest * 1000)


def most_idle_ns(events: Events) -> int:
    """Return for how long nothing runs on the stream that is idle longest, between first and last work."""
    lanes = [[event for event in events if event["tid"] == tid] for tid in {event["tid"] for event in events}]
    spans = [max(e["ts"] + e["dur"] for e in lane) - min(e["ts"] for e in lane) for lane in lanes]
    return max(round(span * 1000) - busy_ns(lane) for span, lane in zip(spans, lanes))


def steps(sample: str) -> dict[str, int]:
    """Return the ns of each step by its label."""
    marks = (event for event in of(sample, "user_annotation") if event["name"].startswith("ProfilerStep#"))
    return {event["name"].removeprefix("ProfilerStep#"): round(event["dur"] * 1000) for event in marks}


class Average(NamedTuple):
    """An operator in PyTorch's own table of a sample: key_averages; ns."""

    name: str
    calls: int
    self_cpu: int
    self_device: int = 0


def averages(sample: str) -> list[Average]:
    """Return the operators and annotations of a sample, without what ran on a device."""
    path = SAMPLES / sample.replace(".pt.trace.", ".averages.")
    whole = json.loads(gzip.decompress(path.read_bytes()))
    if isinstance(whole, dict):
        return [Average(row[0], row[2], row[4]) for row in whole["averages"]]
    return [Average(row[0], row[3], row[5], row[7]) for row in whole if not row[1]]


def first_by(sample: str, column: str) -> str:
    return max(averages(sample), key=lambda one: int(getattr(one, column))).name


def count_of_top(sample: str) -> int:
    top = most(totals(of(sample, *WORK)))
    return sum(event["name"] == top for event in of(sample, *WORK))


def launching_calls(sample: str) -> int:
    """Return how many of the calls that launch most often have work of their correlation id."""
    ids = {event["args"]["correlation"] for event in of(sample, *WORK)}
    calls = (
        event
        for event in of(sample, "cuda_runtime", "cuda_driver")
        if event["args"].get("correlation") in ids
    )
    return max(Counter(event["name"] for event in calls).values())


def peak_bytes(sample: str) -> int:
    records = (event for event in events_of(sample) if event["name"] == "[memory]")
    return max(event["args"]["Total Allocated"] for event in records)


class Question(NamedTuple):
    """A question about a sample, and what its answer holds; the call where that is not `explain`."""

    sample: str
    words: str
    answer: Callable[[], list[object]]
    table: tuple[str, dict[str, Any], str] | None = None  # analysis, options, column to sort by


QUESTIONS = (
    Question(H100, "Where does the time on the GPU go?", lambda: [most(totals(of(H100, *WORK)))]),
    Question(H100, "How busy is the GPU?", lambda: [busy_ns(of(H100, *WORK))]),
    Question(H100, "Why is the device idle?", lambda: [most_idle_ns(of(H100, *WORK))]),
    Question(H100, "What is the longest gap on the device?", lambda: [longest_gap_ns(of(H100, *WORK))]),
    Question(H100, "How often does the most expensive kernel run?", lambda: [count_of_top(H100)]),
    Question(H100, "Which host calls launch the work, and how often?", lambda: [launching_calls(H100)]),
    Question(H100, "Which operator costs the CPU most?", lambda: [first_by(H100, "self_cpu")]),
    Question(H100, "Which operators cost the GPU most?", lambda: [first_by(H100, "self_device")]),
    Question(INFERENCE, "Are the matrix products near the peak?", lambda: ["aten::addmm"]),
    Question(H100, "Is it matrix products, attention or elementwise work?", lambda: ["gemm"]),
    Question(
        H100,
        "How many kernels are there?",
        lambda: [len(of(H100, "kernel"))],
        ("kernels", {"by": "type"}, ""),
    ),
    Question(INFERENCE, "What is the hottest kernel?", lambda: [most(totals(of(INFERENCE, *WORK)))]),
    Question(INFERENCE, "How much of the time is the GPU used?", lambda: [busy_ns(of(INFERENCE, *WORK))]),
    Question(
        INFERENCE, "Where is the largest pause of the stream?", lambda: [longest_gap_ns(of(INFERENCE, *WORK))]
    ),
    Question(INFERENCE, "How many launches does the host make?", lambda: [launching_calls(INFERENCE)]),
    Question(INFERENCE, "Which operator costs the host most?", lambda: [first_by(INFERENCE, "self_cpu")]),
    Question(TRAINING, "How long does an iteration take?", lambda: [max(steps(TRAINING).values())]),
    Question(
        TRAINING,
        "Which iteration was slowest?",
        lambda: [most(steps(TRAINING)), max(steps(TRAINING).values())],
    ),
    Question(TRAINING, "What was the most memory allocated at a time?", lambda: [peak_bytes(TRAINING)]),
    Question(
        TRAINING, "Which Python function or operator is expensive?", lambda: [first_by(TRAINING, "self_cpu")]
    ),
    Question(TRAINING, "What is called most?", lambda: [first_by(TRAINING, "calls")], ("ops", {}, "calls")),
    Question(COMPILED, "Was anything recompiled or compiled?", lambda: ["Torch-Compiled Region"]),
    Question(COMPILED, "What is expensive on the CPU?", lambda: [first_by(COMPILED, "self_cpu")]),
    Question(RANKS, "Which rank is the straggler?", lambda: [0, 1]),
    Question(RANKS, "How long do the all-reduces take?", lambda: ["all_reduce"]),
)


@pytest.fixture(scope="module")
def mcp(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The server's tools over the samples, and two ranks in a folder of their own."""
    module: ModuleType = mcp_module()
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    (folder / RANKS).mkdir()
    for rank in (0, 1):
        name = f"torch_2.14_rank{rank}.pt.trace.json.gz"
        shutil.copy(SAMPLES / "cpu" / name, folder / RANKS / name)
    return module.Folder([folder])


def values(of: Any) -> list[object]:
    """Return all texts and numbers of a reply."""
    if isinstance(of, dict):
        return [one for value in of.values() for one in values(value)]
    return [one for value in of for one in values(value)] if isinstance(of, list) else [of]


def holds(said: list[object], answer: object) -> bool:
    """Tell whether a reply has a text as part of one, or a number but for what rounding adds up to."""
    if isinstance(answer, str):
        return any(isinstance(one, str) and answer in one for one in said)
    assert isinstance(answer, int)
    return any(isinstance(one, int) and abs(one - answer) <= max(3, answer // 100_000) for one in said)


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.words)
def test_a_question_is_answered_by_one_call(question: Question, mcp: Any) -> None:
    """The reply to a question that does not name its answer holds that, in at most 8 KB."""
    if question.table is None:
        text = mcp.explain(question.sample, question.words)
    else:
        analysis, options, sort = question.table
        text = mcp.table(question.sample, analysis, options, sort)
    assert len(text) <= MAX_BYTES
    said = values(json.loads(text)["rows"])
    for answer in question.answer():
        assert holds(said, answer), (answer, text)
        assert not isinstance(answer, str) or answer.lower() not in question.words.lower()


SKILL = Path(__file__).parent.parent / "packages" / "mcp" / "SKILL.md"
CALLS = re.findall(r"`(explain\(trace.*?\)|table\(trace, \".*?\))`", SKILL.read_text(encoding="utf-8"))


@pytest.mark.parametrize("call", CALLS)
def test_every_call_that_agents_are_told_is_answered(call: str, mcp: Any) -> None:
    """What SKILL.md says to call is a call of the server, whose reply has at most 8 KB."""
    tool = ast.parse(call, mode="eval").body
    assert isinstance(tool, ast.Call) and isinstance(tool.func, ast.Name)
    words = [ast.literal_eval(one) for one in tool.args[1:]]
    sample = TRAINING if "nth:-1" in call else RANKS if '"rank"' in call or "collective" in call else H100
    words = [{**one, "baseline": INFERENCE} if one == {"baseline": "before.json"} else one for one in words]
    assert len(getattr(mcp, tool.func.id)(sample, *words)) <= MAX_BYTES


def test_every_question_stands_in_what_agents_are_told() -> None:
    """SKILL.md leaves out no question that has a name."""
    assert {name for name in NAMES if f'"{name}"' not in "".join(CALLS)} <= {"gap"}
