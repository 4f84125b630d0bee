"""How to get a package that is missing, in the way in which tracelane itself was installed."""

from __future__ import annotations

import sys
from pathlib import Path


def install_hint(packages: str, environment: Path | None = None) -> str:
    """Return the command that adds packages to an environment, without one to that which runs: of pipx or uv
    by the file that each keeps there, else by pip.
    """
    home = Path(sys.prefix) if environment is None else environment
    if (home / "pipx_metadata.json").exists():
        return f"pipx inject tracelane {packages}"
    if (home / "uv-receipt.toml").exists():
        return "uv tool install tracelane " + " ".join(f"--with {name}" for name in packages.split())
    return f"pip install {packages}"
