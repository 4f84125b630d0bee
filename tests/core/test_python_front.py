"""`import tracelane`: each analysis is a method, columns are exact, nothing is loaded before a trace is."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracelane
from tests.corpus import file, for_files
from tests.scripts import document_script
from tests.tui.small_file import small_file
from tracelane.core.python.opened import OpenedTrace
from tracelane.core.tables.analysis import loaded
from tracelane.core.tables.frame.table import PROMISED
from tracelane.core.tables.host.slice_table import NAMES
from tracelane.core.tables.registry import ANALYSES, BY_NAME

ROOT = Path(__file__).resolve().parent.parent.parent
LIGHT = """
import sys
import tracelane
print([name for name in ("numpy", "click", "tracelane.core", "tracelane.tui") if name in sys.modules])
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedTrace]:
    """Two steps with an op, a launch and a kernel each."""
    folder = tmp_path_factory.mktemp("front")
    with tracelane.open(small_file(folder), index_dir=folder / "index") as opened:
        yield opened


def test_importing_loads_nothing() -> None:
    """`import tracelane` loads no other package and none of its own rooms."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


def test_running_the_package_is_the_command() -> None:
    """`python -m tracelane --version` says what `tracelane --version` says, the version first."""
    done = subprocess.run(
        [sys.executable, "-m", "tracelane", "--version"], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines()[0] == f"tracelane {tracelane.__version__}"


def test_all_names_are_there() -> None:
    """All that `__all__` promises exists, and other names are refused as of any module."""
    for name in tracelane.__all__:
        assert getattr(tracelane, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tracelane.nothing  # noqa: B018


def test_completion_offers_what_is_promised() -> None:
    """What a shell or notebook completes after `tracelane.` is `__all__`, and nothing that is imported."""
    assert {name for name in dir(tracelane) if not name.startswith("__")} | {"__version__"} == set(
        tracelane.__all__
    )


def test_values_introduce_themselves_in_a_line(small: OpenedTrace) -> None:
    """What a shell prints of a trace, a table, tables or a picture is short, and names the columns."""
    kernels, idle = small.kernels(), small.tables("idle")
    assert repr(kernels).startswith(f"<tracelane table kernels, whole trace: {len(kernels)} rows of name, ")
    assert repr(idle) == "<tracelane tables, whole trace: streams, gaps, devices>"
    assert max(len(repr(value)) for value in (small, kernels, idle, small.plot())) < 300


def test_methods_are_the_registry_s() -> None:
    """The methods are written for the registry as it is."""
    text = (ROOT / "core" / "python" / "analyses.pyi").read_text(encoding="utf-8")
    assert text == document_script("python_methods").methods_text(), "run: .venv/bin/python docs/update.py"


@pytest.mark.parametrize("row", ANALYSES, ids=lambda row: row.name)
def test_every_analysis_is_a_method(row, small: OpenedTrace) -> None:  # type: ignore[no-untyped-def]
    """It has the arguments and defaults of its function, a text, and returns a table of its name."""
    method = getattr(small, row.name)
    own = dict(list(inspect.signature(loaded(row.function)).parameters.items())[1:])
    parameters = inspect.signature(method).parameters
    for name in {option.name for option in row.options}:
        assert parameters[name].default == own[name].default
    assert inspect.getdoc(method)
    table = method()
    assert isinstance(table, tracelane.Table) and table.name == small.tables(row.name).main.name
    for column in table.columns:
        assert len(table[column.key]) == len(table)
    assert "<table>" in table._repr_html_()


def test_slices_are_all_slices_exactly(small: OpenedTrace) -> None:
    """Columns hold every slice once with its times in ns, its lane, step and identity."""
    table = small.slices()
    assert tuple(table.units) == NAMES and len(table) == 9
    kernels = table.take(table["category"] == "kernel")
    assert kernels["duration_ns"].tolist() == [30_500, 30_500]
    assert kernels["start_ns"].tolist() == [1_060_000, 1_160_000]
    assert kernels["step"].tolist() == ["0", "1"] and set(kernels["lane"]) == {"Stream 1"}
    assert (np.diff(table["start_ns"]) >= 0).all() and len(set(table["id"].tolist())) == 9
    assert small.slices(step=1, where="cat:kernel")["id"].tolist() == kernels["id"].tolist()[1:]
    assert small.slices(columns=("duration_ns",), limit=2).units == {"duration_ns": "ns"}


def test_long_slices_keep_their_length(tmp_path: Path) -> None:
    """A slice longer than 2**32 ns has its whole length, in every library's columns."""
    events = [{"ph": "X", "name": "long", "pid": 1, "tid": 1, "ts": 10**12, "dur": 9_000_000_000.125}]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    with tracelane.open(path, index_dir=tmp_path / "index") as opened:
        table = opened.slices()
        assert table["duration_ns"].tolist() == [9_000_000_000_125]
        assert opened.info.span == 9_000_000_000_125


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"where": "dur>"}, "dur"),
        ({"step": 99}, "no step 99"),
        ({"step": 1, "begin": 5}, "range of its own"),
        ({"lanes": "nothing like it"}, "no lane"),
        ({"columns": ("duration_ns", "duration")}, "no column duration"),
        ({"begin": 5, "end": 5}, "before"),
        ({"begin": 1.5}, "whole number of ns"),
        ({"step": 1.5}, "label of a step"),
        ({"where": 5}, "where is a text"),
        ({"lanes": 5}, "lanes is a text"),
        ({"limit": "x"}, "limit is a whole number"),
    ],
)
def test_what_means_nothing_is_refused(small: OpenedTrace, arguments: dict, message: str) -> None:  # type: ignore[type-arg]
    """Options without a meaning raise TracelaneError that says which."""
    with pytest.raises(tracelane.TracelaneError, match=message):
        small.slices(**arguments)


