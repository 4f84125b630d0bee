"""Names are explained in one line with a source, and answers of a few KB are those of other commands."""

from __future__ import annotations

import gzip
import json
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import cache
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests.core.findings_traces import kernel, trace_of
from tests.corpus import CORPUS, file, for_files, needs
from tests.events import complete, index_of
from tracelane.core.base.errors import UsageError
from tracelane.core.export.formats import as_json
from tracelane.core.index.store import Index
from tracelane.core.tables.explain.explain import TABLE, explain
from tracelane.core.tables.explain.questions import QUESTIONS, analyse_explain, question_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import BY_NAME
from tracelane.core.trace import Trace, open_trace

MAX = 100
"""Cells of a line: it shall fit the panel on a screen of ordinary width."""


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A source with calls of CUDA."""
    return index_of([complete(0, 1, "cudaLaunchKernel", "cuda_runtime")], tmp_path_factory.mktemp("cuda"))


@pytest.fixture(scope="module")
def aiu(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """A source with calls of the AIU's runtime."""
    events = [complete(0, 1, "aiuMalloc", "privateuse1_runtime")]
    return index_of(events, tmp_path_factory.mktemp("aiu"))


def test_every_entry_is_a_plain_line_with_a_source() -> None:
    """Lines begin small, end without a stop, are short and alike in no two places; patterns are sound."""
    lines = [entry.line for entry in TABLE]
    assert len(set(lines)) == len(lines)
    for entry in TABLE:
        re.compile(entry.pattern)
        assert entry.source
        assert len(entry.line) <= MAX, entry.line
        assert not entry.line.endswith(".")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("cudaLaunchKernel", "queues a kernel"),
        ("cudaLaunchKernelExC", "queues a kernel"),
        ("hipExtModuleLaunchKernel", "loaded module"),
        ("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", "how many blocks fit"),
        ("cudaDeviceSynchronize", "waits for all work of the device"),
        ("aten::addmm", "plus a bias"),
        ("aten::mm", "two matrices"),
        ("aten::bmm", "batches"),
        ("Torch-Compiled Region: 3/1", "frame id / compile id"),
        ("## Call CompiledFxGraph None ##", "Inductor"),
        ("triton_red_fused_add_mean_0", "loops over its input"),
        ("compile_file (dynamo_timed)", "C++ compiler"),
        ("aiurdmabarrier2", "barrier"),
        ("AIURDMABARRIER2", "barrier"),
        ("aiuCommsCollAllreduceSetup", "sets up"),
        ("aiuCommsCollAllreduce", "as the host sees it"),
        ("Unknown CBID 91", "no name for"),
    ],
)
def test_names_are_explained(cuda: Index, name: str, part: str) -> None:
    """The first entry that fits the whole name, case aside, is the one that is meant."""
    explanation = explain(name, Trace([cuda]), 0)
    assert explanation is not None
    assert part in explanation.line


@pytest.mark.parametrize("name", ["my_function", "aten::mm_backward", "cudaLaunchKernel2", ""])
def test_other_names_are_left_alone(cuda: Index, name: str) -> None:
    """A name that only begins like one of the table is not explained."""
    assert explain(name, Trace([cuda]), 0) is None


def test_a_memset_allocates_on_an_aiu_only(cuda: Index, aiu: Index) -> None:
    """What a name means depends on the device: elsewhere a memset sets memory."""
    explanation = explain("Memset (Device)", Trace([aiu]), 0)
    assert explanation is not None
    assert "allocated" in explanation.line
    assert explain("Memset (Device)", Trace([cuda]), 0) is None


@needs(CORPUS)
@pytest.mark.parametrize(
    ("name", "categories"),
    [
        ("aiu/mlp_trace.json", ("privateuse1_runtime", "privateuse1_driver", "gpu_memset")),
        ("gpu/tl_h100_qwen_infer.json.gz", ("cuda_runtime", "cuda_driver")),
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", ("overhead",)),
    ],
)
def test_the_calls_of_real_traces_are_known(
    name: str, categories: tuple[str, ...], corpus_cache: Path
) -> None:
    """Of the runtime's calls in these traces nine of ten slices have an explanation."""
    index = open_trace(file(name), index_dir=corpus_cache).indexes[0]
    kinds = index.column("slices.category").tolist()
    names = index.strings(index.column("slices.name"))
    calls = [text for kind, text in zip(kinds, names) if index.categories[kind] in categories]
    known = sum(explain(text, Trace([index]), 0) is not None for text in calls)
    assert known >= 0.9 * len(calls), {text for text in calls if explain(text, Trace([index]), 0) is None}


