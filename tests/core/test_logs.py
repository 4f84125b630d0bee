"""Telemetry logs: formats told by their headers, any CSV with times, odd stamps, every line accounted for."""

from __future__ import annotations

import re
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus import CORPUS, for_files, needs
from tracelane.core.base.errors import UnreadableError
from tracelane.core.logs.header import ColumnKind, known_column
from tracelane.core.logs.log import TelemetryLog, open_log
from tracelane.core.logs.stamps import NO_TIME, StampKind, parse_stamps, sampling_interval
from tracelane.core.logs.telemetry_tables import describe

FOLDER = CORPUS / "aiu_smi"
SECOND = 1_000_000_000
SAMPLES = sorted(p for p in FOLDER.glob("*") if p.suffix in (".txt", ".csv")) if FOLDER.is_dir() else []

TEXT_HEADER = (
    "#ID Date      Time      hostcpu hostmem    pwr  tempr   busy    rdmem\n"
    "#   YYYYMMDD  HH:MM:SS        %       %      W      C      %    GiB/s\n"
)
CSV_HEADER = "ID,Date (YYYYMMDD),Time (HH:MM:SS),hostcpu %,hostmem %,pwr W,tempr C,busy %,rdmem GiB/s\n"


def log_of(tmp_path: Path, text: str | bytes, name: str = "smi.log") -> TelemetryLog:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return open_log(path)


def row(second: int, pwr: str = "21.0", device: int = 0, tempr: str = "41.2", rdmem: str = "0.000") -> str:
    busy = "-" if pwr == "-" else "0"
    return f"  {device} 20260620  09:32:{second:02d}    109.1     3.4   {pwr}   {tempr}   {busy}   {rdmem}\n"


@for_files("path", SAMPLES)
def test_every_sample_row_is_accounted_for(path: Path) -> None:
    """Rows, missing rows and unparsed lines of a sample add up to its lines that are no header or comment."""
    lines = [
        line for line in path.read_text(encoding="utf-8").splitlines() if line.strip() and line[0] not in "#I"
    ]
    log = open_log(path)
    assert log.rows + log.missing + log.unparsed == len(lines)
    assert log.messages == 0
    assert log.unparsed == sum(line.strip() == "..." for line in lines)
    assert log.tool == "aiu-smi"
    assert log.format == ("csv" if "csv" in path.name else "text")
    assert sum(len(device.line) for device in log.devices.values()) == log.rows + log.missing


@for_files("path", SAMPLES)
def test_every_sample_value_is_that_of_its_own_line(path: Path) -> None:
    """Each value stands in the cell of its line that the header's name for it points to."""
    header: list[str] = []
    cells: dict[int, dict[str, str]] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = [p.strip() for p in line.split(",")] if "," in line else line.lstrip("#").split()
        if "ID" in line and "Date" in line:
            header = [p.split()[0] for p in parts]
        elif header and len(parts) == len(header) and not line.startswith("#"):
            cells[number] = dict(zip(header, parts))
    log = open_log(path)
    seen = 0
    for device in log.devices:
        for column in log.columns:
            series = log.series(device, column.name)
            for line, value, missing in zip(
                series.line.tolist(), series.value.tolist(), series.missing.tolist()
            ):
                cell = cells[line][column.name]
                assert cells[line]["ID"] == device
                if missing:
                    assert cell in ("-", "0")
                else:
                    assert value == float(cell)
                    seen += cell not in ("-",)
    assert seen > 0


@needs(CORPUS)
def test_sample_facts() -> None:
    """The numbers that PAIRS.json and the files themselves state are found."""
    expected = {
        "PAIR1_jamie_mlp_upstream_utc_1s.txt": (["0"], 8, 2, 1.0),
        "PAIR2_decode_bmm_upstream_newyork_100ms.csv": (["0"], 79, 26, 0.1),
        "PAIR3_prefill_bmm_baseline_zurich_100ms_2dev.txt": (["0", "1"], 158, 52, 0.1),
        "REAL_readme_2dev_text_2025.txt": (["0", "1"], 13, 5, 1.0),
        "aiusmi_131_GENERATED_csv.txt": (["0", "1"], 16, 4, 1.0),
    }
    for name, (devices, rows, missing, interval) in expected.items():
        description = describe(open_log(FOLDER / name))
        assert (description["devices"], description["rows"], description["missing"]) == (
            devices,
            rows,
            missing,
        ), name
        assert description["interval_s"] == pytest.approx(interval, rel=0.02), name


