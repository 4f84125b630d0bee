"""The one way to answer a screen on top of the lanes: once, however fast keys come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from textual.await_complete import AwaitComplete
from textual.screen import ModalScreen, Screen

T = TypeVar("T")


class AnswerScreen(ModalScreen[T]):
    """A screen that is answered once: keys that were pressed before it was gone answer nothing else.

    What is behind it keeps its colours: to dim it would send every cell of the screen twice. It covers the
    panel rather than the lanes, whose cells take most bytes when they are drawn again.
    """

    DEFAULT_CSS = "AnswerScreen { align: center bottom; background: transparent; }"

    def dismiss(self, result: T | None = None) -> AwaitComplete:
        """Answer and go away; a screen that is not on top has been answered already."""
        return answer_once(self, lambda: super(AnswerScreen, self).dismiss(result))


def answer_once(screen: Screen[T], dismiss: Callable[[], AwaitComplete]) -> AwaitComplete:
    """Dismiss a screen if it is the one on top: textual takes away whatever is on top, or ends the program
    where nothing is. Its `is_current` is true of a screen behind another one too.
    """
    return dismiss() if screen.app.screen is screen else AwaitComplete()
