"""Spark SQL as sqlglot reads and writes it, but every call is written back as the user wrote it.

sqlglot turns calls into nodes that all dialects share, and writes these as other calls: NVL becomes COALESCE,
PERCENTILE_CONT becomes PERCENTILE_APPROX. Plans run what we write, so a call stays a call here
(`exp.Anonymous`, `exp.AnonymousAggFunc`) unless sqlglot's node for it is written as the same call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.hive import HiveParser
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokens import Token, TokenType

from viewkeeper.errors import EnvironmentProblem
from viewkeeper.sql.functions import BUILTIN, FunctionKind

Builder = Callable[[list[exp.Expr]], exp.Expr]


class CanonicalSpark(Spark):
    """sqlglot's Spark, but a doubled quote in a string is one quote, as Spark reads it since version 4."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = [
            (start, "'") for start in ("X'", "x'", "X '", "x '")
        ]
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            "!<": TokenType.GTE,
            "!>": TokenType.LTE,
        }


def transpile(text: str, dialect: str) -> str:
    """Spark SQL for another engine; this takes the nodes that all dialects share.

    >>> transpile("SELECT nvl(a, 'it''s') FROM t", "duckdb")
    "SELECT COALESCE(a, 'it''s') FROM t"
    """
    return sqlglot.parse_one(text, dialect=CanonicalSpark).sql(dialect=dialect, copy=False)


def to_postgres(spark_sql: str) -> str:
    """Spark SQL for PostgreSQL. Names become lower case, as PostgreSQL reads names without quotes, and are quoted.

    >>> print(to_postgres("SELECT `User` <=> 1 FROM T"))
    SELECT
      "user" IS NOT DISTINCT FROM 1
    FROM "t"
    """
    tree = sqlglot.parse_one(spark_sql, dialect=CanonicalSpark)
    for identifier in list(tree.find_all(exp.Identifier)):
        identifier.set("this", identifier.name.lower())
        identifier.set("quoted", True)
    return tree.sql(dialect="postgres", copy=False, pretty=True)


def postgres_name(*parts: str) -> str:
    """
    >>> print(postgres_name("sales", "Orders"))
    "sales"."orders"
    """
    return ".".join(exp.to_identifier(part.lower(), quoted=True).sql(dialect="postgres") for part in parts)


# ------------------------------------------------------------------------------------------------------- calls


def _call(name: str, arguments: Sequence[exp.Expr]) -> exp.Expr:
    is_aggregate = BUILTIN.get(name.lower()) is FunctionKind.AGGREGATE
    node = exp.AnonymousAggFunc if is_aggregate else exp.Anonymous
    return node(this=name, expressions=list(arguments))


