"""Short readable forms of raw event names, for lanes and tables; the raw name stays in the details.

`short_name` shortens one name and may give two names one form. `short_names` shortens the names of a table
together and keeps of each as much as tells it from the others. `comparable_name` leaves out what
changes from run to run.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

from .held import held_by_name
from .late_pattern import late_pattern
from .numbers import whole_number
from .safe_text import safe

BLANK = "(no name)"
MAX_LENGTH = 120
"""No short name is longer; nothing shows more of them."""
CUT = "…"
"""What stands in a short name for what was cut from it."""
MAX_READ_LENGTH = 4096
"""So many characters of a name are looked at."""
DETAILS = 4
"""Levels of detail: 0 is the shortest form, each further one keeps a level more of template arguments."""

_BUNDLE = late_pattern(r"(?:bundle|kernel|module|main)\.(?:mlir|json|so|py|o)$")
_KEY = late_pattern(r"[_-](?=[a-z0-9]*[0-9])(?=[a-z0-9]*[a-z])[a-z0-9]{8}$")
"""A mkdtemp-like suffix: eight lower-case letters and digits, both present."""
_GENERATED = late_pattern(r"^(?:sdsc|triton)_\w+$")
"""Folders of generated kernels: kind, ops, running number and, where mkdtemp made them, eight more."""
_NUMBERED = late_pattern(r"^(.+_\d+)_[a-z0-9_]{8}$")
_CUT = late_pattern(r"^(.+_\d+)_[a-z0-9_]{0,7}$")
"""The same at the end of a name that a profiler cut; what stands after the number is no word."""
_SPYRE = late_pattern(r"^spyre_kernel_v\d+_(.+?)_[A-Za-z0-9]{16}(?:#\S+)?$")
_STEP = late_pattern(r"#\d+$")
_FRAME = late_pattern(r"^(.*[\\/])?([^\\/()]+\.pyx?\(\d+\): .+)$", re.DOTALL)
_PYTHON = late_pattern(r"(?:^|\.)<(?:locals|lambda|module|(?:list|dict|set)comp|genexpr)>")
"""What Python's qualified names have: `outer.<locals>.inner`; no template arguments."""
_CPP = late_pattern(r"::|<|^(?:void|auto|std|_Z)\b")
_RETURN = late_pattern(r"^(?:static |inline |__global__ )*(?:void|auto|bool|int|float|double) (?=[\w:(])")
_ANONYMOUS = late_pattern(r"\(anonymous namespace\)::|\{anonymous\}::|<unnamed>::|\(unnamed\)::")
_IDENTIFIER = late_pattern(r"\w")
_LAMBDA = late_pattern(r"^\{lambda|^\$_\d|^operator\b|^\{closure|^'lambda")
_RUN_STEP = late_pattern(r"^(?:iteration_|granite\.iteration\.)|^ProfilerStep#")
_WORD = late_pattern(r"\w+")
_NUMBERS = late_pattern(r"\d+")
_PATH = late_pattern(r"^\.{0,2}/|^spyre_kernel|^\S+\.pyx?\(\d+\): ")
_HASH = late_pattern(r"\b(?=[0-9a-z]*\d)(?=[0-9a-z]*[a-z])[0-9a-z]{16,}\b")
"""Such as the FxGraph cache's keys: sixteen or more lower-case letters and digits, both present."""
_ADDRESS = late_pattern(r"\b0x[0-9a-fA-F]{4,}\b")
"""Where an object of one process lay: `<built-in method dim of Tensor object at 0x7bc2e8857de0>`."""
_UNIT = late_pattern(r"(?<=_GLOBAL__N__)[0-9a-f]{8}(?=_)|(?<=_cu_)[0-9a-f]{8}(?=_)")
"""Hashes by which nvcc tells the unnamed namespaces of two files apart."""
_INNER_PATH = late_pattern(r"(?<![\w.)>~:/-])(?:/[^\s/()<>,:;'\"]+){2,}")
"""A path with a folder inside a name; folders differ between two builds, users and hosts."""
_NO_TELLING = late_pattern(r"^(?:std::|at::detail::)?[Aa]rray<\s*char\s*\*")
"""Template arguments that are the same for all elementwise kernels: the array of operands."""
_KERNEL = late_pattern(r"(?<=\w)_kernel(?:_impl|_cuda|_hip)?$")


@held_by_name
def short_name(raw: str, detail: int = 0) -> str:
    """Return the short form of an event name: one line, safe for a terminal, never empty.

    Paths of device kernels lose their folders and generated suffixes, Python frames the folders of their
    file, C++ functions their return type, namespaces, parameters and inner template arguments; a lambda is
    called by the function that it stands in. With `detail` more is kept: of template arguments as many
    levels, of a path the generated suffix. Example: `void at::native::vectorized_elementwise_kernel<4,
    at::native::sigmoid_kernel_cuda(…)::{lambda()#1}, …>(…)` is `vectorized_elementwise<4, sigmoid>`.
    """
    text = safe(raw[:MAX_READ_LENGTH]).strip()
    if not text:
        return BLANK
    if CUT in text and len(text) <= MAX_LENGTH:
        return text  # a short form already, whose rest is gone
    short = _shortened(text, detail) or text
    return short if len(short) <= MAX_LENGTH else short[: MAX_LENGTH - 1] + CUT