@pytest.mark.parametrize(
    ("name", "unit", "kind"),
    [
        ("temperature.gpu", "C", ColumnKind.TEMPERATURE),
        ("temperature.gpu", "", ColumnKind.TEMPERATURE),
        ("GPU Core Temperature", "Celsius Degree", ColumnKind.TEMPERATURE),
        ("temperature.gpu", "F", ColumnKind.OTHER),
        ("tempr", "K", ColumnKind.OTHER),
        ("utilization.gpu", "%", ColumnKind.BUSY),
        ("utilization.gpu", "permille", ColumnKind.OTHER),
        ("power.draw", "mW", ColumnKind.POWER),
        ("power.draw", "BTU/h", ColumnKind.OTHER),
        ("pwr", "dBm", ColumnKind.OTHER),
    ],
)
@pytest.mark.parametrize("aiu", [True, False])
def test_what_has_another_unit_is_not_summed_up(name: str, unit: str, kind: ColumnKind, aiu: bool) -> None:
    """Degrees Fahrenheit are no "max °C": what a table sums up is in a unit that it knows."""
    assert known_column(name, unit, aiu).kind == kind


def test_units_are_the_headers_own(tmp_path: Path) -> None:
    """GB/s and GiB/s, gtemp and tempr are taken as the header has them, and keep their meaning."""
    old = TEXT_HEADER.replace("tempr", "gtemp").replace("GiB/s", " GB/s")
    for text, name, unit in ((TEXT_HEADER, "tempr", "GiB/s"), (old, "gtemp", "GB/s")):
        log = log_of(tmp_path, text + row(1))
        kinds = {column.name: (column.unit, column.kind) for column in log.columns}
        assert kinds[name] == ("C", ColumnKind.TEMPERATURE)
        assert kinds["rdmem"] == (unit, ColumnKind.BANDWIDTH)
        assert all(column.meaning for column in log.columns)


def test_columns_are_found_by_name_wherever_they_stand(tmp_path: Path) -> None:
    """A header with its columns in another order gives the same values under the same names."""
    log = log_of(
        tmp_path,
        "Time (HH:MM:SS),rdmem GiB/s,n_rdmem Mreq/s,ID,pwr W,Date (YYYYMMDD),newthing xyz\n"
        "09:32:01,1.500,2.25,3,21.5,20260620,7.5\n",
    )
    assert list(log.devices) == ["3"]
    values = {column.name: float(log.series("3", column.name).value[0]) for column in log.columns}
    assert values["rdmem"] == 1.5
    assert values["pwr"] == 21.5
    assert sorted(values.values()) == [1.5, 2.25, 7.5, 21.5]


def test_request_rates_memory_and_unknown_columns(tmp_path: Path) -> None:
    """Request rates, rsvmem, peakmem and actmem are known; an unknown column is shown as it is."""
    log = log_of(
        tmp_path,
        CSV_HEADER.rstrip() + ",n_rdmem Mreq/s,rsvmem MB,peakmem GiB,actmem GiB,pt_act %,flux Wb\n"
        "0,20260620,09:32:01,1.0,2.0,21.0,41.0,3,1.000,0.125,512,1.5000,1.2500,0.50,9.75\n",
    )
    columns = {column.name: column for column in log.columns}
    assert columns["n_rdmem"].kind is ColumnKind.REQUESTS
    assert columns["rsvmem"].kind is columns["peakmem"].kind is ColumnKind.MEMORY
    assert (columns["flux"].unit, columns["flux"].warning, columns["flux"].meaning) == ("Wb", "", "")
    assert log.series("0", "flux").value.tolist() == [9.75]
    assert log.series("0", "actmem").value.tolist() == [1.25]


