"""SQL text with its place in a script, so that every message can point at the user's own line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from viewkeeper.errors import Location, SqlSyntaxError
from viewkeeper.sql.dialect import SparkAsWritten


def parse_sql(text: str) -> exp.Expr:
    """The tree of one statement.

    >>> print(parse_sql("SELECT nvl(a, 'it''s')").sql(SparkAsWritten))
    SELECT NVL(a, 'it\\'s')
    """
    return sqlglot.parse_one(text, dialect=SparkAsWritten)


class _Words(SparkAsWritten.Tokenizer):
    """Spark's tokens, one word each: sqlglot's own tokenizer joins PRIMARY KEY and swallows whole commands."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: token_type
        for word, token_type in SparkAsWritten.Tokenizer.KEYWORDS.items()
        if " " not in word and token_type not in SparkAsWritten.Tokenizer.COMMANDS
    }


_TOKENIZER = _Words(dialect="spark")
_BYTE_ORDER_MARK = "\ufeff"


@dataclass(frozen=True)
class Fragment:
    """A part of a script. `start` is its offset in `script`."""

    text: str
    script: str
    start: int = 0

    @staticmethod
    def whole(text: str) -> Fragment:
        return Fragment(text, text, 0)

    def slice(self, start: int, end: int) -> Fragment:
        """The part from `start` up to (not including) `end`, in offsets of this fragment."""
        return Fragment(self.text[start:end], self.script, self.start + start)

    def locate(self, start: int, end: int) -> Location:
        return Location.of_span(self.script, self.start + start, self.start + end)

    def locate_token(self, token: Token) -> Location:
        return self.locate(token.start, token.end + 1)

    def locate_end(self) -> Location:
        end = len(self.text.rstrip())
        return self.locate(max(0, end - 1), end)

    def tokens(self) -> list[Token]:
        """The tokens of the fragment; comments are no tokens.

        >>> [token.text for token in Fragment.whole("SELECT 1 -- one").tokens()]
        ['SELECT', '1']
        """
        text = " " + self.text[1:] if self.text.startswith(_BYTE_ORDER_MARK) else self.text
        try:
            return list(_TOKENIZER.tokenize(text))
        except TokenError:
            start = _start_of_unclosed_literal(text)
            if start is None:
                raise SqlSyntaxError(
                    "a hexadecimal literal holds something else than the digits 0 to 9 and A to F.",
                    "write it like X'1F2C'.",
                    self.locate(0, len(text)),
                ) from None
            raise SqlSyntaxError(
                "a string, quoted name or comment is opened here and never closed.",
                "close it with the same quote.",
                self.locate(start, start + 1),
            ) from None


def _start_of_unclosed_literal(text: str) -> int | None:
    """Where the quote or comment that swallows the end of the text begins."""
    at, length = 0, len(text)
    while at < length:
        if text.startswith("--", at):
            newline = text.find("\n", at)
            at = length if newline == -1 else newline + 1
        elif text.startswith("/*", at):
            end = _end_of_comment(text, at)
            if end is None:
                return at
            at = end
        elif text[at] in "'\"`":
            end = _end_of_literal(text, at)
            if end is None:
                return at
            at = end
        else:
            at += 1
    return None


def _end_of_comment(text: str, opened: int) -> int | None:
    """Just after the `*/` of a comment; comments nest."""
    depth, at = 1, opened + 2
    while at < len(text):
        step = {"/*": 1, "*/": -1}.get(text[at : at + 2], 0)
        depth += step
        at += 2 if step else 1
        if depth == 0:
            return at
    return None


def _end_of_literal(text: str, opened: int) -> int | None:
    """Just after the closing quote; a quote is escaped by doubling it or, in strings, by a backslash."""
    quote = text[opened]
    is_raw = quote != "`" and re.search(r"(?<!\w)[rR]\Z", text[max(0, opened - 2) : opened]) is not None
    at = opened + 1
    while at < len(text):
        is_escape = text.startswith(quote * 2, at) or (text[at] == "\\" and quote != "`")
        if is_escape and not is_raw:
            at += 2
        elif text[at] == quote:
            return at + 1
        else:
            at += 1
    return None


def split_script(text: str) -> Iterator[Fragment]:
    """The statements of a script, each with its place; empty ones are left out.

    >>> [part.text for part in split_script("SELECT ';' ; ; DROP TABLE t;")]
    ["SELECT ';'", 'DROP TABLE t']
    """
    whole = Fragment.whole(text)
    first: Token | None = None
    last: Token | None = None
    for token in whole.tokens():
        if token.token_type == TokenType.SEMICOLON:
            if first is not None and last is not None:
                yield whole.slice(first.start, last.end + 1)
            first = last = None
        else:
            first = first or token
            last = token
    if first is not None and last is not None:
        yield whole.slice(first.start, last.end + 1)


def single_statement(text: str) -> Fragment:
    """The only statement of `text`; anything else is an error."""
    statements = list(split_script(text))
    if not statements:
        raise SqlSyntaxError("there is no statement here.", "write one SQL statement.")
    if len(statements) > 1:
        second = statements[1]
        raise SqlSyntaxError(
            f"one statement is expected here, not {len(statements)}.",
            "use run_script (on the command line: -f FILE) for several statements.",
            second.locate(0, len(second.text)),
        )
    return statements[0]
