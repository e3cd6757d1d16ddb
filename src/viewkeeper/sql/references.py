"""Which tables a query or a change reads and writes, and the same text with other relations in their place.

The user's own text is what runs: only the stretches that name a table are replaced, so that nothing is lost
or changed by parsing and rendering a whole query again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token, TokenType

from viewkeeper.errors import Location, SqlSyntaxError, UnsupportedError
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName, quote
from viewkeeper.sql.script import Fragment, parse_sql


@dataclass(frozen=True)
class Reference:
    """One place where the text names a table. `start` and `end` span the name and its time travel.

    `alias_at` is where an alias may be written: after a TABLESAMPLE clause, else right after `end`. `changes` are
    the first and last epoch of `CHANGES(name, first, last)`.
    """

    name: QualifiedName
    start: int
    end: int
    has_alias: bool
    takes_alias: bool
    is_target: bool
    epoch: int | None = None
    time_travel: str | None = None
    alias_at: int = 0
    changes: tuple[int, int | None] | None = None


@dataclass(frozen=True)
class ParsedText:
    """A parsed query or change: its tree, and the tables its text names."""

    fragment: Fragment
    tree: exp.Expr
    references: tuple[Reference, ...]
    schema_qualifiers: tuple[tuple[int, int], ...]

    @property
    def is_change(self) -> bool:
        """Whether this is INSERT, UPDATE, DELETE, MERGE or TRUNCATE, and no query."""
        return isinstance(self.tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.TruncateTable))

    @property
    def target(self) -> Reference | None:
        return next((reference for reference in self.references if reference.is_target), None)

    def locate(self, reference: Reference) -> Location:
        return self.fragment.locate(reference.start, reference.end)


@dataclass(frozen=True)
class Substitution:
    """Rewritten text that remembers where its parts came from."""

    text: str
    fragment: Fragment
    edits: tuple[tuple[int, int, str], ...]

    def locate(self, start: int, end: int) -> Location:
        """The place in the user's text of a stretch of the rewritten text."""
        first = self._original(start)
        return self.fragment.locate(first, max(self._original(end, is_end=True), first + 1))

    def _original(self, position: int, is_end: bool = False) -> int:
        """Inside a replacement, the start (or the end) of what was replaced."""
        shift = 0
        for start, end, replacement in self.edits:
            new_start = start + shift
            if position < new_start or (is_end and position == new_start):
                break
            if position < new_start + len(replacement):
                return end if is_end else start
            shift += len(replacement) - (end - start)
        return position - shift


def parse_query(fragment: Fragment) -> ParsedText:
    """Parse a query and find its tables.

    >>> parsed = parse_query(Fragment.whole("WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN s.b AS c"))
    >>> [str(reference.name) for reference in parsed.references]
    ['a', 's.b']
    """
    blanked, epochs = _blank_epoch_clauses(fragment)
    blanked, changes = _blank_changes(fragment, blanked)
    try:
        tree = parse_sql(blanked)
    except ParseError as error:
        raise _syntax_error(fragment, blanked, error) from None
    except RecursionError:
        raise UnsupportedError(
            "this SQL is nested too deeply.",
            "split it into views, or write it with fewer parentheses.",
            fragment.locate(0, len(fragment.text)),
        ) from None
    if isinstance(tree, exp.Command):
        raise UnsupportedError(
            "this SQL is not understood by Viewkeeper.",
            "write it in standard Spark SQL.",
            fragment.locate(0, len(fragment.text)),
        )
    target = _target_table(tree)
    tokens = Fragment.whole(blanked).tokens()
    references = []
    for table in tree.find_all(exp.Table):
        is_target = table is target
        if not isinstance(table.this, (exp.Identifier, exp.Dot)) or table.find_ancestor(exp.Hint):
            continue
        if is_target or not _names_a_cte(table):
            reference = _reference(fragment, table, tokens, epochs, is_target)
            if reference.end in changes:
                reference = changes[reference.end].of(reference)
            references.append(reference)
    references.sort(key=lambda reference: reference.start)
    _refuse_stray_epochs(fragment, epochs, references)
    return ParsedText(fragment, tree, tuple(references), _schema_qualifiers(tree, references))


def substitute(parsed: ParsedText, relation_for: Callable[[Reference], exp.Expr]) -> Substitution:
    """The text with another relation for each reference; the relation keeps the reference's name as alias."""
    edits: list[tuple[int, int, str]] = []
    for reference in parsed.references:
        relation = relation_for(reference).sql(dialect="spark")
        alias = ""
        if reference.takes_alias and not reference.has_alias:
            alias = " AS " + quote(reference.name.name)
        if reference.alias_at == reference.end:
            relation += alias
        elif alias:
            edits.append((reference.alias_at, reference.alias_at, alias))
        edits.append((reference.start, reference.end, relation))
    edits.extend((start, end, "") for start, end in parsed.schema_qualifiers)
    edits.sort()
    pieces, at, text = [], 0, parsed.fragment.text
    for start, end, replacement in edits:
        pieces += [text[at:start], replacement]
        at = end
    return Substitution("".join([*pieces, text[at:]]), parsed.fragment, tuple(edits))