def test_unreliable_columns_say_why(tmp_path: Path) -> None:
    """rsvmem, pt_act and the bandwidths carry a reason; power of the card and host use may be trusted."""
    log = log_of(tmp_path, CSV_HEADER.rstrip() + ",wrmem GiB/s,rxpci GiB/s,txpci GiB/s,rsvmem MB,pt_act %\n")
    warned = {c["name"] for c in describe(log)["columns"] if c["warning"]}
    assert {"rsvmem", "pt_act", "rdmem", "wrmem", "rxpci", "txpci"} <= warned
    assert not {"hostcpu", "hostmem", "tempr"} & warned


def test_dash_is_missing_not_zero(tmp_path: Path) -> None:
    """A card that is not ready has missing values, while the host's are kept."""
    log = log_of(tmp_path, TEXT_HEADER + row(1, "-", tempr="-", rdmem="-") + row(2, "0.2"))
    assert (log.rows, log.missing, log.unparsed) == (1, 1, 0)
    assert log.series("0", "pwr").missing.tolist() == [True, False]
    assert log.series("0", "hostcpu").missing.tolist() == [False, False]


def test_bare_zeros_of_the_csv_are_missing(tmp_path: Path) -> None:
    """A CSV row of bare zeros was not captured; one with decimals was, even where all is zero."""
    log = log_of(
        tmp_path,
        CSV_HEADER
        + "0,20260620,09:32:01,109.1,3.4,0,0,0,0\n"
        + "0,20260620,09:32:02,109.1,3.4,0.4,41.2,0,0.000\n"
        + "0,20260620,09:32:03,109.1,3.4,0.0,0.0,0,0.000\n",
    )
    assert (log.rows, log.missing) == (2, 1)
    assert log.series("0", "pwr").missing.tolist() == [True, False, False]
    assert log.series("0", "busy").missing.tolist() == [True, False, False]
    assert log.series("0", "hostcpu").value.tolist() == [109.1] * 3


def test_repeated_headers(tmp_path: Path) -> None:
    """A header repeated mid-file is no row; a different one changes the columns from there on."""
    log = log_of(tmp_path, TEXT_HEADER + row(1) + "#MetricFiles\n" + TEXT_HEADER + row(2))
    assert (log.rows, log.unparsed) == (2, 0)
    wider = TEXT_HEADER.replace("rdmem", "rdmem   pt_act").replace("GiB/s", "GiB/s        %")
    log = log_of(tmp_path, TEXT_HEADER + row(1) + wider + row(2).rstrip() + "   6.80\n")
    assert (log.rows, log.unparsed) == (2, 0)
    assert log.series("0", "pt_act").missing.tolist() == [True, False]
    assert log.series("0", "pwr").value.tolist() == [21.0, 21.0]


def test_headers_between_pauses_are_of_runs(tmp_path: Path) -> None:
    """Where a header is repeated and nothing pauses there is one run; at a pause another begins."""
    blocks = [TEXT_HEADER + row(second) for second in (1, 2, 3, 40, 41)]
    (note,) = [one for one in log_of(tmp_path, "".join(blocks)).notes if "header" in one]
    assert note == "its header occurs 5 times: it holds 2 runs"
    assert not [one for one in log_of(tmp_path, "".join(blocks[:3])).notes if "header" in one]


def test_messages_among_the_rows(tmp_path: Path) -> None:
    """Lines of standard error are kept apart; a row that one was written into counts as unparsed."""
    log = log_of(
        tmp_path,
        "INFO: Monitoring 2 device(s): 0 2\n"
        + TEXT_HEADER
        + row(1)
        + "Warning: Device ID 7 does not exist\n"
        + row(2).replace("21.0", "21.0 Warning: stale")
        + row(3),
    )
    assert (log.rows, log.missing, log.unparsed, log.messages) == (2, 0, 1, 2)
    assert [line for line, _ in log.message_lines] == [1, 5]
    assert log.unparsed_lines[0].line == 6


