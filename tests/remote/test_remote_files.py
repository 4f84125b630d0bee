"""Traces by URL: the answers of local files, read in ranges, and one clear line where something fails."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.events import complete
from tests.graph_pairs import MODEL, capture_events, replay_events, write_pair
from tests.rank_files import rank_files
from tests.remote.servers import bucket, ssh_home, web_server
from tests.tui.cli_process import tracelane
from tracelane.core.base.errors import UnreadableError
from tracelane.core.read.remote_files import remote_status
from tracelane.core.read.source import open_source
from tracelane.core.read.urls import is_url, shown_url
from tracelane.core.trace import open_trace

WITHOUT_FSSPEC = "import sys; sys.modules['fsspec'] = None"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three ranks, and two large files of one trace: plain and packed."""
    folder = rank_files(tmp_path / "served", 3)
    (folder / "large").mkdir()
    noise = random.Random(7)
    events = [
        complete(n * 10.0, 5.0, f"op_{n % 50}", args={"note": f"{noise.getrandbits(256):064x}"})
        for n in range(60_000)
    ]
    text = json.dumps({"traceEvents": events}).encode()
    (folder / "large" / "trace.json").write_bytes(text)
    (folder / "large" / "packed.json.gz").write_bytes(gzip.compress(text, 1))
    return folder


@pytest.fixture
def stored(folder: Path) -> Iterator[str]:
    """The same on object storage."""
    with bucket() as url:
        import s3fs

        s3fs.S3FileSystem().put(str(folder), "traces/run", recursive=True)
        yield f"{url}/run"


