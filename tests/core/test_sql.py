"""Queries in SQL: both engines give the same rows, those of the trace, and do nothing but read."""

from __future__ import annotations

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

import tracelane
from tests.corpus import CORPUS, file, files, for_files, needs
from tests.fuzz.sql_queries import DANGEROUS, ENGINES, SECRET, check, hostile_query
from tests.tui.cli_process import tracelane as command
from tests.tui.small_file import small_file
from tracelane.core.base.errors import MissingPackageError, TracelaneError, UsageError
from tracelane.core.demo.trace import write_demo
from tracelane.core.read.promoted import PROMOTED
from tracelane.core.sql.engines import TimeLimit, has_duckdb
from tracelane.core.sql.query import run_query
from tracelane.core.sql.tokens import query_words
from tracelane.core.sql.views import VIEWS
from tracelane.core.tables.frame.frame_columns import work_of
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.host.slice_table import NAMES, slice_table
from tracelane.core.trace import Trace, open_trace
from tracelane.tui.cli.main import EXIT_USAGE, main

DOCUMENT = Path(__file__).resolve().parent.parent.parent / "docs" / "sql.md"
QUESTIONS = [
    part.strip()
    for block in re.findall(r"```sql\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)[:2]
    for part in re.split(r"\n(?=-- \d+\.)", block)
]
TRACES = (
    "gpu/hta_a100_resnet_ddp_nccl.json.gz",
    "gpu/tl_h100_qwen_infer*",
    "gpu/tl_vllm_decode_cudagraph_exec*",
    "aiu/mlp_trace*",
    "multirank/dlrm_8gpu_ranks0-3",
    *("cuda/gloo.pt.trace.json.gz", "cpu/torch_2.13_training.pt.trace.json.gz"),
)
needs_duckdb = pytest.mark.skipif(not has_duckdb(), reason="duckdb is not installed (tracelane[sql])")
engines = pytest.mark.parametrize("engine", ["sqlite", pytest.param("duckdb", marks=needs_duckdb)])


def rows_of(trace: Trace, query: str, engine: str) -> list[tuple[object, ...]]:
    """Return all rows of a query."""
    with run_query(trace, query, engine) as answer:  # type: ignore[arg-type]
        return list(answer.rows)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """Two steps with an op, a launch and a kernel each."""
    folder = tmp_path_factory.mktemp("sql")
    trace = open_trace(small_file(folder), index_dir=folder / "index")
    yield trace
    trace.close()


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trace]:
    """The demo's two ranks."""
    folder = tmp_path_factory.mktemp("demo")
    trace = open_trace(write_demo(folder)[:2], index_dir=folder / "index")
    yield trace
    trace.close()


def test_there_are_twenty_questions() -> None:
    """The document has twenty and four recipes, and its table has every view with every column of its own."""
    assert [int(question[3:].partition(".")[0]) for question in QUESTIONS] == list(range(1, 25))
    text = DOCUMENT.read_text(encoding="utf-8")
    listed = {line.split("`")[1]: line for line in text.splitlines() if line.startswith("| `")}
    for view, columns in VIEWS.items():
        names = re.findall(r"`(\w+)`", listed[view].split("|")[3])
        shared = VIEWS["slices"] if "slices" in names and view != "slices" else ()
        assert {*names, *shared} - {"slices"} == {*columns}, view


@needs(CORPUS)
def test_recipes_have_the_numbers_of_the_file(corpus_cache: Path) -> None:
    """CUPTI's nth range counts for the innermost op around the nth launch; time is that of states."""
    path = CORPUS / "gpu" / "hta_cupti_profiler_counters.json.gz"
    events = [e for e in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if e["ph"] == "X"]
    ranges, calls = (
        sorted(
            (e for e in events if e["cat"] == category and (not name or e["name"] == name)),
            key=itemgetter("ts"),
        )
        for category, name in (("cuda_profiler_range", ""), ("cuda_runtime", "cudaLaunchKernel"))
    )
    sums: Counter[str] = Counter()
    for counted, call in zip(ranges, calls):
        around = [e for e in events if e["cat"] == "cpu_op" and e["ts"] <= call["ts"] < e["ts"] + e["dur"]]
        if around:
            innermost = min(around, key=itemgetter("dur"))["name"]
            sums[innermost] += counted["args"]["smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"]
    rows = rows_of(open_trace(path, index_dir=corpus_cache), QUESTIONS[21], "sqlite")
    assert {name: total for name, _, total in rows} == sums and len(sums) > 5
    a100 = open_trace(CORPUS / "gpu" / "hta_a100_resnet_ddp_nccl.json.gz", index_dir=corpus_cache)
    state = "select sum(dur) from device_states where state like 'collective_%'"
    assert rows_of(a100, QUESTIONS[22], "sqlite") == [(None, *rows_of(a100, state, "sqlite")[0])]


