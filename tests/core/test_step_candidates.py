"""Which of what repeats are the steps, how they are called, and what is said where that is doubtful."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.corpus import CORPUS, needs_corpus
from tests.events import Event, complete, metadata
from tracelane.core.base.errors import UsageError
from tracelane.core.tables.scope import Scope
from tracelane.core.tables.selection import step_place, steps_there
from tracelane.core.tables.step_choice import Steps, find_steps
from tracelane.core.tables.steps import steps
from tracelane.core.trace import Trace, open_trace

HOST = 7
PASS_US = 10_000.0
PIECES = 8


def host(ts: float, dur: float, name: str, cat: str, **more: object) -> Event:
    return complete(ts, dur, name, cat, pid=HOST, tid=HOST, **more)


def launched(number: int, ts: float, call: str = "cudaLaunchKernel") -> list[Event]:
    """Return a launch and its kernel of 500 µs."""
    args = {"correlation": number}
    work = complete(ts + 50, 500, "gemm", "kernel", pid=0, tid=7, args={**args, "stream": 7, "device": 0})
    return [host(ts, 20, call, "cuda_runtime", args=args), work]


def passes(count: int, call: str = "cudaLaunchKernel") -> list[Event]:
    """Return passes of PIECES launches each, with a pause between two, in no slice that names them."""
    events = [metadata("process_labels", 0, labels="GPU 0")]
    for number in range(count):
        for piece in range(PIECES):
            events += launched(1 + number * PIECES + piece, PASS_US * number + 100 + 600 * piece, call)
    return events


def around(count: int, name: str, cat: str, begin: float = 0, dur: float = 6000) -> list[Event]:
    """Return a slice in each pass; `{}` in the name is its number from 10 on."""
    return [host(PASS_US * at + begin, dur, name.format(at + 10), cat) for at in range(count)]


def opened(path: Path, events: Sequence[Event]) -> Trace:
    path.mkdir(exist_ok=True)
    (path / "t.json").write_text(json.dumps(events))
    return open_trace(path / "t.json", index_dir=path / "index")


def steps_of(trace: Trace, name: str | None = None) -> Steps:
    steps = find_steps(trace, 0, name=name)
    assert steps is not None
    return steps


@pytest.mark.parametrize("frame", ["execute_model", "training_step", "forward", "train_step", "step"])
def test_python_functions_that_hold_the_work(frame: str, tmp_path: Path) -> None:
    """They are the steps, not the graph launches in them, nor frames of the like that hold none of it."""
    name = f"engine/runner.py(63): {frame}"
    events = [*passes(5, "cudaGraphLaunch"), *around(5, name, "python_function")]
    events += around(5, "torch/optim/sgd.py(9): step", "python_function", 7000, 2500)
    steps = steps_of(opened(tmp_path, events))
    assert (steps.choice, len(steps), steps.labels[:2]) == (name, 5, ("0", "1"))
    assert "doubtful" not in steps.reason


def test_bursts_of_graph_launches(tmp_path: Path) -> None:
    """Without frames a burst of launches is a step; launches at even distances are one each."""
    steps = steps_of(opened(tmp_path / "bursts", passes(6, "hipGraphLaunch")))
    assert (steps.choice, len(steps)) == ("bursts of hipGraphLaunch", 6)
    assert (steps.ends - steps.starts).tolist() == [(600 * (PIECES - 1) + 20) * 1000] * 6
    even = [metadata("process_labels", 0, labels="GPU 0")]
    even += [event for at in range(20) for event in launched(at + 1, 1000.0 * at, "cudaGraphLaunch")]
    steps = steps_of(opened(tmp_path / "even", even))
    assert (steps.choice, len(steps)) == ("cudaGraphLaunch", 20)


def test_more_time_of_the_device_goes_before_more_time_of_the_host(tmp_path: Path) -> None:
    """An annotation around the work is the step, though another that launches nothing takes longer."""
    events = [*passes(5), *around(5, "batch {}", "user_annotation", 90, 4500)]
    events += around(5, "load data", "user_annotation", 4700, 5200)
    assert steps_of(opened(tmp_path, events)).choice == "batch N"


def test_a_doubtful_choice_is_said_and_the_next_is_offered(tmp_path: Path) -> None:
    """Where no candidate launches most of the device's time."""
    events = [*passes(5), *around(5, "front", "user_annotation", 90, 2300)]
    events += around(5, "back", "user_annotation", 2480, 1200)
    steps = steps_of(opened(tmp_path, events))
    assert steps.choice == "front"
    assert steps.reason == (
        "the outermost that repeats; doubtful, as only 50% of the device's time is launched in them; "
        "next: --step-name 'back' (5 steps, 25%)"
    )
    assert len(steps_of(opened(tmp_path, events), "back")) == 5


