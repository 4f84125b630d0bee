"""Moves of the clocks of ranks: as their collectives correct them, or as the files have them."""

from __future__ import annotations

from dataclasses import replace

from tracelane.core.base.clock import Clocks
from tracelane.core.trace import Trace

from ..session import Session
from .refusal import Refusal


def is_aligned(trace: Trace, clocks: Clocks) -> bool:
    """Tell whether the ranks stand as their collectives correct them."""
    corrected = trace.alignment.clocks
    return all(clocks.offset(source) == corrected.offset(source) for source in trace.alignment.ranks)


def switch_alignment(trace: Trace, session: Session) -> Session:
    """Return the session with the ranks' correction taken back, or made again; other clocks stay."""
    alignment = trace.alignment
    if not alignment.ranks:
        raise Refusal("there are not two ranks to align")
    target = alignment.stamped if is_aligned(trace, session.clocks) else alignment.clocks
    clocks = session.clocks
    for source in alignment.ranks:
        clocks = clocks.shifted((source, ""), target.offset(source))
    if clocks == session.clocks:
        raise Refusal(f"nothing to switch: {alignment.text}")
    return replace(session, clocks=clocks)


def clocks_text(trace: Trace, session: Session) -> str:
    """Return in words how the ranks' clocks stand."""
    if is_aligned(trace, session.clocks):
        return trace.alignment.text
    return "ranks stand as their files' clocks have them; the command again aligns them"
