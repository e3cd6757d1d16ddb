"""GROUPING SETS, ROLLUP and CUBE: every row once for each set of keys, grouped by the set and its keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, combinations

from sqlglot import exp

from viewkeeper.algebra.expressions import aggregates, replaced
from viewkeeper.algebra.nodes import Generate, Relation, sql_of
from viewkeeper.algebra.reading.reader import Reader
from viewkeeper.algebra.reading.scope import Outside
from viewkeeper.generated_names import HIDDEN_PREFIX
from viewkeeper.sql.functions import function_name
from viewkeeper.sql.rendering import call, column, literal

_SET = f"{HIDDEN_PREFIX}set"


def grouping_sets(
    grouping: exp.Group | None,
) -> tuple[list[exp.Expr], list[list[exp.Expr]] | None]:
    """All keys of a GROUP BY, and the sets of them; None: one set, all keys."""
    if grouping is None:
        return [], None
    suffix = [each for part in ("rollup", "cube", "grouping_sets") for each in grouping.args.get(part) or []]
    if suffix:
        return _with_suffix(grouping.expressions, suffix)
    plain: list[exp.Expr] = []
    sets: list[list[exp.Expr]] = [[]]
    is_plain = True
    for part in grouping.expressions:
        alternatives = _alternatives(part)
        is_plain = is_plain and alternatives is None
        for key in _keys(part):
            if key not in plain:
                plain.append(key)
        sets = [[*one, *other] for one in sets for other in (alternatives or [[part]])]
    # GROUPING SETS (()) alone is one group of everything: a row in any case. With keys, Spark shows no row of no rows.
    return plain, None if is_plain or sets == [[]] else sets


def without_positions(grouping: exp.Group | None, shown: Sequence[exp.Expr]) -> exp.Group | None:
    """A GROUP BY in which numbers inside of ROLLUP, CUBE and GROUPING SETS are the columns that they stand for."""
    if grouping is None or not grouping.find(exp.Rollup, exp.Cube, exp.GroupingSets):
        return grouping
    result = grouping.copy()
    for part in list(result.find_all(exp.Rollup, exp.Cube, exp.GroupingSets)):
        for key in _keys(part):
            if key.is_int and 0 < int(key.to_py()) <= len(shown):
                key.replace(shown[int(key.to_py()) - 1].copy())
    return result


def _with_suffix(
    keys: Sequence[exp.Expr], suffix: Sequence[exp.Expr]
) -> tuple[list[exp.Expr], list[list[exp.Expr]] | None]:
    """Hive's forms: what follows the keys is about all of them. GROUP BY a, b WITH ROLLUP is GROUP BY ROLLUP (a, b); before
    GROUPING SETS the keys say nothing but their order."""
    (about,) = suffix
    if not isinstance(about, exp.GroupingSets):
        about = type(about)(expressions=list(keys))
    sets = _alternatives(about)
    plain = [key for each in keys for key in _keys(each)]
    if any(key not in plain for each in sets or () for key in each):
        raise Outside("GROUPING SETS name a key that GROUP BY does not")
    return plain, sets


def _alternatives(part: exp.Expr) -> list[list[exp.Expr]] | None:
    match part:
        case exp.Rollup():
            keys = [_keys(each) for each in part.expressions]
            return [list(chain(*keys[:at])) for at in range(len(keys), -1, -1)]
        case exp.Cube():
            keys = [_keys(each) for each in part.expressions]
            chosen = [c for size in range(len(keys), -1, -1) for c in combinations(keys, size)]
            return [list(chain(*each)) for each in chosen]
        case exp.GroupingSets():
            return [found for each in part.expressions for found in (_alternatives(each) or [_keys(each)])]
        case _:
            return None


def _keys(part: exp.Expr) -> list[exp.Expr]:
    match part:
        case exp.Tuple() | exp.Rollup() | exp.Cube() | exp.GroupingSets():
            return [key for each in part.expressions for key in _keys(each)]
        case exp.Paren():
            return _keys(part.this)
        case _:
            return [part]


def over_grouping_sets(
    reader: Reader,
    relation: Relation,
    keys: Mapping[str, exp.Expr],
    sets: Sequence[Sequence[exp.Expr]],
    written: Sequence[exp.Expr],
) -> tuple[Relation, list[exp.Expr], list[exp.Expr]]:
    """The relation with every row once for each set, the keys of its groups, and the expressions over these keys.

    `keys` are by their SQL. A key that a set does not have is NULL in its groups, but not inside of aggregates.
    """
    name = reader.fresh(f"{HIDDEN_PREFIX}grouping")
    number = column(_SET, name)
    numbers = call("ARRAY", *(literal(at) for at in range(len(sets))))
    repeated = Generate(relation, call("EXPLODE", numbers), name, (_SET,))
    present = [{sql_of(key) for key in each} for each in sets]
    group_keys: dict[str, exp.Expr] = {
        text: _where(number, [at for at, each in enumerate(present) if text in each], key)
        for text, key in keys.items()
    }
    ids = [
        sum(1 << (len(keys) - 1 - at) for at, text in enumerate(keys) if text not in each) for each in present
    ]

    def over(node: exp.Expr) -> exp.Expr:
        match function_name(node):
            case "grouping":
                absent = [at for at, each in enumerate(present) if sql_of(_arguments(node)[0]) not in each]
                return exp.cast(call("IF", _one_of(number, absent), literal(1), literal(0)), "tinyint")
            case "grouping_id":
                if [sql_of(each) for each in _arguments(node)] not in ([], list(keys)):
                    raise Outside("grouping_id is asked for some of the keys only")
                cases = [
                    exp.If(this=number.copy().eq(at), true=literal(value)) for at, value in enumerate(ids)
                ]
                return exp.cast(exp.Case(ifs=cases), "bigint")
        found = group_keys.get(sql_of(node))
        return node if found is None else found.copy()

    shown: list[exp.Expr] = []
    for expression in written:
        calls = {sql_of(each): each for each in aggregates(expression)}
        marks = {text: column(f"{HIDDEN_PREFIX}mark_{at}") for at, text in enumerate(calls)}
        marked = replaced(expression, marks).transform(over)
        shown.append(replaced(marked, {sql_of(marks[text]): each for text, each in calls.items()}))
    return repeated, [number, *group_keys.values()], shown


def _where(number: exp.Expr, chosen: Sequence[int], value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=_one_of(number, chosen), true=value.copy())])


def _one_of(number: exp.Expr, chosen: Sequence[int]) -> exp.Expr:
    return exp.In(this=number.copy(), expressions=[literal(at) for at in chosen]) if chosen else exp.false()


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) or ([node.this] if isinstance(node.this, exp.Expr) else [])
