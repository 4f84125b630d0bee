"""Runs whose recordings do not tell the same: a loss ends with exit code 3, and is nowhere called a gain."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

import tracelane
from tests.corpus import CASES, ROOT, files, for_files, in_turn, needs, short_texts
from tests.events import Event, complete, metadata
from tracelane.core.base.kineto import WORK
from tracelane.core.tables.compare.comparable import Recorded, Side, needs_of, reasons_of
from tracelane.core.tables.explain.pair_answers import paired_runs
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

Capture = pytest.CaptureFixture[str]
OK, CANNOT_READ, CANNOT_COMPARE = 0, 2, 3
SAMPLES = sorted((ROOT / "tests" / "samples").rglob("*.pt.trace.json.gz"))
REAL = (
    "aiu/*.pt.trace.json",
    "aiu/spyre_torch_profiler/*.json",
    "cpu/*.json*",
    "gpu/*.json*",
    "verdicts/*.gz",
)


def run_of(devices: int = 1, steps: int = 6) -> list[Event]:
    """Return a program that launches four kernels a step on each of some devices."""
    events = [metadata("process_labels", 100 + at, labels=f"GPU {at}") for at in range(devices)]
    number = 0
    for step in range(steps):
        at = 1000.0 * step
        events.append(complete(at, 900, f"ProfilerStep#{step}", "user_annotation"))
        for launch in range(4):
            for device in range(devices):
                number += 1
                ts = at + 200 * launch + 30 * device
                args = {"correlation": number}
                events += [
                    complete(ts, 20, "aten::mm"),
                    complete(ts + 4, 5, "cudaLaunchKernel", "cuda_runtime", args=args),
                    complete(
                        ts + 12, 150, "gemm", "kernel", pid=100 + device, tid=7, args={"stream": 7, **args}
                    ),
                ]
    return events


PROGRAMS = {"one device": run_of(), "two devices": run_of(2)}


def is_work(one: Event) -> bool:
    return one.get("cat") in WORK


def devices_of(events: Sequence[Event]) -> list[Any]:
    return sorted({str(one.get("pid")) for one in events if is_work(one)})


def text_of(events: Sequence[Event], more: Event) -> str:
    lines = ",\n".join(json.dumps(one) for one in events)
    head = json.dumps(more)[1:-1]
    return f'{{{head}{", " if head else ""}"traceEvents": [\n{lines}\n]}}\n'


def no_kernels(events: Sequence[Event], more: Event) -> str:
    return text_of([one for one in events if not is_work(one)], more)


def cut_at_a_third(events: Sequence[Event], more: Event) -> str:
    text = text_of(events, more)
    return text[: len(text) // 3]


def no_events(events: Sequence[Event], more: Event) -> str:
    return text_of([one for one in events if one.get("ph") == "M"], more)


def one_device_removed(events: Sequence[Event], more: Event) -> str:
    gone = devices_of(events)[-1:]
    return text_of([one for one in events if not (is_work(one) and [str(one.get("pid"))] == gone)], more)


def every_second_unreadable(events: Sequence[Event], more: Event) -> str:
    lines = text_of(events, more).splitlines(keepends=True)
    return "".join(
        line.replace(": ", " ") if at % 2 and at < len(lines) - 1 else line for at, line in enumerate(lines)
    )


Damage = Callable[[Sequence[Event], Event], str]
DAMAGES: dict[str, Damage] = {
    one.__name__: one
    for one in (no_kernels, cut_at_a_third, no_events, one_device_removed, every_second_unreadable)
}


def jittered(events: Sequence[Event], more: Event) -> str:
    """Return a copy whose durations differ by up to 2 %."""
    pick = random.Random(1)
    longer = [
        {**one, "dur": one["dur"] * pick.uniform(0.98, 1.02)}
        if isinstance(one.get("dur"), int | float)
        else one
        for one in events
    ]
    return text_of(longer, more)


def read_json(path: Path) -> tuple[list[Event], Event]:
    raw = path.read_bytes()
    whole = json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw, strict=False)
    events = whole if isinstance(whole, list) else whole.pop("traceEvents")
    whole = {} if isinstance(whole, list) else whole
    return [one for one in events if isinstance(one, dict)], whole


def written(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.json"
    path.write_text(text, encoding="utf-8")
    return str(path)


def takes_away(damage: str, events: Sequence[Event]) -> bool:
    """Tell whether a damage takes away something that the metric of a gate needs."""
    if damage == "no_kernels":
        return bool(devices_of(events))
    return damage != "one_device_removed" or len(devices_of(events)) > 1


HARMLESS: dict[str, Damage] = {"copy": text_of, "jittered": jittered}


def comparing(before: str, after: str, turn: int, commands: int) -> list[list[str]]:
    """Return the commands that compare two runs, or the one whose turn it is."""
    both = [["diff", before, after], ["check", after, "--baseline", before]]
    return both if commands == len(both) else [both[turn % len(both)]]


def check_all(
    events: list[Event],
    more: Event,
    folder: Path,
    capsys: Capture,
    damages: Sequence[str] = (*DAMAGES,),
    harmless: Sequence[str] = (*HARMLESS,),
    *,
    commands: int = 2,
) -> None:
    """Hold each damaged copy against the trace, the trace against each, and harmless copies against both;
    with one command `diff` and `check` take turns.
    """
    before = written(folder, "before", text_of(events, more))
    summary = folder / "summary.json"
    assert main(["summary", before, "--json", "-o", str(summary)]) == OK
    for name in damages:
        if not takes_away(name, events):
            continue
        after = written(folder, name, DAMAGES[name](events, more))
        is_there = main(["info", after]) == OK
        capsys.readouterr()
        for turn, sides in enumerate(((before, after), (after, before), (str(summary), after))):
            for command in comparing(*sides, turn, commands):
                code = main([*command, "--fail-above", "5%"])
                out, err = capsys.readouterr()
                expected = CANNOT_COMPARE if is_there else CANNOT_READ
                assert code == expected, (name, command, out, err)
                assert "faster" not in out + err, (name, command, out)
                assert not is_there or "cannot be compared" in out + err
    for name in harmless:
        after = written(folder, name, HARMLESS[name](events, more))
        for turn, sides in enumerate(((before, after), (str(summary), after))):
            for command in comparing(*sides, turn, commands):
                code = main([*command, "--fail-above", "5%"])
                out, err = capsys.readouterr()
                assert "cannot be compared" not in out + err, (name, command, out, err)
                # Where slices end in the same ns jitter moves them out of one another: self times change.
                assert code == OK or name == "jittered", (name, command, out, err)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_loss_is_no_gain(name: str, tmp_path: Path, capsys: Capture) -> None:
    """Each loss of a made trace ends with exit code 3 on either side; copies and jitter of 2 % with 0."""
    check_all(PROGRAMS[name], {}, tmp_path, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "changes"), in_turn(SAMPLES, product(DAMAGES, HARMLESS), 1))
def test_a_loss_of_a_sample_is_no_gain(
    path: Path, changes: tuple[str, str], tmp_path: Path, capsys: Capture
) -> None:
    """The same of each sample that was recorded with PyTorch; what is tried takes turns."""
    loss, harmless = changes
    check_all(*read_json(path), tmp_path, capsys, [loss], [harmless], commands=1)


OF_THE_CORPUS = [
    path for path in short_texts(files(*REAL)) if path not in SAMPLES and ".averages." not in path.name
]


@pytest.mark.slow
@for_files("path", OF_THE_CORPUS)
def test_a_loss_of_a_real_trace_is_no_gain(path: Path, tmp_path: Path, capsys: Capture) -> None:
    """The same of the traces of the corpus that can be read whole."""
    try:
        events, more = read_json(path)
    except (ValueError, UnicodeDecodeError):
        pytest.skip("no valid JSON: what is damaged already is not damaged again")
    if not any(is_work(one) or one.get("cat") == "cpu_op" for one in events):
        pytest.skip("nothing that a gate holds")
    losses = [name for name in DAMAGES if takes_away(name, events)]
    turn = OF_THE_CORPUS.index(path)
    harmless = [*HARMLESS][turn // len(losses) % len(HARMLESS)]
    check_all(events, more, tmp_path, capsys, [losses[turn % len(losses)]], [harmless], commands=1)


def summaries_of(folder: Path, **texts: str) -> list[str]:
    """Write a summary of each trace, and return their paths."""
    paths = []
    for name, text in texts.items():
        out = folder / f"{name}.summary.json"
        assert main(["summary", written(folder, name, text), "--json", "-o", str(out)]) == OK
        paths.append(str(out))
    return paths


def test_a_history_holds_runs_against_those_that_tell_the_same(tmp_path: Path, capsys: Capture) -> None:
    """A run that lost its work is compared with none; the runs after it are compared with those before."""
    events = PROGRAMS["one device"]
    good, bad = text_of(events, {}), cut_at_a_third(events, {})
    one, two, three = summaries_of(tmp_path, a=good, b=bad, c=good)
    capsys.readouterr()
    assert main(["history", one, two, three, "--json", "--metric", "kernels.time"]) == OK
    rows = json.loads(capsys.readouterr().out)["tables"]["kernels.time"]["rows"]
    assert [row["verdict"] for row in rows] == ["", "cannot be compared", "noise unknown"]
    assert (rows[1]["change"], rows[2]["change"]) == (None, 0)
    assert "cut off" in rows[1]["reason"]
    assert main(["history", one, two]) == CANNOT_COMPARE
    assert "cannot be compared: b.summary.json is cut off" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (1, 2, "a has work of 1 device, b of 2 devices"),
        (2, 1, "a has work of 2 devices, b of 1 device"),
        (0, 1, "a has work of no device, b of 1 device"),
        (2, 2, ""),
        (None, 2, ""),
        (2, None, ""),
    ],
)
def test_work_of_more_devices_is_other_work(before: int | None, now: int | None, said: str) -> None:
    """Devices are compared where as many of them work on both sides, or nobody knows; the host always is."""
    reasons = reasons_of([Side("a", Recorded((), before))], Side("b", Recorded((), now)))
    assert reasons == ({"device": said, "all": said} if said else {})


def test_reports_trees_and_the_view_say_it(tmp_path: Path, capsys: Capture) -> None:
    """A report with a baseline, the op trees, Python and the view of two runs do not call a loss faster."""
    events = PROGRAMS["one device"]
    before = written(tmp_path, "before", text_of(events, {}))
    after = written(tmp_path, "after", no_kernels(events, {}))
    for command in (["report", after, "--baseline", before], ["diff", before, after, "--tree"]):
        assert main(command) == CANNOT_COMPARE
        out, err = capsys.readouterr()
        assert "cannot be compared" in err and "24 of 24 launches have no device work" in out + err
        assert "faster" not in out
    table = tracelane.diff(before, after)["metrics"]
    verdicts = dict(zip(table.texts("name"), table.texts("verdict")))
    assert verdicts["kernels.calls"] == "cannot be compared"
    assert verdicts["step.length.median"] == "within the noise"
    a, b = (open_trace(path, index_dir=tmp_path / "index") for path in (before, after))
    answers = paired_runs(a, b).answers
    (finding,) = answers.findings().findings  # type: ignore[union-attr, attr-defined]
    said = "after cannot be compared with before: after: 24 of 24 launches have no device work"
    assert finding.text == said
    (finding,) = paired_runs(a, a).answers.findings().findings  # type: ignore[union-attr, attr-defined]
    assert "cannot be compared" not in finding.text


def test_what_a_step_does_not_touch_is_compared(tmp_path: Path, capsys: Capture) -> None:
    """Work that is lost in the last steps takes nothing from a comparison of the first."""
    events = PROGRAMS["one device"]
    rest = [one for one in events if not (is_work(one) and one["ts"] > 3000)]
    before = written(tmp_path, "before", text_of(events, {}))
    after = written(tmp_path, "after", text_of(rest, {}))
    gate = ["--fail-above", "5%"]
    assert main(["diff", f"{before}:step=1", f"{after}:step=1", *gate]) == OK
    assert main(["diff", f"{before}:step=5", f"{after}:step=5", *gate]) == CANNOT_COMPARE
    assert main(["diff", before, after, *gate, "--metric", "step.length.median"]) == OK
    assert main(["diff", before, after, *gate, "--metric", "step.device_busy.median"]) == CANNOT_COMPARE
    capsys.readouterr()


@needs(CASES)
def test_lost_kernels_of_a_case(capsys: Capture) -> None:
    """The default metric is not replaced by another where the baseline has it."""
    gate = CASES / "bugs" / "gate"
    sides = [str(gate / "before.json"), str(gate / "after_no_kernels.json")]
    assert main(["check", sides[1], "--baseline", sides[0], "--fail-above", "5%"]) == CANNOT_COMPARE
    assert capsys.readouterr().out == (
        "UNKNOWN   kernels.time cannot be compared: after: 48 of 48 launches have no device work\n"
    )


@pytest.mark.parametrize(
    ("metric", "need"),
    [
        ("trace.span", "all"), ("kernels.time", "device"), ("kernel.gemm.median", "device"),
        ("step.wall.p95", "host"), ("step.idle.total", "device"), ("step.comm.mean", "device"),
        ("ops.self_cpu", "host"), ("ops.self_device", "device"), ("op.a.b.self_device", "device"),
        ("module.m.count", "host"), ("memory.peak", "device"), ("compile.graphs", "host"),
    ],
)  # fmt: skip
def test_what_metrics_need(metric: str, need: str) -> None:
    """A metric needs what tells it, devices or the host, by its name."""
    assert needs_of(metric) == need
