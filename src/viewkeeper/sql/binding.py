"""Names bound to objects: which table, view and column each part of a query means.

sqlglot binds names, not types. Whether our reading of the query and Spark's agree is checked when a view is
created (`viewkeeper.execution.analysis`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import OptimizeError, SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import Scope, traverse_scope

from viewkeeper.errors import InvalidStatementError, UnknownNameError, UnsupportedError, UserError
from viewkeeper.sql.dialect import SparkAsWritten
from viewkeeper.sql.functions import WITHOUT_PARENTHESES
from viewkeeper.sql.names import QualifiedName, did_you_mean, quote
from viewkeeper.sql.references import ParsedText, Reference, Substitution, parse_query, substitute
from viewkeeper.sql.rendering import render
from viewkeeper.sql.script import Fragment, parse_sql
from viewkeeper.sql.types import DataType


@dataclass(frozen=True)
class Column:
    name: str
    data_type: DataType
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True)
class Input:
    """A table or view that a query reads. `relation` is its name in generated SQL."""

    object_id: str
    name: QualifiedName
    columns: tuple[Column, ...]
    relation: str = ""


@dataclass(frozen=True)
class BoundQuery:
    """A query whose names are bound. `rendered` is our own reading of it; `problems` what did not bind."""

    parsed: ParsedText
    inputs: tuple[Input, ...]
    by_reference: Mapping[str, Input]
    rendered: str
    problems: tuple[UserError, ...]
    output_names: tuple[str, ...] = ()

    def input_of(self, reference: Reference) -> Input:
        return self.by_reference[reference.name.key]

    def text_over(self, relation_for: Callable[[Input], str]) -> Substitution:
        """The user's own text over other relations."""
        return substitute(self.parsed, lambda reference: _relation(relation_for(self.input_of(reference))))


Resolver = Callable[[QualifiedName], Input | None]


def bind_query(fragment: Fragment, resolve: Resolver, known_names: Callable[[], list[str]]) -> BoundQuery:
    """Bind a query that a view may be made of."""
    parsed = parse_query(fragment)
    if not isinstance(parsed.tree, exp.Query):
        raise InvalidStatementError(
            "a view is made of a query.", "write AS SELECT …", fragment.locate(0, len(fragment.text))
        )
    by_reference: dict[str, Input] = {}
    for reference in parsed.references:
        _refuse_time_travel(parsed, reference)
        if reference.name.key in by_reference:
            continue
        found = resolve(reference.name)
        if found is None:
            raise UnknownNameError(
                f"there is no table or view {reference.name}.",
                did_you_mean(str(reference.name), known_names(), "create or attach it first."),
                parsed.locate(reference),
            )
        by_reference[reference.name.key] = found
    if not by_reference:
        raise UnsupportedError(
            "the query reads no table of the warehouse.",
            "a materialized view needs at least one table or view to follow.",
            fragment.locate(0, len(fragment.text)),
        )
    by_reference = _with_relation_names(parsed, by_reference)
    inputs = {found.object_id: found for found in by_reference.values()}
    bound = BoundQuery(parsed, tuple(inputs.values()), by_reference, "", ())
    rendered, names, problems = _render(bound)
    return BoundQuery(parsed, bound.inputs, by_reference, rendered, tuple(problems), names)


def _refuse_time_travel(parsed: ParsedText, reference: Reference) -> None:
    if reference.changes is not None:
        raise UnsupportedError(
            "a materialized view cannot be made of the changes of another one.",
            "read the view itself.",
            parsed.locate(reference),
        )
    if reference.epoch is not None or reference.time_travel is not None:
        raise UnsupportedError(
            "a materialized view follows its tables as they change; it cannot be fixed to one version.",
            "leave AS OF out.",
            parsed.locate(reference),
        )


def _with_relation_names(parsed: ParsedText, inputs: dict[str, Input]) -> dict[str, Input]:
    """Give each input the name it has in generated SQL, distinct from every name in the query."""
    taken = {cte.alias.lower() for cte in parsed.tree.find_all(exp.CTE)}
    relations: dict[str, str] = {}
    for found in inputs.values():
        if found.object_id in relations:
            continue
        stem = found.name.relation_stem
        relation, number = stem, 2
        while any(name == relation.lower() or name.startswith(f"{relation.lower()}_") for name in taken):
            relation, number = f"{stem}{number}", number + 1
        taken.add(relation.lower())
        relations[found.object_id] = relation
    return {
        key: Input(found.object_id, found.name, found.columns, relations[found.object_id])
        for key, found in inputs.items()
    }


