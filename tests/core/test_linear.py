"""What looks at names and text of a trace takes time in proportion to their length, whatever they repeat."""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import re
from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest

from tests.corpus import in_turn, later
from tests.events import complete, index_of
from tests.forms import events, kineto_classic
from tests.linear import SlowError, assert_linear
from tests.reading import read_text
from tracelane.core import read
from tracelane.core.base.late_pattern import LatePattern
from tracelane.core.base.short_names import comparable_name, short_name
from tracelane.core.tables.compile import compile_phases
from tracelane.core.tables.device import memory
from tracelane.core.tables.explain import explain
from tracelane.core.tables.frame import kinds
from tracelane.core.tables.frame.scope import Scope
from tracelane.core.tables.registry import ANALYSES
from tracelane.core.trace import collectives, step_choice, step_names, trace_of

CHARACTERS = 8_000

LOOKS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "kinds": (
        lambda name: [row.pattern.search(name) for row in kinds.KINDS],
        ("scale", "s", "all_", "conv", "/triton", "memory (", "ep_", "_", "sca1"),
    ),
    "kind of a copy": (memory.kind_of, ("(", "(a -> ", "->", " ", "( ", "Memcpy ", "(->")),
    "collectives": (
        lambda name: [unwrap(collectives._name)(name, level) for level in range(4)],
        ("ncclKernel", "ncclKernel_a1", "hcoll_", "all_", "gloo:", "aiuCommsColl", "rcclKernelA"),
    ),
    "steps": (
        lambda name: [step_names.fits_name(pattern, name) for _, pattern in step_names.KNOWN],
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
    "comparable names": (unwrap(comparable_name), ("a1", "/", "#", "1", "-a1", ".py(1): ")),
}
BEGINNINGS = ("execute_context_1", "step[", "x_data:", "(")
CASES = [(what, unit) for what, (_, units) in LOOKS.items() for unit in units]


DEEP = [("callers", True), *itertools.product(("tree", "ops"), (True, False))]
NAMES = ["callers", *(one.name for one in ANALYSES if one.name != "sections")]  # which reads the file itself


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "alike"),
    [
        *DEEP,
        *(case for case in [("callers", False), *in_turn(NAMES, (True, False), 1)] if case not in DEEP),
    ],
)
def test_deep_slices_take_linear_time(name: str, alike: bool, tmp_path: Path) -> None:
    """Slices that lie in one another, of one name or of a name each, cost every analysis in proportion."""
    options = {"bottom_up": True} if name == "callers" else {}
    (analysis,) = (one for one in ANALYSES if one.name == ("tree" if options else name))

    def prepare(size: int) -> Callable[[], object]:
        chain = [complete(at, 2 * size - 2 * at + 10, f"n{0 if alike else at}") for at in range(size)]
        chain.append(complete(size, 5, "k", "kernel", tid=9))

        def work() -> object:
            index = index_of(chain, Path(mkdtemp(dir=tmp_path)))  # a new one, as answers are kept with it
            return list(analysis.run(Scope(trace_of("t.json", index)), **options))

        return work

    assert_linear(prepare, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["range", *map(later, ("tree", "ops", "findings", "critical_path"))])
def test_a_part_of_deep_slices_takes_linear_time(name: str, tmp_path: Path) -> None:
    """The same of a range at whose end all are cut."""
    (analysis,) = (one for one in ANALYSES if one.name == name)

    def prepare(size: int) -> Callable[[], object]:
        chain = [complete(at, 2 * size - 2 * at + 10, f"n{at}") for at in range(size)]

        def work() -> object:
            index = index_of(chain, Path(mkdtemp(dir=tmp_path)))
            return list(analysis.run(Scope(trace_of("t.json", index), (0, 1000 * size))))

        return work

    assert_linear(prepare, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "before"), [*in_turn(CASES, [""], 1), *in_turn(CASES, BEGINNINGS, 1)])
def test_looking_at_a_name_takes_linear_time(case: tuple[str, str], before: str) -> None:
    """A name of four times as many characters takes about four times as long, whatever it repeats."""
    what, unit = case
    look, _ = LOOKS[what]

    def prepare(size: int) -> Callable[[], object]:
        name = before + unit * (size // len(unit)) + "\n!"
        return lambda: look(name)

    assert_linear(prepare, CHARACTERS)


Pattern = re.Pattern[Any]
RUN = 8_000
UNITS = (*'{}[]":,\\\n 0.-eEx+<\x00', '\\"', '" ', '",', "}\n", "\n ", ", ", '{"', "]}", '":', "0.")
"""What runs are made of: all that patterns tell apart, and what stands beside each other in JSON."""
ENDS = ("\x01", "")
"""A run ends with what no pattern takes, or with the text."""
DAMAGED = re.sub(
    b'"n7"', b'"n"7"', kineto_classic([{**e, "name": f"n{i}"} for i, e in enumerate(events(30))])
)


def patterns_in(value: object) -> Iterator[Pattern]:
    """Yield the patterns that a variable of a module holds."""
    if isinstance(value, LatePattern):
        yield re.compile(value.pattern, value.flags)
    elif isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from patterns_in(item)


def patterns_of_reading(monkeypatch: pytest.MonkeyPatch) -> list[Pattern]:
    """Return the patterns of all modules of core/read, and those that are made while damage is read."""
    modules = [importlib.import_module(f"{read.__name__}.{m.name}") for m in modules_of_room()]
    patterns = {
        pattern for module in modules for value in vars(module).values() for pattern in patterns_in(value)
    }
    compile_any = re._compile  # type: ignore[attr-defined]  # what re.compile, re.search, … all call

    def noted(pattern: Any, flags: int) -> Pattern:
        compiled: Pattern = compile_any(pattern, flags)
        patterns.add(compiled)
        return compiled

    monkeypatch.setattr(re, "_compile", noted)
    read_text(DAMAGED)
    monkeypatch.undo()
    return sorted(patterns, key=lambda pattern: repr(pattern.pattern))


def modules_of_room() -> list[pkgutil.ModuleInfo]:
    return list(pkgutil.iter_modules(read.__path__))


def matched_everywhere(pattern: Pattern, text: str | bytes) -> Callable[[], object]:
    """Match at each place that no match before has taken."""
    return lambda: sum(1 for _ in pattern.finditer(text))


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_every_pattern_takes_linear_time(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times as long a run of whatever a pattern looks for takes about four times as long, where it is
    matched at each place, as a search does.
    """
    patterns = patterns_of_reading(monkeypatch)
    assert len(patterns) > 30
    slow = []
    for pattern, unit in itertools.product(patterns, UNITS):

        def prepare(n: int, unit: str = unit, of: Any = pattern) -> Any:
            text = unit * (n // len(unit)) + end
            return matched_everywhere(of, text if isinstance(of.pattern, str) else text.encode())

        try:
            assert_linear(prepare, RUN)
        except SlowError:
            slow.append((pattern.pattern, unit, end))
    assert not slow