@pytest.mark.parametrize(
    ("last", "rows", "unparsed", "rdmem_missing"),
    [
        (row(2, rdmem="1.234").rstrip("\n"), 2, 0, False),
        (row(2, rdmem="1.2").rstrip("\n"), 2, 0, True),
        (row(2, rdmem="1.").rstrip("\n"), 2, 0, True),
        (row(2)[:40], 1, 1, False),
        (row(2)[:9], 1, 1, False),
    ],
)
def test_truncated_last_line(
    tmp_path: Path, last: str, rows: int, unparsed: int, rdmem_missing: bool
) -> None:
    """A last line without its end is a row if it has all its cells, but no number that was cut short."""
    log = log_of(tmp_path, TEXT_HEADER + row(1) + last)
    assert (log.rows, log.unparsed) == (rows, unparsed)
    assert bool(log.series("0", "rdmem").missing[-1]) is rdmem_missing
    if unparsed:
        assert "cut off" in log.unparsed_lines[0].why


def test_nothing_is_guessed_without_a_header(tmp_path: Path) -> None:
    """Rows before any header are unparsed, and a log with none, an empty or a binary one is refused."""
    log = log_of(tmp_path, row(1) + TEXT_HEADER + row(2))
    assert (log.rows, log.unparsed, log.unparsed_lines[0].line) == (1, 1, 1)
    for text, why in ((row(1).encode(), "header"), (b"", "empty"), (b"\x7fELF\x00\x00", "binary")):
        with pytest.raises(UnreadableError, match=why):
            log_of(tmp_path, text)
    with pytest.raises(UnreadableError, match="No such file"):
        open_log(tmp_path / "absent")


def test_a_log_with_a_header_only(tmp_path: Path) -> None:
    """A log that has just begun has columns and no devices."""
    log = log_of(tmp_path, TEXT_HEADER)
    assert (log.rows, log.missing, log.unparsed, list(log.devices)) == (0, 0, 0, [])
    assert [column.label for column in log.columns][2:4] == ["pwr W", "tempr C"]
    assert log.span is None


def test_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    """CRLF and a byte order mark change nothing."""
    plain = log_of(tmp_path, TEXT_HEADER + row(1) + row(2))
    dressed = log_of(
        tmp_path, b"\xef\xbb\xbf" + (TEXT_HEADER + row(1) + row(2)).replace("\n", "\r\n").encode()
    )
    assert describe(plain) == describe(dressed)
    assert dressed.line_text(3) == row(1).rstrip("\n")


def test_the_logs_own_line(tmp_path: Path) -> None:
    """Every sample knows the line that it came from, and the line can be read again."""
    text = TEXT_HEADER + row(1) + "Warning: x\n" + row(2, device=1) + row(2, "33.3")
    log = log_of(tmp_path, text)
    lines = text.splitlines()
    for device in log.devices.values():
        for number in device.line.tolist():
            assert log.line_text(number) == lines[number - 1]
    assert log.line_text(1) == ""