MAX_QUESTIONS = 8192
WORK = {"kernel", "Kernel", "gpu_memcpy", "gpu_memset"}
GPU = CORPUS / "gpu"
A100, MI250, H100, MI300 = (
    GPU / f"{name}.json.gz"
    for name in (
        "hta_a100_resnet_ddp_nccl",
        "hta_mi250_minitoy_rocm62",
        "tl_h100_qwen_infer",
        "tl_mi300_resnet_train_rank0of8",
    )
)
SYNC, KINETO, QWEN, SGLANG, TRITON, VLLM, ADD, MI350 = (
    GPU / name
    for name in (
        "hta_cuda_event_sync.json.gz",
        "kineto2021_resnet50_strtid_memory.pt.trace.json.gz",
        "tl_mi300_qwen_infer.json.gz",
        "tl_sglang_decode_graph.json.gz",
        "tl_torch_compile_triton.json.gz",
        "tl_vllm_decode_cudagraph_exec.json.gz",
        "hta_overlaid_critical_path_flows.json.gz",
        "aorta_mi350_small.pt.trace.json",
    )
)
GLOO, STACKS, INFERENCE = (file(f"cuda/{name}.pt.trace.json.gz") for name in ("gloo", "stacks", "inference"))
DLRM = CORPUS / "multirank" / "dlrm_8gpu_ranks0-3"
Oracle = Callable[[list[dict[str, Any]]], list[tuple[Any, ...]]]


@cache
def events_of(path: Path) -> list[dict[str, Any]]:
    """Return the complete events of a file, their times as whole ns `start`, `end` and `ns`."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = [one for one in json.loads(text, parse_float=Decimal)["traceEvents"] if one.get("ph") == "X"]
    for one in events:
        one["start"], one["ns"] = int(one["ts"] * 1000), int(one["dur"] * 1000)
        one["end"] = one["start"] + one["ns"]
    return events


def most(rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return sorted(rows, key=lambda row: -row[-1])


def by_name(events: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (name, count, ns) of events."""
    sums: dict[str, list[int]] = defaultdict(list)
    for one in events:
        sums[one["name"]].append(one["ns"])
    return most((name, len(times), sum(times)) for name, times in sums.items())


