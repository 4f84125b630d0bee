"""Part files as the builder sees them; workers of ingest write them, so their format is at home there."""

from __future__ import annotations

from ..ingest.part_file import DIGEST_BYTES, PartFile, open_part, write_part

__all__ = ["DIGEST_BYTES", "PartFile", "open_part", "write_part"]
