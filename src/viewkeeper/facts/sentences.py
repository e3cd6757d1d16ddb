"""What is known of a query, in sentences: what tells its rows apart, what determines what, what is never NULL, which
joins always find a partner, which tables only grow. All of it holds if the declared constraints do."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.algebra.nodes import Group, InnerJoin, Project, Scan, Window, scans, walk
from viewkeeper.algebra.nullability import never_null_columns
from viewkeeper.facts.declared import Declarations, Declared
from viewkeeper.facts.foreign_keys import parent_joins
from viewkeeper.facts.keys import key_of


def facts_in_sentences(query: Project, declared: Declarations) -> list[str]:
    key = key_of(query, declared)
    never_null = never_null_columns(query)
    return [
        "its rows may occur more than once" if key is None else key.reason,
        *_dependencies(query, declared, () if key is None else key.columns),
        *(
            [f"{', '.join(never_null)} {'are' if len(never_null) > 1 else 'is'} never NULL"]
            if never_null
            else []
        ),
        *_partners(query, declared),
        *(f"{name} is append-only: its rows stay as they are" for name in _append_only(query, declared)),
    ]


def _dependencies(query: Project, declared: Declarations, key: tuple[str, ...]) -> Iterator[str]:
    """Columns of a table that its key determines, where the query shows both; what the query's own key says is not said
    again."""
    source = query.source
    relation = source.source if isinstance(source, (Group, Window)) else source
    below = {item.name: item.expression for item in source.keys} if isinstance(source, Group) else {}
    shown: dict[tuple[str, str], str] = {}
    for item in query.items:
        value = below.get(item.expression.name, item.expression) if below else item.expression
        if isinstance(value, exp.Column) and value.table:
            shown.setdefault((value.table, value.name.lower()), item.name)
    for scan in [node for node in walk(relation) if isinstance(node, Scan)]:
        for each in declared.get(scan.input.object_id, Declared()).keys:
            wanted = [(scan.alias, name.lower()) for name in each.columns]
            others = [name for at, name in shown.items() if at[0] == scan.alias and at not in wanted]
            determining = tuple(shown[at] for at in wanted if at in shown)
            if len(determining) == len(wanted) and others and set(determining) != set(key):
                what = f"({', '.join(each.columns)}) is a key of {scan.alias}"
                yield f"{', '.join(determining)} determines {', '.join(others)}: {what}"


def _partners(query: Project, declared: Declarations) -> Iterator[str]:
    for node in walk(query):
        if isinstance(node, InnerJoin):
            for found in parent_joins(node, declared):
                yield f"every row of {found.child} has one of {found.parent}: foreign key {found.foreign_key.name}"


def _append_only(query: Project, declared: Declarations) -> list[str]:
    found = [scan.input for scan in scans(query)]
    growing = [each for each in found if declared.get(each.object_id, Declared()).is_append_only]
    return list(dict.fromkeys(str(each.name) for each in growing))
