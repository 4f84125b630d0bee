"""Collecting on a cluster: a dask scheduler gives jobs to workers, and those of lost workers to others."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from ..base.errors import TracelaneError, UsageError
from ..base.installed import install_hint
from .collect import Collected, Engine, RankJob, collect_rank

CLUSTER_EXTRA = "distributed"
LOCAL = "local:"


def cluster_engine(address: str) -> Engine:
    """Return the engine of `--cluster`: local:N for N processes on this machine, else a scheduler's address.

    Raises UsageError where it means nothing, or where the package is missing.
    """
    workers = 0
    if address.startswith(LOCAL):
        text = address.removeprefix(LOCAL)
        if not text.isdecimal() or not 0 < int(text) <= 1024:
            raise UsageError(f"--cluster {address}: write local:N with a number of processes")
        workers = int(text)
    elif "://" not in address:
        raise UsageError(f"--cluster {address}: write local:N, or a scheduler's address as tcp://host:8786")
    try:
        import distributed
    except ImportError:
        raise UsageError(f"--cluster needs dask.distributed: {install_hint(CLUSTER_EXTRA)}") from None

    def run(jobs: Sequence[RankJob]) -> Iterator[Collected]:
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with _client(distributed, address, workers) as client:
            yield from _results(distributed, client, jobs)

    return run


def _client(distributed: Any, address: str, workers: int) -> Any:
    try:
        if not workers:
            return distributed.Client(address, timeout="30s")
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            worker_dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )
        client = distributed.Client(cluster)
        return _Owned(client, cluster)
    except (OSError, TimeoutError) as error:
        raise TracelaneError(f"--cluster {address}: no scheduler answers ({error})") from None


class _Owned:
    """A client and the cluster that ends with it."""

    def __init__(self, client: Any, cluster: Any) -> None:
        self._client, self._cluster = client, cluster

    def __enter__(self) -> Any:
        return self._client

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._cluster.close()


def _results(distributed: Any, client: Any, jobs: Sequence[RankJob]) -> Iterator[Collected]:
    """Yield results as they come; a rank whose workers were lost again and again is one that is not read."""
    futures = {
        client.submit(collect_rank, job, pure=False, key=f"rank-{number}-{job.name}"): job
        for number, job in enumerate(jobs)
    }
    for future in distributed.as_completed(list(futures)):
        job = futures.pop(future)
        error = future.exception()
        if error is None:
            yield future.result()
        elif isinstance(error, distributed.scheduler.KilledWorker):
            yield Collected(job.name, "", "the workers that read it were lost, possibly for lack of memory")
        elif isinstance(error, TracelaneError):
            raise error
        else:
            yield Collected(job.name, "", f"{type(error).__name__}: {error}")
        future.release()
