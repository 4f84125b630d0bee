"""The viewer's own dark and light theme."""

from __future__ import annotations

from textual.theme import Theme

from .config import DARK_THEME, LIGHT_THEME
from .draw.colour import SURFACES

_DARK, _LIGHT = SURFACES[DARK_THEME], SURFACES[LIGHT_THEME]

DARK = Theme(
    name=DARK_THEME,
    primary="#5b8dd6",
    secondary="#8a7fd0",
    accent="#e0af68",
    warning="#e0af68",
    error="#f07178",
    success="#8fc77e",
    foreground=_DARK.foreground,
    background=_DARK.background,
    surface=_DARK.background,
    panel=_DARK.panel,
    dark=_DARK.dark,
    variables={
        "footer-background": _DARK.panel,
        "footer-foreground": "#aab2c0",
        "footer-key-foreground": "#e0af68",
        "footer-description-foreground": "#aab2c0",
        "input-selection-background": "#5b8dd6 40%",
    },
)
LIGHT = Theme(
    name=LIGHT_THEME,
    primary="#2f62b0",
    secondary="#6a55b5",
    accent="#8a5a00",
    warning="#8a5a00",
    error="#b3261e",
    success="#2f7d32",
    foreground=_LIGHT.foreground,
    background=_LIGHT.background,
    surface=_LIGHT.background,
    panel=_LIGHT.panel,
    dark=_LIGHT.dark,
    variables={
        "footer-background": _LIGHT.panel,
        "footer-foreground": "#4a5160",
        "footer-key-foreground": "#8a5a00",
        "footer-description-foreground": "#4a5160",
        "input-selection-background": "#2f62b0 30%",
    },
)
THEMES = (DARK, LIGHT)