def _syntax_error(fragment: Fragment, parsed: str, error: ParseError) -> SqlSyntaxError:
    """sqlglot's refusal of `parsed`, which has the length of the fragment's text."""
    details = error.errors[0] if error.errors else {}
    highlight = str(details.get("highlight") or "")
    before = str(details.get("start_context") or "")
    lines = parsed.split("\n")[: int(details.get("line") or 1) - 1]
    start = sum(len(line) + 1 for line in lines) + int(details.get("col") or 0) - len(highlight)
    if start < 0 or not parsed.startswith(highlight, start):
        start = parsed.find(before + highlight) + len(before)
    start = min(start, max(0, len(fragment.text) - 1))
    description = str(details.get("description") or "the text cannot be parsed").rstrip(".")
    description = description.split(" but got <Token")[0]
    if "<class" in description:
        description = "something is missing"
    return SqlSyntaxError(
        f"this is not valid SQL: {description[0].lower()}{description[1:]}.",
        "check the spelling at the marked place.",
        fragment.locate(start, start + max(1, len(highlight))),
    )


def _blank_epoch_clauses(fragment: Fragment) -> tuple[str, dict[int, tuple[int, int]]]:
    """Blank out `AS OF EPOCH n`; maps the end of the table name before it to (n, end of the clause)."""
    tokens, text, epochs = fragment.tokens(), fragment.text, {}
    for at in range(1, len(tokens) - 3):
        words = [token.text.upper() for token in tokens[at : at + 3]]
        number = tokens[at + 3]
        if words != ["AS", "OF", "EPOCH"]:
            continue
        if not number.text.isdecimal():
            raise SqlSyntaxError(
                "AS OF EPOCH takes the number of an epoch.",
                "DESCRIBE HISTORY of the view lists its epochs.",
                fragment.locate_token(number),
            )
        start, end = tokens[at].start, number.end + 1
        epochs[tokens[at - 1].end + 1] = (int(number.text), end)
        text = text[:start] + " " * (end - start) + text[end:]
    return text, epochs


@dataclass(frozen=True)
class _Changes:
    """`CHANGES(name, first[, last])` from start to end of the text."""

    start: int
    end: int
    epochs: tuple[int, int | None]

    def of(self, name: Reference) -> Reference:
        return replace(name, start=self.start, end=self.end, alias_at=self.end, changes=self.epochs)


def _blank_changes(fragment: Fragment, text: str) -> tuple[str, dict[int, _Changes]]:
    """Blank out all but the name in `CHANGES(name, first[, last])`; maps the end of the name to the whole."""
    tokens = fragment.tokens()
    found: dict[int, _Changes] = {}
    for at, token in enumerate(tokens[:-1]):
        before = tokens[at - 1].text.upper() if at else ""
        if (
            token.text.upper() != "CHANGES"
            or tokens[at + 1].text != "("
            or before not in ("FROM", "JOIN", ",")
        ):
            continue
        close = next((n for n in range(at, len(tokens)) if tokens[n].text == ")"), len(tokens) - 1)
        inside = tokens[at + 2 : close]
        commas = [n for n, each in enumerate(inside) if each.text == ","]
        numbers = [each.text for each in inside[commas[0] + 1 :: 2]] if commas else []
        if len(numbers) not in (1, 2) or not all(number.isdecimal() for number in numbers):
            raise SqlSyntaxError(
                "CHANGES takes the name of a view, its first and, if you like, its last epoch.",
                "write CHANGES(v, 3, 5), or CHANGES(v, 3) for all epochs from 3 on.",
                fragment.locate(token.start, tokens[close].end + 1),
            )
        name_end, end = inside[commas[0] - 1].end + 1, tokens[close].end + 1
        first, last = int(numbers[0]), int(numbers[1]) if len(numbers) == 2 else None
        found[name_end] = _Changes(token.start, end, (first, last))
        start = inside[0].start
        text = text[: token.start] + " " * (start - token.start) + text[start:]
        text = text[:name_end] + " " * (end - name_end) + text[end:]
    return text, found


def _refuse_stray_epochs(
    fragment: Fragment, epochs: dict[int, tuple[int, int]], references: list[Reference]
) -> None:
    """`AS OF EPOCH n` after anything but the name of a table or view would be lost."""
    used = {reference.end for reference in references if reference.epoch is not None}
    for name_end, (_, end) in epochs.items():
        if end not in used:
            raise SqlSyntaxError(
                "AS OF EPOCH does not follow the name of a view here.",
                "write it right after the view's name: FROM v AS OF EPOCH 3 AS x.",
                fragment.locate(end - len(fragment.text[name_end:end].lstrip()), end),
            )