def answers(*arguments: str, **environment: str) -> str:
    """Return what a command prints; it must succeed."""
    done = tracelane(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def served(folder: Path, server: str) -> Iterator[str]:
    """Yield the URL of a folder on an S3 server or the web."""
    if server == "http":
        with web_server(folder) as (url, _):
            yield url
        return
    with bucket() as url:
        import s3fs

        s3fs.S3FileSystem().put(str(folder), "traces/run", recursive=True)
        yield f"{url}/run"


def ranks_of(text: str) -> object:
    """Return the tables of `ranks --json` without where the files lie."""
    tables = json.loads(text)
    for row in tables["tables"]["ranks"]["rows"]:
        row.pop("path")
    return tables


@pytest.mark.slow
def test_s3_folders_patterns_and_files_open_as_local_ones_do(folder: Path, stored: str) -> None:
    """Ranks of a folder, those of a pattern, one file plain and packed: the tables of the local files."""
    here = ranks_of(answers("ranks", str(folder), "--json"))
    assert ranks_of(answers("ranks", stored, "--json")) == here
    assert ranks_of(answers("ranks", f"{stored}/rank*.json", "--json")) == here
    local = json.loads(answers("range", str(folder / "large" / "trace.json"), "--json"))
    for name in ("trace.json", "packed.json.gz"):
        assert json.loads(answers("range", f"{stored}/large/{name}", "--json"))["tables"] == local["tables"]


@pytest.mark.slow
def test_arguments_over_http_cost_a_range_not_the_file(folder: Path) -> None:
    """What is read for one slice's arguments is a block, and what the first bytes say of the file."""
    with web_server(folder) as (url, sent):
        trace = open_trace(f"{url}/large/trace.json")
        size = (folder / "large" / "trace.json").stat().st_size
        assert size < sent["trace.json"] < 1.3 * size
        sent.clear()
        assert trace.arguments(trace.slice_id(trace.rows(0)[0], 1234)).begin["note"]
        assert 0 < sent["trace.json"] < 1 << 20
        trace.close()


@pytest.mark.slow
def test_a_server_without_ranges_is_read_as_a_stream(folder: Path) -> None:
    """The whole file comes each time, and the trace is the same."""
    with web_server(folder, with_ranges=False) as (url, _):
        source = open_source(f"{url}/rank1.json")
        assert not source.seekable
        trace, local = open_trace(f"{url}/rank1.json"), open_trace(folder / "rank1.json")
        assert trace.span == local.span
        assert len(trace.lanes) == len(local.lanes)


def test_a_page_that_lists_files_is_a_folder(folder: Path) -> None:
    """Web servers list a folder as a page of links."""
    with web_server(folder) as (url, _):
        trace = open_trace(f"{url}/")
        assert [member.rank for member in trace.members] == [0, 1, 2]


@pytest.mark.slow
def test_a_file_written_anew_gets_an_index_of_its_own(folder: Path, stored: str) -> None:
    """An object of another ETag is another trace, though its name and size are the same."""
    import s3fs

    url = f"{stored}/rank0.json"
    before = open_source(url)
    assert before.is_unchanged
    assert before.fingerprint == open_source(url).fingerprint
    text = (folder / "rank0.json").read_text(encoding="utf-8")
    s3fs.S3FileSystem().pipe_file(url, text.replace("gemm_0", "gemm_9").encode())
    assert not before.is_unchanged
    assert open_source(url).fingerprint != before.fingerprint


@pytest.mark.slow
def test_ssh_reads_with_the_users_keys_and_refuses_a_host_it_does_not_know(
    folder: Path, tmp_path: Path
) -> None:
    """Keys, known_hosts and configuration are those of ~/.ssh; a server with another key is refused."""
    home = tmp_path / "home"
    home.mkdir()
    here = ranks_of(answers("ranks", str(folder), "--json"))
    with ssh_home(folder, home) as (url, environment):
        assert ranks_of(answers("ranks", url + "/", "--json", **environment)) == here
        (home / ".ssh" / "known_hosts").write_text("", encoding="utf-8")
        done = tracelane("info", f"{url}/rank0.json", **environment)
        assert done.returncode == 2
        assert "not trusted" in done.stderr.lower() and done.stderr.count("\n") == 1


FAILURES = [
    ("s3://traces/a.json", "needs fsspec: pip install fsspec s3fs aiohttp sshfs", WITHOUT_FSSPEC),
    ("https://host/a.json", "needs fsspec: pip install fsspec s3fs aiohttp sshfs", WITHOUT_FSSPEC),
    ("s3://traces/a.json", "pip install fsspec s3fs aiohttp sshfs", "import sys; sys.modules['s3fs'] = None"),
    ("gs://traces/a.json", "install gcsfs", ""),
    ("nonsense://traces/a.json", "no scheme that fsspec knows", ""),
    ("http://127.0.0.1:9/a.json", "http://127.0.0.1:9/a.json: ", ""),
    ("http://127.0.0.1:99999/a.json", "no address: Port out of range", ""),
    ("http://user:secret@[::1", "the URL of scheme http is no address: Invalid IPv6 URL\n", ""),
    ("http:///a.json", "no address: there is no host", ""),
]


@pytest.mark.parametrize(("url", "says", "code"), FAILURES)
def test_what_cannot_be_read_is_one_line(url: str, says: str, code: str) -> None:
    """A missing package, an unknown scheme, a host that does not answer: one line, exit code 2."""
    if "WITHOUT" not in code:
        pytest.importorskip("fsspec")
    done = tracelane("info", url, code=code)
    assert done.returncode == 2
    assert says in done.stderr and done.stderr.count("\n") == 1


def test_missing_objects_and_empty_folders_are_named(stored: str) -> None:
    """Of what is not there the URL is named, without what signs it."""
    for url, says in (
        (f"{stored}/nothing.json", "no such file"),
        (f"{stored}/none*.json", "no file matches"),
    ):
        with pytest.raises(UnreadableError, match=says):
            open_trace(url)
    assert shown_url("https://me:secret@host/a.json?X-Amz-Signature=123") == "https://me@host/a.json"


def test_a_url_is_never_taken_for_a_path() -> None:
    """Only what has a scheme and two slashes is a URL."""
    assert all(map(is_url, ("s3://b/k", "ssh://host/path", "memory://x")))
    assert not any(map(is_url, ("/a/b", "a:b", "s3:/b/k", "://x", "./s3://x", Path("s3://b"))))


@pytest.mark.parametrize("name", ["ranks", "ranks/"])
def test_a_folder_is_one_however_it_is_written(name: str) -> None:
    """With a slash at its end or without, and though it has no size; a file, also an empty one, is none."""
    system = pytest.importorskip("fsspec").filesystem("memory")
    system.pipe("/ranks/0.json", b"{}")
    system.pipe("/ranks/empty.json", b"")
    assert remote_status(f"memory://{name}").is_folder
    for file in ("0.json", "empty.json"):
        assert not remote_status(f"memory://ranks/{file}").is_folder


@pytest.mark.slow
def test_local_files_load_nothing_of_it(folder: Path) -> None:
    """Without a URL no package of the extras is imported."""
    code = "import atexit, sys; atexit.register(lambda: print([n for n in sys.modules if n in "
    code += "('fsspec', 's3fs', 'aiohttp', 'sshfs', 'asyncssh', 'distributed', 'dask')], file=sys.stderr))"
    done = tracelane("ranks", str(folder), code=code)
    assert done.stderr.strip().endswith("[]")


@pytest.mark.slow
@pytest.mark.parametrize("server", ["s3", "http"])
def test_captures_beside_a_url_are_those_of_the_folder(tmp_path: Path, server: str) -> None:
    """Replayed kernels have their operators as where the files lie on this machine; the folder of a trace and
    its captures is that trace.
    """
    path = write_pair(tmp_path / "served", [replay_events(MODEL)], {"a.json": capture_events(MODEL)})
    here = json.loads(answers("kernels", str(path), "--by", "op", "--json"))["tables"]
    with served(tmp_path / "served", server) as url:
        for where in (f"{url}/trace.json", f"{url}/"):
            there = json.loads(answers("kernels", where, "--by", "op", "--json"))["tables"]
            assert there == here, where
    assert {row["name"] for row in here["kernels"]["rows"]} == {kernel.op for kernel in MODEL}