def _node_or_call(name: str, node: type[exp.Func]) -> Builder:
    """A node if it takes these arguments, else the call."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        made: exp.Expr = node.from_arg_list(arguments)
        is_other = name in ("MIN", "MAX") and len(arguments) > 1  # sqlglot's node for GREATEST too
        return _call(name, arguments) if is_other or made.error_messages(arguments) else made

    return build


def _with_unit(name: str) -> Builder:
    """DATE_ADD(MONTH, 1, day): the month is no column."""

    def build(arguments: list[exp.Expr]) -> exp.Expr:
        first, *others = arguments or [exp.null()]
        if len(others) == 2 and isinstance(first, exp.Column) and not first.table:
            return _call(name, [exp.Var(this=first.name), *others])
        return _call(name, arguments)

    return build


_SYNONYMS: dict[str, type[exp.Func]] = {
    "COUNT": exp.Count,
    "SUM": exp.Sum,
    "AVG": exp.Avg,
    "MEAN": exp.Avg,
    "MIN": exp.Min,
    "MAX": exp.Max,
    "STD": exp.Stddev,
    "STDDEV": exp.Stddev,
    "STDDEV_SAMP": exp.StddevSamp,
    "STDDEV_POP": exp.StddevPop,
    "VARIANCE": exp.Variance,
    "VAR_SAMP": exp.Variance,
    "VAR_POP": exp.VariancePop,
    "CORR": exp.Corr,
    "COVAR_POP": exp.CovarPop,
    "COVAR_SAMP": exp.CovarSamp,
    "BOOL_AND": exp.LogicalAnd,
    "EVERY": exp.LogicalAnd,
    "BOOL_OR": exp.LogicalOr,
    "SOME": exp.LogicalOr,
    "ANY": exp.LogicalOr,
    "COALESCE": exp.Coalesce,
}
"""Calls that the algebra understands, and that are written under one of the names Spark has for the same function."""

_UNITS = ("DATE_ADD", "DATEADD", "TIMESTAMPADD", "DATE_DIFF", "DATEDIFF", "TIMESTAMPDIFF", "TIMEDIFF")


def _builders() -> dict[str, Builder]:
    """How calls are read that are more than a name and arguments."""
    found: dict[str, Builder] = {}
    for name in (each.upper() for each in BUILTIN):
        node = _SYNONYMS.get(name) or exp.FUNCTION_BY_NAME.get(name)
        if name in _UNITS:
            found[name] = _with_unit(name)
        elif node is not None and (name in _SYNONYMS or _is_written_as(node, name)):
            found[name] = _node_or_call(name, node)
        elif BUILTIN[name.lower()] is FunctionKind.AGGREGATE:
            found[name] = partial(_call, name)
    return found


def _is_written_as(node: type[exp.Func], name: str) -> bool:
    """Whether a node takes its arguments as they are, and is written under this name with the same arguments."""
    is_plain = node not in SparkGenerator.TRANSFORMS and not hasattr(SparkGenerator, f"{node.key}_sql")
    return is_plain and node.sql_name() == name and node.__init__ is exp.Expression.__init__


# ----------------------------------------------------------------------------------------------------- reading

_HINTS = (
    "BROADCAST", "BROADCASTJOIN", "MAPJOIN", "MERGE", "SHUFFLEMERGE", "MERGEJOIN", "SHUFFLE_HASH",
    "SHUFFLE_REPLICATE_NL",
)  # fmt: skip
_SUFFIXES = ("L", "S", "Y", "D", "F", "BD")
_TEXTS = (TokenType.STRING, TokenType.RAW_STRING)
_WRITTEN = "viewkeeper: as written"
"""Marks nodes that Spark has two ways to write: DATE '2024-01-31', a NOT IN (1), a <=> b."""


def _words_between(name: str, *words: str) -> Callable[[_Parser], exp.Expr]:
    """SUBSTRING(a FROM b FOR c) as the call with commas that Spark makes of it."""

    def read(parser: _Parser) -> exp.Expr:
        return _call(name, parser.arguments_between(words))

    return read


_BEFORE_A_QUERY = frozenset({
    TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT, TokenType.ALL, TokenType.DISTINCT, TokenType.L_PAREN,
})  # fmt: skip


def _as_spark_reads(tokens: Sequence[Token]) -> list[Token]:
    """WINDOW before a parenthesis is the function; TABLE t as a query is SELECT * FROM t."""
    found: list[Token] = []
    for at, token in enumerate(tokens):
        following = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        before = tokens[at - 1].token_type if at else None
        if token.token_type == TokenType.WINDOW and following == TokenType.L_PAREN:
            found.append(_token_like(token, TokenType.VAR, token.text))
        elif (
            token.token_type == TokenType.TABLE
            and (before is None or before in _BEFORE_A_QUERY)
            and following in (TokenType.VAR, TokenType.IDENTIFIER)
        ):
            words = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
            found += [_token_like(token, kind, text) for kind, text in words]
        else:
            found.append(token)
    return found


def _token_like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end, token.comments)


class _Parser(SparkParser):
    """Calls, literals, intervals and types as they are written, and Spark's precedence of operators."""

    FUNCTIONS: ClassVar[dict[str, Builder]] = _builders()
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **{name: SparkParser.FUNCTION_PARSERS[name] for name in ("CAST", "TRY_CAST", *_HINTS)},
        "EXTRACT": lambda self: self._read_extract(),
        "TRIM": lambda self: self._read_trim(),
        "SUBSTRING": _words_between("SUBSTRING", "FROM", "FOR"),
        "SUBSTR": _words_between("SUBSTR", "FROM", "FOR"),
        "POSITION": _words_between("POSITION", "IN"),
        "OVERLAY": _words_between("OVERLAY", "PLACING", "FROM", "FOR"),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        name: SparkParser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("CASE", "IF", "TRANSFORM")
    }
    STRING_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.STRING_PARSERS,
        **{text: lambda self, token: self._read_text(token) for text in _TEXTS},
    }
    PRIMARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.PRIMARY_PARSERS,
        **{text: lambda self, token: self._read_text(token) for text in _TEXTS},
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
        **SparkParser.UNARY_PARSERS,
        TokenType.PLUS: lambda self: _call("POSITIVE", [self._parse_unary()]),  # +'1' is a number
    }
    TYPE_LITERAL_PARSERS: ClassVar[dict[exp.DType, Callable[..., Any]]] = {
        data_type: lambda self, value, to: _typed_literal(value, to)
        for data_type in (*exp.DataType.TEMPORAL_TYPES, exp.DType.TIME, exp.DType.TIMETZ)
    }
    TERM: ClassVar[dict[TokenType, type[exp.Binary]]] = {**SparkParser.TERM, TokenType.DPIPE: exp.DPipe}
    EQUALITY: ClassVar[dict[TokenType, type[exp.Binary]]] = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
    COMPARISON: ClassVar[dict[TokenType, type[exp.Binary]]] = {}
    ARRAY_CONSTRUCTORS: ClassVar[dict[str, type[exp.Func]]] = {}  # array(1, 2)[0] is an element

    def parse(self, raw_tokens: list[Token], sql: str) -> list[exp.Expr | None]:
        return super().parse(_as_spark_reads(raw_tokens), sql)

    BITWISE_LEVELS = (
        {TokenType.PIPE: exp.BitwiseOr},
        {TokenType.CARET: exp.BitwiseXor},
        {TokenType.AMP: exp.BitwiseAnd},
    )

    def arguments_between(self, words: tuple[str, ...]) -> list[exp.Expr]:
        """Arguments with words between them, or plainly with commas."""
        if not self._has_inside(words):
            return self._parse_function_args(alias=False)
        arguments = [self._parse_bitwise()]
        while self._match_texts(words) or self._match(TokenType.COMMA):
            arguments.append(self._parse_bitwise())
        if None in arguments:
            self.raise_error("Expected an expression")
        return [each for each in arguments if each is not None]

    def _has_inside(self, words: tuple[str, ...]) -> bool:
        """Whether one of the words stands in the parentheses that have just been opened, and in no inner ones."""
        depth = 1
        for token in self._tokens[self._index :]:
            opens = token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
            closes = token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
            depth += opens - closes
            if depth == 0:
                return False
            if depth == 1 and token.token_type not in _TEXTS and token.text.upper() in words:
                return True
        return False

    def _parse_value(self, values: bool = True) -> exp.Tuple | None:
        """VALUES 1, 2 AS t(x): the alias is not that of the 2."""
        if self._match(TokenType.L_PAREN, advance=False):
            return super()._parse_value(values)
        value = self._parse_assignment()
        return None if value is None else self.expression(exp.Tuple(expressions=[value]))

    def _read_extract(self) -> exp.Expr:
        if self._has_inside(("FROM",)):
            return self._parse_extract()
        return _call("EXTRACT", self._parse_function_args(alias=False))

    def _read_trim(self) -> exp.Expr:
        if self._has_inside(("FROM",)):
            return self._parse_trim()
        return _call("TRIM", self._parse_function_args(alias=False))

    def _read_text(self, token: Token) -> exp.Expr:
        """Strings that follow each other are one string."""
        text = token.text
        while self._match_set(_TEXTS):
            text += self._prev.text
        return self.expression(exp.Literal(this=text, is_string=True), token)

    def build_cast(self, strict: bool, **kwargs: Any) -> exp.Expr:
        value, suffix = kwargs["this"], self._prev.text.upper()
        if suffix in _SUFFIXES and value.is_number:
            return exp.Var(this=f"{value.name}{suffix}")  # 1L: sqlglot reads it as 1::BIGINT
        return super().build_cast(strict, **kwargs)

    def _parse_types(self, *arguments: Any, **settings: Any) -> exp.Expr | None:
        # Past Hive's, which takes VARCHAR(3) for STRING.
        found = super(HiveParser, self)._parse_types(*arguments, **settings)
        for each in found.find_all(exp.DataType) if found is not None else ():
            if isinstance(collation := each.args.get("collate"), exp.Column):
                each.set("collate", exp.Var(this=collation.name))
        return found

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        """An interval of literals, the only one that Spark has: INTERVAL 1 DAY -2 HOURS, INTERVAL '1-2' YEAR TO MONTH."""
        start = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        parts: list[str] = []
        while (part := self._interval_part(alone=not parts)) is not None:
            parts.append(part)
        if not parts:
            self._retreat(start)
            return None
        return self.expression(exp.Interval(this=exp.Var(this=" ".join(parts))))

    def _interval_part(self, alone: bool) -> str | None:
        """A value with its unit; only a string that is alone may go without."""
        start = self._index
        sign = self._prev.text if self._match_set((TokenType.DASH, TokenType.PLUS)) else ""
        if not self._match_set((TokenType.STRING, TokenType.NUMBER)):
            self._retreat(start)
            return None
        is_text = self._prev.token_type == TokenType.STRING
        value = exp.Literal(this=self._prev.text, is_string=is_text).sql(SparkAsWritten)
        if self._match_texts(_INTERVAL_UNITS):
            unit = self._prev.text.upper()
            if self._match_text_seq("TO") and self._match_texts(_INTERVAL_UNITS):
                unit += f" TO {self._prev.text.upper()}"
            return f"{sign}{value} {unit}"
        if is_text and alone and not sign:
            return value
        self._retreat(start)
        return None

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        """All comparisons bind alike, and tighter than IN, LIKE, BETWEEN and IS: a = b IN (c) is (a = b) IN (c)."""
        this = self._parse_comparisons(self._parse_bitwise())
        if this is None:
            return None
        found = self._parse_range(this, parse_is=True)
        if self._curr.token_type not in self.EQUALITY:
            return found
        inner = found.this if isinstance(found, exp.Not) else found
        last = "high" if isinstance(inner, exp.Between) else "expression"
        if isinstance(inner, (exp.Between, exp.Like, exp.ILike, exp.RegexpLike)):
            inner.set(last, self._parse_comparisons(inner.args[last]))  # a LIKE b = c is a LIKE (b = c)
            return found
        return self._parse_comparisons(found)

    def _parse_comparisons(self, this: exp.Expr | None) -> exp.Expr | None:
        while self._match_set(self.EQUALITY):
            operator, comments = self._prev.token_type, self._prev_comments
            this = self._build_predicate(self.EQUALITY[operator], this, self._parse_bitwise(), comments)
            if operator == TokenType.NULLSAFE_EQ:
                this.meta[_WRITTEN] = True
        return this

    def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
        return _marked(super()._negate_range(this))

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        is_negated = self._curr.token_type == TokenType.NOT
        found = super()._parse_is(this)
        return _marked(found) if is_negated else found

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_bitwise_level(0)

    def _parse_bitwise_level(self, level: int) -> exp.Expr | None:
        if level == len(self.BITWISE_LEVELS):
            return self._parse_shift()
        operators = self.BITWISE_LEVELS[level]
        this = self._parse_bitwise_level(level + 1)
        while self._match_set(operators):
            made = operators[self._prev.token_type]
            this = self.expression(made(this=this, expression=self._parse_bitwise_level(level + 1)))
        return this

    def _parse_shift(self) -> exp.Expr | None:
        this = self._parse_term()
        while True:
            if self._match_pair(TokenType.LT, TokenType.LT):
                this = self.expression(exp.BitwiseLeftShift(this=this, expression=self._parse_term()))
            elif self._match_pair(TokenType.GT, TokenType.GT):
                is_unsigned = self._match(TokenType.GT)
                amount = self._parse_term()
                if is_unsigned and this is not None and amount is not None:
                    this = _call("SHIFTRIGHTUNSIGNED", [this, amount])
                else:
                    this = self.expression(exp.BitwiseRightShift(this=this, expression=amount))
            else:
                return this

    def _replace_lambda(self, node: exp.Expr | None, expressions: list[exp.Expr]) -> exp.Expr | None:
        """The parameters of a lambda in its body are no columns; upper and lower case do not matter."""
        parameters = {each.name.lower() for each in expressions}
        for column in list(node.find_all(exp.Column)) if node is not None else []:
            if column.parts[0].name.lower() in parameters:
                plain = column.to_dot(include_dots=False) if column.table else column.this
                if column is node:
                    node = plain
                else:
                    column.replace(plain)
        return node


