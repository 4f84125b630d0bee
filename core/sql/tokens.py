"""What words a query uses, and which arguments it asks for; enough of SQL's grammar for that and no more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

from ..base.errors import UsageError

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
_KIND_OF_ERROR = re.compile(r"^[A-Z][A-Za-z -]{2,40} Error: ")
ARGS, ARG = "args", "arg"
ARGUMENT_TABLE, VALUE_TABLE = "args {0}", "arg {0}"
"""The tables of an argument's values, and of those in which arg(…, key) looks, with a row per event."""
AS_TABLE = "args({0}) is a table with the columns id and value: arg(k.id, {0}) is the value of one event"
AFTER_FROM = frozenset(
    {"where", "group", "having", "order", "limit", "window", "union", "except", "intersect"}
)
"""Words that end the tables of a FROM."""
BEFORE_STAR = frozenset({"select", "distinct", "all", "returning"})
"""Words after which a star stands for all columns; after any other word it multiplies."""
IMPLICIT = frozenset({"columns", "natural", "describe", "summarize", "table"})
"""Words that may stand for columns that are not named."""


def unanswerable(why: object) -> UsageError:
    """Return the error of a query that has no answer, in one line: without the engine's picture of it, and
    without the name that DuckDB has for the kind of error ("Binder Error:").
    """
    text = _KIND_OF_ERROR.sub("", " ".join(str(why).partition("\n\nLINE")[0].split()))
    return UsageError(f"the query cannot be answered: {text or type(why).__name__}")


class Token(NamedTuple):
    """A piece of a query: its text as it stands there, and what it means (quotes removed)."""

    kind: TokenKind
    text: str
    value: str
    begin: int
    end: int


class QueryWords(NamedTuple):
    """A query as an engine gets it, and what it uses. `names` are all words and quoted names in lower case;
    `arguments` the keys of args('…'), each a table of its own in `text`, `values` those of arg(…, '…'), each
    a subquery; `relations` the tables that it names beyond its own.
    """

    text: str
    names: frozenset[str]
    arguments: tuple[str, ...]
    all_columns: bool
    values: tuple[str, ...] = ()
    relations: frozenset[str] = frozenset()

    @property
    def sqlite_text(self) -> str:
        """The query with backticks for double quotes, between which SQLite takes unknown names for texts."""
        pieces, done = [], 0
        for token in tokens(self.text):
            if token.text.startswith('"'):
                pieces += [self.text[done : token.begin], "`" + token.value.replace("`", "``") + "`"]
                done = token.end
        return "".join([*pieces, self.text[done:]])


def tokens(query: str) -> Iterator[Token]:
    """Yield the tokens of a query without blanks and comments."""
    for match in _TOKEN.finditer(query):
        kind, text = match.lastgroup, match[0]
        value = text
        if kind in ("string", "quoted"):
            value = text[1:-1].replace(text[0] * 2, text[0])
        if kind != "blank":
            yield Token(cast("TokenKind", "string" if kind == "dollar" else kind), text, value, *match.span())


def quoted_name(name: str) -> str:
    """Return a name between quotes, as both engines take it."""
    return '"' + name.replace('"', '""') + '"'


