"""The steps of a large trace kept beside its index: to find them takes longer the more slices there are."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.clock import Clocks
from .kept import is_worth_keeping, kept_file, read_kept, write_kept
from .scope import Scope
from .step_spans import StepSpans, step_spans

if TYPE_CHECKING:
    from ..trace import Trace

NAME = "step-spans"


def kept_step_spans(trace: Trace, clocks: Clocks) -> StepSpans | None:
    """Return the steps of all sources as `step_spans` finds them."""
    scope = Scope(trace, clocks=clocks)
    if not is_worth_keeping(scope):
        return step_spans(trace, clocks)
    path = kept_file(scope, NAME)
    with suppress(OSError, KeyError, TypeError, ValueError, OverflowError):
        return _read(read_kept(path))
    found = step_spans(trace, clocks)
    write_kept(path, _told(found))
    return found


def _told(found: StepSpans | None) -> dict[str, Any] | None:
    if found is None:
        return None
    columns = {"starts": found.starts.tolist(), "ends": found.ends.tolist()}
    return {"choice": found.choice, "reason": found.reason, "labels": found.labels, **columns}


def _read(told: dict[str, Any] | None) -> StepSpans | None:
    if told is None:
        return None
    starts, ends = (np.array(told[name], np.int64) for name in ("starts", "ends"))
    labels = tuple(map(str, told["labels"]))
    if not len(labels) == len(starts) == len(ends):
        raise ValueError("not all steps have a label")
    return StepSpans(str(told["choice"]), str(told["reason"]), labels, starts, ends)
