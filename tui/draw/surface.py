"""What the viewer's own themes paint the screen with, for those that draw before there is a theme."""

from __future__ import annotations

from typing import NamedTuple

from ..config import DARK_THEME, LIGHT_THEME


class Surface(NamedTuple):
    """Colours of a theme, as #rrggbb."""

    foreground: str
    background: str
    panel: str
    dark: bool


SURFACES = {
    DARK_THEME: Surface("#d4d8e0", "#121418", "#1c2027", dark=True),
    LIGHT_THEME: Surface("#22262e", "#fafaf8", "#ecece7", dark=False),
}
