"""Agreement with fractions: deviations, covariances and correlations are right to the last digits, wherever the values lie.

DuckDB's and Spark's own functions are no oracle here: they lose digits where values are near together and far from 0.
"""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction

import duckdb
import pytest
from sqlglot import exp

from viewkeeper.algebra.moments import MOST_DIGITS, Whole, correlation, covariance, deviation
from viewkeeper.sql.rendering import alias, column, relation_named, render, select_from
from viewkeeper.testing.duckdb_runner import to_duckdb

SHAPES = [(10, 0), (10, 2), (MOST_DIGITS, 0), (MOST_DIGITS, 4), (MOST_DIGITS, MOST_DIGITS)]


def evaluated(
    items: dict[str, exp.Expr], rows: list[tuple[int, int]], shapes: tuple[tuple[int, int], tuple[int, int]]
) -> tuple[float | None, ...]:
    """What the expressions give over columns x and y, whose whole numbers are given."""
    with duckdb.connect(config={"threads": 1}) as database:
        types = ", ".join(f"{name} DECIMAL({p},{s})" for name, (p, s) in zip("xy", shapes, strict=True))
        database.execute(f"CREATE TABLE t ({types})")
        for row in rows:
            written = [f"{Decimal(value).scaleb(-s):f}" for value, (_, s) in zip(row, shapes, strict=True)]
            database.execute(f"INSERT INTO t VALUES ({', '.join(written)})")
        select = select_from(relation_named("t"), [alias(value, name) for name, value in items.items()])
        found = database.execute(to_duckdb(render(select))).fetchone()
    assert found is not None
    return found


def centred(one: list[Fraction], other: list[Fraction]) -> Fraction:
    means = [sum(each, Fraction(0)) / len(each) for each in (one, other)]
    return sum(((x - means[0]) * (y - means[1]) for x, y in zip(one, other, strict=True)), Fraction(0))


@pytest.mark.parametrize("first", SHAPES, ids=str)
@pytest.mark.parametrize("last", SHAPES, ids=str)
@pytest.mark.parametrize("spread", [1, 3, 10**6, None])
def test_moments_are_those_of_fractions(
    first: tuple[int, int], last: tuple[int, int], spread: int | None
) -> None:
    generator = random.Random(f"{first} {last} {spread}")
    values: list[list[int]] = []
    for digits, _ in (first, last):
        most = 10**digits - 1
        low = -most if spread is None else most - spread
        values.append([generator.randint(low, most) for _ in range(7)])
        values[-1][:2] = [most, low]
    x, y = Whole(column("x"), *first), Whole(column("y"), *last)
    found = evaluated(
        {
            "variance": covariance(x, x, is_sample=False),
            "deviation": deviation(y, is_sample=True),
            "covariance": covariance(x, y, is_sample=True),
            "correlation": correlation(x, y),
        },
        list(zip(*values, strict=True)),
        (first, last),
    )
    one, other = (
        [Fraction(value, 10**s) for value in each] for each, (_, s) in zip(values, (first, last), strict=True)
    )
    n, xx, yy, xy = len(one), centred(one, one), centred(other, other), centred(one, other)
    scale = math.sqrt(xx) * math.sqrt(yy)
    assert found[0] == pytest.approx(float(xx / n), rel=1e-13)
    assert found[1] == pytest.approx(math.sqrt(yy / (n - 1)), rel=1e-13)
    assert found[2] == pytest.approx(float(xy / (n - 1)), rel=1e-13, abs=1e-14 * scale)
    assert found[3] == pytest.approx(float(xy) / scale, rel=1e-13, abs=1e-14)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_is_constant_has_no_variance(shape: tuple[int, int]) -> None:
    x = Whole(column("x"), *shape)
    items = {"variance": covariance(x, x, is_sample=True), "deviation": deviation(x, is_sample=False)}
    same = 10 ** shape[0] - 1
    assert evaluated(items, [(same, 0)] * 7, (shape, (1, 0))) == (0.0, 0.0)
    assert evaluated(items, [(same, 0)], (shape, (1, 0))) == (None, 0.0)
    assert evaluated(items, [], (shape, (1, 0))) == (None, None)
