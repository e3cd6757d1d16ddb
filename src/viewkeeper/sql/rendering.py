"""Building blocks for generated SQL: trees are built, and rendered once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from viewkeeper.sql.dialect import SparkAsWritten
from viewkeeper.sql.names import quote
from viewkeeper.sql.script import parse_sql
from viewkeeper.sql.statements import ColumnDefinition
from viewkeeper.sql.types import UNKNOWN, DataType, as_stored


def render(tree: exp.Expr, pretty: bool = True) -> str:
    """A tree as SQL, its calls as they were written. That may change the tree: give a copy of one that is needed again.

    >>> render(call("NVL", column("a"), literal(0)), pretty=False)
    'NVL(`a`, 0)'
    """
    return tree.sql(dialect=SparkAsWritten, pretty=pretty, copy=False)


def column(name: str, table: str | None = None) -> exp.Column:
    return exp.column(name, table=table, quoted=True)


def literal(value: str | int) -> exp.Expr:
    return exp.convert(value)


def alias(value: exp.Expr, name: str) -> exp.Expr:
    """A value under a name; the value becomes part of the tree, it is not copied."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def call(function: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a Spark function, rendered as written."""
    return exp.Anonymous(this=function, expressions=list(arguments))


def as_type(value: exp.Expr, data_type: DataType) -> exp.Expr:
    """A value of exactly this type, as a view stores it; unchanged while the type is unknown, or where it is cast already."""
    wanted = exp.Var(this=str(as_stored(data_type)))
    if data_type == UNKNOWN or (isinstance(value, exp.Cast) and value.to == wanted):
        return value
    return exp.Cast(this=value, to=wanted)


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """Conditions as one, which they become part of."""
    found = list(conditions)
    return exp.and_(*found, copy=False) if found else exp.true()


def values_relation(name: str, column_name: str, values: Sequence[str]) -> exp.Expr:
    """`VALUES ('a'), ('b') AS name (column_name)`."""
    rows = [exp.Tuple(expressions=[literal(value)]) for value in values]
    columns = [exp.to_identifier(column_name, quoted=True)]
    return exp.Values(
        expressions=rows, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=columns)
    )


def lambda_of(parameter: str, body: exp.Expr) -> exp.Expr:
    return exp.Lambda(this=body, expressions=[exp.to_identifier(parameter)])


def select_from(relation: exp.Expr, items: Sequence[exp.Expr]) -> exp.Select:
    return exp.Select(expressions=list(items)).from_(relation, copy=False)


def select_all(relation: exp.Expr) -> exp.Select:
    return select_from(relation, [exp.Star()])


def semi_joined(select: exp.Select, relation: str, conditions: Iterable[exp.Expr]) -> exp.Select:
    """Only the rows that have a partner; the select is extended in place. sqlglot's own builder parses the words LEFT SEMI
    JOIN, which costs more than the rest.

    >>> render(semi_joined(select_all(relation_named("t")), "u", [exp.true()]), pretty=False)
    'SELECT * FROM `t` LEFT SEMI JOIN `u` ON TRUE'
    """
    select.append(
        "joins", exp.Join(this=relation_named(relation), side="LEFT", kind="SEMI", on=all_of(conditions))
    )
    return select


def union_all(left: exp.Query, right: exp.Query) -> exp.Union:
    return exp.Union(this=left, expression=right, distinct=False)


def relation_named(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def aliased(relation: str, name: str) -> exp.Table:
    """A relation under another name.

    >>> aliased("sale_new", "s").sql("spark")
    '`sale_new` AS `s`'
    """
    table = relation_named(relation)
    table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    return table


def explode_sequence(first: exp.Expr, last: exp.Expr, name: str) -> exp.Lateral:
    """`LATERAL VIEW EXPLODE(SEQUENCE(first, last)) AS name`, numbers of type INT."""
    numbers = call(
        "SEQUENCE", *(value if value.is_int else exp.cast(value, "int") for value in (first, last))
    )
    return exp.Lateral(
        this=call("EXPLODE", numbers),
        view=True,
        alias=exp.TableAlias(columns=[exp.to_identifier(name, quoted=True)]),
    )


def select_as_stored(query: str, columns: Sequence[tuple[str, DataType]]) -> str:
    """A query in the user's own words, with CHAR and VARCHAR columns as the strings that a view stores."""
    items: list[exp.Expr] = []
    for name, data_type in columns:
        stored = as_stored(data_type)
        cast = exp.Cast(this=column(name), to=exp.Var(this=str(stored)))
        items.append(column(name) if stored == data_type else alias(cast, name))
    outer = select_from(relation_named("_vk_text"), items).sql(dialect="spark")
    return outer.replace(quote("_vk_text"), f"(\n{query}\n)")


def delta_table(address: str, version: int | None = None) -> exp.Table:
    """A Delta table by its address, optionally at a version.

    >>> delta_table("/data/t", 3).sql("spark")
    'delta.`/data/t` VERSION AS OF 3'
    """
    table = exp.Table(this=exp.to_identifier(address, quoted=True), db=exp.to_identifier("delta"))
    if version is not None:
        table.set("version", exp.Version(this="VERSION", kind="AS OF", expression=literal(version)))
    return table


def visible_rows(relation: exp.Expr, columns: Sequence[str]) -> exp.Subquery:
    """Only the named columns of a relation."""
    return select_from(relation, [column(name) for name in columns]).subquery(copy=False)


def create_delta_table(
    address: str, columns: Sequence[ColumnDefinition], properties: Mapping[str, str], comment: str | None
) -> str:
    """`CREATE TABLE delta.`address` (…) USING delta`."""
    table = exp.Schema(this=delta_table(address), expressions=[_column_definition(each) for each in columns])
    settings: list[exp.Expr] = [exp.FileFormatProperty(this=exp.Var(this="DELTA"))]
    if comment is not None:
        settings.append(exp.SchemaCommentProperty(this=literal(comment)))
    settings += [exp.Property(this=literal(key), value=literal(value)) for key, value in properties.items()]
    return render(exp.Create(this=table, kind="TABLE", properties=exp.Properties(expressions=settings)))


def _column_definition(definition: ColumnDefinition) -> exp.ColumnDef:
    constraints: list[exp.Expr] = []
    if not definition.nullable:
        constraints.append(exp.ColumnConstraint(kind=exp.NotNullColumnConstraint()))
    if definition.default is not None:
        own_words = exp.Var(this=definition.default)
        constraints.append(exp.ColumnConstraint(kind=exp.DefaultColumnConstraint(this=own_words)))
    if definition.comment is not None:
        constraints.append(
            exp.ColumnConstraint(kind=exp.CommentColumnConstraint(this=literal(definition.comment)))
        )
    return exp.ColumnDef(
        this=exp.to_identifier(definition.name, quoted=True),
        kind=exp.Var(this=str(definition.data_type)),
        constraints=constraints,
    )


def at_time(table: exp.Table, time_travel: str) -> exp.Expr:
    """A relation with a time-travel clause that a parser has already accepted."""
    travelled = parse_sql(f"SELECT * FROM t {time_travel}").find(exp.Table)
    assert travelled is not None
    table.set("version", travelled.args.get("version"))
    return table
