"""`.ci/run` runs the README's two commands as a stranger would, then what needs more, and pardons nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("bash") or not shutil.which("git"), reason="no bash or no git here"),
]

ROOT = Path(__file__).resolve().parent.parent
SECTION = "## From a checkout\n"
TARGETS = ("demo", "check", "sanitize", "test", "test-fast", "test-corpus", "test-flaky")
IN_THE_CLONE = ("demo", "test", "test-fast")
TOGETHER = ("demo", "check", "sanitize")
"""Those that run side by side, and are listed in this order."""
NOTE = """
import json, os, sys
where = {"target": sys.argv[1], "folder": os.getcwd(), "beside": sorted(os.listdir(".."))}
where["environ"] = dict(os.environ)
where["terminal"] = any(os.isatty(stream) for stream in (0, 1))
with open(os.path.join(os.environ["HOME"], "runs"), "a", encoding="utf-8") as file:
    print(json.dumps(where), file=file)
sys.exit(os.path.exists(sys.argv[1] + ".fails"))
"""
"""What each target of the made checkout does: note where it runs and with what; fail where a file says so."""
PIP = {
    "PIP_INDEX_URL": "https://packages.example.org",
    "SSL_CERT_FILE": "/etc/certificates.pem",
    "https_proxy": "http://proxy.example.org",
    "XDG_CONFIG_DIRS": "/etc/xdg",
}
OTHERS = {
    "TRACELANE_CORPUS": "/nowhere",
    "PYTHONPATH": str(ROOT),
    "CI": "1",
    "PYTEST_ADDOPTS": "-x",
    "TERM": "xterm",
}
OF_SHELLS = {
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "MAKEFLAGS",
    "MAKELEVEL",
    "MFLAGS",
    "MAKE_TERMERR",
    "MAKE_TERMOUT",
}
OF_SHELLS |= {"LC_CTYPE"}
"""What a shell, make or Python sets by itself."""


def readme_commands() -> list[str]:
    """Return the indented lines of the README's section on checkouts, without their comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").partition(SECTION)[2].partition("\n## ")[0]
    return [line.partition("#")[0].strip() for line in re.findall("^ {4}(.+)", text, re.MULTILINE)]


class Checkout(NamedTuple):
    """A checkout with this .ci/run and README, whose targets of make note that they ran."""

    folder: Path

    def git(self, *arguments: str) -> None:
        who = ["-c", "user.name=tests", "-c", "user.email=tests@example.org"]
        subprocess.run(["git", "-C", str(self.folder), *who, *arguments], check=True, capture_output=True)

    def commit(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", name)

    def run(self) -> subprocess.CompletedProcess[str]:
        """Run .ci/run, with variables that pip needs and others."""
        own = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return subprocess.run(
            ["bash", ".ci/run"],
            cwd=self.folder,
            env={**own, **PIP, **OTHERS, "HOME": str(self.home), "TMPDIR": str(self.temporary)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    @property
    def home(self) -> Path:
        return self.folder.parent / "home"

    @property
    def temporary(self) -> Path:
        return self.folder.parent / "tmp"

    @property
    def runs(self) -> list[dict[str, Any]]:
        """What the targets have noted, in turn."""
        notes = self.home / "runs"
        lines = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
        runs = [json.loads(line) for line in lines]
        together = [run for run in runs if run["target"] in TOGETHER]
        assert runs[: len(together)] == together, "something runs before these have ended"
        return sorted(together, key=lambda run: TOGETHER.index(run["target"])) + runs[len(together) :]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    new = Checkout(tmp_path / "checkout")
    for folder in (new.folder / ".ci", new.home, new.temporary, tmp_path / "shared" / "traces"):
        folder.mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", new.folder / ".ci" / "run")
    shutil.copy(ROOT / "README.md", new.folder)
    (new.folder / "note.py").write_text(NOTE, encoding="utf-8")
    new.git("init", "--quiet")
    new.commit(
        "Makefile", f".PHONY: {' '.join(TARGETS)}\n{' '.join(TARGETS)}:\n\t@'{sys.executable}' note.py $@\n"
    )
    return new


def test_in_turn(checkout: Checkout) -> None:
    """The README's two commands run in a clone with nothing beside it, below a folder with a space, with
    nothing more in the environment, the first beside the checks here; there the fast tests in the C locale;
    the rest here. No clone is left.
    """
    done = checkout.run()
    assert done.returncode == 0, done.stderr
    runs = checkout.runs
    assert tuple(run["target"] for run in runs) == TARGETS
    clone = [run for run in runs if run["target"] in IN_THE_CLONE]
    assert readme_commands() == [f"make {run['target']}" for run in clone[:2]]
    for run in clone:
        assert run["folder"] != str(checkout.folder) and run["beside"] == ["tracelane"]
        more = run["environ"].keys() - {"HOME", "PATH", "LANG", *PIP} - OF_SHELLS
        assert more == ({"LC_ALL", "PYTHONUTF8", "PYTHONCOERCECLOCALE"} if run is clone[2] else set())
        assert run["environ"].items() >= PIP.items()
    assert " " in clone[0]["folder"] and len({run["folder"] for run in clone}) == 1
    assert clone[2]["environ"]["LC_ALL"] == "C" and clone[2]["environ"]["PYTHONUTF8"] == "0"
    assert all(run["folder"] == str(checkout.folder) for run in runs if run not in clone)
    assert not any(run["terminal"] for run in runs)
    assert "not committed" not in done.stderr
    assert [*checkout.temporary.iterdir()] == []


@pytest.mark.parametrize("target", TARGETS)
def test_what_fails_fails(checkout: Checkout, target: str) -> None:
    """What fails is not tried again, nothing runs after it but what runs beside it, and the run fails."""
    checkout.commit(f"{target}.fails", "")
    assert checkout.run().returncode != 0
    targets = [run["target"] for run in checkout.runs]
    may_run = {*TOGETHER} - {target} if target in TOGETHER else set()
    assert [each for each in targets if each not in may_run] == [
        each for each in TARGETS[: TARGETS.index(target) + 1] if each not in may_run
    ]


@pytest.mark.parametrize(
    ("wrong", "count"),
    [
        (("make demo ", "make dmeo "), 2),
        (("make test ", "mkae test "), 3),
        (("make test ", "make tset "), 3),
        (("    make test ", "make test "), 0),
        (("    make test ", "    make check\n    make test "), 0),
        ((SECTION, "## Elsewhere\n"), 0),
    ],
)
def test_what_the_readme_says_must_work(checkout: Checkout, wrong: tuple[str, str], count: int) -> None:
    """A command that is misspelt, missing or one too many in the README fails the run."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count(wrong[0]) == 1
    checkout.commit("README.md", text.replace(*wrong))
    assert checkout.run().returncode != 0
    assert len(checkout.runs) == count


def test_what_is_not_committed_is_named(checkout: Checkout) -> None:
    """Files that the clone does not have, or has otherwise, are named."""
    for name in ("new.py", "note.py"):
        (checkout.folder / name).write_text(NOTE + "#", encoding="utf-8")
    done = checkout.run()
    assert done.returncode == 0
    assert "not committed" in done.stderr and "?? new.py" in done.stderr and " M note.py" in done.stderr