WITHOUT_ROWS = ("-- 9.", "-- 14.", "-- 22.", "-- 24.")
"""The demo knows the launch of all work, and writes no grid, occupancy or counters."""


@engines
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda text: text.partition(".")[0])
def test_questions_of_the_demo_are_answered(question: str, engine: str, demo: Trace) -> None:
    """Each question of the document has an answer, and the engines agree."""
    rows = rows_of(demo, question, engine)
    assert bool(rows) != question.startswith(WITHOUT_ROWS)
    if engine == "duckdb":
        lite = rows_of(demo, question, "sqlite")
        assert [tuple(map(_rounded, row)) for row in rows] == [tuple(map(_rounded, row)) for row in lite]


@needs_duckdb
@pytest.mark.slow
@for_files("name", TRACES)
def test_both_engines_answer_alike(name: str, corpus_cache: Path) -> None:
    """The twenty questions, and every column of every view, have equal rows in both engines."""
    path = next(iter(files(name)), file(name))
    trace = open_trace(path, index_dir=corpus_cache)
    orders = {
        "flows": "source, target, category",
        "launches": "id, kernel",
        "steps": "number",
        "device_states": "rank, device, ts",
        "untrusted": "device, ts, trouble",
    }
    whole = [f"select * from {view} order by {orders.get(view, 'id, 2, 3, 4')} limit 3000" for view in VIEWS]
    for question in [*QUESTIONS, *whole]:
        lite, duck = (rows_of(trace, question, engine) for engine in ("sqlite", "duckdb"))
        assert [tuple(map(_rounded, row)) for row in lite] == [tuple(map(_rounded, row)) for row in duck], (
            question
        )


def _rounded(value: object) -> object:
    """Return a value without the last digits of a fraction, in which engines differ."""
    return float(f"{value:.9g}") if isinstance(value, float) else value


@pytest.mark.slow
@engines
def test_slices_are_those_of_the_trace(engine: str, small: Trace, demo: Trace) -> None:
    """The view has each slice once, with the values of the table of slices."""
    for trace in (small, demo):
        table = slice_table(Scope(trace, clocks=trace.clocks))
        rows = rows_of(trace, "select * from slices order by ts, id", engine)
        own = [*zip(*(table[key].tolist() for key in NAMES))]
        assert [(*row[:14], row[14] or "", -1 if row[15] is None else row[15]) for row in rows] == own


@engines
def test_views_are_parts_of_the_trace(engine: str, demo: Trace) -> None:
    """Kernels are the device work of the tables, launches its launches, arguments those of the events."""
    work = work_of(Scope(demo, clocks=demo.clocks))
    (count, total) = rows_of(demo, "select count(*), sum(dur) from kernels", engine)[0]
    assert (count, total) == (len(work), int(work.dur.sum()))
    pairs = sum(len(demo.launches(source).by_launch) for source in range(2))
    assert rows_of(demo, "select count(*) from launches", engine) == [(pairs,)]
    flows = sum(index.length("flows.source") for index in demo.indexes)
    assert rows_of(demo, "select count(*) from flows", engine) == [(flows,)]
    samples = sum(lane.samples for lane in demo.lanes)
    assert rows_of(demo, "select count(*) from counters", engine) == [(samples,)]


