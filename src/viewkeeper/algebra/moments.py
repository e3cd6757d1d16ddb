"""Deviations, covariances and correlations of groups, from counts and exact sums.

Let x and y be whole numbers (a DECIMAL with s decimals times 10^s) and n the number of rows in which both are known. Then

    n * covar_pop(x, y)  =  (n * sum(x * y) - sum(x) * sum(y)) / n

is exact until the division if x and y have ten digits, for then nothing has more than 38. Of more digits only the sums fit.
With a and b, any whole numbers near the means,

    n * covar_pop(x, y)  =  S - r * t / n        r = sum(x) - n * a,   t = sum(y) - n * b
                                                 S = sum((x - a) * (y - b)) = sum(x * y) - a * sum(y) - b * r

where S, r and t are exact. |r| is about n/2 at most, and S of a column with itself at least |r|, for no whole number is greater
than its square. So r²/n is at most half of S: nothing is lost by cancellation, however far from 0 the values are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp

from viewkeeper.sql.rendering import as_type, call, literal
from viewkeeper.sql.types import DataType, Simple

MOST_DIGITS = 14
"""Sums of products of such numbers have 38 digits at most, over a billion rows in one group."""

_DIGITS_OF_ROWS = 9
_WIDE = 19
"""One factor of a product has so many digits: of two that fit into 64 bits DuckDB does not make more."""

_DOUBLE = Simple("DOUBLE")
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_TOO_LARGE = "sums of products have more than 38 digits"


@dataclass(frozen=True)
class Whole:
    """A column of whole numbers, or of decimals that become whole ones when they are multiplied."""

    value: exp.Expr
    digits: int
    decimals: int

    @property
    def count(self) -> exp.Expr:
        return exp.Count(this=self.value.copy())

    @property
    def rows(self) -> exp.Expr:
        return as_type(self.count, _decimal(_DIGITS_OF_ROWS + 1))

    @property
    def number(self) -> exp.Expr:
        if not self.decimals:
            return self.value.copy()
        times = exp.Mul(this=self.value.copy(), expression=_power_of_ten(self.decimals))
        return as_type(times, _decimal(self.digits))

    @property
    def sum(self) -> exp.Expr:
        return as_type(exp.Sum(this=self.number), _decimal(max(_WIDE, self.digits + _DIGITS_OF_ROWS)))

    @property
    def near_mean(self) -> exp.Expr:
        mean = exp.Div(this=as_type(self.sum, _DOUBLE), expression=as_type(self.count, _DOUBLE))
        return as_type(mean, _decimal(_WIDE))

    @property
    def rest(self) -> exp.Expr:
        """r: by how much the sum is more than if every value were the one near the mean."""
        return exp.Sub(this=self.sum, expression=exp.Mul(this=self.rows, expression=self.near_mean))


def digits_of(data_type: DataType | None) -> tuple[int, int] | None:
    """The digits of a type of exact numbers, and how many of them are decimals.

    >>> digits_of(Simple("INT")), digits_of(Simple("DECIMAL(8,2)")), digits_of(Simple("DOUBLE"))
    ((10, 0), (8, 2), None)
    """
    name = data_type.name if isinstance(data_type, Simple) else ""
    if name in _DIGITS:
        return _DIGITS[name], 0
    found = re.fullmatch(r"DECIMAL\((\d+),\s*(\d+)\)", name)
    return None if found is None else (int(found[1]), int(found[2]))


def covariance(one: Whole, other: Whole, is_sample: bool) -> exp.Expr:
    """Of a column with itself it is the variance. NULL for too few rows."""
    fewer = exp.Paren(this=exp.Sub(this=one.count, expression=literal(1))) if is_sample else one.count
    below = as_type(fewer, _DOUBLE)
    if decimals := one.decimals + other.decimals:
        unit = as_type(_power_of_ten(decimals), _DOUBLE)
        below = exp.Paren(this=exp.Mul(this=below, expression=unit))
    value = exp.Div(this=_centred(one, other), expression=below)
    return if_there_are(2 if is_sample else 1, one.value, value)


def deviation(column: Whole, is_sample: bool) -> exp.Expr:
    variance = covariance(column, column, is_sample)
    (branch,) = variance.args["ifs"]
    branch.set("true", call("SQRT", branch.args["true"]))
    return variance


def correlation(one: Whole, other: Whole) -> exp.Expr:
    """Where a column is constant, this divides by zero as Spark's own CORR does: an error, or NULL without ANSI."""
    product = exp.Mul(this=_centred(one, one), expression=_centred(other, other))
    value = exp.Div(this=_centred(one, other), expression=call("SQRT", product))
    return if_there_are(2, one.value, value)


def if_there_are(at_least: int, value: exp.Expr, made: exp.Expr) -> exp.Expr:
    """NULL unless there are so many values."""
    count = exp.Count(this=value.copy())
    return exp.Case().when(exp.GTE(this=count, expression=literal(at_least)), made)


def _centred(one: Whole, other: Whole) -> exp.Expr:
    """n times the covariance of the whole numbers."""
    factors = [as_type(one.number, _decimal(_WIDE)), as_type(other.number, _decimal(other.digits))]
    products = as_type(exp.Sum(this=exp.Mul(this=factors[0], expression=factors[1])), _decimal(38))
    rows = as_type(one.count, _DOUBLE)
    if one.digits + other.digits + 2 * _DIGITS_OF_ROWS <= 38:
        sums = exp.Mul(this=one.sum, expression=other.sum)
        exact = exp.Sub(this=exp.Mul(this=one.rows, expression=products), expression=sums)
        return exp.Div(this=_known(exact), expression=rows)
    less = exp.Sub(this=products, expression=exp.Mul(this=one.near_mean, expression=other.sum))
    exact = exp.Sub(this=less, expression=exp.Mul(this=other.near_mean, expression=exp.Paren(this=one.rest)))
    rests = exp.Mul(this=as_type(one.rest, _DOUBLE), expression=as_type(other.rest, _DOUBLE))
    return exp.Paren(this=exp.Sub(this=_known(exact), expression=exp.Div(this=rests, expression=rows)))


def _known(exact: exp.Expr) -> exp.Expr:
    """As a DOUBLE. Without ANSI, too many digits would be NULL: that is an error here."""
    return call("COALESCE", as_type(exact, _DOUBLE), call("RAISE_ERROR", literal(_TOO_LARGE)))


def _decimal(digits: int) -> DataType:
    return Simple(f"DECIMAL({digits},0)")


def _power_of_ten(exponent: int) -> exp.Expr:
    return exp.Literal.number(f"1{'0' * exponent}")