def short_names(raws: Sequence[str]) -> list[str]:
    """Return the short forms of names, different for names that differ. Names that share a form are told
    apart by more of their detail; those that no detail tells apart (cut at the same place, say) by a number
    in the order of the names.
    """
    forms = {raw: short_name(raw) for raw in raws}
    for detail in range(1, DETAILS + 1):
        for raw in _sharing(forms):
            forms[raw] = short_name(raw, detail)
    for raw in _sharing(forms):
        forms[raw] = _cut_inside(safe(raw).strip() or BLANK, MAX_LENGTH)
    groups: dict[str, list[str]] = {}
    for raw, form in forms.items():
        groups.setdefault(form, []).append(raw)
    for form, sharing in groups.items():
        if len(sharing) > 1:
            free = (numbered for n in count(1) if (numbered := _numbered(form, n)) not in groups)
            forms |= dict(zip(sorted(sharing), free))
    return [forms[raw] for raw in raws]


def _numbered(form: str, number: int) -> str:
    suffix = f" ({number})"
    return _cut_inside(form, MAX_LENGTH - len(suffix)) + suffix


def _cut_inside(text: str, length: int) -> str:
    """Return a text of at most so many characters, without those of its middle."""
    if len(text) <= length:
        return text
    end = (length - 1) // 2
    return f"{text[: length - 1 - end]}{CUT}{text[-end:]}"


def is_short_form(form: str, raw: str) -> bool:
    """Tell whether a name is printed so: whether it is its short form, at any level of detail. A short form's
    first word stands in the name, which rules out most names at once.
    """
    word = _WORD.search(form)
    if word is not None and word[0] not in raw:
        return False
    begin, cut, end = form.partition(CUT)
    whole = safe(raw).strip()
    if cut and end and whole.startswith(begin) and whole.endswith(end):
        return True
    return any(short_name(raw, detail) == form for detail in range(DETAILS + 1))


def _sharing(forms: dict[str, str]) -> list[str]:
    counts: dict[str, int] = {}
    for form in forms.values():
        counts[form] = counts.get(form, 0) + 1
    return [raw for raw, form in forms.items() if counts[form] > 1]


def _shortened(text: str, detail: int) -> str:
    frame = _FRAME.match(text) if ".py" in text else None
    if frame:
        return frame.group(2) if not detail else text
    spyre = _SPYRE.match(text) if text.startswith("spyre") else None
    if spyre:
        return spyre.group(1) if not detail else text
    if text.startswith("_Z"):
        return _mangled(text) if not detail else text
    if "/" in text and " " not in text.strip() and "::" not in text and "<" not in text:
        return _kernel_of_path(text, keep_suffix=detail > 0) if detail < DETAILS else text
    if _PYTHON.search(text):
        return text
    if _CPP.search(text) and ("<" in text or "(" in text) and not text.startswith("<"):
        return _cpp(text, detail)
    if text.endswith(")") and re.match(r"^\w+\(", text):
        return text[: text.index("(")]  # a C function with its parameters: ncclKernel_AllReduce(…)
    return text


def _kernel_of_path(text: str, keep_suffix: bool) -> str:
    """Return the telling component of a path such as /tmp/…/sdsc_fused_mm_0_434jgp19/bundle.mlir."""
    parts = [part for part in text.split("/") if part]
    if not parts or not text.startswith(("/", "./", "../")):
        return text
    for at in range(len(parts) - 1, 0, -1):
        if _GENERATED.match(parts[at]):
            if keep_suffix:
                return parts[at]
            whole = _NUMBERED.match(parts[at])
            cut = None if whole or at < len(parts) - 1 else _CUT.match(parts[at])
            match = whole or cut
            return match.group(1) if match else _KEY.sub("", parts[at]).rstrip("_")
    name = parts[-1]
    if _BUNDLE.search(name) and len(parts) > 1:
        name = parts[-2]
    if keep_suffix:
        return name
    name = _STEP.sub("", name)
    name = _KEY.sub("", name)
    return name.rstrip("_") or parts[-1]


def _cpp(text: str, detail: int) -> str:
    text = _ANONYMOUS.sub("", text)
    text = _RETURN.sub("", text)
    head, arguments = _split_function(text)
    name = _last_component(head)
    if not name:
        return text
    texts = [_argument(argument, detail) for argument in arguments if not _NO_TELLING.match(argument)]
    texts = [argument for argument in texts if argument]
    if not texts:
        return name
    if detail < DETAILS:
        name = _KERNEL.sub("", name)
    return f"{name}<{', '.join(texts)}>"


