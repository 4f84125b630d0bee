"""Any CSV with a header and a column of times becomes series; nvidia-smi and rocm-smi logs among them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tracelane.core.base.errors import UnreadableError
from tracelane.core.logs.header import ColumnKind
from tracelane.core.logs.log import TelemetryLog, open_log
from tracelane.core.logs.stamps import StampKind

NS = int(np.datetime64("2026-06-20T09:32:01", "ns").astype(np.int64))
MS = 1_000_000


def log_of(tmp_path: Path, text: str) -> TelemetryLog:
    path = tmp_path / "log.csv"
    path.write_text(text)
    return open_log(path)


def test_a_cell_that_no_reader_of_csv_takes(tmp_path: Path) -> None:
    """A cell of quotes that is longer than Python takes is no number; the other cells of its row are read."""
    rows = "".join(f"2026-06-20 09:32:0{second},{second},1\n" for second in range(1, 4))
    log = log_of(
        tmp_path, "timestamp,power.draw [W],x\n" + rows + "2026-06-20 09:32:04,4," + '"' * 400_000 + "\n"
    )
    (device,) = log.devices
    assert log.series(device, "power.draw").value.tolist() == [1, 2, 3, 4]


def test_nvidia_smi_query(tmp_path: Path) -> None:
    """Units of header and cells, N/A, words and milliseconds of an nvidia-smi log are understood."""
    log = log_of(
        tmp_path,
        "timestamp, name, index, power.draw [W], utilization.gpu [%], memory.used [MiB], pstate, "
        "power.limit [W]\n"
        "2026/06/20 09:32:01.250, NVIDIA H100, 0, 71.35 W, 12 %, 1024 MiB, P0, 700.00 W\n"
        "2026/06/20 09:32:01.252, NVIDIA H100, 1, [N/A], 0 %, 0 MiB, P8, 700.00 W\n"
        "2026/06/20 09:32:01.750, NVIDIA H100, 0, 80.50 W, 100 %, 2048 MiB, P0, 700.00 W\n",
    )
    assert log.tool == "nvidia-smi"
    assert list(log.devices) == ["0", "1"]
    assert log.stamps is StampKind.LOCAL
    power = log.series("0", "power.draw")
    assert power.value.tolist() == [71.35, 80.5]
    assert power.column.watts == 1.0
    assert power.end_ns.tolist() == [NS + 250 * MS, NS + 750 * MS]
    assert power.start_ns.tolist() == [NS - 250 * MS, NS + 250 * MS]
    assert log.series("1", "power.draw").missing.tolist() == [True]
    columns = {column.name: column for column in log.columns}
    assert columns["utilization.gpu"].kind is ColumnKind.BUSY
    assert columns["power.limit"].kind is not ColumnKind.POWER
    assert not columns["pstate"].numeric
    assert not columns["name"].numeric
    assert (log.rows, log.missing, log.unparsed) == (3, 0, 0)


def test_nvidia_smi_dmon_with_times(tmp_path: Path) -> None:
    """The text of nvidia-smi dmon -o DT is read like aiu-smi's: by its header and units lines."""
    block = (
        "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem\n"
        "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %\n"
    )
    log = log_of(
        tmp_path,
        block
        + " 20260620   09:32:01      0     43     35      -      0      0\n"
        + block
        + " 20260620   09:32:02      0     93     36      -     55      9\n",
    )
    assert log.series("0", "pwr").value.tolist() == [43.0, 93.0]
    assert log.series("0", "pwr").column.unit == "W"
    assert log.series("0", "mtemp").missing.all()
    assert log.series("0", "sm").column.kind is ColumnKind.BUSY


def test_rocm_smi(tmp_path: Path) -> None:
    """A rocm-smi CSV with a time before it has its devices, power and use by name."""
    log = log_of(
        tmp_path,
        "timestamp,device,Temperature (Sensor edge) (C),Average Graphics Package Power (W),GPU use (%)\n"
        "1781947921.5,card0,35.0,90.0,0\n"
        "1781947921.5,card1,36.0,91.0,7\n"
        "1781947922.0,card0,35.0,140.0,99\n",
    )
    assert log.tool == "rocm-smi"
    assert list(log.devices) == ["card0", "card1"]
    assert log.stamps is StampKind.UTC
    power = log.first_of("card0", ColumnKind.POWER)
    assert power is not None
    assert power.value.tolist() == [90.0, 140.0]
    assert power.end_ns.tolist() == [NS - 1000 * MS + 1500 * MS, NS + 1000 * MS]
    busy = log.first_of("card0", ColumnKind.BUSY)
    assert busy is not None
    assert busy.value.tolist() == [0.0, 99.0]


