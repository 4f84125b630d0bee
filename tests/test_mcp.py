"""The server for agents: what it answers, within which bounds."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mcp_server import mcp_module
from tests.tui.small_file import small_file


@pytest.fixture(scope="module")
def mcp() -> ModuleType:
    return mcp_module()


def test_what_is_asked_is_answered_from_the_folder_alone(mcp: ModuleType, tmp_path: Path) -> None:
    """Traces below the folder are listed, explained and tabulated; all others are refused, also by links."""
    folder, other = tmp_path / "traces", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    path = small_file(folder)
    (folder / "link.json").symlink_to(small_file(other))
    ours = mcp.Folder([folder])
    assert str(path) in ours.traces()
    whole = json.loads(ours.explain(path.name))
    assert whole["table"] == "causes" and isinstance(whole["trust"], list)
    rows = json.loads(ours.table(path.name, "kernels", {"by": "type"}, "total_ns", 1))
    assert len(rows["rows"]) == 1 and rows["units"]["total_ns"] == "ns"
    (answer, *_) = json.loads(ours.explain(path.name, "which kernels?"))["rows"]
    assert answer["command"] == "tracelane kernels TRACE"
    for bad in ("../other/small.json", "link.json", "/etc/passwd"):
        with pytest.raises(ValueError, match="does not lie below"):
            ours.trace(bad)
    with pytest.raises(ValueError, match="does not lie below"):
        ours.table(path.name, "findings", {"baseline": "/etc/passwd"})
    assert "rows" in json.loads(ours.table(path.name, "findings", {"baseline": path.name}))
    with pytest.raises(ValueError, match="there is no analysis 'export'"):
        ours.table(path.name, "export")


def test_a_reply_is_bounded(mcp: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Rows give way where a reply would be too long, and it says how many."""
    path = small_file(tmp_path)
    monkeypatch.setattr(mcp, "MAX_BYTES", 1500)
    text = mcp.Folder([tmp_path]).table(path.name, "range")
    assert len(text) <= 1500 and json.loads(text)["more_rows"] > 0


def test_the_protocol(mcp: ModuleType, tmp_path: Path) -> None:
    """A client finds three tools that only read, calls one, and is told what is wrong."""
    pytest.importorskip("mcp.server.mcpserver")
    from mcp.client.client import Client

    path = small_file(tmp_path)

    async def talk() -> None:
        async with Client(mcp.server(mcp.Folder([tmp_path]))) as client:
            tools = (await client.list_tools()).tools
            assert sorted(tool.name for tool in tools) == ["explain", "table", "traces"]
            assert all(tool.annotations.read_only_hint for tool in tools)
            result: Any = await client.call_tool("explain", {"trace": path.name})
            assert json.loads(result.content[0].text)["table"] == "causes"
            assert (await client.call_tool("explain", {"trace": "/etc/passwd"})).is_error

    asyncio.run(talk())


def test_it_says_which_folder_is_none(mcp: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not there ends it with a line."""
    monkeypatch.setattr(sys, "argv", ["tracelane-mcp", "/nowhere"])
    with pytest.raises(SystemExit, match="no folder: /nowhere"):
        mcp.main()
