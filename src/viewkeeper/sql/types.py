"""Column types as Delta stores them: read from SQL or from a Delta schema, rendered as SQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from viewkeeper.errors import UnsupportedError
from viewkeeper.sql.names import did_you_mean, quote
from viewkeeper.sql.token_reader import TokenReader


@dataclass(frozen=True)
class Simple:
    """A type without parts: INT, STRING, DECIMAL(10,2), CHAR(3)."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Array:
    element: DataType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True)
class Map:
    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class Struct:
    fields: tuple[tuple[str, DataType], ...]

    def __str__(self) -> str:
        inside = ", ".join(f"{quote(name)}: {data_type}" for name, data_type in self.fields)
        return f"STRUCT<{inside}>"


DataType: TypeAlias = Simple | Array | Map | Struct

UNKNOWN = Simple("?")
"""Before Spark has told the type of an expression."""

_SYNONYMS = {
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "SHORT": "SMALLINT",
    "BYTE": "TINYINT",
    "REAL": "FLOAT",
    "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "TEXT": "STRING",
}
_PLAIN = {
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "STRING",
    "BINARY",
    "DATE",
    "TIMESTAMP",
    "TIMESTAMP_NTZ",
    "VARIANT",
}
_WITH_LENGTH = {"CHAR", "CHARACTER", "VARCHAR"}
_REFUSED = {
    "TIME": "store it as STRING, or as TIMESTAMP_NTZ with a date.",
    "INTERVAL": "store the start and the end, or a number of days or seconds.",
    "VOID": "give the column a type.",
    "GEOMETRY": "store it as BINARY (WKB) or STRING (WKT).",
    "GEOGRAPHY": "store it as BINARY (WKB) or STRING (WKT).",
}
_DELTA_NAMES = {
    "boolean": "BOOLEAN",
    "byte": "TINYINT",
    "short": "SMALLINT",
    "integer": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "STRING",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ntz": "TIMESTAMP_NTZ",
    "variant": "VARIANT",
}


def read_type(reader: TokenReader) -> DataType:
    """Read a type from SQL.

    >>> from viewkeeper.sql.script import Fragment
    >>> print(read_type(TokenReader(Fragment.whole("MAP<STRING, STRUCT<a: DECIMAL(10,2), b: ARRAY<INT>>>"))))
    MAP<STRING, STRUCT<`a`: DECIMAL(10,2), `b`: ARRAY<INT>>>
    """
    data_type, surplus = _read(reader)
    if surplus:
        raise reader.error("there is one > too many.")
    return data_type


def _read(reader: TokenReader) -> tuple[DataType, int]:
    """A type, and how many closing brackets too many the last token had: `>>` is one token."""
    reader.identifier("a column type")
    token = reader.previous()
    where = reader.fragment.locate_token(token)
    written = token.text.upper()
    name = _SYNONYMS.get(written, written)
    if name in _REFUSED:
        raise UnsupportedError(f"Delta tables cannot store the type {written}.", _REFUSED[name], where)
    if name == "ARRAY":
        reader.expect("<")
        element, surplus = _read(reader)
        return Array(element), _close(reader, surplus)
    if name == "MAP":
        reader.expect("<")
        key, surplus = _read(reader)
        if surplus:
            raise reader.error("a map needs a key type and a value type.")
        reader.expect(",")
        value, surplus = _read(reader)
        return Map(key, value), _close(reader, surplus)
    if name == "STRUCT":
        return _read_struct(reader)
    if name == "DECIMAL":
        precision, scale = 10, 0
        if reader.take("("):
            precision = reader.whole_number("the precision")
            if reader.take(","):
                scale = reader.whole_number("the scale")
            reader.expect(")")
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            raise UnsupportedError(
                f"DECIMAL({precision},{scale}) is out of range.", "use a precision of 1 to 38.", where
            )
        return Simple(f"DECIMAL({precision},{scale})"), 0
    if name in _WITH_LENGTH:
        reader.expect("(")
        length = reader.whole_number("the length")
        reader.expect(")")
        return Simple(f"{'CHAR' if name == 'CHARACTER' else name}({length})"), 0
    if name == "DOUBLE":
        reader.take("PRECISION")
    if name == "STRING" and reader.sees("COLLATE"):
        raise UnsupportedError(
            "Delta tables cannot store collated strings.",
            "store a plain STRING and collate in the query.",
            where,
        )
    if name not in _PLAIN:
        known = [*_PLAIN, *_SYNONYMS, "DECIMAL", "CHAR", "VARCHAR", "ARRAY", "MAP", "STRUCT"]
        raise UnsupportedError(f"there is no column type {token.text}.", did_you_mean(written, known), where)
    return Simple(name), 0


