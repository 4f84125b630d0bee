"""Why a move cannot be made, for the footer."""

from __future__ import annotations


class Refusal(Exception):  # noqa: N818 - an answer, not an error
    """There is nothing this move could do; the message says why in one short line."""
