"""Reading a telemetry log takes time in proportion to its length, whatever it repeats."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.corpus import thinned
from tests.linear import assert_linear
from tests.tui.small_file import events
from tracelane.tui.cli.main import main

pytestmark = pytest.mark.slow

CHARACTERS = 25_000
UNITS = ("x", ",", ", ", "1", '"', "\n", " \n", "=\t")
LOGS: dict[str, Callable[[str], str]] = {
    "heading": lambda text: (
        f"timestamp,power.draw [W],{text}\n2026-06-20 07:10:00,1,2\n2026-06-20 07:10:01,1,2\n"
    ),
    "cell": lambda text: (
        f"timestamp,power.draw [W],x\n2026-06-20 07:10:00,1,{text}\n2026-06-20 07:10:01,1,2\n"
    ),
    "stamp": lambda text: (
        f"timestamp,power.draw [W]\n{text},1\n2026-06-20 07:10:01,1\n2026-06-20 07:10:02,1\n"
    ),
    "line": lambda text: f"{text}\ntimestamp,power.draw [W]\n2026-06-20 07:10:01,1\n2026-06-20 07:10:02,1\n",
    "quoted": lambda text: f'timestamp,power.draw [W]\n2026-06-20 07:10:01,"{text}\n2026-06-20 07:10:02,1\n',
}


@pytest.mark.parametrize(("form", "unit"), thinned(product(LOGS, UNITS), 3))
def test_logs(form: str, unit: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log with a text four times as long takes at most eight times as long, read or refused."""
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"traceEvents": events()}))

    def prepare(size: int) -> Callable[[], object]:
        log = tmp_path / f"{size}.csv"
        log.write_text(LOGS[form](unit * (size // len(unit))))

        def work() -> None:
            assert main(["telemetry", str(trace), "--smi", str(log)]) in (0, 2, 64)
            capsys.readouterr()

        return work

    assert_linear(prepare, CHARACTERS)
