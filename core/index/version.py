"""By what an index is known to be one that can be read here; no numpy is needed to look for one."""

from __future__ import annotations

from ..read.promoted import table_hash

FORMAT = 1
FORMAT_VERSION = f"{FORMAT}-{table_hash()}"
MANIFEST = "manifest.json"
