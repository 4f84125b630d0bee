"""Queries that no engine may carry out, woven into others: each must be refused or read the trace only.

python -m tests.fuzz.sql_queries SECONDS SEED
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path

from tests.tui.small_file import small_file
from tracelane.core.base.errors import TracelaneError
from tracelane.core.sql.engines import has_duckdb
from tracelane.core.sql.query import run_query
from tracelane.core.trace import Trace, open_trace

ENGINES = ("sqlite", *(("duckdb",) if has_duckdb() else ()))
SECRET = "the words of a file that no query may see"
DANGEROUS = (
    "select * from '{secret}\n8/secret.txt'",
    "select * from \"a\nb\"('{secret}')",
    "select args('a\nb') from kernels",
    "attach '{out}' as other",
    "attach database '{out}' as other",
    "copy (select 1) to '{out}'",
    "copy slices to '{out}'",
    "vacuum into '{out}'",
    "export database '{out}'",
    "create table t as select * from slices",
    "create view v as select 1",
    "create macro m() as 1",
    "create temp table t(a int)",
    "create secret s (type s3)",
    "insert into slices values (1)",
    "update slices set name = 'x'",
    "delete from slices",
    "drop view slices",
    "drop table slices_0",
    "alter table slices_0 add column a int",
    "pragma writable_schema = on",
    "pragma database_list",
    "pragma enable_external_access = true",
    "set enable_external_access = true",
    "reset enable_external_access",
    "set lock_configuration = false",
    "set temp_directory = '{out}'",
    "install httpfs",
    "load httpfs",
    "load '{secret}'",
    "call pragma_version()",
    "begin; commit",
    "checkpoint",
    "use memory",
    "import database '{out}'",
    "explain analyze select 1",
    "select load_extension('{secret}')",
    "select readfile('{secret}')",
    "select writefile('{out}', 'x')",
    "select edit('x')",
    "select fts3_tokenizer('x', 'y')",
    "select current_setting('temp_directory')",
    "select getenv('HOME')",
    "select * from '{secret}'",
    'select * from "{secret}"',
    "select * from read_csv('{secret}')",
    "select * from read_csv_auto('{secret}')",
    "select * from read_text('{secret}')",
    "select * from read_blob('{secret}')",
    "select * from read_json('{secret}')",
    "select * from read_parquet('{secret}')",
    "select * from parquet_metadata('{secret}')",
    "select * from sniff_csv('{secret}')",
    "select * from glob('{folder}/*')",
    "select * from query('select 1')",
    "select * from query_table('slices')",
    "select * from duckdb_settings()",
    "select * from duckdb_secrets()",
    "select * from pragma_database_list()",
    "select * from pragma_table_info('slices')",
    "select * from sqlite_master",
    "select * from sqlite_schema",
    "select * from sqlite_temp_master",
    "select * from information_schema.tables",
    "select * from pg_catalog.pg_class",
    "select * from memory.main.slices",
    "select * from pandas_scan(1, 2, 3)",
    "select * from arrow_scan(1, 2, 3)",
    "select * from python_map_function(1)",
    "select * from sqlite_scan('{secret}', 't')",
    "select * from which_secret('x', 's3')",
    "select * from dbstat",
    "select * from bytecode('select 1')",
)
WRAPPERS = (
    "{0}",
    "select 1; {0}",
    "{0}; select 1",
    "/* a */ {0} -- b",
    "with a as ({0}) select * from a",
    "select * from ({0})",
    "select ({0})",
    "select 1 where exists ({0})",
    "select 1 union all {0}",
    "explain {0}",
    "select name from slices where name in ({0})",
    "SELECT/**/*/**/FROM ({0}) x",
)
NOISE = (
    "'",
    '"',
    ";",
    "--",
    "/*",
    "$$",
    "\n",
    "\\",
    "(",
    ")",
    "args('",
    "*",
    "\x00",
    "é",
    "�",
    "0x",
    "select",
    "[",
)


def hostile_query(random_: random.Random, folder: Path) -> str:
    """Return a query of the kind that nobody may carry out, sometimes with noise in it."""
    query = random_.choice(DANGEROUS).format(
        secret=folder / "secret.txt", out=folder / "out.file", folder=folder
    )
    for _ in range(random_.randint(0, 2)):
        query = random_.choice(WRAPPERS).format(query.replace("{", "").replace("}", ""))
    if random_.random() < 0.3:
        at = random_.randint(0, len(query))
        query = query[:at] + random_.choice(NOISE) + query[at:]
    if random_.random() < 0.3:
        query = "".join(random_.choice((character, character.upper())) for character in query)
    return query


def check(trace: Trace, engine: str, query: str, folder: Path) -> None:
    """Ask a query; AssertionError where it did something, or failed in another way than by one line."""
    before = sorted(folder.iterdir())
    try:
        with run_query(trace, query, engine) as answer:  # type: ignore[arg-type]
            for at, row in enumerate(answer.rows):
                assert SECRET not in str(row), f"{engine} read a file: {query!r}"
                if at > 1000:
                    break
    except TracelaneError as error:
        assert "\n" not in str(error), f"{engine} says more than a line: {query!r}"
    assert sorted(folder.iterdir()) == before, f"{engine} wrote a file: {query!r}"


def main(seconds: float, seed: int) -> int:
    """Ask hostile queries for a while; return how many were asked."""
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), 0
        (folder / "inside").mkdir()
        (folder / "secret.txt").write_text(SECRET, encoding="utf-8")
        trace = open_trace(small_file(folder / "inside"), index_dir=folder / "index")
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            check(trace, random_.choice(ENGINES), hostile_query(random_, folder), folder)
            count += 1
        trace.close()
    return count


if __name__ == "__main__":
    print(f"{main(float(sys.argv[1]), int(sys.argv[2])):,} queries asked, none did anything but read")
