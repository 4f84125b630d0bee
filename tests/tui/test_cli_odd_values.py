"""Odd values of options, such as numbers too large, end in one line and an exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.corpus import thinned
from tests.tui.cli_commands import BUG, CODES, commands
from tests.tui.small_file import small_file
from tracelane.core.base.errors import TracelaneError
from tracelane.core.demo.trace import write_demo
from tracelane.core.export.marks import read_object
from tracelane.tui.cli.main import main

NUMBERS = (
    *("nan", "inf", "-inf", "1e999", "1e300", "-1e300", "1e-400", "-1", "0", "1e5"),
    *("1_000", "0x10", "\u0663", "1e30G", "NaNs"),
    *("9" * 400, "1" * 40, "-" + "9" * 30),
)
TIMES = (
    *["+1e300ms", "@1e300µs", "+nanms", "step:-1", "25:99:99", "1e300..2e300", ".."],
    "step:" + "9" * 30,
)
PAIRS = ("1=1e300", "0=nan", "0=" + "9" * 400, "kernels.calls=1e999", "kernels.calls=nan", "mark:")
TEXTS = ("", " ", "dur>1e300s", "dur>nan", "arg.n>" + "9" * 400, "(" * 2000, "[" * 2000, "\udcff", "\x1b[2J")
VALUES = (*NUMBERS, *TIMES, *PAIRS, *TEXTS)
SHARES = 4
WRITES = {"output", "out", "bundle", "log", "index_dir", "junit"}
"""Options that name files to write."""


def options() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield (command, option, values) of every option with a value.

    Of an option that commands share the first gets all values, each of the others every fourth.
    """
    commands_with: Counter[tuple[str, str | None]] = Counter()
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.is_flag and parameter.name not in WRITES:
                option = max(parameter.opts, key=len)
                before = commands_with[option, parameter.help]
                commands_with[option, parameter.help] += 1
                yield name, option, VALUES[before % SHARES :: SHARES] if before else VALUES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("odd")
    small_file(folder)
    write_demo(folder / "demo")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "option", "values"),
    thinned(options(), 11),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_no_value_of_an_option_is_a_surprise(
    command: str,
    option: str,
    values: tuple[str, ...],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is given, the exit code is a documented one and what is wrong is said in one line."""
    monkeypatch.chdir(folder)
    trace = str(folder / "small.json")
    needed = {
        "diff": [trace, trace],
        "check": [trace, "--max", "kernels.calls=1"],
        "chain": [trace, "--name", "launch"],
        "cut": [trace, "--from", "step:0", "-o", str(folder / "cut.json"), "--force"],
        "demo": ["--out", str(folder / "made"), "--no-open"],
    }
    words = command.split()
    arguments = needed.get(command, [] if words[0] == "cache" else [trace])
    more = ["--smi", str(folder / "demo" / "aiu-smi.log")] if option.startswith("--smi-") else []
    for value in values:
        code = main([*words, *arguments, *more, f"{option}={value}"])
        out, errors = capsys.readouterr()
        assert code in CODES, (value, code)
        for text in (out, errors):
            assert BUG not in text and "Traceback" not in text, (value, errors)
        if code:
            said = [line for line in errors.splitlines() if line.startswith("tracelane: ")]
            assert len(said) <= 1, (value, errors)


DEEP = 100_000


@pytest.mark.parametrize(
    ("arguments", "name", "text", "code"),
    [
        (("check", "--limits", "{file}"), "limits.toml", "max = " + "[" * DEEP, 64),
        (("check", "--limits", "{file}"), "limits.toml", "[max]\n'kernels.calls' = " + "9" * 400, 64),
        (("diff", "{file}"), "old.json", '{"schema":2,"tables":' + "[" * DEEP, 2),
    ],
)
def test_files_nested_too_deeply_are_refused_in_one_line(
    arguments: tuple[str, ...],
    name: str,
    text: str,
    code: int,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Limits, marks and summaries that nobody wrote by hand end in a line that names the file."""
    file = folder / name
    file.write_text(text)
    words = [word.format(file=file) for word in arguments]
    assert main([words[0], str(folder / "small.json"), *words[1:]]) == code
    errors = capsys.readouterr().err
    assert errors.startswith("tracelane: ") and errors.count("\n") == 1 and len(errors) < 400
    assert BUG not in errors


def test_deep_marks_are_refused_in_one_line(tmp_path: Path) -> None:
    """A file of marks that is nested too deeply is named."""
    path = tmp_path / "marks.json"
    path.write_text('{"marks":' + "[" * DEEP)
    with pytest.raises(TracelaneError, match=r"marks\.json is not JSON"):
        read_object(path)


@pytest.mark.parametrize("command", ["info", "slices", "ops", "kernels", "view"])
def test_deep_identifiers_of_a_trace_are_shown_as_text(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process, thread or shape of a thousand brackets is what it says, and nothing fails."""
    deep = "[" * 5000 + "]" * 5000
    event = f'{{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":2,"pid":{deep},"tid":{deep}'
    shapes = '{"ph":"X","cat":"cpu_op","name":"a","ts":9,"dur":2,"pid":1,"tid":1,"args":{"Input Dims":' + deep
    (tmp_path / "t.json").write_text(f'{{"traceEvents":[{event}}},{shapes}}}}}]}}')
    more = {"info": ["--json"], "slices": ["--format", "json"], "ops": ["--group-by", "shape"]}.get(
        command, []
    )
    assert main([command, str(tmp_path / "t.json"), *more, "--index-dir", str(tmp_path / "index")]) == 0
    assert BUG not in capsys.readouterr().err
