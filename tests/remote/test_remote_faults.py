"""Files by URL that change, answers that end early, errors and redirects: each is said, none is a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.events import complete
from tests.remote.faulty import FaultyServer, running
from tests.remote.servers import bucket, ssh_home
from tests.tui.cli_process import tracelane
from tracelane.core.base.errors import UnreadableError
from tracelane.core.index.cache import BUILDING
from tracelane.core.index.version import MANIFEST
from tracelane.core.read.source import Source, open_source
from tracelane.core.read.web import CHANGED, TRIES, AnswerError, FileVersion, redirect_target
from tracelane.core.trace import open_trace
from tracelane.tui.cli.main import main

PATH = "/run/t.json"


def text_of(name: str, size: int = 300) -> bytes:
    """Return a trace of some events of a name of four letters."""
    events = [complete(n * 10.0, 5.0, f"{name}_{n:04}", args={"note": "x" * size}) for n in range(1000)]
    return json.dumps({"traceEvents": events, "end": name}).encode()


TEXT, OTHER = text_of("abcd"), text_of("efgh")


def said_of(server: FaultyServer, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the line that is said of a file that cannot be read; no index of it may be left."""
    index = tmp_path / "index"
    assert main(["info", server.url + path, "--index-dir", str(index)]) == 2
    out, errors = capsys.readouterr()
    assert not out and errors.count("\n") == 1
    assert not indexes_in(index)
    return errors


def indexes_in(folder: Path) -> list[Path]:
    """Return what is left of indexes, whole or begun."""
    return [path for name in (MANIFEST, f"{BUILDING}*") for path in folder.rglob(name)]