@pytest.mark.parametrize(
    ("stamp", "kind", "expected"),
    [
        ("2026-06-20T09:32:01.123456789", StampKind.LOCAL, NS + 123456789),
        ("2026-06-20 09:32:01.5", StampKind.LOCAL, NS + 500 * MS),
        ("2026-06-20T09:32:01.5Z", StampKind.UTC, NS + 500 * MS),
        ("2026-06-20T11:32:01.5+02:00", StampKind.UTC, NS + 500 * MS),
        ("2026-06-20 05:02:01.5-0430", StampKind.UTC, NS + 500 * MS),
        (str(NS + 7), StampKind.UTC, NS + 7),
        (str(NS // 1000 + 3), StampKind.UTC, NS + 3000),
        (str(NS // MS + 3), StampKind.UTC, NS + 3 * MS),
        (f"{NS // 1_000_000_000}.123456789", StampKind.UTC, NS + 123456789),
        ("20260620 09:32:01.5", StampKind.LOCAL, NS + 500 * MS),
        ("06/20/2026 09:32:01.5", StampKind.LOCAL, NS + 500 * MS),
        ("12.5", StampKind.RELATIVE, 12500 * MS),
    ],
)
def test_notations_of_time(tmp_path: Path, stamp: str, kind: StampKind, expected: int) -> None:
    """The usual notations of time are read to the nanosecond, and UTC is told from local time."""
    log = log_of(tmp_path, f"time,watts\n{stamp},5\n")
    assert log.stamps is kind
    assert log.devices["0"].end_ns.tolist() == [expected]


def test_whole_seconds_since_1970_are_spread(tmp_path: Path) -> None:
    """An epoch cut to seconds is spread like aiu-smi's stamps."""
    second = NS // 1_000_000_000
    rows = "".join(f"{second + i // 4},{i}\n" for i in range(16))
    log = log_of(tmp_path, "timestamp,power_usage\n" + rows)
    assert log.interval_ns == 250 * MS
    assert np.diff(log.devices["0"].end_ns).tolist() == [250 * MS] * 15


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_and_quotes(tmp_path: Path, separator: str) -> None:
    """Comma, semicolon (with decimal commas) and tab separate; quotes hide them."""
    number = "1,5" if separator == ";" else "1.5"
    rows = [["time", "what", "power (W)"], ["2026-06-20 09:32:01", f'"a{separator}b"', number]]
    log = log_of(tmp_path, "".join(separator.join(cells) + "\n" for cells in rows))
    assert log.series("0", "power").value.tolist() == [1.5]
    assert log.rows == 1


def test_zero_is_a_value_elsewhere(tmp_path: Path) -> None:
    """Only aiu-smi means "not captured" by a bare 0."""
    log = log_of(
        tmp_path, "timestamp,index,power.draw [W],utilization.gpu [%]\n2026/06/20 09:32:01.000,0,0,0\n"
    )
    assert (log.rows, log.missing) == (1, 0)
    assert log.series("0", "power.draw").value.tolist() == [0.0]


def test_bad_rows_are_counted(tmp_path: Path) -> None:
    """Rows of the wrong length or without a time are unparsed, each with its line and reason."""
    log = log_of(
        tmp_path,
        "# made by hand\n\ntime,a,b\n2026-06-20 09:32:01,1,2\n2026-06-20 09:32:02,1\n"
        "never,1,2\n2026-13-40 09:32:03,1,2\n"
        "2026-06-20 09:32:04,x,2\n",
    )
    assert (log.rows, log.missing, log.unparsed) == (2, 0, 3)
    assert sorted(line.line for line in log.unparsed_lines) == [5, 6, 7]
    assert log.series("0", "a").missing.tolist() == [False, True]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "device,Power (W)\ncard0,5\n", "just words\n", "time\n1\n"])
def test_no_time_no_series(tmp_path: Path, text: str) -> None:
    """A file without a column of times is refused in one line that says so."""
    with pytest.raises(UnreadableError, match="no header with a column of times"):
        log_of(tmp_path, text)