_INTERVAL_UNITS = tuple(
    unit + plural
    for unit in (
        "YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND",
        "NANOSECOND",
    )
    for plural in ("", "S")
)  # fmt: skip


def _marked(node: exp.Expr | None) -> exp.Expr | None:
    if isinstance(node, exp.Not):
        node.meta[_WRITTEN] = True
    return node


def _typed_literal(value: exp.Expr, data_type: exp.DataType) -> exp.Expr:
    """DATE '2024-01-31'; what follows it, as in DATE '2024-01-31'::STRING, is about the date."""
    text = value if isinstance(value, exp.Literal) else value.find(exp.Literal)
    assert text is not None
    place = text.parent
    literal = exp.Cast(this=text.copy(), to=data_type)
    literal.meta[_WRITTEN] = True
    if place is None:
        return literal
    text.replace(literal)
    return value


# ----------------------------------------------------------------------------------------------------- writing


class _Generator(SparkGenerator):
    """Leaves a WITH where it stands, too: moved to the top, two that define the same name would meet."""

    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **{
            node: write
            for node, write in SparkGenerator.TRANSFORMS.items()
            if node not in (exp.Select, exp.WithinGroup, exp.Trim)
        },
        exp.BitwiseLeftShift: lambda self, node: self.binary(node, "<<"),
        exp.BitwiseRightShift: lambda self, node: self.binary(node, ">>"),
    }
    TYPE_MAPPING: ClassVar[dict[exp.DType, str]] = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        if expression.meta.get(_WRITTEN):
            return f"{self.sql(expression, 'to')} {self.sql(expression, 'this')}"
        return super().cast_sql(expression, safe_prefix)

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        is_operator = expression.meta.get(_WRITTEN)
        return self.binary(expression, "<=>") if is_operator else super().nullsafeeq_sql(expression)

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        word = _PREDICATES.get(type(inner)) if expression.meta.get(_WRITTEN) else None
        if word is not None:
            start, written = f"{self.sql(inner, 'this')} ", self.sql(inner)
            if written.startswith(f"{start}{word} "):
                negated = "IS NOT" if word == "IS" else f"NOT {word}"
                return f"{start}{negated}{written[len(start) + len(word) :]}"
        return super().not_sql(expression)

    def interval_sql(self, expression: exp.Interval) -> str:
        if isinstance(expression.this, exp.Var):
            return f"INTERVAL {expression.this.name}"
        return super().interval_sql(expression)

    def trim_sql(self, expression: exp.Trim) -> str:
        parts = [self.sql(expression, key) for key in ("position", "expression")]
        return f"TRIM({' '.join(filter(None, parts))} FROM {self.sql(expression, 'this')})"

    def datatype_sql(self, expression: exp.DataType) -> str:
        if expression.this == exp.DType.TIME and expression.expressions:
            return f"TIME({self.expressions(expression, flat=True)})"
        return super().datatype_sql(expression)


_PREDICATES: dict[type[exp.Expr], str] = {
    exp.In: "IN",
    exp.Between: "BETWEEN",
    exp.RegexpLike: "RLIKE",
    exp.Is: "IS",
}


class SparkAsWritten(CanonicalSpark):
    """Spark SQL, read and written as the user wrote it."""

    Parser = _Parser
    Generator = _Generator


def _refuse_compiled_sqlglot() -> None:
    """What mypyc compiled takes no subclasses, and our dialect is one: better said now than at the first statement."""
    try:
        SparkAsWritten().parser()
    except TypeError as error:
        raise EnvironmentProblem(
            f"the compiled build of sqlglot is installed, which cannot be extended: {error}.",
            "pip uninstall sqlglotc; Viewkeeper works with sqlglot as it is without it.",
        ) from error


_refuse_compiled_sqlglot()