def query_words(query: str) -> QueryWords:
    """Return what a query uses; args('key') in it becomes the name of that argument's table, arg(id, 'key') a
    subquery. UsageError where one of them stands as it cannot.
    """
    all_tokens = list(tokens(query))
    while all_tokens and all_tokens[-1].text == ";":
        query = query[: all_tokens[-1].begin].rstrip()
        all_tokens.pop()
    tables = _table_places(all_tokens)
    pieces: list[str] = []
    keys: dict[str, None] = {}
    values: dict[str, None] = {}
    ends: dict[int, int] = {}  # of each arg(…) its comma, and the bracket behind the key
    done = 0
    for at, token in enumerate(all_tokens):
        call = all_tokens[at : at + 4]
        text, end = "", token.end
        word = (
            token.value.lower() if token.kind == "word" and [one.text for one in call[1:2]] == ["("] else ""
        )
        if word == ARGS and _is_call(call):
            if at not in tables:
                raise unanswerable(AS_TABLE.format(call[2].text))
            keys[call[2].value] = None
            text, end = quoted_name(ARGUMENT_TABLE.format(call[2].value)), call[3].end
        elif word == ARGS:
            if ARGS not in _own_tables(all_tokens):
                raise unanswerable(AS_TABLE.format("'grid'"))
        elif word == ARG:
            comma = _comma_of(all_tokens, at)
            key = all_tokens[comma + 1].value
            values[key], ends[comma] = None, comma + 2
            text = f'(SELECT "arg value" FROM {quoted_name(VALUE_TABLE.format(key))} WHERE ("arg id" = '
        elif at in ends:
            text, end = ")))", all_tokens[ends[at]].end
        if text:
            pieces += [query[done : token.begin], text]
            done = end
    pieces.append(query[done:])
    names = frozenset(token.value.lower() for token in all_tokens if token.kind in ("word", "quoted"))
    return QueryWords(
        "".join(pieces),
        names,
        tuple(keys),
        bool(names & IMPLICIT) or _has_star(all_tokens),
        tuple(values),
        frozenset(all_tokens[at].value.lower() for at in tables) - _own_tables(all_tokens),
    )


def _is_call(call: Sequence[Token]) -> bool:
    return len(call) == 4 and call[1].text == "(" and call[2].kind == "string" and call[3].text == ")"


def _comma_of(all_tokens: Sequence[Token], at: int) -> int:
    """Return where the comma of arg(…, 'key') stands; UsageError where it has another form."""
    end = _closing(all_tokens, at + 1)
    if end - at > 4 and all_tokens[end - 1].kind == "string" and all_tokens[end - 2].text == ",":
        return end - 2
    raise unanswerable("arg takes the id of an event and a key: arg(k.id, 'grid')")


def _closing(all_tokens: Sequence[Token], at: int) -> int:
    """Return where the bracket that opens at a token closes, else the number of all tokens."""
    depth = 0
    for end in range(at, len(all_tokens)):
        depth += (all_tokens[end].text == "(") - (all_tokens[end].text == ")")
        if not depth:
            return end
    return len(all_tokens)


def _table_places(all_tokens: Sequence[Token]) -> list[int]:
    """Return which tokens stand where tables do: after FROM, JOIN, and commas between tables."""
    numbers: list[int] = []
    levels = [(False, False)]  # by depth of brackets: whether tables stand here, whether one is to follow
    for at, token in enumerate(all_tokens):
        word = token.value.lower() if token.kind == "word" else ""
        among, follows = levels[-1]
        if token.text == "(":
            levels[-1] = among, False
            levels.append((follows, follows))
        elif token.text == ")":
            levels = levels[:-1] or [(False, False)]
        elif word in ("from", "join"):
            levels[-1] = True, True
        elif word == "select" or word in AFTER_FROM:
            levels[-1] = False, False
        elif token.text == ",":
            levels[-1] = among, among
        elif follows and word != "lateral":
            if token.kind in ("word", "quoted"):
                numbers.append(at)
            levels[-1] = among, False
    return numbers


def _own_tables(all_tokens: Sequence[Token]) -> set[str]:
    """Return the names that a query gives to tables of its own: NAME AS (…), NAME (columns) AS (…)."""
    names = set()
    for at, token in enumerate(all_tokens):
        if token.kind in ("word", "quoted"):
            after = at + 1
            if after < len(all_tokens) and all_tokens[after].text == "(":
                after = _closing(all_tokens, after) + 1
            if after < len(all_tokens) and all_tokens[after].value.lower() == "as":
                names.add(token.value.lower())
    return names


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