def _target_table(tree: exp.Expr) -> exp.Table | None:
    """The table that an INSERT, UPDATE, DELETE, MERGE or TRUNCATE writes."""
    written: object = None
    if isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        written = tree.this
    elif isinstance(tree, exp.TruncateTable):
        written = tree.expressions[0]
    if isinstance(written, exp.Schema):
        written = written.this
    return written if isinstance(written, exp.Table) else None


def _names_a_cte(table: exp.Table) -> bool:
    """Whether a WITH in scope defines this name."""
    if table.args.get("db"):
        return False
    name = table.name.lower()
    node: exp.Expr | None = table
    inside: exp.Expr | None = None
    while node is not None:
        with_clause = node.args.get("with_")
        if isinstance(with_clause, exp.With):
            for cte in with_clause.expressions:
                if cte is inside and not with_clause.recursive:
                    break
                if cte.alias.lower() == name:
                    return True
                if cte is inside:
                    break
        if isinstance(node, exp.CTE):
            inside = node
        node = node.parent
    return False


def _reference(
    fragment: Fragment,
    table: exp.Table,
    tokens: list[Token],
    epochs: dict[int, tuple[int, int]],
    is_target: bool,
) -> Reference:
    parts = [part for part in table.parts if isinstance(part, exp.Identifier)]
    start, end = parts[0].meta["start"], parts[-1].meta["end"] + 1
    if len(parts) > 2:
        raise UnsupportedError(
            "a name has at most two parts here: schema.name.",
            "attach the table first: ATTACH TABLE t FROM TABLE catalogue.schema.name.",
            fragment.locate(start, end),
        )
    schema = parts[0].name if len(parts) == 2 else DEFAULT_SCHEMA
    epoch: int | None = None
    time_travel: str | None = None
    if end in epochs:
        epoch, end = epochs[end]
    elif table.args.get("version") or table.args.get("when"):
        time_travel_end = _end_of_time_travel(fragment, table, tokens, end)
        time_travel = fragment.text[end:time_travel_end].strip()
        end = time_travel_end
    before = next((token for token in reversed(tokens) if token.end < start), None)
    is_whole_query = before is not None and before.token_type == TokenType.TABLE  # TABLE t
    takes_alias = not is_whole_query and not isinstance(
        table.parent, (exp.Insert, exp.Schema, exp.TruncateTable)
    )
    return Reference(
        QualifiedName(schema, parts[-1].name),
        start,
        end,
        bool(table.alias),
        takes_alias,
        is_target,
        epoch,
        time_travel,
        _end_of_sample(tokens, end) if table.args.get("sample") else end,
    )


def _end_of_sample(tokens: list[Token], name_end: int) -> int:
    """Where `TABLESAMPLE (…) [REPEATABLE (…)]`, written right after the name, ends."""
    end, depth = name_end, 0
    for token in tokens:
        if token.start < name_end:
            continue
        if depth == 0 and token.text.upper() not in ("TABLESAMPLE", "REPEATABLE", "("):
            break
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        end = token.end + 1
    return end


def _end_of_time_travel(fragment: Fragment, table: exp.Table, tokens: list[Token], name_end: int) -> int:
    """Where `[FOR] VERSION|TIMESTAMP AS OF literal`, written right after the name, ends."""
    version = table.args.get("version")
    is_literal = isinstance(version, exp.Version) and isinstance(version.expression, exp.Literal)
    first, *_ = following = [token for token in tokens if token.start >= name_end][:5]
    if following and following[0].text.upper() == "FOR":
        following = following[1:]
    words = [token.text.upper() for token in following[1:3]]
    if is_literal and len(following) >= 4 and words == ["AS", "OF"]:
        return following[3].end + 1
    raise UnsupportedError(
        "time travel takes a literal here.",
        "write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31 12:00:00' right after the table's name.",
        fragment.locate_token(first),
    )


def _schema_qualifiers(tree: exp.Expr, references: list[Reference]) -> tuple[tuple[int, int], ...]:
    """The `sales.` of columns written sales.orders.amount: an alias has no schema."""
    tables = {reference.name.key for reference in references}
    spans = []
    for column in tree.find_all(exp.Column):
        parts = column.parts
        if len(parts) < 3 or "start" not in parts[0].meta or column.find_ancestor(exp.Hint):
            continue
        if QualifiedName(parts[0].name, parts[1].name).key in tables:
            spans.append((parts[0].meta["start"], parts[1].meta["start"]))
    return tuple(spans)