def _argument(text: str, detail: int) -> str:
    """Return the short form of a template argument, with as many levels of its own arguments."""
    if detail >= DETAILS:
        return text
    head, arguments = _split_function(text)
    name = _last_component(head if head else text)
    if _LAMBDA.match(name):
        name = _enclosing_function(text) or name
    if not detail or not arguments:
        return name
    return f"{name}<{', '.join(_argument(argument, detail - 1) for argument in arguments)}>"


def _enclosing_function(text: str) -> str:
    """Return the innermost named function that a lambda stands in, "" for none. Of
    `at::native::sigmoid_kernel_cuda(at::X&)::{lambda()#2}::operator()() const::{lambda(float)#1}` it is
    `sigmoid`: what stands in brackets is left out, then the last part that is a name counts.
    """
    depth, plain = 0, []
    for character in text:
        if character in "(<":
            depth += 1
        elif character in ")>":
            depth = max(0, depth - 1)
        elif depth == 0:
            plain.append(character)
    for part in reversed("".join(plain).replace(" const", "").split("::")):
        name = part.strip().rpartition(" ")[2]
        if name and not _LAMBDA.match(part.strip()) and _IDENTIFIER.match(name):
            return _KERNEL.sub("", name)
    return ""


def _split_function(text: str) -> tuple[str, list[str]]:
    """Return the qualified name and the outermost template arguments (whole) of a function. One pass over the
    characters; of `a<b>::c<d, e<f>>(g)` it is ("a::c", ["d", "e<f>"]).
    """
    head: list[str] = []
    arguments: list[str] = []
    current: list[str] = []
    angle = round_ = 0
    previous = ""
    for position, character in enumerate(text):
        inside = angle > 0
        # No argument begins at the `<` of `operator<`, and none ends at the `>` of `->`. Of `a<b>::c<d>` a
        # colon behind `>` begins the list anew. The first parenthesis outside of all others holds the
        # parameters, and nothing behind it is part of the name: unless a `::` follows, as in
        # `f(int)::{lambda()#1}`, where it only tells which f is meant.
        if character == "<" and not (angle == 0 and "".join(head[-8:]).endswith("operator")):
            if angle == 0 and round_ == 0:
                arguments, current = [], []
            angle += 1
        elif character == ">" and angle > 0 and previous != "-":
            angle -= 1
            if angle == 0 and round_ == 0:
                arguments.append("".join(current).strip())
                current, inside = [], False
        elif character == "(":
            outermost = angle == 0 and round_ == 0 and head
            called = previous == ">" or _IDENTIFIER.match(previous)
            if outermost and called and "::" not in _after_parameters(text, position):
                break
            round_ += 1
        elif character == ")":
            round_ = max(0, round_ - 1)
        elif angle == 0 and round_ == 0:
            if character == ":" and previous == ">":
                arguments = []
            head.append(character)
        if inside:
            if character == "," and angle == 1 and round_ == 0:
                arguments.append("".join(current).strip())
                current = []
            else:
                current.append(character)
        previous = character
    return "".join(head).strip(), arguments


def _after_parameters(text: str, position: int) -> str:
    """Return two characters behind the parenthesis that opens here (a lambda's parameters go on with ::)."""
    depth = 0
    for at in range(position, len(text)):
        if text[at] == "(":
            depth += 1
        elif text[at] == ")":
            depth -= 1
            if depth == 0:
                return text[at + 1 : at + 3]
    return ""


def _last_component(name: str) -> str:
    name = name.strip().rstrip("*& ").removesuffix(" const").strip()
    if name.startswith("(") and ")" in name:
        name = name[name.index(")") + 1 :] or name
    last = name.rsplit("::", 1)[-1].strip()
    return last or name.strip(": ")


def _mangled(text: str) -> str:
    """Return the last identifier of an Itanium-mangled nested name, or the text itself."""
    at = 3 if text.startswith("_ZN") else 2
    last = ""
    while at < len(text):
        digits = re.match(r"\d+", text[at : at + 5])
        if digits is None:
            if last or text[at] not in "KLrVS":
                break
            at += 1
            continue
        begin = at + digits.end()
        end = begin + whole_number(digits.group())
        if end > len(text):
            break
        if not text[begin:end].startswith("_GLOBAL__"):
            last = text[begin:end]
        at = end
    return last or text


@held_by_name
def comparable_name(raw: str) -> str:
    """Return an event's name as it is in every run: with `*` for hashes, addresses and numbers of steps.

    Kernels keep their whole name, so that two functors of one template are two; of paths, wherever in the
    name they stand, the component that tells is left, as folders and suffixes are generated. Example:
    `fib (/srv/me/app.py:7)` is `fib (app.py:7)`.
    """
    if _PATH.match(raw) or not raw.strip():
        name = short_name(raw)
    else:
        name = _INNER_PATH.sub(lambda path: _kernel_of_path(path[0], keep_suffix=False), safe(raw))
    name = _UNIT.sub("*", _ADDRESS.sub("0x*", _HASH.sub("*", name)))
    return _NUMBERS.sub("*", name) if _RUN_STEP.match(name) else _STEP.sub("#*", name)