def _read_struct(reader: TokenReader) -> tuple[DataType, int]:
    reader.expect("<")
    fields: list[tuple[str, DataType]] = []
    while True:
        name = reader.identifier("a field name")
        reader.take(":")
        data_type, surplus = _read(reader)
        fields.append((name, data_type))
        if surplus:
            return Struct(tuple(fields)), surplus - 1
        if reader.take("COMMENT"):
            reader.string("the comment")
        if not reader.take(","):
            return Struct(tuple(fields)), _close(reader, 0)


def _close(reader: TokenReader, surplus: int) -> int:
    if surplus:
        return surplus - 1
    token = reader.peek()
    if token is None or set(token.text) != {">"}:
        raise reader.error("> is expected here.")
    reader.next_token()
    return len(token.text) - 1


def from_delta(schema_type: Any, metadata: dict[str, Any] | None = None) -> DataType:
    """The type of a field of a Delta (or Spark) schema in its JSON form.

    >>> print(from_delta({"type": "array", "elementType": "decimal(5,1)", "containsNull": True}))
    ARRAY<DECIMAL(5,1)>
    """
    metadata = metadata or {}
    if "__COLLATIONS" in metadata:
        raise UnsupportedError(
            "Delta tables cannot store collated strings.", "write … COLLATE UTF8_BINARY in the query."
        )
    # Of a whole column: Spark writes array<varchar(3)> here, and plain strings into the type itself.
    fixed_length = metadata.get("__CHAR_VARCHAR_TYPE_STRING")
    if fixed_length:
        return read_type_text(str(fixed_length))
    if isinstance(schema_type, str):
        if schema_type.startswith("decimal"):
            return Simple(schema_type.upper())
        known = _DELTA_NAMES.get(schema_type)
        if known is None:
            raise UnsupportedError(
                f"Delta tables cannot store the type {schema_type}.", "cast it to another type."
            )
        return Simple(known)
    match schema_type["type"]:
        case "array":
            return Array(from_delta(schema_type["elementType"]))
        case "map":
            return Map(from_delta(schema_type["keyType"]), from_delta(schema_type["valueType"]))
        case "struct":
            return Struct(
                tuple((f["name"], from_delta(f["type"], f.get("metadata"))) for f in schema_type["fields"])
            )
        case other:
            raise UnsupportedError(f"Delta tables cannot store the type {other}.")


def read_type_text(text: str) -> DataType:
    """The inverse of `str(data_type)`."""
    from viewkeeper.sql.script import Fragment

    return read_type(TokenReader(Fragment.whole(text)))


def contains_map(data_type: DataType) -> bool:
    match data_type:
        case Map():
            return True
        case Array(element):
            return contains_map(element)
        case Struct(fields):
            return any(contains_map(field_type) for _, field_type in fields)
        case Simple(name):
            return name == "VARIANT"


def as_stored(data_type: DataType) -> DataType:
    """The type a view stores a value of this type in: CHAR and VARCHAR are kept as STRING.

    >>> print(as_stored(Array(Simple("CHAR(4)"))))
    ARRAY<STRING>
    """
    match data_type:
        case Simple(name):
            return Simple("STRING") if name.startswith(("CHAR", "VARCHAR")) else data_type
        case Array(element):
            return Array(as_stored(element))
        case Map(key, value):
            return Map(as_stored(key), as_stored(value))
        case Struct(fields):
            return Struct(tuple((name, as_stored(field)) for name, field in fields))


def field_names(data_type: DataType) -> list[str]:
    """The names of all struct fields inside a type.

    >>> field_names(Array(Struct((("a", Simple("INT")), ("b", Struct((("c", Simple("INT")),)))))))
    ['a', 'b', 'c']
    """
    match data_type:
        case Simple():
            return []
        case Array(element):
            return field_names(element)
        case Map(key, value):
            return field_names(key) + field_names(value)
        case Struct(fields):
            return [inner for name, field in fields for inner in (name, *field_names(field))]


def is_floating(data_type: DataType) -> bool:
    return isinstance(data_type, Simple) and data_type.name in ("FLOAT", "DOUBLE")


def contains_type(data_type: DataType, name: str) -> bool:
    """Whether a type is, or has in it, a type of this name.

    >>> contains_type(Array(Simple("CHAR(3)")), "CHAR"), contains_type(Simple("TIMESTAMP_NTZ"), "TIMESTAMP")
    (True, False)
    """
    match data_type:
        case Simple(found):
            return found == name or found.startswith(f"{name}(")
        case Array(element):
            return contains_type(element, name)
        case Map(key, value):
            return contains_type(key, name) or contains_type(value, name)
        case Struct(fields):
            return any(contains_type(field_type, name) for _, field_type in fields)