@engines
def test_arguments_are_those_of_the_file(engine: str, small: Trace) -> None:
    """Promoted and other arguments have their values; one that is nowhere has no rows."""
    for key, expected in (
        ("Ev Idx", [0, 1]),
        ("correlation", [5, 5, 6, 6]),
        ("Input Dims", ["[[8,16],[16,4],[]]"] * 2),
        ("nowhere", []),
        ("it's", []),
    ):
        quoted = key.replace("'", "''")
        rows = rows_of(small, f"select value from args('{quoted}') order by value", engine)
        assert [row[0] for row in rows] == expected, key
    joined = "select s.name, a.value from slices s join args('Ev Idx') a on a.id = s.id order by a.value"
    assert rows_of(small, joined, engine) == [("aten::linear", 0), ("aten::linear", 1)]


@engines
def test_arguments_of_columns_count_in_every_category(engine: str, tmp_path: Path) -> None:
    """An argument that has a column of its own is that of all events, whatever their category is: a launch on
    ROCm has a grid as its kernel has, and a program's own event may have any.
    """
    keys = [key for entry in PROMOTED for key in entry.args if key]
    kinds = ("cpu_op", "python_function", "hip_runtime", "kernel", "cpu_instant_event", "mine", "")
    events: list[dict[str, Any]] = [
        {"ph": ph, "name": f"{at}", "cat": cat, "pid": 1, "tid": at, "ts": 10 * at, "args": {key: at + 1}}
        | ({"dur": 5} if ph == "X" else {"s": "t"})
        for at, (key, cat, ph) in enumerate(product(keys, kinds, "Xi"))
    ]
    path = tmp_path / "keys.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    for key in keys:
        own = [event["args"][key] for event in events if key in event["args"]]
        alike = next(entry.args for entry in PROMOTED if key in entry.args)
        every = sorted(value for event in events for name, value in event["args"].items() if name in alike)
        rows = rows_of(trace, f"select value from args('{key}')", engine)
        values = sorted(float(str(value)) for (value,) in rows)
        assert values == every and set(own) <= set(values), key


@engines
def test_odd_values_of_traces_are_safe(engine: str, tmp_path: Path) -> None:
    """Quotes, control characters, half characters, and long times come out as the values that they are."""
    names = ["'; drop table slices; --", '"', "\x1b[31m", "a\ud800b", "", "x" * 70_000, "ünï", "{base}"]
    events = [
        {"ph": "X", "name": name, "cat": name, "pid": name, "tid": 1, "ts": 10**9 * at, "dur": 5e9}
        for at, name in enumerate(names)
    ]
    events.append({"ph": "C", "name": "c'\"", "pid": 1, "ts": 1, "args": {"v'": 1e300, "w": -0.5}})
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(events), encoding="utf-8")
    trace = open_trace(path, index_dir=tmp_path / "index")
    rows = rows_of(trace, "select name, dur, pid from slices order by ts", engine)
    assert [row[0] for row in rows] == [name.replace("\ud800", "�") for name in names]
    assert {row[1] for row in rows} == {5 * 10**12}
    assert rows_of(trace, "select series, value from counters order by 1", engine) == [
        ("v'", 1e300),
        ("w", -0.5),
    ]
    trace.close()


@pytest.mark.parametrize(
    ("query", "names", "arguments", "all_columns"),
    [
        ("select name from slices", {"select", "name", "from", "slices"}, (), False),
        ("select * from slices", {"select", "from", "slices"}, (), True),
        ("select s.* from slices s", {"select", "s", "from", "slices"}, (), True),
        ("select count(*) from slices", {"select", "count", "from", "slices"}, (), False),
        ("select dur * 2 from ops", {"select", "dur", "from", "ops"}, (), False),
        ("from slices", {"from", "slices"}, (), True),
        (
            "select 'slices', \"Dur\" -- ops\n from kernels /* flows */",
            {"select", "dur", "from", "kernels"},
            (),
            False,
        ),
        (
            "select value from args('it''s') where value > 1",
            {"select", "value", "from", "args", "where"},
            ("it's",),
            False,
        ),
    ],
)
def test_words_of_a_query_are_seen(
    query: str, names: set[str], arguments: tuple[str, ...], all_columns: bool
) -> None:
    """What a query names is seen behind quotes, not in strings and comments."""
    words = query_words(query)
    assert (set(words.names), words.arguments, words.all_columns) == (names, arguments, all_columns)


