"""No dataclass compares arrays: `==` of two arrays is an array, whose truth is an error."""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import pkgutil
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, get_args, get_origin

import numpy as np

import tracelane.core
import tracelane.tui
from tracelane.core.base import arrays
from tracelane.core.base.arrays import I64, AnyArray

ARRAYS = {name: np.ndarray for name, alias in vars(arrays).items() if "NDArray" in str(alias)}
"""The aliases of arrays, which are texts where nobody checks types."""


def modules() -> Iterator[ModuleType]:
    """Yield every module that this machine can import."""
    for package in (tracelane.core, tracelane.tui):
        for entry in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                yield importlib.import_module(entry.name)
            except ModuleNotFoundError as error:
                assert "tracelane" not in str(error.name), entry.name


def holds_array(annotation: Any) -> bool:
    """Tell whether values of a type are arrays, or lists, tuples or mappings of them."""
    if annotation is np.ndarray or get_origin(annotation) is np.ndarray:
        return True
    return get_origin(annotation) is not Callable and any(map(holds_array, get_args(annotation)))


def compared_arrays(kind: type, names: ChainMap[str, Any]) -> list[str]:
    """Return the fields that hold arrays and that `==` and `hash` of a dataclass look at."""
    own = vars(kind)
    if "__dataclass_params__" not in own or not own["__dataclass_params__"].eq or "__eq__" not in own:
        return []
    own = ChainMap(ARRAYS, vars(importlib.import_module(kind.__module__)), *names.maps)  # type: ignore[arg-type]
    types = {each.name: eval(str(each.type), {}, own) for each in dataclasses.fields(kind) if each.compare}  # type: ignore[arg-type]
    return [name for name, annotation in types.items() if holds_array(annotation)]


def test_no_dataclass_compares_arrays() -> None:
    """One that holds arrays is compared as the object that it is, by `eq=False`."""
    every = list(modules())
    # What a module imports for types alone is a name of another.
    names: ChainMap[str, Any] = ChainMap({}, vars(builtins), *(vars(module) for module in every))  # type: ignore[arg-type]
    kinds = {
        kind
        for module in every
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and dataclasses.is_dataclass(kind)
    }
    assert len(kinds) > 100
    compared = {f"{kind.__module__}.{kind.__name__}": compared_arrays(kind, names) for kind in kinds}
    assert not {name: fields for name, fields in compared.items() if fields}


@dataclass(frozen=True)
class Compared:
    """Arrays in all ways that a dataclass holds them."""

    plain: I64
    optional: AnyArray | None
    several: dict[str, tuple[AnyArray, ...]]
    maker: Callable[[AnyArray], AnyArray]
    left: AnyArray = field(compare=False)


@dataclass(frozen=True, eq=False)
class Same(Compared):
    """One that is compared as the object that it is."""


def test_arrays_are_seen_in_every_field() -> None:
    """Arrays alone, missing or in containers count; functions, and fields that are not compared, do not."""
    assert compared_arrays(Compared, ChainMap(vars(builtins))) == ["plain", "optional", "several"]  # type: ignore[arg-type]
    assert not compared_arrays(Same, ChainMap(vars(builtins)))  # type: ignore[arg-type]
