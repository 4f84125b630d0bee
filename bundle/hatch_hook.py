"""What hatchling calls for each wheel: puts the compiled native core into it and names it after its platform.

TRACELANE_WHEEL=s390x makes the wheel of another platform (those of native_build.py), TRACELANE_WHEEL=any one
without a library; unset, the library is compiled for this machine if that is possible.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import native_build as native

WHEEL = "TRACELANE_WHEEL"


class NativeHook(BuildHookInterface[Any]):
    """Compiles before a wheel is packed; for an editable install in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the library to the wheel, or leave it pure."""
        platform = os.environ.get(WHEEL, "")
        try:
            if version == "editable":
                native.compile_here(native.SOURCES / f"{native.STEM}{native.local_suffix()}")
            elif platform != "any":
                self._add(platform, build_data)
        except native.CompileError as error:
            if platform:
                raise
            self.app.display_warning(f"tracelane is installed without its native core: {error}")

    def _add(self, machine: str, build_data: dict[str, Any]) -> None:
        target = native.PLATFORMS[machine] if machine else None
        name = f"{native.STEM}{target.suffix if target else native.local_suffix()}"
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / name
        tag = native.compile_for(machine, library) if target else native.compile_here(library)
        build_data["force_include"][str(library)] = f"tracelane/core/native/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
