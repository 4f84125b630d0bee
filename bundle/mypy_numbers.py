"""A plugin of mypy: text becomes an integer in core/base/numbers.py alone.

`int` refuses more than 4,300 digits with an error that no caller foresees; only the types tell `int(text)`
from the `int(number)` that stands next to it.
"""

from __future__ import annotations

from collections.abc import Callable

from mypy.plugin import FunctionContext, Plugin
from mypy.types import Instance, Type, UnionType, get_proper_type

TEXTS = ("builtins.str", "builtins.bytes", "builtins.bytearray")
ALLOWED = ("core/base/numbers.py",)


class TextToNumber(Plugin):
    """Reports `int(text)` outside the module that is meant for it."""

    def get_function_hook(self, fullname: str) -> Callable[[FunctionContext], Type] | None:
        """Return what looks at a call of `int`, None for other functions."""
        return _checked if fullname == "builtins.int" else None


def _checked(call: FunctionContext) -> Type:
    arguments = call.arg_types[0] if call.arg_types else []
    if arguments and _is_text(arguments[0]) and not call.api.path.endswith(ALLOWED):  # type: ignore[attr-defined]
        call.api.fail("text becomes an integer by whole_number() of core/base/numbers.py", call.context)
    return call.default_return_type


def _is_text(kind: Type) -> bool:
    proper = get_proper_type(kind)
    if isinstance(proper, UnionType):
        return any(map(_is_text, proper.items))
    return isinstance(proper, Instance) and proper.type.fullname in TEXTS


def plugin(_: str) -> type[Plugin]:
    """Return the plugin, as mypy asks for it."""
    return TextToNumber