def _relation(name: str) -> exp.Expr:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def _render(bound: BoundQuery) -> tuple[str, tuple[str, ...], list[UserError]]:
    """The query with every column qualified, the names of its columns, and the columns that did not bind."""
    substituted = bound.text_over(lambda found: found.relation)
    # Quoted, because sqlglot parses the names of a schema.
    schema: dict[str, object] = {
        quote(found.relation): {quote(column.name): str(column.data_type) for column in found.columns}
        for found in bound.inputs
    }
    try:
        tree = parse_sql(substituted.text)
    except (SqlglotError, RecursionError):
        return "", (), [UnsupportedError("the query is not understood.", "write it in standard Spark SQL.")]
    _mark_unpivoted(tree)
    try:
        qualified = qualify(tree, schema=schema, dialect=SparkAsWritten, validate_qualify_columns=False)
        problems = _unknown_columns(qualified, substituted, bound)
        names = tuple(qualified.named_selects) if isinstance(qualified, exp.Query) else ()
        return render(_with_unpivoted_as_written(qualified)), names, problems
    except OptimizeError as error:
        return "", (), [_unbound(str(error), tree, substituted, bound)]
    except (SqlglotError, KeyError, RecursionError) as error:
        return "", (), [UnsupportedError(f"the query is not understood: {error}")]


_WRITTEN = "written"


def _mark_unpivoted(tree: exp.Expr) -> None:
    """Remember how columns are called in UNPIVOT: the names become values of rows, so that their case counts."""
    for pivot in tree.find_all(exp.Pivot):
        if pivot.args.get("unpivot"):
            for name in [each for field in pivot.args["fields"] for each in field.find_all(exp.Identifier)]:
                name.meta[_WRITTEN] = name.name


def _with_unpivoted_as_written(tree: exp.Expr) -> exp.Expr:
    for name in tree.find_all(exp.Identifier):
        if _WRITTEN in name.meta:
            name.set("this", name.meta[_WRITTEN])
    return tree


def _unbound(message: str, tree: exp.Expr, substituted: Substitution, bound: BoundQuery) -> UserError:
    """What sqlglot's own refusal means, at the place in the user's text."""
    columns_of = _columns_by_relation(bound)
    with suppress(OptimizeError):
        for scope in traverse_scope(tree):
            visible = _visible_columns(scope, columns_of)
            for column in scope.columns:
                known = visible.get(column.table.lower())
                if column.table and known is not None and not _has(known, column.name):
                    return _unknown_column(column, known, substituted)
    return InvalidStatementError(f"the names of the query do not bind: {message.rstrip('.')}.")


def _unknown_columns(qualified: exp.Expr, substituted: Substitution, bound: BoundQuery) -> list[UserError]:
    columns_of = _columns_by_relation(bound)
    # A column of a subquery that binds nowhere is seen in the scopes around it too: one problem, all names.
    missing: dict[int, tuple[exp.Column, list[str]]] = {}
    for scope in traverse_scope(qualified):
        if scope.pivots:
            continue
        visible = _visible_columns(scope, columns_of)
        everything = sorted({name for names in visible.values() for name in names or ()})
        for column in scope.columns:
            known = visible.get(column.table.lower()) if column.table else everything
            if known is None or (
                _has(known, column.name) if column.table else not _is_unbound(column, scope, visible)
            ):
                continue
            _, candidates = missing.setdefault(id(column), (column, []))
            candidates += [name for name in known if name not in candidates]
    return [_unknown_column(column, candidates, substituted) for column, candidates in missing.values()]


def _columns_by_relation(bound: BoundQuery) -> dict[str, list[str]]:
    return {found.relation.lower(): [c.name for c in found.columns] for found in bound.inputs}


def _has(names: list[str], name: str) -> bool:
    return name.lower() in {each.lower() for each in names}


def _visible_columns(scope: Scope, columns_of: dict[str, list[str]]) -> dict[str, list[str] | None]:
    """The columns of each source of a scope; None where they are not known."""
    visible: dict[str, list[str] | None] = {}
    for alias, source in scope.sources.items():
        names: list[str] | None
        if isinstance(source, exp.Table):
            names = source.alias_column_names or columns_of.get(source.name.lower())
        elif isinstance(source.expression, exp.Query):
            names = list(source.expression.named_selects)
        else:
            names = source.expression.alias_column_names or None
        visible[alias.lower()] = None if names is None or "*" in names else names
    return visible


def _is_unbound(column: exp.Column, scope: Scope, visible: dict[str, list[str] | None]) -> bool:
    """An unqualified column that is neither an alias of the select list nor of an opaque source."""
    if None in visible.values() or column.name.lower() in WITHOUT_PARENTHESES:
        return False
    expression = scope.expression
    if not isinstance(expression, exp.Query):
        return True
    in_select_list = any(column is node for item in expression.selects for node in item.find_all(exp.Column))
    return in_select_list or not _has(expression.named_selects, column.name)


def _unknown_column(column: exp.Column, candidates: list[str], substituted: Substitution) -> UnknownNameError:
    meta = column.this.meta
    location = substituted.locate(meta["start"], meta["end"] + 1) if "start" in meta else None
    if _has(candidates, column.name):
        return UnknownNameError(
            f"the column {column.name} is ambiguous here: several tables have it.",
            f"write the table's name before it, e.g. t.{column.name}.",
            location,
        )
    return UnknownNameError(
        f"there is no column {column.name} here.",
        did_you_mean(
            column.name, candidates, f"the columns are {', '.join(candidates)}." if candidates else ""
        ),
        location,
    )
