"""What hatchling calls for sdist and wheel: puts into both the commit that `tracelane --version` names, into
a wheel the compiled native core, and names that after its platform.

TRACELANE_WHEEL=s390x makes the wheel of another platform (those of native_build.py), TRACELANE_WHEEL=any one
without a library; unset, the library is compiled for this machine if that is possible.
"""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))
import native_build as native

WHEEL = "TRACELANE_WHEEL"


class NativeHook(BuildHookInterface[Any]):
    """Adds the commit; compiles before a wheel is packed, for an editable install in place."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the commit, and the library to a wheel, or leave that pure."""
        self._folder = tempfile.TemporaryDirectory()
        if version != "editable":  # which asks git whenever it runs
            self._add_commit(build_data)
        if self.target_name != "wheel":
            return
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

    def _add_commit(self, build_data: dict[str, Any]) -> None:
        module = runpy.run_path(str(Path(self.root, "core/base/installed.py")))
        name = module["COMMIT_FILE"]
        if commit := module["commit_of"](Path(self.root)):
            (written := Path(self._folder.name) / name).write_text(f"{commit}\n", encoding="utf-8")
            target = f"tracelane/{name}" if self.target_name == "wheel" else name
            build_data["force_include"][str(written)] = target

    def _add(self, machine: str, build_data: dict[str, Any]) -> None:
        target = native.PLATFORMS[machine] if machine else None
        name = f"{native.STEM}{target.suffix if target else native.local_suffix()}"
        library = Path(self._folder.name) / name
        tag = native.compile_for(machine, library) if target else native.compile_here(library)
        build_data["force_include"][str(library)] = f"tracelane/core/native/{name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{tag}"
