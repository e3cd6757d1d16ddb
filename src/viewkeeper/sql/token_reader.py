"""A cursor over the tokens of one statement, with the errors a reader of SQL needs."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType

from viewkeeper.errors import SqlSyntaxError
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName
from viewkeeper.sql.script import Fragment

_NOT_A_NAME = {
    TokenType.STRING,
    TokenType.NUMBER,
    TokenType.L_PAREN,
    TokenType.R_PAREN,
    TokenType.COMMA,
    TokenType.DOT,
    TokenType.EQ,
    TokenType.LT,
    TokenType.GT,
    TokenType.STAR,
    TokenType.COLON,
}


class TokenReader:
    """Reads words, names and literals from left to right.

    >>> reader = TokenReader(Fragment.whole("DROP TABLE sales.orders"))
    >>> reader.take("DROP", "TABLE"), str(reader.name()), reader.at_end
    (True, 'sales.orders', True)
    """

    def __init__(self, fragment: Fragment) -> None:
        self.fragment = fragment
        self._tokens = fragment.tokens()
        self._at = 0

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self, ahead: int = 0) -> Token | None:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else None

    def next_token(self) -> Token:
        token = self.peek()
        if token is None:
            raise self.error("something is missing at the end of the statement.")
        self._at += 1
        return token

    def previous(self) -> Token:
        return self._tokens[self._at - 1]

    def sees(self, *words: str) -> bool:
        """Whether the next tokens are these words, in any case; quoted names are no words."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or token.text.upper() != word or self._is_quoted(token):
                return False
        return True

    def take(self, *words: str) -> bool:
        if not self.sees(*words):
            return False
        self._at += len(words)
        return True

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.take(word):
                raise self.error(f"{word} is expected here.")

    def expect_end(self) -> None:
        if not self.at_end:
            raise self.error("the statement should end here.")

    def identifier(self, what: str = "a name") -> str:
        token = self.peek()
        if token is None or token.token_type in _NOT_A_NAME or not self._is_name(token):
            raise self.error(f"{what} is expected here.")
        self._at += 1
        return token.text

    def name(self, what: str = "a name") -> QualifiedName:
        first = self.identifier(what)
        if not self.take("."):
            return QualifiedName(DEFAULT_SCHEMA, first)
        second = self.identifier(what)
        if self.sees("."):
            raise self.error("a name has at most two parts here: schema.name.")
        return QualifiedName(first, second)

    def string(self, what: str) -> str:
        token = self.peek()
        if token is None or token.token_type != TokenType.STRING:
            raise self.error(f"{what} in quotes is expected here.")
        self._at += 1
        text = token.text
        while (following := self.peek()) is not None and following.token_type == TokenType.STRING:
            text += following.text
            self._at += 1
        return text

    def whole_number(self, what: str) -> int:
        token = self.peek()
        if token is None or token.token_type != TokenType.NUMBER or not token.text.isdecimal():
            raise self.error(f"{what}, a whole number, is expected here.")
        self._at += 1
        return int(token.text)

    def name_list(self, what: str) -> tuple[str, ...]:
        """`(a, b, c)`"""
        self.expect("(")
        names = [self.identifier(what)]
        while self.take(","):
            names.append(self.identifier(what))
        self.expect(")")
        return tuple(names)

    def rest(self) -> Fragment:
        """All that is left, as text."""
        token = self.peek()
        if token is None:
            raise self.error("a query is expected here.")
        self._at = len(self._tokens)
        return self.fragment.slice(token.start, self._tokens[-1].end + 1)

    def text_until(self, *stops: str) -> Fragment:
        """The text up to the next of these words outside parentheses, or a closing parenthesis."""
        first, depth = self.peek(), 0
        if first is None:
            raise self.error("an expression is expected here.")
        while (token := self.peek()) is not None:
            is_stop = any(self.sees(*stop.split()) for stop in stops) and not self._is_null_operand()
            if depth == 0 and (token.token_type == TokenType.R_PAREN or is_stop):
                break
            depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
            self._at += 1
        last = self.previous()
        if last.start < first.start:
            raise self.error("an expression is expected here.")
        return self.fragment.slice(first.start, last.end + 1)

    def _is_null_operand(self) -> bool:
        """Whether NULL here belongs to an expression: DEFAULT NULL, x IS NOT NULL, CASE … THEN NULL."""
        previous = self.previous()
        before = "" if self._is_quoted(previous) else previous.text.upper()
        if self.sees("NOT", "NULL"):
            return before == "IS"
        return self.sees("NULL") and before in ("DEFAULT", "IS", "NOT", "THEN", "ELSE")

    def error(self, message: str, hint: str = "") -> SqlSyntaxError:
        token = self.peek()
        where = self.fragment.locate_end() if token is None else self.fragment.locate_token(token)
        return SqlSyntaxError(message, hint, where)

    def _is_name(self, token: Token) -> bool:
        """A quoted name that is not empty, or a word: operators and brackets are tokens too."""
        if self._is_quoted(token):
            return bool(token.text)
        written = self.fragment.text[token.start : token.end + 1]
        is_word = token.token_type == TokenType.VAR or token.text.replace("_", "a").isalnum()
        return is_word and written == token.text

    def _is_quoted(self, token: Token) -> bool:
        return token.token_type == TokenType.STRING or self.fragment.text[token.start] == "`"
