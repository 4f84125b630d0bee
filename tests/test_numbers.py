"""Numbers of any count of digits: read, or named in one line, at every door through which text comes in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus import in_turn
from tests.tui.cli_commands import BUG, CODES
from tests.tui.cli_process import tracelane_here
from tests.tui.small_file import small_file
from tracelane.core.base.numbers import MAX_NUMBER, json_value, toml_tables, whole_number

DIGITS = {
    "20": "9" * 20,
    "400": "9" * 400,
    "5000": "9" * 5000,
    "zeros": "0" * 5000 + "7",
    "minus": "-" + "8" * 5000,
}


@pytest.mark.parametrize(
    ("text", "base", "number"),
    [
        ("7", 10, 7),
        (" -7 ", 10, -7),
        (b"12", 10, 12),
        ("0x1f", 0, 31),
        ("ff", 16, 255),
        ("0" * 5000 + "7", 10, 7),
        ("9" * 5000, 10, MAX_NUMBER),
        (b"-" + b"9" * 5000, 10, -MAX_NUMBER),
        ("f" * 5000, 16, MAX_NUMBER),
        (f" +{'1' * 5000}\n", 10, MAX_NUMBER),
    ],
)
def test_text_becomes_a_number(text: str | bytes, base: int, number: int) -> None:
    """Up to 4,000 digits a number is exact; what has more counts as more than all, and can be printed."""
    assert whole_number(text, base) == number and str(number)


@pytest.mark.parametrize(
    "text", ["", "x", "1.5", "²", "--" + "1" * 5000, "1" * 5000 + "x", "+-" + "1" * 5000]
)
def test_what_is_no_number_is_a_value_error(text: str) -> None:
    """The text of the error is short, whatever was given."""
    with pytest.raises(ValueError) as caught:
        whole_number(text)
    assert len(str(caught.value)) < 200


def test_json_and_toml_keep_the_rest() -> None:
    """A number of 5,000 digits costs no other value of a JSON text; TOML is refused in one line."""
    assert json_value(f'{{"a": {DIGITS["5000"]}, "b": 1}}') == {"a": MAX_NUMBER, "b": 1}
    with pytest.raises(ValueError, match="more than 4,000 digits"):
        toml_tables(f"a = {DIGITS['5000']}")
    with pytest.raises(ValueError, match="nested too deeply"):
        json_value("[" * 100_000)


OPTIONS = (
    "kernels {t} --limit {n}",
    "kernels {t} --from {n} --to {n}",
    "kernels {t} --from +{n}ns",
    "kernels {t} --to @{n}",
    "kernels {t} --from 12:00:00.{n}",
    "kernels {t} --step {n}",
    "kernels {t} --step nth:{n}",
    "kernels {t} --rank {n}",
    "kernels {t} --rank 0-{n}",
    "kernels {t} --capture {n}",
    "kernels {t} --threads {n}",
    "kernels {t} --cache-limit {n}",
    "kernels {t} --cache-limit {n}G",
    "kernels {t} --device-offset 0={n}",
    "kernels {t} --skip-first {n}",
    "kernels {t} --tz +{n}:00",
    "kernels {t} --where dur>{n}",
    "kernels {t} --where dur>{n}ms",
    "kernels {t} --where arg:stream={n}",
    "kernels {t} --where arg:stream>{n}",
    "kernels {t} --column ideal:{t}@{n}",
    "ops {t} --group-by stack:{n}",
    "ops {t} --group-by stack:²",
    "idle {t} --kernel-wait {n}",
    "idle {t} --kernel-wait {n}ms",
    "ranks {t} --worst {n}",
    "critical-path {t} --start-rank {n}",
    "critical-path {t} --scale launch={n}",
    "summary {t} --rows {n}",
    "check {t} --max kernels.calls={n}",
    "check {t} --min kernels.time={n}ms",
    "diff {t} {t} --fail-above {n}%",
    "diff {t} {t} --min-time {n}ms",
    "chain {t} --name launch --at {n}",
    "chain {t} --at +{n}us --name launch",
    "slices {t} --limit {n}",
    "sql {t} select({n})",
    "sql {t} select(1) --timeout {n}",
    "cut {t} --from {n} -o {o}.json",
    "cache prune --older {n}d",
    "kernels {t} --smi-offset {n}",
    "telemetry {t} --lag {n}",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace in a folder of its own, beside which its index is kept."""
    return small_file(tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize(("line", "digits"), in_turn(OPTIONS, DIGITS, 2))
@pytest.mark.slow
def test_no_option_fails_on_digits(
    line: str, digits: str, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every option that takes a number, and every filter and query, ends with a documented code."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(small.parent / "cache"))
    values = {"t": str(small), "n": DIGITS[digits], "o": str(tmp_path / "out")}
    done = tracelane_here(*(word.format(**values) for word in line.split()))
    assert done.returncode in CODES and BUG not in done.stderr, done.stderr[:500]


VARIABLES = ("TRACELANE_CACHE_LIMIT", "TRACELANE_THREADS", "COLUMNS", "LINES", "COMP_CWORD")


@pytest.mark.parametrize(("name", "digits"), in_turn(VARIABLES, DIGITS, 3))
@pytest.mark.slow
def test_no_variable_fails_on_digits(
    name: str, digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables that are numbers end no command otherwise than in one line."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(name, DIGITS[digits])
    done = tracelane_here("kernels", str(small_file(tmp_path)))
    assert done.returncode in CODES and BUG not in done.stderr, done.stderr[:500]


def files(number: str) -> dict[str, tuple[str, str]]:
    """Return files of each kind that hold a number, and what reads them."""
    many = f'  File "model.py", line {number}, in forward\n    x = a + b\n'
    stacks = json.dumps({f"triton_{number}": [many]})
    code = f"""# Topologically Sorted Source Nodes: [x], Original ATen: [aten.mm]
triton_poi_fused_0 = async_compile.triton('x{number}')
"""
    stamp = "V1128 00:00:00.0 1 a.py:1]"
    log = f"{stamp} [{number}/0] [__graph_breaks] Graph break in user code at m.py:{number}\n"
    recompiled = (
        f"V1128 00:00:00.0 1 a.py:1] [0/{number}] [__recompiles] Recompiling function f in m.py:{number}\n"
    )
    source = "source {t} --artefacts {f}"
    marks = f'{{"marks": [{{"start_ns": {number}, "end_ns": {number}, "text": ""}}]}}'
    spyre = (
        '{"schemaVersion": 1, "kernelIdentities": {"k": {"eventNameBase": "e", "directHandleIds": ["h"]}}, '
    )
    spyre += f'"handles": {{"h": {{"source": {{"file": "a.py", "start_line": {number}}}}}}}}}'
    readable = f'# File: m.py:{number} in f, code: x\nadd: "f32" = torch.add(a)\n'
    return {
        "inductor_provenance_tracking_kernel_stack_traces.json": (stacks, source),
        "output_code.py": (code, source),
        "breaks.log": (log + recompiled, source),
        "recompile_reasons.json": (f'[{number}, "why"]', source),
        "fx_graph_readable.txt": (readable, source),
        "a_provenance.json": (spyre, source),
        "limits.toml": (f"[max]\nkernels.calls = {number}\n", "check {t} --limits {f}"),
        "text.toml": (f"[max]\nkernels.calls = '{number}'\n", "check {t} --limits {f}"),
        "marks.json": (marks, "view {t} --marks {f}"),
        "summary.json": (f'{{"schema": {number}, "command": "summary", "tables": {{}}}}', "diff {f} {t}"),
        "ideal.log": (f" Ideal/Total Cycles \nmm  {number}\n", "kernels {t} --column ideal:{f}"),
        "smi.csv": (f"timestamp,power\n{number},{number}\n1,2\n", "telemetry {t} --smi {f}"),
        "trace.json": (
            f'[{{"ph": "X", "ts": {number}, "dur": {number}, "pid": {number}, "tid": 1, "name": "a"}}]',
            "info {f}",
        ),
        f"rank{number[:200]}.json": ('[{"ph": "X", "ts": 1, "dur": 1, "name": "a"}]', "info {f}"),
    }


@pytest.mark.parametrize(("name", "digits"), in_turn(files("1"), DIGITS, 3))
@pytest.mark.slow
def test_no_file_fails_on_digits(
    name: str, digits: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a number stands in is read, or the file is named; it costs no other file, and no command."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    number = DIGITS[digits]
    at = list(files("1")).index(name)
    (own, (text, line)) = list(files(number).items())[at]
    (tmp_path / own).write_text(text, encoding="utf-8")
    values = {"t": str(small_file(tmp_path)), "f": str(tmp_path / own)}
    done = tracelane_here(*(word.format(**values) for word in line.split()))
    assert done.returncode in CODES and BUG not in done.stderr, done.stderr[:500]
    assert len(done.stderr) < 3000
    if done.returncode and done.stderr:
        assert own[:20] in done.stderr or name in ("text.toml", "ideal.log"), done.stderr[:300]


@pytest.mark.slow
def test_settings_of_any_digits_end_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settings file with such a number is refused where it is used, in a line that names it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = tmp_path / "tracelane" / "config.toml"
    settings.parent.mkdir()
    path = small_file(tmp_path)
    for text in (f"[peaks.x]\ntflops = {DIGITS['5000']}\n", f"frames = {DIGITS['400']}\n"):
        settings.write_text(text, encoding="utf-8")
        for command in ("efficiency", "kernels", "view"):
            done = tracelane_here(command, str(path))
            assert done.returncode in CODES and BUG not in done.stderr, done.stderr[:500]