def test_wrong_options_of_analyses_are_refused(small: OpenedTrace) -> None:
    """A choice, a table or an analysis that there is not is refused, and what there is is named."""
    for call, message in (
        (lambda: small.kernels(by="colour"), "none of name, short"),  # type: ignore[arg-type]
        (lambda: small.idle(table="nothing"), "there are streams, gaps"),
        (lambda: small.tables("nothing"), "there are (.*, )?range, "),
        (lambda: small.tables("ops", nothing=1), "it has"),
        (lambda: small.kernels(column="arg:bytes"), "takes several"),
        (lambda: small.kernels(runs=5), "runs is a text"),  # type: ignore[arg-type]
        (lambda: small.idle(kernel_wait="x"), "kernel_wait is a number"),  # type: ignore[arg-type]
        (lambda: small.kernels(limit=0), "limit is a whole number"),
        (lambda: small.sql(5), "query is a text"),  # type: ignore[arg-type]
        (lambda: small.plot(rows="x"), "at least 1"),  # type: ignore[arg-type]
    ):
        with pytest.raises(tracelane.TracelaneError, match=message):
            call()


@pytest.mark.parametrize("paths", ["/nothing.json", 123, None, 1.5, b"x", [], "", [1], [""]], ids=repr)
def test_what_is_no_path_is_one_line(paths: Any) -> None:
    """What can be no path raises TracelaneError with a line, as a path where nothing is does."""
    with pytest.raises(tracelane.TracelaneError) as error:
        tracelane.open(paths)
    assert "\n" not in str(error.value)


def test_rows_are_reached_by_number(small: OpenedTrace) -> None:
    """A table can be gone through, indexed and cut as a list of rows."""
    table = small.slices()
    rows = list(table.rows())
    assert list(table) == rows and table[0] == rows[0] and table[-1] == rows[-1]
    assert list(table[1:3]) == rows[1:3]
    with pytest.raises(IndexError):
        table[len(rows)]


