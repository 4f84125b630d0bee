"""The module of the server for agents, which is a package of its own that need not be installed."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from tests.corpus import ROOT


def mcp_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tracelane_mcp", ROOT / "packages/mcp/tracelane_mcp.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