def test_a_number_in_the_name_is_the_label(tmp_path: Path) -> None:
    """`iter 17` is step 17, by whichever name steps are asked for; lines and compilations are no labels."""
    trace = opened(tmp_path / "iter", [*passes(5), *around(5, "iter {}", "user_annotation")])
    for name in (None, "iter", "iter 12", "iter 99"):
        assert steps_of(trace, name).labels == ("10", "11", "12", "13", "14")
    spans = steps_there(trace, "step", "iter")
    assert step_place(spans, "13") == 3 == step_place(spans, "nth:-2")
    with pytest.raises(UsageError, match="no step 0; there are 10 to 14"):
        step_place(spans, "0")
    for name in ("Torch-Compiled Region: 0/{}", "job{}.py(3): step"):
        cat = "python_function" if ".py" in name else "cpu_op"
        other = opened(tmp_path / cat, [*passes(3), *around(3, name, cat)])
        assert steps_of(other).labels == ("0", "1", "2")


def test_labels_that_come_again(tmp_path: Path) -> None:
    """Each epoch counts from 0: asking for one names those that there are, with their times."""
    events = [*passes(6)]
    events += [host(PASS_US * at, 6000, f"iter {at % 3}", "user_annotation") for at in range(6)]
    spans = steps_there(opened(tmp_path, events), "step", None)
    assert spans.labels == ("0", "1", "2", "0", "1", "2")
    with pytest.raises(
        UsageError, match=r"2 steps are called 1: say which, nth:1 at \+10 ms, nth:4 at \+40 ms"
    ):
        step_place(spans, "1")
    assert step_place(spans, "nth:4") == 4


def test_two_numbers_in_the_name(tmp_path: Path) -> None:
    """What differs from step to step is the label: epoch and iteration, but not the rank."""
    events = [*passes(4)]
    events += [
        host(PASS_US * at, 6000, f"rank 3 epoch {at // 2} iter {at % 2:03d}", "user_annotation")
        for at in range(4)
    ]
    assert steps_of(opened(tmp_path, events)).labels == ("0.0", "0.1", "1.0", "1.1")


@needs_corpus
def test_vllm_on_h100(corpus_cache: Path) -> None:
    """Forward passes of many graph launches each: 10 or 11 steps with 90 % of the device's time or more."""
    path = CORPUS / "verdicts/vllm_h100_tp4_graphs.json.gz"
    trace = open_trace(path, index_dir=corpus_cache)
    table = steps(Scope(trace)).steps
    whole = trace.indexes[0].duration(trace.launches(0).kernels).sum()
    assert len(table) in (10, 11)
    assert table.numbers("device_ns").sum() >= 0.9 * whole


@needs_corpus
@pytest.mark.parametrize(
    ("name", "choice", "count"),
    [
        ("gpu/hta_a100_resnet_ddp_nccl.json.gz", "ProfilerStep#N", 3),
        ("gpu/tl_vllm_decode_cudagraph_exec.json.gz", "vLLM's execute_…", 1),
        ("aiu/mlp_trace.json", "Torch-Compiled Region: 0/0", 10),
        ("gpu/hta_overlaid_critical_path_flows.json.gz", "[param|clear_cache]", 2),
        ("verdicts/rtx4090_llama_tp2.json.gz", "TransformerLayer_N", 4),
    ],
)
def test_choices_that_stay(name: str, choice: str, count: int, corpus_cache: Path) -> None:
    """What a profiler or engine marked, and what repeats around everything else."""
    steps = steps_of(open_trace(CORPUS / name, index_dir=corpus_cache))
    assert (steps.choice, len(steps)) == (choice, count)