def test_a_path_in_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that begins with ~ is one of the user's home, as in a shell."""
    small_file(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    with tracelane.open("~/small.json", index_dir=tmp_path / "index") as opened:
        assert opened.info.slices


def test_help_of_a_method_explains_its_arguments(small: OpenedTrace) -> None:
    """help(t.NAME) says of each argument what it means, those of all methods too."""
    for name in BY_NAME:
        method = getattr(small, name)
        text = inspect.getdoc(method) or ""
        for argument in inspect.signature(method).parameters:
            assert re.search(rf"^(\w+, )?{argument}[,:]", text, re.MULTILINE), (name, argument)


def test_a_missing_package_is_one_line(small: OpenedTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an optional package its method says how to get it; the error is an ImportError too."""
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas") as error:
        small.slices().to_pandas()
    assert isinstance(error.value, tracelane.TracelaneError)


@pytest.mark.parametrize("library", ["pandas", "pyarrow", "polars"])
def test_other_libraries_have_the_same_rows(small: OpenedTrace, library: str) -> None:
    """Each library's table has the columns, and the values, of ours."""
    pytest.importorskip(library)
    for table in (small.slices(), small.kernels(), small.steps(), small.doctor(), small.findings()):
        match library:
            case "pandas":
                frame = table.to_pandas()
                columns = {key: frame[key].tolist() for key in frame.columns}
                assert frame.attrs["units"] == dict(table.with_origin.units)
            case "pyarrow":
                frame = table.to_arrow()
                columns = frame.to_pydict()
                assert {f.name: f.metadata[b"unit"].decode() for f in frame.schema} == dict(
                    table.with_origin.units
                )
            case _:
                columns = table.to_polars().to_dict(as_series=False)
        origin = ["origin_ns"] if table.name == "steps" else []
        assert list(columns) == [*(column.key for column in table.columns), *origin]
        for column in table.columns:
            if column.unit in ("ns", "count", "bytes") and table[column.key].dtype == np.int64:
                assert columns[column.key] == table[column.key].tolist()
            if column.unit == "text":
                assert columns[column.key] == table.texts(column.key)


def test_a_plot_is_one_sound_picture(small: OpenedTrace) -> None:
    """The timeline is well-formed SVG with every lane; a name of the trace cannot leave its place."""
    from xml.etree import ElementTree

    svg = str(small.plot())
    texts = [node.text for node in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"main", "Stream 1"} <= set(texts)
    assert "\x1b" not in svg
    assert len(str(small.plot(rows=1))) < len(svg)


@for_files(
    "name",
    [
        *("gpu/hta_a100_resnet_ddp_nccl.json.gz", "aiu/mlp_trace.json", "multirank/dlrm_8gpu_ranks0-3"),
        *("cuda/gloo.pt.trace.json.gz", "cpu/torch_2.13_training.pt.trace.json.gz"),
    ],
)
def test_columns_are_those_of_the_command(name: str, corpus_cache: Path) -> None:
    """Slices have the names and times that `tracelane slices` lists, clocks of ranks applied."""
    from tracelane.core.export.slices import SliceRows
    from tracelane.core.tables.frame.scope import Scope
    from tracelane.core.trace import open_trace

    path = file(name)
    trace = open_trace(path, index_dir=corpus_cache)
    with tracelane.open(path, index_dir=corpus_cache) as opened:
        table = opened.slices()
        rows = list(SliceRows(Scope(trace, clocks=trace.clocks)).rows())
    assert len(rows) == len(table)
    assert sorted((row[0], row[5], row[6], row[7]) for row in rows) == sorted(
        zip(
            table["name"],
            table["duration_ns"].tolist(),
            table["self_ns"].tolist(),
            (table["id"] & 0xFFFF_FFFF).tolist(),
        )
    )
    if len(trace.indexes) == 1 and not trace.clocks.offsets:
        assert sorted(row[4] for row in rows) == table["start_ns"].tolist()


def test_printing_a_table_shows_its_rows(small: OpenedTrace) -> None:
    """`print` shows headings and rows below each other; a shell completes the names that are promised."""
    table = small.slices()
    lines = str(table).splitlines()
    assert lines[0] == f"Slices: {table.scope}" and len(lines) >= len(table) + 2
    assert lines[1].split()[:2] == ["Id", "Name"] and "aten::linear" in str(table)
    assert set(dir(table)) == set(PROMISED) and all(hasattr(table, name) for name in dir(table))
    assert 12 <= len(dir(table)) <= 16
    assert "more of" in str(table.take(np.zeros(40, np.int64)))


def test_rows_are_chosen_by_a_mask(small: OpenedTrace) -> None:
    """`where` takes a boolean for each row and nothing else."""
    table = small.slices()
    assert len(table.where(table["category"] == "kernel")) == 2
    for wrong in ([True], table["start_ns"]):
        with pytest.raises(tracelane.TracelaneError, match="booleans"):
            table.where(wrong)  # type: ignore[arg-type]


def test_a_table_is_drawn_as_bars(small: OpenedTrace) -> None:
    """`plot` draws a bar for each of the first rows; what is no number is refused."""
    picture = str(small.kernels().plot("total_ns"))
    assert picture.count("<rect") == len(small.kernels()) and "30.5 µs" in picture
    with pytest.raises(tracelane.TracelaneError, match="no numbers"):
        small.kernels().plot("name")


def test_two_runs_are_compared(tmp_path: Path) -> None:
    """`diff` has a verdict for each metric, the tables of the command, and takes paths, traces and lists."""
    before, after, _ = (path for path in sorted(tracelane.demo(tmp_path / "demo").iterdir(), reverse=True))
    tables = tracelane.diff(after, before)
    metrics = {row["name"]: row for row in tables["metrics"]}
    row = metrics["kernels.calls"]
    assert row["change"] == row["now"] - row["before"] and row["verdict"]
    assert {"kernels", "ops", "steps"} <= set(tables.names)
    with tracelane.open(after) as opened:
        same = tracelane.diff([opened, opened], opened)["metrics"]
    assert not any(same["change"])
    with pytest.raises(tracelane.TracelaneError, match="before"):
        tracelane.diff([], after)


def test_limits_are_checked(small: OpenedTrace) -> None:
    """`check` says of each limit whether it holds; a metric that there is not is an error."""
    table = tracelane.check(small, most={"kernels.calls": 2, "kernels.time": 5}, least={"kernels.calls": 3})
    assert table["holds"].tolist() == ["yes", "no", "no"]
    name = small.kernels()["name"][0]
    row = tracelane.check(small, most={f"kernel.{name}.total": 10**18, f"kernel.{name}.count": 0})
    assert row["holds"].tolist() == ["yes", "no"]
    for nothing in ("kernels.nothing", f"kernel.{name}.nothing", "nothing.at.all"):
        with pytest.raises(tracelane.TracelaneError, match="no metric"):
            tracelane.check(small, most={nothing: 1})


@pytest.mark.parametrize(("by", "most", "least"), [(-1, "no", "yes"), (0, "yes", "yes"), (1, "yes", "no")])
def test_a_limit_is_reached_and_holds(by: int, most: str, least: str, small: OpenedTrace) -> None:
    """What is just as much as it may be, or must be at least, is within the limit; one more is not."""
    metrics = {row["name"]: row["value"] for row in small.summary().rows()}
    names = [name for name in ("kernels.calls", "kernels.time", "step.count") if metrics.get(name)]
    limits = {name: metrics[name] + by for name in names}
    assert tracelane.check(small, most=limits)["holds"].tolist() == [most] * len(names)
    assert tracelane.check(small, least=limits)["holds"].tolist() == [least] * len(names)
    assert len(names) > 1


def test_a_part_is_written(small: OpenedTrace, tmp_path: Path) -> None:
    """`cut` writes a step as a trace, `export` other formats; what cannot be is one line."""
    path = tracelane.cut(small, tmp_path / "step.json", step=1)
    with tracelane.open(path, index_dir=tmp_path / "index") as part:
        assert part.info.steps == ("1",)
    assert tracelane.export(small, tmp_path / "t.pftrace").stat().st_size > 100
    for call in (
        lambda: tracelane.cut(small, tmp_path / "all.json"),
        lambda: tracelane.cut(small, tmp_path / "all.pftrace", step=1),
        lambda: tracelane.export(small, tmp_path / "t.pftrace"),
        lambda: tracelane.export(small, tmp_path / "t.docx"),
    ):
        with pytest.raises(tracelane.TracelaneError) as error:
            call()
        assert "\n" not in str(error.value)


PROGRAM = """
import sys
import tracelane.core.index.indexing, tracelane.core.index.indexing, tracelane.core.index.opening
import tracelane.core.base.children, tracelane.core.read.source, tracelane.tui.cli.index
print([name for name in ("numpy", "orjson", "textual", "rich") if name in sys.modules])
"""


def test_what_is_needed_to_start_one_loads_nothing_heavy() -> None:
    """Finding a file's source and place, and starting the process, need no numpy."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"
