"""Rows that violate a declared constraint, as SQL: no row means that the constraint holds."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from viewkeeper.generated_names import SIGNED_COUNT
from viewkeeper.sql.rendering import alias, call, column, literal, relation_named, render, select_from


def duplicate_keys(relation: str, columns: Sequence[str], primary: bool) -> str:
    """Values of a key that occur more than once; of a primary key also those with a NULL, which UNIQUE admits.

    >>> print(duplicate_keys("t", ["a"], primary=False))
    SELECT
      `a`,
      COUNT(*) AS `_vk_count`
    FROM `t`
    WHERE
      NOT `a` IS NULL
    GROUP BY
      `a`
    HAVING
      COUNT(*) > 1
    """
    counted = call("COUNT", exp.Star())
    items = [*(column(name) for name in columns), alias(counted, SIGNED_COUNT)]
    select = select_from(relation_named(relation), items).group_by(*(column(name) for name in columns))
    several: exp.Expr = exp.GT(this=counted.copy(), expression=literal(1))
    if primary:
        return render(select.having(exp.or_(several, *(_is_null(name) for name in columns))))
    return render(select.where(*(exp.not_(_is_null(name)) for name in columns)).having(several))


def orphans(child: str, columns: Sequence[str], parent: str, parent_columns: Sequence[str]) -> str:
    """Values of a foreign key that no row of the parent has, with the number of children."""
    select = _foreign_key_values(child, columns, parent, parent_columns, "left anti")
    return render(select.where(*(exp.not_(_is_null(name, child)) for name in columns)))


def children_of(child: str, columns: Sequence[str], parent: str, parent_columns: Sequence[str]) -> str:
    """Values of a foreign key that some row of the parent relation has, with the number of children."""
    return render(_foreign_key_values(child, columns, parent, parent_columns, "left semi"))


def _foreign_key_values(
    child: str, columns: Sequence[str], parent: str, parent_columns: Sequence[str], join: str
) -> exp.Select:
    same = [
        exp.EQ(this=column(own, child), expression=column(other, parent))
        for own, other in zip(columns, parent_columns, strict=True)
    ]
    items = [*(column(name, child) for name in columns), alias(call("COUNT", exp.Star()), SIGNED_COUNT)]
    return (
        select_from(relation_named(child), items)
        .join(relation_named(parent), on=exp.and_(*same), join_type=join)
        .group_by(*(column(name, child) for name in columns))
    )


def _is_null(name: str, relation: str | None = None) -> exp.Expr:
    return exp.Is(this=column(name, relation), expression=exp.Null())
