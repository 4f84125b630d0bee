"""What opening a store asks a server: a few requests, however many ranks there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.rank_files import rank_files
from tests.remote.servers import bucket, web_server
from tests.store.test_store_tables import store_of
from tracelane.core.store.location import is_store
from tracelane.core.store.opened import open_store
from tracelane.core.store.picture import picture_of_store
from tracelane.core.store.tables import STORE_TABLES, store_tables

RANKS = 70
"""More than one group holds."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of two groups."""
    folder = tmp_path_factory.mktemp("ranks")
    return store_of(rank_files(folder / "traces", RANKS), folder / "store")


@contextmanager
def requests_of(server: type[Any], method: str, path_of: Callable[..., str]) -> Iterator[list[str]]:
    """Note which paths are requests of a server while something is done."""
    requests: list[str] = []
    original = getattr(server, method)

    def noted(*arguments: Any) -> Any:
        requests.append(path_of(*arguments))
        return original(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, method, noted)
        yield requests


def use(url: str) -> None:
    """Open a store as the commands do, and ask for all that summaries answer."""
    assert is_store(url)
    store = open_store(url)
    assert len(store.ranks) == RANKS
    assert len(store_tables(store, "ranks", {}).main) == RANKS
    for name in STORE_TABLES:
        assert len(store_tables(store, name, {}).main)
    picture_of_store(store).close()


def check(requests: list[str]) -> None:
    """The manifest, two lists of names and two groups, each a few times at most; no summary by itself."""
    kinds = Counter(path.rpartition("/")[2].partition("?")[0] for path in requests)
    assert not [path for path in requests if path.endswith(".rank")]
    assert 1 <= kinds["000000.group"] <= 4 and 1 <= kinds["000001.group"] <= 4, kinds
    assert len(requests) <= 16, requests


@pytest.mark.slow
def test_a_bucket_is_asked_a_few_times(store: Path) -> None:
    """Groups hold what tables and picture need: with 1,024 ranks it is 18 objects and two lists."""
    with bucket() as url:
        import s3fs
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication

        s3fs.S3FileSystem().put(str(store), "traces/store", recursive=True)

        def path_of(_: object, environment: dict[str, Any], __: object) -> str:
            return f"{environment['PATH_INFO']}?{environment.get('QUERY_STRING', '')}"

        with requests_of(DomainDispatcherApplication, "__call__", path_of) as requests:
            use(f"{url}/store")
        check(requests)


@pytest.mark.slow
def test_a_web_server_is_asked_a_few_times(store: Path) -> None:
    """As with a bucket; folders are pages of links."""
    from tests.remote.servers import RangeHandler

    with (
        web_server(store) as (url, sent),
        requests_of(RangeHandler, "do_GET", lambda handler: str(handler.path)) as requests,
    ):
        use(url)
    check(requests)
    assert not any(name.endswith(".rank") for name in sent)
