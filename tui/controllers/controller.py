"""What all controllers are: the App they work on, and the commands that they carry out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from ..session_store import SessionStore
from ..stage import Stage

Commands: TypeAlias = Mapping[str, Callable[[], object]]
"""What carries out each of some commands, by their ids."""
Verbs: TypeAlias = Mapping[str, Callable[[str], object]]
"""The same for those that are typed with an argument."""


class Controller:
    """Carries out the commands of one concern."""

    def __init__(self, app: Stage, store: SessionStore) -> None:
        """Work on a store, and show what comes of it."""
        self.app = app
        self.store = store

    def commands(self) -> Commands:
        """Return what carries out each of its commands."""
        return {}

    def verbs(self) -> Verbs:
        """Return what carries out those with an argument."""
        return {}
