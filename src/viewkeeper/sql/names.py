"""Names of tables and views: a schema and a name, compared as Spark compares them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

DEFAULT_SCHEMA = "default"


@dataclass(frozen=True, order=True)
class QualifiedName:
    """`sales.orders`, or `orders` in the default schema.

    >>> str(QualifiedName("sales", "my orders"))
    'sales.`my orders`'
    >>> QualifiedName("default", "Orders").key == QualifiedName("default", "orders").key
    True
    """

    schema: str
    name: str

    @property
    def key(self) -> str:
        """Equal for names that mean the same object: upper and lower case do not matter."""
        return f"{quote(self.schema.lower())}.{quote(self.name.lower())}"

    @property
    def relation_stem(self) -> str:
        """The start of the names of temporary relations for this object."""
        return self.name if self.schema == DEFAULT_SCHEMA else f"{self.schema}_{self.name}"

    def __str__(self) -> str:
        parts = [self.name] if self.schema == DEFAULT_SCHEMA else [self.schema, self.name]
        return ".".join(quote_if_needed(part) for part in parts)


def quote(name: str) -> str:
    """A name as a quoted Spark identifier.

    >>> print(quote("it`s"))
    `it``s`
    """
    return exp.to_identifier(name, quoted=True).sql(dialect="spark")


def quote_if_needed(name: str) -> str:
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name else quote(name)


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate the user most likely meant.

    >>> closest("amuont", ["id", "amount"])
    'amount'
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.5)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str], otherwise: str = "") -> str:
    found = closest(name, candidates)
    return f"did you mean {found}?" if found else otherwise