@pytest.mark.parametrize("rate", [2, 3, 7, 10, 50, 100])
@pytest.mark.parametrize("phase", [0.0, 0.37, 0.93])
def test_rows_of_one_second_are_spread(tmp_path: Path, rate: int, phase: float) -> None:
    """Rows cut to whole seconds are put back within one sampling interval of when they were printed."""
    interval = 1 / rate * 1.009
    true = phase + 1 + interval * np.arange(5 * rate)
    text = TEXT_HEADER + "".join(row(int(t), device=d) for t in true for d in (0, 1))
    log = log_of(tmp_path, text)
    midnight = np.datetime64("2026-06-20T09:32:00", "ns").astype(np.int64)
    for device in log.devices.values():
        error = (device.end_ns - midnight) / SECOND - true
        assert np.abs(error).max() <= interval
        assert (np.diff(device.end_ns) > 0).all()
        assert ((device.end_ns - midnight) // SECOND == true.astype(int)).all()
        assert (device.start_ns[1:] == device.end_ns[:-1]).all()
    assert log.interval_ns == pytest.approx(interval * SECOND, rel=0.15)


def test_gaps_are_not_bridged(tmp_path: Path) -> None:
    """After a pause a row speaks of its own interval only, and nothing is there in the pause."""
    log = log_of(tmp_path, TEXT_HEADER + "".join(row(s) for s in (1, 2, 3, 4, 30, 31, 32)))
    series = log.series("0", "pwr")
    assert (series.end_ns - series.start_ns).tolist() == [SECOND] * 7
    base = int(series.end_ns[0])
    assert series.at(base + 10 * SECOND) is None
    assert series.at(base + SECOND // 2) == 1
    assert series.at(base) == 1


def test_interval_changes_and_clock_set_back(tmp_path: Path) -> None:
    """Appended runs keep their own intervals, and stamps that run backwards are sorted and told."""
    slow = "".join(row(s) for s in range(5, 60, 5))
    log = log_of(tmp_path, TEXT_HEADER + "".join(row(s) for s in (0, 1, 2, 3, 4)) + slow)
    lengths = np.diff(log.devices["0"].end_ns) // SECOND
    starts = log.devices["0"].start_ns
    assert lengths[-4:].tolist() == [5] * 4
    assert (starts[-4:] == log.devices["0"].end_ns[-5:-1]).all()
    back = log_of(tmp_path, TEXT_HEADER + row(9, "9.0") + row(10, "10.0") + row(2, "2.0") + row(3, "3.0"))
    assert back.series("0", "pwr").value.tolist() == [2.0, 3.0, 9.0, 10.0]
    assert any("backwards" in note for note in back.notes)


def test_metric_files_name_the_card(tmp_path: Path) -> None:
    """The list of metric files, text or CSV, tells which bus id a device has."""
    text = "#MetricFiles\n# 0 /tmp/metrics.0000:13:00.0\n# 1 /tmp/metrics.0000:12:00.0\n" + TEXT_HEADER
    log = log_of(tmp_path, text + row(1) + row(1, device=1))
    assert [d.file for d in log.devices.values()] == [
        "/tmp/metrics.0000:13:00.0",
        "/tmp/metrics.0000:12:00.0",
    ]
    log = log_of(
        tmp_path,
        "#MetricFile,0,/tmp/metrics.0000:13:00.0\n" + CSV_HEADER + "0,20260620,09:32:01,1,1,1.0,1.0,0,0.0\n",
    )
    assert log.devices["0"].file == "/tmp/metrics.0000:13:00.0"


@pytest.mark.slow
def test_long_logs_cross_blocks(tmp_path: Path) -> None:
    """A log longer than one read block loses and doubles nothing at the seams."""
    number = 60_000
    lines = [
        f"0,20260620,{i // 36000:02d}:{i // 600 % 60:02d}:{i // 10 % 60:02d},1.0,2,{i % 977}.5,41.0,3,0.0\n"
        for i in range(number)
    ]
    log = log_of(tmp_path, CSV_HEADER + "".join(lines) * 2)
    assert log.rows == 2 * number
    value = log.series("0", "pwr").value
    assert np.bincount(value.astype(int)).sum() == 2 * number
    assert value.sum() == pytest.approx(2 * sum(i % 977 + 0.5 for i in range(number)))
    assert re.match(r"0,20260620", log.line_text(2 * number + 1))
    assert log.line_text(number + 1) == lines[number - 1].rstrip()


NS = int(np.datetime64("2026-06-20T09:32:01", "ns").astype(np.int64))
MS = 1_000_000


def log_of_csv(tmp_path: Path, text: str) -> TelemetryLog:
    path = tmp_path / "log.csv"
    path.write_text(text, encoding="utf-8")
    return open_log(path)


def test_a_cell_that_no_reader_of_csv_takes(tmp_path: Path) -> None:
    """A cell of quotes that is longer than Python takes is no number; the other cells of its row are read."""
    rows = "".join(f"2026-06-20 09:32:0{second},{second},1\n" for second in range(1, 4))
    log = log_of_csv(
        tmp_path, "timestamp,power.draw [W],x\n" + rows + "2026-06-20 09:32:04,4," + '"' * 400_000 + "\n"
    )
    (device,) = log.devices
    assert log.series(device, "power.draw").value.tolist() == [1, 2, 3, 4]


def test_nvidia_smi_query(tmp_path: Path) -> None:
    """Units of header and cells, N/A, words and milliseconds of an nvidia-smi log are understood."""
    log = log_of_csv(
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
    log = log_of_csv(
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


def test_rows_of_cards_that_nothing_names(tmp_path: Path) -> None:
    """Of a log without a column of devices the rows of each moment are those of the cards, in order; one with
    bursts of unequal size says that several may be mixed, one with a row each moment has one card.
    """
    header = "timestamp, power.draw [W]\n"
    moments = [
        [f"2026/06/20 09:32:{second:02d}.{3 * card:03d}, {100 * card + second} W\n" for card in range(3)]
        for second in range(5)
    ]
    log = log_of_csv(tmp_path, header + "".join(line for moment in moments for line in moment))
    assert [log.series(str(card), "power.draw").value.tolist() for card in range(3)] == [
        [100 * card + second for second in range(5)] for card in range(3)
    ]
    assert "the 3 rows of each moment" in log.notes[0]
    moments[2].pop()
    log = log_of_csv(tmp_path, header + "".join(line for moment in moments for line in moment))
    assert list(log.devices) == ["0"] and "several may be mixed" in log.notes[-1]
    log = log_of_csv(tmp_path, header + "".join(moment[0] for moment in moments))
    assert list(log.devices) == ["0"] and not log.notes


@pytest.mark.parametrize(
    "header",
    [
        "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Core Temperature (Celsius Degree)\n",
        "#Time gpu sm pwr gtemp\n#HH:MM:SS Idx % W C\n",
    ],
)
@pytest.mark.parametrize("hours", [0, -13, 30 * 24, -9])
def test_stamps_without_a_date(tmp_path: Path, header: str, hours: int) -> None:
    """Logs of xpu-smi and of dmon -o T name no day: it is that nearest to the trace, past midnight too."""
    comma = "," if "," in header else ""
    begin = datetime(2026, 6, 19, 23, 59, 58)
    lines = [
        f"{begin + timedelta(seconds=n):%H:%M:%S}{comma} {card}{comma} 50{comma} {60 + n}{comma} 40\n"
        for n in range(4)
        for card in (0, 1)
    ]
    path = tmp_path / "log.csv"
    path.write_text(header + "".join(lines), encoding="utf-8")
    near = NS - 9 * 3_600_000_000_000 + hours * 3_600_000_000_000  # 00:32:01 on the next day, and later
    log = open_log(path, near)
    assert (list(log.devices), log.stamps, log.rows) == (["0", "1"], StampKind.LOCAL, 8)
    power = log.first_of("1", ColumnKind.POWER)
    assert power is not None and power.value.tolist() == [60, 61, 62, 63]
    assert np.diff(power.end_ns).tolist() == [SECOND] * 3
    assert abs(int(power.end_ns[0]) - near) <= 43_202 * SECOND
    assert (int(power.end_ns[0]) // SECOND + 2) % 86_400 == 0
    busy, warmth = (log.first_of("0", kind) for kind in (ColumnKind.BUSY, ColumnKind.TEMPERATURE))
    assert busy is not None and warmth is not None and (busy.value[0], warmth.value[0]) == (50, 40)


def test_the_first_column_with_values_counts(tmp_path: Path) -> None:
    """Of columns of a kind the first that has values is meant; how far a limit is counts for none."""
    log = log_of_csv(
        tmp_path,
        "timestamp, index, temperature.memory, temperature.gpu.tlimit, temperature.gpu, "
        "power.draw.average [W], power.draw.instant [W]\n"
        "2026/06/20 09:32:01.250, 0, N/A, 55, 48, [N/A], 71.35 W\n",
    )
    warmth, power = (log.first_of("0", kind) for kind in (ColumnKind.TEMPERATURE, ColumnKind.POWER))
    assert warmth is not None and warmth.value.tolist() == [48]
    assert power is not None and power.value.tolist() == [71.35]


def test_rocm_smi(tmp_path: Path) -> None:
    """A rocm-smi CSV with a time before it has its devices, power and use by name."""
    log = log_of_csv(
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
        ("09:32:01.5", StampKind.TIME_OF_DAY, NS % 86_400_000_000_000 + 500 * MS),
    ],
)
def test_notations_of_time(tmp_path: Path, stamp: str, kind: StampKind, expected: int) -> None:
    """The usual notations of time are read to the nanosecond, and UTC is told from local time."""
    log = log_of_csv(tmp_path, f"time,watts\n{stamp},5\n")
    assert log.stamps is kind
    assert log.devices["0"].end_ns.tolist() == [expected]


NOTATIONS = ("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S", "%Y/%m/%d %H:%M:%S.%f", "%Y%m%d %H:%M:%S")


@given(
    st.lists(st.datetimes(datetime(1970, 1, 2), datetime(2099, 12, 31)), min_size=1),
    st.sampled_from(NOTATIONS),
)
def test_every_day_of_the_calendar_is_read(moments: list[datetime], notation: str) -> None:
    """A stamp is the time that the calendar has for it, in leap years and at the ends of months, too."""
    texts = [moment.strftime(notation) for moment in moments]
    expected = [np.datetime64(datetime.strptime(text, notation), "ns").astype(np.int64) for text in texts]
    assert parse_stamps([text.encode() for text in texts]).ns.tolist() == expected


@pytest.mark.parametrize("year", [1999, 2000, 2038])
def test_no_other_day_is_read(year: int) -> None:
    """Of all numbers that a stamp may have just those are a time that the calendar and the clock have."""
    days = [(month, day) for month in range(14) for day in range(33)]
    texts = [f"{year}-06-20 00:00:00", *(f"{year}-{month:02}-{day:02} 00:00:00" for month, day in days)]
    is_day = [stamp != NO_TIME for stamp in parse_stamps([text.encode() for text in texts]).ns.tolist()[1:]]
    first = datetime(year, 1, 1)
    known = {(first + timedelta(days=at)).timetuple()[1:3] for at in range(366 if year == 2000 else 365)}
    assert [day for day, there in zip(days, is_day) if there] == sorted(known)
    clock = [f"{year}-06-20 {text}" for text in ("23:59:59", "24:00:00", "00:60:00", "00:00:60")]
    assert [stamp == NO_TIME for stamp in parse_stamps([text.encode() for text in clock]).ns.tolist()] == [
        False, True, True, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "interval_ms"), [((4,), 250), ((2, 10), 2000 / 12), ((2, 10, 3), 100), ((1, 10, 10, 1), 100)]
)
def test_seconds_that_may_be_cut_are_not_counted(rows: tuple[int, ...], interval_ms: float) -> None:
    """The first and the last second of a log hold fewer rows; they count where there are no others."""
    seconds = np.repeat(np.arange(len(rows)) * 1_000 * MS, rows)
    assert sampling_interval(seconds, whole_seconds=True) == pytest.approx(interval_ms * MS, rel=1e-6)


def test_whole_seconds_since_1970_are_spread(tmp_path: Path) -> None:
    """An epoch cut to seconds is spread like aiu-smi's stamps."""
    second = NS // 1_000_000_000
    rows = "".join(f"{second + i // 4},{i}\n" for i in range(16))
    log = log_of_csv(tmp_path, "timestamp,power_usage\n" + rows)
    assert log.interval_ns == 250 * MS
    assert np.diff(log.devices["0"].end_ns).tolist() == [250 * MS] * 15


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_and_quotes(tmp_path: Path, separator: str) -> None:
    """Comma, semicolon (with decimal commas) and tab separate; quotes hide them."""
    number = "1,5" if separator == ";" else "1.5"
    rows = [["time", "what", "power (W)"], ["2026-06-20 09:32:01", f'"a{separator}b"', number]]
    log = log_of_csv(tmp_path, "".join(separator.join(cells) + "\n" for cells in rows))
    assert log.series("0", "power").value.tolist() == [1.5]
    assert log.rows == 1


def test_zero_is_a_value_elsewhere(tmp_path: Path) -> None:
    """Only aiu-smi means "not captured" by a bare 0."""
    log = log_of_csv(
        tmp_path, "timestamp,index,power.draw [W],utilization.gpu [%]\n2026/06/20 09:32:01.000,0,0,0\n"
    )
    assert (log.rows, log.missing) == (1, 0)
    assert log.series("0", "power.draw").value.tolist() == [0.0]


def test_bad_rows_are_counted(tmp_path: Path) -> None:
    """Rows of the wrong length or without a time are unparsed, each with its line and reason."""
    log = log_of_csv(
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
        log_of_csv(tmp_path, text)


GOOD = {"civil": b"2026-06-20 07:10:01", "compact": b"20260620 07:10:01", "epoch": b"1781939401"}
GOOD_NS = 1_781_939_401_000_000_000
ODD = (
    b"2026-06-20 07:10:02Z",
    b"2026-06-20 07:10:02+02:00",
    b"2026-06-20 07:10:02 UTC",
    b"9999-12-31 23:59:59",
    b"1677-01-01 00:00:00",
    b"0000-00-00 00:00:00",
    b"2026-13-40 07:10:02",
    b"2026-02-29 07:10:02",
    b"2026-04-31 07:10:02",
    b"2026-06-20 24:00:00",
    b"2026-06-20 07:60:00",
    b"2026-06-20 07:10:60",
    b"2026-06-00 07:10:02",
    b"99991231 23:59:59",
    b"12/31/9999 23:59:59",
    b"NaT",
    b"now",
    b"",
    b"\xff" * 20,
    b"9" * 30,
    b"9" * 5000,
    b"1e300",
    b"1e999",
    b"-5",
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_stamp_costs_its_row(kind: str, odd: bytes) -> None:
    """The good stamp beside it keeps its time, the odd one has none, and no warning reaches stderr."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stamps = parse_stamps([GOOD[kind], odd, GOOD[kind]])
    assert stamps.ns.tolist() == [GOOD_NS, NO_TIME, GOOD_NS]


@pytest.mark.parametrize("odd", ODD)
def test_an_odd_stamp_first(odd: bytes) -> None:
    """A log that begins with an odd stamp is read, or has no times; the stamp itself is in no far year."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stamps = parse_stamps([odd, GOOD["civil"]]).ns
    assert np.all((stamps == NO_TIME) | (np.abs(stamps) < 1 << 62))


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        (b"2026-06-20 07:10:02.1234567890123", 1_781_939_402_123_456_789),
        (b"2026/06/20 07:10:02,5", 1_781_939_402_500_000_000),
    ],
)
def test_digits_of_a_fraction(text: bytes, ns: int) -> None:
    """A fraction has ns, further digits are cut off; a comma is a point."""
    assert parse_stamps([text]).ns.tolist() == [ns]


@given(st.datetimes(min_value=datetime(1800, 1, 1), max_value=datetime(2100, 12, 31)))
def test_every_civil_time_is_read(moment: datetime) -> None:
    """A date and time of day is so many days and seconds after 1970, leap years and all."""
    since = moment - datetime(1970, 1, 1)
    ns = (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    text = moment.strftime("%Y-%m-%d %H:%M:%S.%f").encode()
    assert parse_stamps([text, b"2026-13-40 00:00:00"]).ns.tolist() == [ns, NO_TIME]
