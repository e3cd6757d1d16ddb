"""SQL text with its place in a script, so that every message can point at the user's own line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

from viewkeeper.errors import Location, SqlSyntaxError


class _Words(Spark.Tokenizer):
    """Spark's tokens, one word each: sqlglot's own tokenizer joins PRIMARY KEY and swallows whole commands."""

    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        word: token_type
        for word, token_type in Spark.Tokenizer.KEYWORDS.items()
        if " " not in word and token_type not in Spark.Tokenizer.COMMANDS
    }


_TOKENIZER = _Words(dialect="spark")


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
        try:
            return list(_TOKENIZER.tokenize(self.text))
        except TokenError:
            start = _start_of_unclosed_literal(self.text)
            raise SqlSyntaxError(
                "a string, quoted name or comment is opened here and never closed.",
                "close it with the same quote.",
                self.locate(start, start + 1),
            ) from None


def _start_of_unclosed_literal(text: str) -> int:
    """Where the quote or comment that swallows the end of the text begins."""
    at, length = 0, len(text)
    while at < length:
        if text.startswith("--", at):
            newline = text.find("\n", at)
            at = length if newline == -1 else newline + 1
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end == -1:
                return at
            at = end + 2
        elif text[at] in "'\"`":
            quote, opened = text[at], at
            at += 1
            while at < length and text[at] != quote:
                at += 2 if text[at] == "\\" and quote != "`" else 1
            if at >= length:
                return opened
            at += 1
        else:
            at += 1
    return max(0, length - 1)


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