@pytest.mark.slow
@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "stream"])
@pytest.mark.parametrize(
    "how",
    [
        {"etags": "obeyed"},
        {"etags": "compared"},
        {"etags": "weak"},
        {"etags": "", "has_times": True},
        {"etags": "", "becomes": text_of("efgh", 301)},
    ],
    ids=["If-Match", "compared", "weak", "time", "size"],
)
def test_a_file_that_changes_is_said_and_leaves_no_index(
    how: dict[str, Any], has_ranges: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After whichever request it changes, what is read is one state of it, or the change is said."""
    changes, after = 0, 0
    while True:
        after += 1
        index = tmp_path / str(after)
        faults = FaultyServer({PATH: TEXT}, has_ranges, after=after, **{"becomes": OTHER, **how})
        with running(faults) as server:
            code = main(["slices", server.url + PATH, "--index-dir", str(index), "--format", "csv"])
            out, errors = capsys.readouterr()
            assert (out.count("abcd_"), out.count("efgh_")) in (
                {2: [(0, 0)], 0: [(1000, 0), (0, 1000)]}[code]
            )
            assert code == 0 or (CHANGED in errors and errors.count("\n") == 1 and not indexes_in(index))
            changes += code == 2
            if server.files[PATH] == TEXT:
                break
    assert changes


@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "stream"])
@pytest.mark.parametrize("breaks", ["less", "off"])
@pytest.mark.parametrize("comes", [0.0, 0.5, 0.999])
def test_what_comes_short_is_asked_for_again(
    breaks: Any, comes: float, has_ranges: bool, tmp_path: Path
) -> None:
    """Answers that end early now and then make the same trace."""
    with running(FaultyServer({PATH: TEXT}, has_ranges, breaks=breaks, comes=comes)) as server:
        source = open_source(server.url + PATH)
        server.broken = 2
        trace = open_trace(server.url + PATH, index_dir=tmp_path / "index")
        assert server.broken == 0
        assert trace.sources[0].read_report["slices"] == 1000 and not trace.sources[0].problems
        assert source.is_unchanged
        trace.close()


@pytest.mark.parametrize("has_ranges", [True, False], ids=["ranges", "stream"])
@pytest.mark.parametrize("breaks", ["less", "off"])
@pytest.mark.parametrize("comes", [0.0, 0.5])
def test_what_always_comes_short_is_an_error(
    breaks: Any, comes: float, has_ranges: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is not taken for a truncated trace, and is asked for a few times only."""
    faults = FaultyServer({PATH: TEXT}, has_ranges, breaks=breaks, comes=comes, broken=10**6)
    with running(faults) as server:
        said = said_of(server, PATH, tmp_path, capsys)
        assert f"bytes from byte 0 on, and was asked {TRIES} times" in said and "truncated" not in said
        assert server.requests[PATH] <= 4 * (1 + TRIES)


STATUSES = {
    500: "the server answers 500 Internal Server Error",
    503: "the server answers 503 Service Unavailable",
    403: "the server answers 403 Forbidden",
    299: "is empty, or the server does not say",
    499: "the server answers 499",
    404: "no such file",
    410: "no such file",
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_status_is_said(status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An error of the server is no missing file, and the secrets of a URL stand in no message."""
    with running(FaultyServer({PATH: TEXT}, statuses={f"{PATH}?secret": status})) as server:
        said = said_of(server, f"{PATH}?secret", tmp_path, capsys)
        assert f"{server.url}{PATH}: {STATUSES[status]}" in said and "secret" not in said


@pytest.mark.parametrize("status", [500, 404])
def test_a_status_in_the_middle_is_said(
    status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that fails, or a file that goes, while it is read ends the reading."""
    with running(FaultyServer({PATH: TEXT})) as server:
        source = open_source(server.url + PATH)
        server.statuses[PATH] = status
        with pytest.raises(UnreadableError, match=STATUSES[status]):
            source.read_range(0, 100)


def test_a_server_that_knows_no_head_is_asked_otherwise(tmp_path: Path) -> None:
    """Links that are signed for reading alone answer GET only."""
    with running(FaultyServer({PATH: TEXT}, refuses_head=True)) as server:
        assert open_source(server.url + PATH).size == len(TEXT)


def test_a_server_that_does_not_say_which_part_comes_is_read_as_a_stream() -> None:
    """An answer of 206 without Content-Range may be any part."""
    with running(FaultyServer({PATH: TEXT}, names_parts=False)) as server:
        source = open_source(server.url + PATH)
        assert not source.seekable and source.open().read(len(TEXT)) == TEXT


REDIRECTS = [
    ({PATH: PATH}, "redirects in a circle"),
    ({PATH: "/b", "/b": "c", "/c": "/b"}, "redirects in a circle"),
    ({PATH: "/0", **{f"/{n}": f"/{n + 1}" for n in range(50)}}, "too many redirects"),
    ({PATH: "file:///etc/passwd"}, "redirects from http to file, which is not followed"),
    ({PATH: "ftp://127.0.0.1/t.json"}, "redirects from http to ftp, which is not followed"),
    ({PATH: "javascript:alert(1)"}, "redirects from http to javascript, which is not followed"),
    ({PATH: "http://[::1"}, "redirects to what is no address"),
    ({PATH: "http://127.0.0.1:99999/t.json"}, "redirects to what is no address: Port out of range"),
    ({PATH: "http://127.0.0.1:9/t.json"}, ""),
    ({PATH: "/none"}, "no such file"),
]


@pytest.mark.parametrize(("redirects", "says"), REDIRECTS)
def test_redirects_that_lead_nowhere_are_said(
    redirects: dict[str, str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Circles, and schemes that are not followed, are named as what they are."""
    with running(FaultyServer({}, redirects=redirects)) as server:
        assert says in said_of(server, PATH, tmp_path, capsys)


def test_a_secure_connection_is_not_given_up() -> None:
    """A redirect may lead to https, never from there to http."""
    assert redirect_target("http://a/b", "https://a/c") == "https://a/c"
    assert redirect_target("https://a/b", "//c/d") == "https://c/d"
    with pytest.raises(AnswerError, match="from https to http, which is not followed"):
        redirect_target("https://a/b", "http://a/b")


def test_a_redirect_to_another_host_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is followed with all ranges, and each command says so once; on the same host nothing is said."""
    with running(FaultyServer({PATH: TEXT})) as server:
        port = server.url.rpartition(":")[2]
        server.redirects = {"/far": f"http://localhost:{port}{PATH}", "/near": PATH}
        for _ in range(2):
            assert main(["slices", f"{server.url}/far", "--limit", "1"]) == 0
            said = capsys.readouterr().err
            assert said == f"tracelane: {server.url}/far is redirected to localhost\n"
        assert main(["slices", f"{server.url}/near", "--limit", "1"]) == 0
        assert not capsys.readouterr().err
        assert main(["info", f"{server.url}/far", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["notes"] == [said.removeprefix("tracelane: ").strip()]


def test_another_process_reads_the_same_file() -> None:
    """What a process that reads is faults of a source holds its state, too."""
    with running(FaultyServer({PATH: TEXT})) as server:
        source = open_source(server.url + PATH)
        again = Source.from_message(json.loads(json.dumps(source.to_message())))
        assert again.file == source.file and again.notes == source.notes
        server.files[PATH] = OTHER
        with pytest.raises(UnreadableError, match=CHANGED):
            again.read_range(0, 100)


def test_states_are_compared_by_what_both_sides_say() -> None:
    """What one of them does not say tells nothing; size and time count where there is no ETag."""
    version = FileVersion(5, "a", "monday")
    for same in (FileVersion(), FileVersion(5), FileVersion(6, "a", "tuesday"), FileVersion(5, 'W/"a', "")):
        version.check(same)
    for other in (FileVersion(6), FileVersion(5, "b"), FileVersion(5, "", "tuesday")):
        with pytest.raises(AnswerError, match=CHANGED):
            version.check(other)


@pytest.mark.slow
def test_an_object_that_changes_is_said() -> None:
    """S3 is asked for the ETag with each range."""
    with bucket() as url:
        import s3fs

        s3fs.S3FileSystem().pipe_file(f"{url}/t.json", TEXT)
        source = open_source(f"{url}/t.json")
        assert source.read_range(1000, 500) == TEXT[1000:1500]
        s3fs.S3FileSystem().pipe_file(f"{url}/t.json", OTHER)
        with pytest.raises(UnreadableError, match=CHANGED):
            source.read_range(1000, 500)


@pytest.mark.slow
def test_a_file_over_ssh_that_changes_is_said(tmp_path: Path) -> None:
    """Its size and time are compared before each range."""
    home, folder = tmp_path / "home", tmp_path / "served"
    home.mkdir()
    folder.mkdir()
    (folder / "t.json").write_bytes(TEXT)
    with ssh_home(folder, home) as (url, environment):
        code = (
            "from tracelane.core.read.source import open_source\n"
            f"source = open_source({url + '/t.json'!r}); print(len(source.read_range(0, 100)), flush=True)\n"
            f"import os, pathlib; pathlib.Path({str(folder / 't.json')!r}).write_bytes(b'x' * {len(TEXT)})\n"
            f"os.utime({str(folder / 't.json')!r}, (1, 1))\n"
            "try: source.read_range(0, 100)\n"
            "except Exception as error: print(error)\n"
        )
        done = tracelane("--version", code=code, **environment)
        assert CHANGED in done.stdout and done.stdout.startswith("100\n"), done.stderr


S3_FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "forbidden": ({"statuses": {PATH: 403}}, "Forbidden"),
    "missing": ({"files": {}}, "no such file"),
    "overloaded": ({"statuses": {PATH: 503}}, "Service Unavailable"),
    "elsewhere": ({"statuses": {PATH: 301}}, "Moved Permanently"),
    "cut each time": ({"breaks": "off", "broken": 1 << 20, "comes": 0.0}, "and was asked 5 times"),
    "short each time": ({"breaks": "less", "broken": 1 << 20, "comes": 0.0}, "and was asked 5 times"),
    "cut twice": ({"breaks": "off", "broken": 2}, ""),
    "short twice": ({"breaks": "less", "broken": 2}, ""),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", S3_FAULTS)
def test_faults_of_an_object_storage_are_said(fault: str, tmp_path: Path) -> None:
    """Each is one line that names the object, and ends the command; an answer that breaks off now and then is
    asked for again.
    """
    pytest.importorskip("s3fs", reason="traces on object storage need s3fs")
    faults, says = S3_FAULTS[fault]
    with running(FaultyServer(**{"files": {PATH: TEXT}, **faults})) as server:
        environment = {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "nobody",
            "AWS_SECRET_ACCESS_KEY": "nothing",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        done = tracelane("info", f"s3:/{PATH}", "--index-dir", str(tmp_path / "index"), **environment)
    assert done.returncode == (2 if says else 0), done.stderr
    assert says in done.stderr and done.stderr.count("\n") == bool(says)
    assert bool(says) != ("1,000 events" in done.stdout)
    assert not says or done.stderr.startswith(f"tracelane: s3:/{PATH}: ")
