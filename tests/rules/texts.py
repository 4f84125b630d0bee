"""Texts that people read are plain, and every text is read and written as UTF-8."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from .rule import EVERYWHERE, Rule, SourceFile

BANNED = re.compile(
    r"\b(claims?|lies?|lay|laid|lying|stands?|stood|standing|any more|anew|altogether|tells? of|told of"
    r"|of which|is asked|are asked|so many|thereof|wherein|hereby)\b",
    re.IGNORECASE,
)
ALLOWED = re.compile(r"stand-alone|stands out|stands for|layout", re.IGNORECASE)
"""Where such a word is the right one."""
PLAIN = ("tui", "core/tables", "core/logs", "core/store", "core/export", "core/trace", "core/capture")
"""Where texts have been gone through; what reads them first goes first."""
COMPOUND = re.compile(r"\b_?(?:[A-Z][a-z0-9]+){2,}\b")
"""A word that is none of the language, such as `PacketTrack`: it may be a class."""
FILES = frozenset(("read_text", "write_text"))
"""Methods of a path that take the encoding of the locale where none is named; ruff sees some of them."""
STREAMS = frozenset(("text", "universal_newlines"))
"""Options of a subprocess that do the same for its streams."""


def _banned(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No message, title, hint or help has a word of BANNED: they say things plainly."""
    for line, text in file.texts():
        if " " in text.strip() and (words := BANNED.findall(ALLOWED.sub("", text))):
            yield line, f"{', '.join(words)} in {text!r}"


def _of_the_locale(file: SourceFile) -> Iterator[tuple[int, str]]:
    """No file and no stream is read or written in the encoding of the locale, whatever that is."""
    for call in file.of_kind(ast.Call):
        options = {option.arg for option in call.keywords}
        if "encoding" not in options and None not in options and _takes_the_locale(call):
            yield call.lineno, ast.unparse(call.func)


def _takes_the_locale(call: ast.Call) -> bool:
    """Tell whether a call that names no encoding takes that of the locale."""
    if isinstance(call.func, ast.Attribute):
        if call.func.attr in FILES:
            return len(call.args) <= (call.func.attr == "write_text")
        if call.func.attr == "open" and getattr(call.func.value, "id", "") == "tarfile":  # names of members
            return True
    return any(
        option.arg in STREAMS and isinstance(option.value, ast.Constant) and option.value.value is True
        for option in call.keywords
    )


def compounds_in(file: SourceFile) -> Iterator[tuple[int, str]]:
    """Yield (line, word) that may be a class in the literals of several words, docstrings, types and style
    sheets aside.
    """
    silent = {id(node.value) for node in file.nodes if isinstance(node, ast.Expr | ast.AnnAssign)}
    for node in file.of_kind(ast.Constant):
        text = node.value if id(node) not in silent else None
        if isinstance(text, str) and " " in text and "{" not in text:
            for word in COMPOUND.findall(text):
                yield node.lineno, word


RULES = (
    Rule(
        "texts are plain",
        PLAIN,
        _banned,
        (
            ('say("a log lies here")', 1),
            ('say("a stand-alone page and its layout")', 0),
            ('say("no Range any more")', 1),
            ('say("outstanding relies")', 0),
            ('"""It lies here."""\nlay = "lies"', 0),
        ),
    ),
    Rule(
        "every text names its encoding",
        EVERYWHERE,
        _of_the_locale,
        (
            ("path.read_text()", 1),
            ("path.write_text(a)", 1),
            ("path.write_text(a, newline='')", 1),
            ("run(a, text=True)", 1),
            ("tarfile.open(a)", 1),
            ("tarfile.open(a, encoding='utf-8')", 0),
            ("path.read_text(encoding='utf-8')", 0),
            ("path.read_text('utf-8')", 0),
            ("path.write_text(a, 'utf-8')", 0),
            ("run(a, text=True, encoding='utf-8')", 0),
            ("run(a, **options)", 0),
        ),
    ),
)
