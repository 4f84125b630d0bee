"""What words a query uses, and which arguments it asks for; enough of SQL's grammar for that and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

TokenKind: TypeAlias = Literal["word", "quoted", "string", "number", "sign"]
_TOKEN = re.compile(
    r"""
      (?P<blank>\s+|--[^\n]*|/\*.*?(?:\*/|\Z))
    | (?P<dollar>\$(?P<tag>[A-Za-z_]*)\$.*?(?:\$(?P=tag)\$|\Z))
    | (?P<string>'(?:[^']|'')*(?:'|\Z))
    | (?P<quoted>"(?:[^"]|"")*(?:"|\Z)|`[^`]*(?:`|\Z)|\[[A-Za-z_][\w ]*\])
    | (?P<number>\d[\w.]*)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
ARGS = "args"
BEFORE_STAR = frozenset({"select", "distinct", "all", "returning"})
"""Words after which a star stands for all columns; after any other word it multiplies."""
IMPLICIT = frozenset({"columns", "natural", "describe", "summarize", "table"})
"""Words that may stand for columns that are not named."""


@dataclass(frozen=True)
class Token:
    """A piece of a query: its text as it stands there, and what it means (quotes removed)."""

    kind: TokenKind
    text: str
    value: str
    begin: int
    end: int


@dataclass(frozen=True)
class QueryWords:
    """A query as an engine gets it, and what it uses.

    `names` are all words and quoted names in lower case; `arguments` the keys of args('…'), each a table of
    its own in `text`.
    """

    text: str
    names: frozenset[str]
    arguments: tuple[str, ...]
    all_columns: bool


def tokens(query: str) -> Iterator[Token]:
    """Yield the tokens of a query without blanks and comments."""
    for match in _TOKEN.finditer(query):
        kind = match.lastgroup
        text = match[0]
        begin, end = match.span()
        if match["blank"] is not None:
            continue
        if match["dollar"] is not None:
            yield Token("string", text, text, begin, end)
        elif match["string"] is not None:
            yield Token("string", text, text[1:-1].replace("''", "'"), begin, end)
        elif match["quoted"] is not None:
            quote = text[0]
            yield Token("quoted", text, text[1:-1].replace(quote * 2, quote), begin, end)
        elif match["number"] is not None:
            yield Token("number", text, text, begin, end)
        elif match["word"] is not None:
            yield Token("word", text, text, begin, end)
        else:
            assert kind is not None
            yield Token("sign", text, text, begin, end)


def argument_table(key: str) -> str:
    return f"args {key}"


def quoted_name(name: str) -> str:
    """Return a name between quotes, as both engines take it."""
    return '"' + name.replace('"', '""') + '"'


def query_words(query: str) -> QueryWords:
    """Return what a query uses; args('key') in it becomes the name of that argument's table."""
    all_tokens = list(tokens(query))
    while all_tokens and all_tokens[-1].text == ";":
        query = query[: all_tokens[-1].begin].rstrip()
        all_tokens.pop()
    pieces: list[str] = []
    keys: dict[str, None] = {}
    done = 0
    for at, token in enumerate(all_tokens):
        call = all_tokens[at : at + 4]
        if token.kind == "word" and token.value.lower() == ARGS and _is_call(call):
            keys[call[2].value] = None
            pieces += [query[done : token.begin], quoted_name(argument_table(call[2].value))]
            done = call[3].end
    pieces.append(query[done:])
    names = frozenset(token.value.lower() for token in all_tokens if token.kind in ("word", "quoted"))
    return QueryWords("".join(pieces), names, tuple(keys), bool(names & IMPLICIT) or _has_star(all_tokens))


def _is_call(call: Sequence[Token]) -> bool:
    return len(call) == 4 and call[1].text == "(" and call[2].kind == "string" and call[3].text == ")"


def _has_star(all_tokens: Sequence[Token]) -> bool:
    """Tell whether a star, or FROM without SELECT, stands for all columns."""
    selects = [False]  # whether SELECT was met, by depth of brackets
    for at, token in enumerate(all_tokens):
        before = all_tokens[at - 1] if at else None
        word = token.value.lower() if token.kind == "word" else ""
        if token.text == "*":
            after = all_tokens[at + 1].text if at + 1 < len(all_tokens) else ""
            if before is None or before.text in (",", ".") or before.value.lower() in BEFORE_STAR:
                return True
            if before.text == "(" and after != ")":
                return True
        elif token.text == "(":
            selects.append(False)
        elif token.text == ")" and len(selects) > 1:
            selects.pop()
        elif word == "select":
            selects[-1] = True
        elif word in ("union", "except", "intersect"):
            selects[-1] = False
        elif word == "from" and not selects[-1]:
            return True
    return False
