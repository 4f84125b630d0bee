"""The benchmarks of stores, small: they run, and what they say of equality and of the straggler holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CORPUS, ROOT, needs
from tests.rank_files import rank_files
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.slow


def results_of(script: str, *arguments: str) -> list[dict[str, Any]]:
    """Run a benchmark, which must succeed; return its lines but the machine's."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), *arguments],
        capture_output=True,
        encoding="utf-8",
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    machine, *results = map(json.loads, done.stdout.splitlines())
    assert machine["cores"] > 0
    return results


@pytest.mark.parametrize("options", [[], ["--with-index"]], ids=["summaries", "indexes"])
def test_stores_are_equal_whoever_collects_them(tmp_path: Path, options: list[str]) -> None:
    """One process, a cluster that loses a worker, shards of which one is killed: each file byte for byte, the
    indexes of the ranks, too.
    """
    pytest.importorskip("distributed", reason="a cluster needs the extra tracelane[cluster]")
    count = 40
    rank_files(tmp_path / "traces", count)
    (tmp_path / "work").mkdir()
    work = ["--work", str(tmp_path / "work")]
    (result,) = results_of("store.py", str(tmp_path / "traces"), "--equal", *work, *options)
    files = 1 + count + 1 + (count if options else 0)  # manifest, summaries, a group, indexes
    for name in ("cluster", "shards"):
        assert (result[name]["equal"], result[name]["files"]) == (True, files)
    assert result["ranks"] == count and result["collect"]["processor_s"] > 0


@needs(CORPUS)
def test_a_bucket_is_filled_and_names_the_straggler(tmp_path: Path) -> None:
    """Three ranks of 7 MB through moto's server, each removed once it is collected."""
    pytest.importorskip("s3fs", reason="traces on object storage need s3fs")
    pytest.importorskip("moto.server", reason="moto's S3 server is not installed")
    assert CORPUS.is_dir()
    *ranks, store = results_of("bucket.py", "--ranks", "3", "--gb", "0.007", "--work", str(tmp_path))
    assert [one["rank"] for one in ranks] == [0, 1, 2] and all(one["fits"] for one in ranks)
    assert (store["straggler"], store["rank"]) == (1, 1) and store["last"] == store["collectives"] > 0
    assert list(tmp_path.iterdir()) == []