def kernels(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return by_name(one for one in events if one.get("cat") in WORK)


def launches(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    work = {one["args"].get("correlation") for one in events if one.get("cat") in WORK}
    calls = [one for one in events if "runtime" in str(one.get("cat")).lower()]
    return by_name(one for one in calls if one.get("args", {}).get("correlation") in work)


def steps(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (number, ns) of steps: until the work launched in each is done, or the next begins."""
    own = [one for one in events if one.get("cat") not in ("gpu_user_annotation", "python_function")]
    marks = sorted(
        (one for one in own if re.match(r"ProfilerStep#\d+$", one["name"])), key=itemgetter("start")
    )
    calls = {
        one["args"]["correlation"]: one["start"]
        for one in events
        if "runtime" in str(one.get("cat")).lower() and "correlation" in one.get("args", {})
    }
    done = [one["end"] for one in marks]
    for one in events:
        called = calls.get(one.get("args", {}).get("correlation")) if one.get("cat") in WORK else None
        for at, mark in enumerate(marks):
            if called is not None and mark["start"] <= called < mark["end"]:
                done[at] = max(done[at], one["end"])
    room = [after["start"] - mark["end"] for mark, after in pairwise(marks)]
    room.append(round(statistics.median(room)) if room else done[-1] - marks[-1]["end"])
    ends = [min(end, mark["end"] + max(0, more)) for end, mark, more in zip(done, marks, room)]
    return most((mark["name"].partition("#")[2], end - mark["start"]) for mark, end in zip(marks, ends))


def step_group(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return (number of steps, the longest)."""
    return [(len(steps(events)), steps(events)[0][1])]


def streams(events: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    result: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for one in sorted(events, key=lambda one: (one["start"], one["end"])):
        if one.get("cat") in WORK:
            result[str(one["args"].get("stream"))].append(one)
    return result


def gaps_of(work: list[dict[str, Any]]) -> list[int]:
    reach, gaps = work[0]["end"], []
    for one in work[1:]:
        gaps += [one["start"] - reach] if one["start"] > reach else []
        reach = max(reach, one["end"])
    return gaps


def idle(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return most((name, sum(gaps_of(work))) for name, work in streams(events).items())


def gaps(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return most((gap,) for work in streams(events).values() for gap in gaps_of(work))


CASES: tuple[tuple[str, Oracle, tuple[str, ...], tuple[Path, ...]], ...] = (
    (
        "kernel",
        kernels,
        ("name", "count", "total_ns"),
        (A100, MI250, H100, MI300, SYNC, QWEN, SGLANG, TRITON, VLLM, ADD, MI350, GLOO, STACKS, INFERENCE),
    ),
    (
        "slow-step",
        steps,
        ("step", "length_ns"),
        (A100, MI250, H100, SYNC, QWEN, KINETO, MI350, GLOO, STACKS),
    ),
    (
        "step",
        step_group,
        ("count", "max_ns"),
        (A100, MI250, H100, SYNC, QWEN, KINETO, MI350, GLOO, STACKS),
    ),
    (
        "idle",
        idle,
        ("stream", "idle_ns"),
        (A100, MI250, H100, SYNC, QWEN, TRITON, MI350, GLOO, STACKS, INFERENCE),
    ),
    ("gap", gaps, ("gap_ns",), (A100, MI250, H100, SYNC, QWEN, TRITON, MI350, GLOO, STACKS, INFERENCE)),
    (
        "launch",
        launches,
        ("name", "count", "call_ns"),
        (A100, MI250, QWEN, SYNC, TRITON, MI350, GLOO),
    ),
)
PAIRS = [(name, oracle, keys, path) for name, oracle, keys, paths in CASES for path in paths]


def answers(path: Path, question: str, **more: Any) -> list[dict[str, Any]]:
    """Return the answers to a question, and check what all answers promise."""
    trace = open_trace([path], **more)
    scope = Scope(trace, clocks=trace.clocks)
    tables = analyse_explain(scope, question)
    text = as_json(tables, "explain")
    assert len(text.encode()) <= MAX_QUESTIONS and text == as_json(
        analyse_explain(scope, question), "explain"
    )
    rows = list(tables.main.rows())
    one = question_of(question)
    theirs = BY_NAME[one.command.partition(" ")[0].replace("-", "_")].run(scope, **dict(one.options))
    own = list((theirs[one.table] if one.table else theirs.main).rows())
    for row in rows:
        values = {key: value for key, value in row["answer"].items() if not isinstance(value, str)}
        assert any(values.items() <= other.items() for other in own), "numbers are the command's own"
    trace.close()
    return [row["answer"] for row in rows]


@pytest.mark.slow
@for_files("question, oracle, keys, path", PAIRS, at=3)
def test_answers_that_the_events_give(
    question: str, oracle: Oracle, keys: tuple[str, ...], path: Path, corpus_cache: Path
) -> None:
    """Kernels, steps, gaps and launches are those that the file's events give without us."""
    expected = oracle(events_of(path))[:3]
    rows = answers(path, question, index_dir=corpus_cache)
    assert [row[keys[-1]] for row in rows] == [row[-1] for row in expected]
    if len(expected) < 2 or expected[0][-1] > expected[1][-1]:
        first = rows[0]
        own = tuple(first[key][:100] if isinstance(first[key], str) else first[key] for key in keys)
        assert own == tuple(value[:100] if isinstance(value, str) else value for value in expected[0])


def test_an_answer_reads_as_a_sentence(tmp_path: Path) -> None:
    """What people read of an answer has every value of it with its unit, a name first."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": [kernel(0, 15, "gemm"), kernel(30, 25, "gemm")]}), "utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    row = next(iter(analyse_explain(Scope(trace), "kernel").main.rows()))
    assert row["answer"] == {"name": "gemm", "count": 2, "total_ns": 40_000, "share": 1.0}
    assert row["text"] == "gemm, count 2, total 40 µs, share 100.00%"


@for_files(
    "path",
    [
        *(
            f"goldens/key_averages/ka_{name}.pt.trace.json"
            for name in ("mlp_sched_shapes_mem", "threads_all_mem", "compile_breaks_mem_shapes")
        ),
        *("cpu/torch_2.13_compiled.pt.trace.json.gz", "cpu/torch_2.13_threads.pt.trace.json.gz"),
    ],
)
def test_operators_are_those_of_pytorch(path: str, tmp_path: Path) -> None:
    """What takes most time of the CPU by itself is what PyTorch's key_averages say."""
    if path.endswith(".gz"):
        averages = json.loads(gzip.decompress(file(path.replace(".pt.trace.", ".averages.")).read_bytes()))
        own = [(own, key, count) for key, _, count, _, own, *_ in averages["averages"]]
    else:
        golden = json.loads(file(path.replace(".pt.trace.", ".golden.")).read_text(encoding="utf-8"))
        own = [(one["self_cpu_time_total"], one["key"], one["count"]) for one in golden["key_averages"]]
    own.sort(key=lambda row: -row[0])
    rows = answers(file(path), "op", index_dir=tmp_path)
    assert [(row["name"], row["calls"]) for row in rows] == [(key, count) for _, key, count in own[:3]]


@needs(CORPUS)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("question", "path", "answer"),
    [
        ("collective", MI300, {"bytes": 17_632_384, "pure_ns": 9_208_906, "ranks_missing": 7}),
        ("collective", DLRM, {"bytes": 907_840, "pure_ns": 879_000, "ranks_missing": 4}),
        ("rank", DLRM, {"rank": 2, "last": 6}),
        ("efficiency", H100, {"name": "aten::mm", "count": 48}),
    ],
)
def test_answers_of_reference_numbers(
    question: str, path: Path, answer: dict[str, Any], corpus_cache: Path
) -> None:
    """Collectives, ranks and efficiency are those of the reference numbers."""
    rows = answers(path, question, index_dir=corpus_cache)
    assert any(answer.items() <= row.items() for row in rows)


def test_there_are_fifty_questions() -> None:
    """Some fifty questions have answers that are known without us."""
    assert len(PAIRS) + 3 + 4 >= 50


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Which kernels are the slowest?", "kernel"),
        ("why is the GPU idle", "idle"),
        ("is my DEVICE busy", "busy"),
        ("how much memory at the peak", "memory"),
        ("bandwidth of collectives", "collective"),
        *((one.text, one.name) for one in QUESTIONS),
        *((one.name, one.name) for one in QUESTIONS),
    ],
)
def test_questions_in_words(text: str, name: str) -> None:
    """A question is known by its name, its own words, and words like these."""
    assert question_of(text).name == name


def test_a_question_like_no_other_is_refused() -> None:
    """What shares no word with any question names those that there are."""
    with pytest.raises(UsageError, match="there are busy, idle, gap"):
        question_of("xyzzy?")


@for_files("path", [A100, MI300, DLRM, CORPUS / "aiu" / "mlp_trace.json", GLOO, INFERENCE])
def test_the_largest_causes_are_those_of_findings(path: Path, corpus_cache: Path) -> None:
    """Causes come with what they explain, their numbers are findings' own, and all fits 8 KB."""
    trace = open_trace([path], index_dir=corpus_cache)
    scope = Scope(trace, clocks=trace.clocks)
    tables = analyse_explain(scope)
    assert len(as_json(tables, "explain").encode()) <= MAX_QUESTIONS
    rows = list(tables["causes"].rows())
    findings = {row["rule"]: row for row in BY_NAME["findings"].run(scope).main.rows()}
    roots = [row for row in rows if "." not in row["number"] and row["number"] != "0"]
    assert 0 < len(roots) <= 5
    assert [row["claimed_ns"] for row in roots] == sorted((row["claimed_ns"] for row in roots), reverse=True)
    for row in rows:
        keys = ("claimed_ns", "caused_ns", "share", "caused_by")
        assert [row[key] for key in keys] == [findings[row["rule"]][key] for key in keys]
        above = row["number"].rpartition(".")[0]
        assert row["caused_by"] == next((one["rule"] for one in rows if one["number"] == above), "")
    doctor = BY_NAME["doctor"].run(scope)
    serious = [row["rule"] for row in doctor.main.rows() if row["severity"] != "note"]
    assert [row["rule"] for row in tables["trust"].rows()] == serious
    assert tables.totals["untrusted_ns"] == sum(row["ns"] for row in doctor["untrusted"].rows())
    trace.close()


def test_a_headline_is_no_silence(tmp_path: Path) -> None:
    """A trace of which only a headline is said has it among its causes, with number 0 and in words."""
    scope = Scope(trace_of([kernel(0, 500, "gemm"), kernel(500, 400, "gemm")], tmp_path))
    (row,) = analyse_explain(scope)["causes"].rows()
    assert (row["number"], row["rule"], row["claimed_ns"]) == ("0", "device-bound", 0)
    assert "is busy in 100.0 %" in row["short"]
