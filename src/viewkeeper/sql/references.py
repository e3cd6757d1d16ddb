"""Which tables a query or a change reads and writes, and the same text with other relations in their place.

The user's own text is what runs: only the stretches that name a table are replaced, so that nothing is lost
or changed by parsing and rendering a whole query again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.tokens import Token

from viewkeeper.errors import Location, SqlSyntaxError, UnsupportedError
from viewkeeper.sql.names import DEFAULT_SCHEMA, QualifiedName, quote
from viewkeeper.sql.script import Fragment


@dataclass(frozen=True)
class Reference:
    """One place where the text names a table. `start` and `end` span the name and its time travel."""

    name: QualifiedName
    start: int
    end: int
    has_alias: bool
    takes_alias: bool
    is_target: bool
    epoch: int | None = None
    time_travel: str | None = None


@dataclass(frozen=True)
class ParsedText:
    """A parsed query or change: its tree, and the tables its text names."""

    fragment: Fragment
    tree: exp.Expr
    references: tuple[Reference, ...]
    schema_qualifiers: tuple[tuple[int, int], ...]

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
        return self.fragment.locate(
            self._original(start), max(self._original(end), self._original(start) + 1)
        )

    def _original(self, position: int) -> int:
        shift = 0
        for start, end, replacement in self.edits:
            new_start = start + shift
            if position < new_start:
                break
            if position < new_start + len(replacement):
                return start
            shift += len(replacement) - (end - start)
        return position - shift


def parse_query(fragment: Fragment) -> ParsedText:
    """Parse a query and find its tables.

    >>> parsed = parse_query(Fragment.whole("WITH x AS (SELECT * FROM a) SELECT * FROM x JOIN s.b AS c"))
    >>> [str(reference.name) for reference in parsed.references]
    ['a', 's.b']
    """
    blanked, epochs = _blank_epoch_clauses(fragment)
    try:
        tree = sqlglot.parse_one(blanked, dialect="spark")
    except ParseError as error:
        raise _syntax_error(fragment, error) from None
    if isinstance(tree, exp.Command):
        raise UnsupportedError(
            "this SQL is not understood by Viewkeeper.",
            "write it in standard Spark SQL.",
            fragment.locate(0, len(fragment.text)),
        )
    targets = _target_tables(tree)
    tokens = Fragment.whole(blanked).tokens()
    references = []
    for table in tree.find_all(exp.Table):
        if not isinstance(table.this, exp.Identifier) or _names_a_cte(table):
            continue
        references.append(_reference(fragment, table, tokens, epochs, table in targets))
    references.sort(key=lambda reference: reference.start)
    return ParsedText(fragment, tree, tuple(references), _schema_qualifiers(tree))


def substitute(parsed: ParsedText, relation_for: Callable[[Reference], exp.Expr]) -> Substitution:
    """The text with another relation for each reference; the relation keeps the reference's name as alias."""
    edits: list[tuple[int, int, str]] = []
    for reference in parsed.references:
        relation = relation_for(reference).sql(dialect="spark")
        if reference.takes_alias and not reference.has_alias:
            relation += " AS " + quote(reference.name.name)
        edits.append((reference.start, reference.end, relation))
    edits.extend((start, end, "") for start, end in parsed.schema_qualifiers)
    edits.sort()
    pieces, at, text = [], 0, parsed.fragment.text
    for start, end, replacement in edits:
        pieces += [text[at:start], replacement]
        at = end
    return Substitution("".join([*pieces, text[at:]]), parsed.fragment, tuple(edits))


def _syntax_error(fragment: Fragment, error: ParseError) -> SqlSyntaxError:
    details = error.errors[0] if error.errors else {}
    highlight = str(details.get("highlight") or "")
    before = str(details.get("start_context") or "")
    start = fragment.text.find(before + highlight) + len(before) if before or highlight else 0
    start = min(start, max(0, len(fragment.text) - 1))
    description = str(details.get("description") or "the text cannot be parsed").rstrip(".")
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
        if not number.text.isdigit():
            raise SqlSyntaxError(
                "AS OF EPOCH takes the number of an epoch.",
                "DESCRIBE HISTORY of the view lists its epochs.",
                fragment.locate_token(number),
            )
        start, end = tokens[at].start, number.end + 1
        epochs[tokens[at - 1].end + 1] = (int(number.text), end)
        text = text[:start] + " " * (end - start) + text[end:]
    return text, epochs


def _target_tables(tree: exp.Expr) -> list[exp.Table]:
    """The table that an INSERT, UPDATE, DELETE, MERGE or TRUNCATE writes."""
    written: object = None
    if isinstance(tree, (exp.Insert, exp.Update, exp.Delete, exp.Merge)):
        written = tree.this
    elif isinstance(tree, exp.TruncateTable):
        written = tree.expressions[0]
    if isinstance(written, exp.Schema):
        written = written.this
    return [written] if isinstance(written, exp.Table) else []


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
        time_travel_end = _end_of_time_travel(fragment, tokens, end)
        time_travel = fragment.text[end:time_travel_end].strip()
        end = time_travel_end
    takes_alias = not (is_target and not isinstance(table.parent, (exp.Update, exp.Delete, exp.Merge)))
    if table.args.get("sample"):
        takes_alias = False
    return Reference(
        QualifiedName(schema, parts[-1].name),
        start,
        end,
        bool(table.alias),
        takes_alias,
        is_target,
        epoch,
        time_travel,
    )


def _end_of_time_travel(fragment: Fragment, tokens: list[Token], name_end: int) -> int:
    """Where `[FOR] VERSION|TIMESTAMP AS OF literal`, written right after the name, ends."""
    following = [token for token in tokens if token.start >= name_end][:5]
    if following and following[0].text.upper() == "FOR":
        following = following[1:]
    if len(following) >= 4 and [token.text.upper() for token in following[1:3]] == ["AS", "OF"]:
        return following[3].end + 1
    raise UnsupportedError(
        "time travel takes a literal here.",
        "write VERSION AS OF 3 or TIMESTAMP AS OF '2024-01-31 12:00:00' right after the table's name.",
        fragment.locate(name_end, name_end + 1),
    )


def _schema_qualifiers(tree: exp.Expr) -> tuple[tuple[int, int], ...]:
    """The `sales.` of columns written sales.orders.amount: an alias has no schema."""
    spans = []
    for column in tree.find_all(exp.Column):
        schema, table = column.args.get("db"), column.args.get("table")
        if schema is not None and table is not None and "start" in schema.meta and "start" in table.meta:
            known = {reference_schema.lower() for reference_schema in _table_schemas(tree)}
            if schema.name.lower() in known:
                spans.append((schema.meta["start"], table.meta["start"]))
    return tuple(spans)


def _table_schemas(tree: exp.Expr) -> set[str]:
    return {table.db for table in tree.find_all(exp.Table) if table.db}
