"""Looking for our own patterns in names of 32,000 characters takes time in proportion to their length."""

from __future__ import annotations

from collections.abc import Callable
from inspect import unwrap

import pytest

from tests.corpus import later
from tests.linear import assert_linear
from tracelane.core.base.short_names import comparable_name, short_name
from tracelane.core.tables import compile_phases, copies, explain, kinds, step_choice
from tracelane.core.trace import collectives

CHARACTERS = 8_000

LOOKS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "kinds": (
        lambda name: [row.pattern.search(name) for row in kinds.KINDS],
        ("scale", "s", "all_", "conv", "/triton", "memory (", "ep_", "_", "sca1"),
    ),
    "kind of a copy": (copies.kind_of, ("(", "(a -> ", "->", " ", "( ", "Memcpy ", "(->")),
    "collectives": (
        lambda name: [unwrap(collectives._name)(name, level) for level in range(4)],
        ("ncclKernel", "ncclKernel_a1", "hcoll_", "all_", "gloo:", "aiuCommsColl", "rcclKernelA"),
    ),
    "steps": (
        lambda name: [step_choice._is(pattern, name) for _, pattern in step_choice.KNOWN],
        ("execute_", "context_1", "generation_", "step[", "step[a bs=1", " bs=1", "iteration_", "a"),
    ),
    "compiling": (
        lambda name: (step_choice.COMPILING.search(name), compile_phases.COMPILE_ID.fullmatch(name)),
        ("_data: ", "_data:", " compile_id=", "(dynamo_timed)", ", ", "_data: , "),
    ),
    "explain": (
        lambda name: [pattern.fullmatch(name) for _, pattern in explain._compiled()],
        ("sdsc_", "/", "/sdsc_a", "pass.", "## Call CompiledFxGraph ", "aten::", "_", "a"),
    ),
    "short names": (unwrap(short_name), ("_", "a::", "<", "/", "(", "a1_")),
    "comparable names": (comparable_name, ("a1", "/", "#", "1", "-a1", ".py(1): ")),
}
BEGINNINGS = ("execute_context_1", "step[", "x_data:", "(")
CASES = [(what, unit) for what, (_, units) in LOOKS.items() for unit in units]


@pytest.mark.parametrize(("what", "unit"), CASES)
@pytest.mark.parametrize("before", ["", *map(later, BEGINNINGS)])
def test_looking_at_a_name_takes_linear_time(what: str, unit: str, before: str) -> None:
    """A name of four times as many characters takes about four times as long, whatever it repeats."""
    look, _ = LOOKS[what]

    def prepare(size: int) -> Callable[[], object]:
        name = before + unit * (size // len(unit)) + "\n!"
        return lambda: look(name)

    assert_linear(prepare, CHARACTERS)