@engines
@pytest.mark.parametrize("query", DANGEROUS)
def test_nothing_but_reading_is_allowed(query: str, engine: str, small: Trace, tmp_path: Path) -> None:
    """Statements that write, open files, change settings or look at other tables are refused in a line."""
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    text = query.format(secret=tmp_path / "secret.txt", out=tmp_path / "out.file", folder=tmp_path)
    with pytest.raises(UsageError) as error:
        rows_of(small, text, engine)
    assert "\n" not in str(error.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


@pytest.mark.slow
def test_hostile_queries_do_nothing(small: Trace, tmp_path: Path) -> None:
    """A thousand woven ones, the same each time, are refused or read the trace only."""
    (tmp_path / "secret.txt").write_text(SECRET, encoding="utf-8")
    random_ = random.Random(7)
    for _ in range(400):
        check(small, random_.choice(ENGINES), hostile_query(random_, tmp_path), tmp_path)


ENDLESS = "with recursive r(x) as (select 1 union all select x + 1 from r) select {} from r"


@pytest.mark.slow
@engines
@pytest.mark.parametrize("column", ["max(x)", "x"], ids=["no row", "many rows"])
def test_a_query_stops_in_time(
    engine: str, column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that never ends is stopped after the seconds that the command or Python says, in one line."""
    path, query = small_file(tmp_path), ENDLESS.format(column)
    out = ["--format=csv", f"--out={tmp_path / 'out'}", "--timeout=0.1"]
    assert main(["sql", str(path), query, f"--engine={engine}", *out]) == 1
    errors = capsys.readouterr().err
    assert "stopped after 0.1 s" in errors and errors.count("\n") == 1
    with tracelane.open(path) as opened:
        with pytest.raises(TracelaneError, match=r"stopped after 0\.1 s"):
            opened.sql(query, engine=engine, timeout=0.1)  # type: ignore[arg-type]
        assert len(opened.sql("select 1 from kernels", timeout=0)) == 2


@pytest.mark.parametrize("odd", ["5", -1, float("nan")])
def test_a_time_is_a_number_of_seconds(odd: Any, tmp_path: Path) -> None:
    """What is no number, or below 0, is refused before anything is asked."""
    with tracelane.open(small_file(tmp_path)) as opened, pytest.raises(UsageError, match="timeout"):
        opened.sql("select 1", timeout=odd)


HEEDLESS = {
    "sqlite": "select instr(hex(zeroblob(3000000)), hex(zeroblob(2000000)) || '1')",
    "duckdb": "select jaro_winkler_similarity(repeat('a', 900000), repeat('b', 900000))",
}
"""Functions that heed no interrupt while they work, for minutes."""
MANY = "select 1 from slices a, slices b, slices c, slices d, slices e, slices f, slices g, slices h"
"""More rows than anybody reads, each found at once: what is computed with them is what takes time."""


@pytest.mark.slow
@engines
@pytest.mark.parametrize("query", ["", MANY], ids=["heedless", "many rows"])
def test_what_heeds_no_interrupt_stops_too(engine: str, query: str, tmp_path: Path) -> None:
    """Functions that look at nothing, and rows without end, are stopped in the shell and in Python, and the
    process ends.
    """
    path, query = small_file(tmp_path), query or HEEDLESS[engine]
    options = (f"--engine={engine}", "--timeout=0.2", "--json", "--index-dir", str(tmp_path))
    done = command("sql", str(path), query, *options)
    assert done.returncode == 1 and "stopped after 0.2 s" in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr  # what binds the engine says nothing at the end
    with tracelane.open(path) as opened, pytest.raises(TracelaneError, match=r"stopped after 0\.2 s"):
        opened.sql(query, engine=engine, timeout=0.2)  # type: ignore[arg-type]


def test_time_between_the_calls_of_an_engine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads the rows slowly, as through a pager, gets all of them; what the engine takes adds up, and so
    does what is computed with the rows.
    """
    now = computed = 0.0
    monkeypatch.setattr("tracelane.core.sql.engines.time.monotonic", lambda: now)
    monkeypatch.setattr("tracelane.core.sql.engines.time.thread_time", lambda: computed)
    limit = TimeLimit(5.0, lambda: False)
    for at, took in ((0.0, 2.0), (100.0, 2.0), (200.0, 0.9)):
        now = at
        with limit.counted():
            now = at + took
            assert not limit.is_over()
    now = 300.0
    with limit.counted():
        now = 300.2
        assert limit.is_over()
        with pytest.raises(TracelaneError, match="stopped after 5 s"):
            limit.raise_reason()
    limit = TimeLimit(5.0, lambda: False)
    computed = 5.1
    with limit.counted():
        assert limit.is_over()
    now = 1e9
    assert not TimeLimit(0.0, lambda: False).is_over()


@engines
def test_ctrl_c_ends_a_query(engine: str, small: Trace) -> None:
    """What Ctrl+C raises while a query runs, one that would never end, ends the query too."""
    endless = "with recursive r(x) as (select 1 union all select x + 1 from r) select count(*) from r"

    def pressed() -> bool:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), run_query(small, endless, engine, cancelled=pressed) as answer:  # type: ignore[arg-type]
        list(answer.rows)


@engines
def test_rows_of_what_a_query_names_are_counted(engine: str, small: Trace) -> None:
    """count(*) of a common table expression needs no column of it, and is allowed."""
    for query, count in (
        ("with x as (select name from slices limit 3) select count(*) from x", 3),
        (
            "with recursive r(n) as (select 1 union all select n+1 from r where n<9) select count(*) from r",
            9,
        ),
    ):
        assert rows_of(small, query, engine) == [(count,)]
    with pytest.raises(UsageError):
        rows_of(small, "select count(*) from sqlite_master", engine)


def test_memory_is_bounded_in_sqlite(small: Trace) -> None:
    """A value of a gigabyte is refused."""
    with pytest.raises(UsageError, match=r"too big|memory"):
        rows_of(small, "select length(zeroblob(1000000000))", "sqlite")


def test_a_missing_engine_is_one_line(small: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without DuckDB SQLite answers; who asks for DuckDB learns how to get it."""
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    monkeypatch.setattr("tracelane.core.sql.query.has_duckdb", lambda: False)
    with run_query(small, "select count(*) from steps") as answer:
        assert (answer.engine, list(answer.rows)) == ("sqlite", [(2,)])
    with pytest.raises(MissingPackageError, match="pip install duckdb"):
        rows_of(small, "select 1", "duckdb")


@engines
def test_an_answer_is_a_table(engine: str, small: Trace) -> None:
    """Columns keep their units, equal names are told apart, and rows with an id lead to their slice."""
    query = "select id, name, dur, dur as x, ts, dur / 2.0 as half from kernels order by ts"
    with run_query(small, query, engine) as answer:  # type: ignore[arg-type]
        table = answer.table("here")
    assert dict(table.units) == {
        "id": "id",
        "name": "text",
        "dur": "ns",
        "x": "number",
        "ts": "ns",
        "half": "number",
    }
    target = table.jump(1)
    assert target is not None
    index = small.indexes[target[0]]
    assert index.start(target[1]) == table["ts"][1]
    with run_query(small, "select 1 as a, 2 as a, 3 as a_2 from steps limit 1", engine) as answer:  # type: ignore[arg-type]
        assert len(set(answer.columns)) == 3
    with run_query(small, "select name from slices order by ts", engine) as answer:  # type: ignore[arg-type]
        cut = answer.table("here", 3)
    assert len(cut) == 3 and "more rows" in cut.notes[0]


@engines
def test_a_query_may_begin_with_a_comment(
    engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is copied from a page of queries, its comment first, is no option; what is refused says why."""
    trace = str(small_file(tmp_path))
    query = "-- How many?\nselect count(*) as n from kernels -- of all"
    assert main(["sql", trace, query, "--engine", engine, "--format", "csv"]) == 0
    assert capsys.readouterr().out.split() == ["n", "2"]
    assert main(["sql", trace, "drop table slices", "--engine", engine]) == EXIT_USAGE
    assert "only SELECT is allowed" in capsys.readouterr().err
    assert main(["sql", trace, "--nosuch"]) == EXIT_USAGE


ARGUMENT_QUERIES = (
    "select k.name, arg(k.id, 'grid') from kernels k order by k.dur desc, k.id limit 5",
    "select arg(id, 'grid') as g, count(*), sum(dur) from kernels group by g order by 2 desc, g limit 5",
    "select name, sum(arg(id, 'bytes')) as b from kernels group by name having b > 0 order by b desc, name",
    "select count(*) from kernels where arg(id, 'stream') = 7 and arg(id, 'nowhere') is null",
    "select arg(last, 'correlation') from (select max(id) as last from kernels) k",
    "select arg((select min(id) from kernels), 'correlation') as a, count(*) from ops",
)


@needs(CORPUS)
@needs_duckdb
@pytest.mark.parametrize("query", ARGUMENT_QUERIES)
def test_an_argument_is_a_value(query: str, corpus_cache: Path) -> None:
    """arg(id, 'key') stands wherever a value does, alike in both engines and as a join with args says."""
    trace = open_trace(CORPUS / "gpu/tl_h100_qwen_infer.json.gz", index_dir=corpus_cache)
    answers = {engine: rows_of(trace, query, engine) for engine in ENGINES}
    assert answers["sqlite"] == answers["duckdb"] != []
    joined = "select k.id, g.value from kernels k left join args('grid') g on g.id = k.id order by k.id"
    scalar = "select id, arg(id, 'grid') from kernels order by id"
    assert rows_of(trace, joined, "sqlite") == rows_of(trace, scalar, "sqlite")


@engines
def test_columns_have_the_names_of_the_query(engine: str, small: Trace) -> None:
    """Also where arg(…) or a quoted name stands in them."""
    query = """select arg(k.id, 'stream'), k."name" from kernels k"""
    with run_query(small, query, engine) as answer:  # type: ignore[arg-type]
        assert answer.columns == ("arg(k.id, 'stream')", "name")


@engines
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select args('grid') from kernels", "arg(k.id, 'grid')"),
        ("select name, args('grid') from kernels", "arg(k.id, 'grid')"),
        ("select args(k.id, 'grid') from kernels k", "arg(k.id, 'grid')"),
        ("select name from kernels k where args('grid') > 1", "arg(k.id, 'grid')"),
        ("select name from kernels k join ops o on args('x') = o.id", "arg(k.id, 'x')"),
        ("select name from kernels order by args('x')", "arg(k.id, 'x')"),
        ("select arg(id) from kernels", "arg takes"),
        ("select arg('grid') from kernels", "arg takes"),
        ("select arg(id, name) from kernels", "arg takes"),
        ("select arg(id, 'grid' from kernels", "arg takes"),
        ('select "nosuchcolumn" from kernels', "nosuchcolumn"),
        ('select name from kernels where name = "nosuchtext"', "nosuchtext"),
        ('select name from kernels order by "nosuchcolumn"', "nosuchcolumn"),
        ('select k."nosuchcolumn" from kernels k', "nosuchcolumn"),
        ("select nosuchcolumn from kernels", "nosuchcolumn"),
        ("select name from nosuchtable", "nosuchtable"),
        ("select count(*) from kernels, names_0", "names_0"),
        ('select count(*) from kernels join "kernels_0" on 1 = 1', "kernels_0"),
        ("select rowid from kernels", "rowid"),
    ],
)
def test_what_is_no_value_or_unknown_is_refused(query: str, words: str, engine: str, small: Trace) -> None:
    """With its name, in both engines."""
    with pytest.raises(UsageError, match=re.escape(words)):
        rows_of(small, query, engine)


@engines
@pytest.mark.parametrize(
    "query",
    [
        'select "name" as "my name" from "kernels" where "dur" > 0 order by "my name"',
        "select count(*) from kernels k, args('x') g where g.id = k.id",
        "select count(*) from kernels k left join (args('x') g join ops o on o.id = g.id) on g.id = k.id",
        "select count(*) from kernels where id in (select id from args('x') where value > 1)",
        "with names_0 as (select 1 as a), kernels_0 (b) as (select 2) select * from names_0, kernels_0",
        "select name as args from kernels order by args",
    ],
)
def test_what_is_known_is_not_refused(query: str, engine: str, small: Trace) -> None:
    """Quoted names, tables of arguments between other tables, names that the query gives itself."""
    assert rows_of(small, query, engine)
