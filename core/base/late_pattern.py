"""Regular expressions that are compiled when they are first used. To compile one takes up to a millisecond;
what is loaded for the first picture has a hundred, and uses a third of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


def late_pattern(expression: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, but compiled at its first use: a wrong expression fails only then."""
    return cast("re.Pattern[AnyStr]", LatePattern(expression, flags))


class LatePattern:
    """Stands for a compiled expression: it has the methods of that, and is none to `isinstance` and `re`."""

    def __init__(self, expression: str | bytes, flags: int) -> None:
        self.pattern = expression
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        """Return what the compiled expression has of this name, and keep it: the next time nobody asks."""
        if name.startswith("__"):
            raise AttributeError(name)
        answer = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, answer)
        return answer
