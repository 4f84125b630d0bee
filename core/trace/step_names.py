"""What the name of a step says: its label, its group, and what tells it from the next one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..base.numbers import whole_number
from ..query.steps import STEP_NAME

# Names as engines write them, and what is read off them:
#   granite.iteration.3.decode.7               label 3.decode.7, group decode
#   execute_context_2(8)_generation_0(0)       context 2, tokens 0: two prompts are read, nothing is generated
#   execute_new_32_context_0_generation_32(8)  context 0, tokens 32: a token is generated for each of 32
#   step[DECODE bs=32]                         label DECODE bs=32, group DECODE, bs 32
_GRANITE = r"granite\.iteration\.(?P<label>\d+\.(?P<group>prefill|decode)\.\d+)"
_VLLM = r"(?P<label>execute_.*context_(?P<context>\d+).*generation_(?P<tokens>\d+).*)"
_SGLANG = r"step\[(?P<label>(?P<group>\w+)(?:.*?\bbs=(?P<bs>\d+))?.*)\]"
KNOWN = (
    ("iteration_N", re.compile(r"iteration_(?P<label>\d+)")),
    ("granite.iteration.N", re.compile(_GRANITE)),
    ("vLLM's execute_…", re.compile(_VLLM)),
    ("SGLang's step[…]", re.compile(_SGLANG)),
)
"""(what it is called, the names) that engines are known to mark their iterations with."""
MAX_LENGTH = 1000
"""The longest name that is looked at: on longer ones these patterns would be slow."""
NUMBERS = re.compile(r"\d+")
COMPILATION = re.compile(r"(Torch-Compiled Region: \d+/)(?:\d+|N)")
NO_LABELS = re.compile(r"^Torch-Compiled Region|^## Call CompiledFxGraph|\.py\(\d+\)")
"""Names in which a number is no count of steps."""


def step_series(name: str) -> str:
    """Return a name without what changes from step to step, N in place of its numbers; of a compiled region,
    which of its compilations ran (another frame is another region).
    """
    return COMPILATION.sub(r"\1N", name) if COMPILATION.match(name) else NUMBERS.sub("N", name)


def fits_name(pattern: re.Pattern[str], text: str) -> bool:
    """Tell whether a pattern is all of a name."""
    return len(text) <= MAX_LENGTH and pattern.fullmatch(text) is not None


def numbers_that_count(names: Sequence[str]) -> list[str]:
    """Return of each of some steps' names the numbers in it that tell it from the others ("17" of "iter 17"),
    those of a single one if it has but one; "" where there are none: of compilations, and lines of files.
    """
    if any(len(name) > MAX_LENGTH or NO_LABELS.search(name) for name in names):
        return [""] * len(names)
    numbers = [NUMBERS.findall(name) for name in names]
    columns = range(len(numbers[0])) if len({len(some) for some in numbers}) == 1 else range(0)
    if len(names) > 1:
        differing = [at for at in columns if len({some[at] for some in numbers}) > 1]
    else:
        differing = list(columns) if len(columns) == 1 else []
    return [".".join(some[at].lstrip("0") or "0" for at in differing) for some in numbers]


def label_and_group(name: str) -> tuple[str, str]:
    """Return the label and the group of a step's name; "" for what the name does not say."""
    if name.startswith(STEP_NAME):
        return name[len(STEP_NAME) :], ""
    for _, pattern in KNOWN:
        match = pattern.fullmatch(name) if len(name) <= MAX_LENGTH else None
        if match:
            facts = match.groupdict()
            if facts.get("context") is not None:
                context, tokens = whole_number(facts["context"]), whole_number(facts["tokens"])
                phase = ("mixed" if tokens else "prefill") if context else "decode"
                return facts["label"], f"{phase} bs={context + tokens}"
            group = (facts.get("group") or "").lower()
            return facts["label"], f"{group} bs={facts['bs']}" if facts.get("bs") else group
    return "", ""


def step_kind(name: str, chosen: str = "") -> str:
    """Return a step's name without what tells it from the next one, "" of a name that is no step's; `chosen`
    is the name of other steps than the profiler and engines mark, numbers in it aside.
    """
    if name.startswith(STEP_NAME):
        return STEP_NAME
    is_step = any(fits_name(pattern, name) for _, pattern in KNOWN) or (
        chosen and step_series(name) == step_series(chosen)
    )
    return step_series(name) if is_step else ""


def step_order(name: str) -> tuple[int, ...]:
    """Return what steps of a kind are sorted by: the numbers in their names."""
    return tuple(int(number[:18]) for number in NUMBERS.findall(name[:MAX_LENGTH]))
