"""`tracelane chain` for a person: the lines it prints, which slice it picks, what it refuses."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from tests.events import complete, write_events
from tests.graph_pairs import MODEL, capture_events, replay_events, write_pair
from tracelane.tui.cli.main import main

IDS = {"correlation": 7}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    events = [
        complete(0, 100, "ProfilerStep#3", "user_annotation"),
        complete(5, 80, "nn.Module: Linear_0", "python_function"),
        complete(8, 60, "aten::mm", "cpu_op"),
        complete(10, 20, "graphLaunch", "cuda_runtime", args=IDS),
        complete(50, 10, "mm_kernel", "kernel", pid=0, args=IDS),
        complete(70, 30, "add_kernel", "kernel", pid=0, args=IDS),
        complete(300, 5, "Memset (Device)", "gpu_memset", pid=0, tid=2),
        complete(400, 5, "mm_kernel", "kernel", pid=0),
    ]
    return str(write_events(tmp_path_factory.mktemp("chain") / "t.json", events))


def run(*arguments: str) -> tuple[int, str, str]:
    """Return exit code, output and errors of the command."""
    out, errors = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = main(["chain", *arguments])
    return code, out.getvalue(), errors.getvalue()


def said(*arguments: str) -> str:
    code, out, errors = run(*arguments)
    assert code == 0, errors
    return out


def test_a_chain_as_text(path: str) -> None:
    """From the step inward a line each; how the launch is known, the delay, the replay as a unit."""
    text = said(path, "--name", "mm_k")
    roles = [line.split()[4] for line in text.splitlines()[:5]]
    assert roles == ["step", "module", "op", "launch", "kernel"]
    assert "known by correlation" in text
    assert "launch delay 20 µs" in text
    assert (
        "this launch started 2 kernels, 40 µs, busy 40 µs of 50 µs, 1 gap inside: 10 µs, the longest 10 µs"
        in text
    )
    assert "1 of 2 that match: --all shows all" in text


def test_an_op_as_text(path: str) -> None:
    """Where no device slice has the name, what was launched under the match is told."""
    text = said(path, "--name", "aten::mm")
    assert "launches 2 kernels, 40 µs: 1 × add_kernel 30 µs, 1 × mm_kernel 10 µs" in text
    (entry,) = json.loads(said(path, "--name", "aten::mm", "--json"))
    assert [kernel["name"] for kernel in entry["kernels"]] == ["mm_kernel", "add_kernel"]
    assert (entry["device_ns"], entry["launches"]) == (40_000, 1)


def test_replays_as_text(tmp_path: Path) -> None:
    """A graph's replays are compared: this one's kernel time against all, and the kernels that differ."""
    events = []
    for replay, length in enumerate((10, 14), start=1):
        ids = {"correlation": replay}
        events.append(complete(1000 * replay, 5, "graphLaunch", "cuda_runtime", args=ids))
        for number, took in enumerate((20, length)):
            ts = 1000 * replay + 100 * number + 50
            events.append(complete(ts, took, f"k{number}", "kernel", pid=0, args=ids))
    file = write_events(tmp_path / "t.json", events)
    text = said(str(file), "--name", "graphLaunch", "--at", "@2000")
    assert "replay 2 of 2 of the same kernels: 34 µs here, 32 µs mean, 30 µs to 34 µs" in text
    assert "kernel    2 14 µs here, 12 µs mean, 10 µs to 14 µs  k1" in text
    assert "k0" not in text.splitlines()[-1] and "kernel    1" not in text
    (entry,) = json.loads(said(str(file), "--name", "graphLaunch", "--at", "@2000", "--json"))
    device = {"this": 34_000, "mean": 32_000, "min": 30_000, "max": 34_000}
    assert entry["replay"] == {"number": 2, "of": 2, "kernels": 2, "device_ns": device}
    entries = json.loads(said(str(file), "--name", "k1", "--all", "--json"))
    last = {"this": 14_000, "mean": 12_000, "min": 10_000, "max": 14_000}
    assert [each["replay"]["number"] for each in entries] == [1, 2]
    assert (entries[1]["replay"]["position"], entries[1]["replay"]["kernel_ns"]) == (2, last)


def test_what_the_trace_does_not_say(path: str) -> None:
    """A copy that nothing leads to has no launch, in text and in JSON."""
    assert "does not say what launched this" in said(path, "--name", "Memset")
    (entry,) = json.loads(said(path, "--name", "Memset", "--json"))
    assert entry == {
        "kernel": {
            "name": "Memset (Device)",
            "category": "gpu_memset",
            "pid": 0,
            "tid": 2,
            "start_ns": 300_000,
            "duration_ns": 5_000,
        },
        "via": None,
        "launch": None,
        "op": None,
        "ancestors": [],
        "launch_delay_ns": None,
    }


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ((), [50_000]),
        (("--all",), [50_000, 400_000]),
        (("--at", "+401us"), [400_000]),
        (("--at", "400000"), [400_000]),
        (("--at", "@55"), [50_000]),
        (("--at", "@0"), [50_000]),
    ],
)
def test_which_one_is_meant(path: str, options: tuple[str, ...], starts: list[int]) -> None:
    """The first, all, or the one that covers or lies nearest to a time, in any way of writing it."""
    entries = json.loads(said(path, "--name", "^mm_kernel$", "--json", *options))
    assert [entry["kernel"]["start_ns"] for entry in entries] == starts


def test_refusals(path: str) -> None:
    """A name that nothing has fails in one line (and is an empty list in JSON), no pattern is wrong usage."""
    code, out, errors = run(path, "--name", "nowhere")
    assert (code, out) == (1, "")
    assert "no slice name matches" in errors.splitlines()[-1]
    assert json.loads(said(path, "--name", "nowhere", "--json")) == []
    assert run(path, "--name", "(")[0] == 64


def test_a_replayed_kernel_says_what_captured_it(tmp_path: Path) -> None:
    """Op, module, shapes and stack of the captured launch stand in text and JSON, said by capture."""
    trace = str(write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(MODEL)}))
    lines = said(trace, "--name", "^embed$").splitlines()
    assert [line for line in lines if " by capture: " in line] == [
        "op by capture: aten::embedding",
        "module by capture: Embedding_0",
        "shapes by capture: [[1000,64],[32]]",
        "stack by capture: model.py(12): forward",
        "graph by capture: capture_32_FULL",
    ]
    (kernel,) = json.loads(said(trace, "--name", "^embed$", "--json"))
    assert kernel["by_capture"] == {
        "op": "aten::embedding",
        "module": "Embedding_0",
        "shapes": "[[1000,64],[32]]",
        "stack": "model.py(12): forward",
        "graph": "capture_32_FULL",
    }


def test_a_replayed_kernel_says_why_no_capture_fits(tmp_path: Path) -> None:
    """Of a replay with two kernels swapped the reason stands with each kernel, in text and JSON."""
    swapped = [MODEL[1], MODEL[0], *MODEL[2:]]
    trace = str(write_pair(tmp_path, [replay_events(MODEL)], {"a.json": capture_events(swapped)}))
    lines = said(trace, "--name", "^embed$").splitlines()
    (why,) = [line.removeprefix("no owner by capture: ") for line in lines if " by capture: " in line]
    assert why.startswith("kernel 1 is embed, and ") and why.endswith(" in capture_32_FULL")
    (kernel,) = json.loads(said(trace, "--name", "^embed$", "--json"))
    assert kernel["by_capture"] == {"no owner": why}
