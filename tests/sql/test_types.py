"""Column types: read from SQL and from Delta's schema, rendered, refused with the way out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.helpers import HOSTILE_NAMES, refuse
from viewkeeper.errors import SqlSyntaxError, UnsupportedError, ViewkeeperError
from viewkeeper.sql.script import Fragment
from viewkeeper.sql.token_reader import TokenReader
from viewkeeper.sql.types import (
    Array,
    DataType,
    Map,
    Simple,
    Struct,
    contains_map,
    from_delta,
    is_floating,
    read_type,
    read_type_text,
)

INT, STRING = Simple("INT"), Simple("STRING")


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("BOOLEAN", Simple("BOOLEAN")),
        ("TINYINT", Simple("TINYINT")),
        ("BYTE", Simple("TINYINT")),
        ("SMALLINT", Simple("SMALLINT")),
        ("SHORT", Simple("SMALLINT")),
        ("INT", INT),
        ("INTEGER", INT),
        ("integer", INT),
        ("BIGINT", Simple("BIGINT")),
        ("LONG", Simple("BIGINT")),
        ("FLOAT", Simple("FLOAT")),
        ("REAL", Simple("FLOAT")),
        ("DOUBLE", Simple("DOUBLE")),
        ("DOUBLE PRECISION", Simple("DOUBLE")),
        ("STRING", STRING),
        ("TEXT", STRING),
        ("BINARY", Simple("BINARY")),
        ("DATE", Simple("DATE")),
        ("TIMESTAMP", Simple("TIMESTAMP")),
        ("TIMESTAMP_LTZ", Simple("TIMESTAMP")),
        ("TIMESTAMP_NTZ", Simple("TIMESTAMP_NTZ")),
        ("VARIANT", Simple("VARIANT")),
        ("DECIMAL", Simple("DECIMAL(10,0)")),
        ("DECIMAL(5)", Simple("DECIMAL(5,0)")),
        ("DECIMAL(38, 38)", Simple("DECIMAL(38,38)")),
        ("DEC(7,2)", Simple("DECIMAL(7,2)")),
        ("NUMERIC(7,2)", Simple("DECIMAL(7,2)")),
        ("CHAR(3)", Simple("CHAR(3)")),
        ("CHARACTER(3)", Simple("CHAR(3)")),
        ("VARCHAR(255)", Simple("VARCHAR(255)")),
        ("ARRAY<INT>", Array(INT)),
        ("ARRAY < INT >", Array(INT)),
        ("ARRAY<ARRAY<INT>>", Array(Array(INT))),
        ("ARRAY<ARRAY<ARRAY<INT>>>", Array(Array(Array(INT)))),
        ("ARRAY<ARRAY<ARRAY<ARRAY<INT>>> >", Array(Array(Array(Array(INT))))),
        ("MAP<STRING, INT>", Map(STRING, INT)),
        ("MAP<STRING,MAP<INT,ARRAY<INT>>>", Map(STRING, Map(INT, Array(INT)))),
        ("STRUCT<a: INT>", Struct((("a", INT),))),
        ("STRUCT<a INT, b:STRING>", Struct((("a", INT), ("b", STRING)))),
        ("STRUCT<a: INT COMMENT 'one', b: INT COMMENT 'two''s'>", Struct((("a", INT), ("b", INT)))),
        ("STRUCT<`a b`: INT, `c``d`: INT>", Struct((("a b", INT), ("c`d", INT)))),
        ("STRUCT<date: DATE, int: INT>", Struct((("date", Simple("DATE")), ("int", INT)))),
        ("STRUCT<a: STRUCT<b: ARRAY<INT>>>", Struct((("a", Struct((("b", Array(INT)),))),))),
        (
            "MAP<STRING, STRUCT<a: DECIMAL(10,2), b: ARRAY<VARIANT>>>",
            Map(STRING, Struct((("a", Simple("DECIMAL(10,2)")), ("b", Array(Simple("VARIANT")))))),
        ),
    ],
)
def test_types_are_read(text: str, data_type: DataType) -> None:
    assert read_type_text(text) == data_type
    assert read_type_text(str(data_type)) == data_type


@pytest.mark.parametrize(
    ("data_type", "text"),
    [
        (Array(INT), "ARRAY<INT>"),
        (Map(STRING, Array(INT)), "MAP<STRING, ARRAY<INT>>"),
        (Struct((("a b", INT), ("it`s", STRING))), "STRUCT<`a b`: INT, `it``s`: STRING>"),
    ],
)
def test_types_are_rendered(data_type: DataType, text: str) -> None:
    assert str(data_type) == text


def test_reading_stops_after_the_type() -> None:
    reader = TokenReader(Fragment.whole("ARRAY<STRUCT<a: INT>> NOT NULL"))
    read_type(reader)
    assert reader.sees("NOT", "NULL")


field_names = st.one_of(
    st.sampled_from(HOSTILE_NAMES), st.text(min_size=1).filter(lambda name: "\x00" not in name)
)
simple_types = st.one_of(
    st.sampled_from(
        ["BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING", "BINARY"]
    ),
    st.sampled_from(["DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "VARIANT"]),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: f"DECIMAL({p},{s})")),
    st.integers(1, 1000).map("CHAR({})".format),
    st.integers(1, 65535).map("VARCHAR({})".format),
).map(Simple)
data_types: st.SearchStrategy[DataType] = st.recursive(
    simple_types,
    lambda inner: st.one_of(
        inner.map(Array),
        st.builds(Map, inner, inner),
        st.lists(st.tuples(field_names, inner), min_size=1, max_size=3).map(
            lambda fields: Struct(tuple(fields))
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(data_types)
def test_reading_undoes_rendering(data_type: DataType) -> None:
    assert read_type_text(str(data_type)) == data_type


REFUSED = "Delta tables cannot store the type {}."


@pytest.mark.parametrize(
    ("marked", "kind", "message", "hint"),
    [
        pytest.param(
            "«TIME»",
            UnsupportedError,
            REFUSED.format("TIME"),
            "store it as STRING, or as TIMESTAMP_NTZ with a date.",
            id="time",
        ),
        pytest.param(
            "«time»(6)",
            UnsupportedError,
            REFUSED.format("TIME"),
            "store it as STRING, or as TIMESTAMP_NTZ with a date.",
            id="time-with-precision",
        ),
        pytest.param(
            "«INTERVAL» DAY TO SECOND",
            UnsupportedError,
            REFUSED.format("INTERVAL"),
            "store the start and the end, or a number of days or seconds.",
            id="interval",
        ),
        pytest.param(
            "«VOID»", UnsupportedError, REFUSED.format("VOID"), "give the column a type.", id="void"
        ),
        pytest.param(
            "«GEOMETRY»(4326)",
            UnsupportedError,
            REFUSED.format("GEOMETRY"),
            "store it as BINARY (WKB) or STRING (WKT).",
            id="geometry",
        ),
        pytest.param(
            "«GEOGRAPHY»",
            UnsupportedError,
            REFUSED.format("GEOGRAPHY"),
            "store it as BINARY (WKB) or STRING (WKT).",
            id="geography",
        ),
        pytest.param(
            "«STRING» COLLATE UTF8_LCASE",
            UnsupportedError,
            "Delta tables cannot store collated strings.",
            "store a plain STRING and collate in the query.",
            id="collate",
        ),
        pytest.param(
            "MAP<STRING, ARRAY<«INTERVAL»>>",
            UnsupportedError,
            REFUSED.format("INTERVAL"),
            "store the start and the end, or a number of days or seconds.",
            id="nested",
        ),
        pytest.param(
            "«NUMBR»", UnsupportedError, "there is no column type NUMBR.", "did you mean NUMERIC?", id="numbr"
        ),
        pytest.param(
            "«strng»", UnsupportedError, "there is no column type strng.", "did you mean STRING?", id="strng"
        ),
        pytest.param("«xyzzy»", UnsupportedError, "there is no column type xyzzy.", "", id="xyzzy"),
        pytest.param(
            "«DECIMAL»(39,2)",
            UnsupportedError,
            "DECIMAL(39,2) is out of range.",
            "use a precision of 1 to 38.",
            id="precision",
        ),
        pytest.param(
            "«DECIMAL»(5,6)",
            UnsupportedError,
            "DECIMAL(5,6) is out of range.",
            "use a precision of 1 to 38.",
            id="scale",
        ),
        pytest.param(
            "«DECIMAL»(0)",
            UnsupportedError,
            "DECIMAL(0,0) is out of range.",
            "use a precision of 1 to 38.",
            id="zero",
        ),
        pytest.param(
            "DECIMAL(«x»)",
            SqlSyntaxError,
            "the precision, a whole number, is expected here.",
            "",
            id="precision-word",
        ),
        pytest.param(
            "DECIMAL(5, «)»",
            SqlSyntaxError,
            "the scale, a whole number, is expected here.",
            "",
            id="scale-missing",
        ),
        pytest.param("VARCHA«R»", SqlSyntaxError, "( is expected here.", "", id="varchar-without-length"),
        pytest.param(
            "CHAR(«)»", SqlSyntaxError, "the length, a whole number, is expected here.", "", id="char-empty"
        ),
        pytest.param("ARRA«Y»", SqlSyntaxError, "< is expected here.", "", id="array-of-nothing"),
        pytest.param("ARRAY< «>»", SqlSyntaxError, "a column type is expected here.", "", id="array-empty"),
        pytest.param("ARRAY<INT«,» INT>", SqlSyntaxError, "> is expected here.", "", id="array-of-two"),
        pytest.param("ARRAY<IN«T»", SqlSyntaxError, "> is expected here.", "", id="array-not-closed"),
        pytest.param("MAP<STRING«>»", SqlSyntaxError, ", is expected here.", "", id="map-of-one"),
        pytest.param("MAP<STRING, INT«,» INT>", SqlSyntaxError, "> is expected here.", "", id="map-of-three"),
        pytest.param("STRUCT«<>»", SqlSyntaxError, "< is expected here.", "", id="struct-empty"),
        pytest.param(
            "STRUCT<«:» INT>", SqlSyntaxError, "a field name is expected here.", "", id="field-name"
        ),
        pytest.param("STRUCT<a:«>»", SqlSyntaxError, "a column type is expected here.", "", id="field-type"),
        pytest.param(
            "STRUCT<a: INT «NOT» NULL>", SqlSyntaxError, "> is expected here.", "", id="field-not-null"
        ),
        pytest.param(
            "STRUCT<a: INT,«>»", SqlSyntaxError, "a field name is expected here.", "", id="trailing-comma"
        ),
        pytest.param("«'INT'»", SqlSyntaxError, "a column type is expected here.", "", id="string"),
        pytest.param("«)»", SqlSyntaxError, "a column type is expected here.", "", id="parenthesis"),
    ],
)
def test_refused_types(marked: str, kind: type[ViewkeeperError], message: str, hint: str) -> None:
    refuse(read_type_text, marked, kind, message, hint)


def field(name: str, data_type: Any, **metadata: Any) -> dict[str, Any]:
    return {"name": name, "type": data_type, "nullable": True, "metadata": metadata}


@pytest.mark.parametrize(
    ("schema_type", "metadata", "text"),
    [
        ("boolean", None, "BOOLEAN"),
        ("byte", None, "TINYINT"),
        ("short", None, "SMALLINT"),
        ("integer", None, "INT"),
        ("long", None, "BIGINT"),
        ("float", None, "FLOAT"),
        ("double", None, "DOUBLE"),
        ("string", {}, "STRING"),
        ("binary", None, "BINARY"),
        ("date", None, "DATE"),
        ("timestamp", None, "TIMESTAMP"),
        ("timestamp_ntz", None, "TIMESTAMP_NTZ"),
        ("variant", None, "VARIANT"),
        ("decimal(10,2)", None, "DECIMAL(10,2)"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "varchar(7)"}, "VARCHAR(7)"),
        ("string", {"__CHAR_VARCHAR_TYPE_STRING": "char(3)", "comment": "x"}, "CHAR(3)"),
        (
            {"type": "array", "elementType": "string", "containsNull": True},
            {"__CHAR_VARCHAR_TYPE_STRING": "array<varchar(7)>"},
            "ARRAY<VARCHAR(7)>",
        ),
        (
            {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True},
            {"__CHAR_VARCHAR_TYPE_STRING": "map<string,struct<a:char(2),b:int>>"},
            "MAP<STRING, STRUCT<`a`: CHAR(2), `b`: INT>>",
        ),
        ({"type": "array", "elementType": "long", "containsNull": False}, None, "ARRAY<BIGINT>"),
        (
            {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": "date"}},
            None,
            "MAP<STRING, ARRAY<DATE>>",
        ),
        (
            {
                "type": "struct",
                "fields": [field("a b", "integer"), field("c`d", "decimal(3,1)", comment="x")],
            },
            None,
            "STRUCT<`a b`: INT, `c``d`: DECIMAL(3,1)>",
        ),
    ],
)
def test_types_of_a_delta_schema(schema_type: Any, metadata: dict[str, Any] | None, text: str) -> None:
    data_type = from_delta(schema_type, metadata)
    assert str(data_type) == text
    assert data_type == read_type_text(text)


def test_a_map_of_varchar_still_is_a_map() -> None:
    """Else rows would be grouped by a map, which has no equality."""
    declared = {"__CHAR_VARCHAR_TYPE_STRING": "map<string,varchar(3)>"}
    schema_type = {"type": "map", "keyType": "string", "valueType": "string", "valueContainsNull": True}
    assert contains_map(from_delta(schema_type, declared))


COLLATED = {"__COLLATIONS": {"a": "spark.UTF8_LCASE"}}


@pytest.mark.parametrize(
    ("schema_type", "metadata", "message", "hint"),
    [
        ("void", None, "Delta tables cannot store the type void.", "cast it to another type."),
        (
            "interval day to second",
            None,
            "Delta tables cannot store the type interval day to second.",
            "cast it to another type.",
        ),
        ({"type": "udt", "class": "x"}, None, "Delta tables cannot store the type udt.", ""),
        (
            {"type": "array", "elementType": "void", "containsNull": True},
            None,
            "Delta tables cannot store the type void.",
            "cast it to another type.",
        ),
        (
            "string",
            COLLATED,
            "Delta tables cannot store collated strings.",
            "write … COLLATE UTF8_BINARY in the query.",
        ),
        (
            {"type": "struct", "fields": [field("a", "string", **COLLATED)]},
            {},
            "Delta tables cannot store collated strings.",
            "write … COLLATE UTF8_BINARY in the query.",
        ),
    ],
)
def test_refused_types_of_a_delta_schema(
    schema_type: Any, metadata: dict[str, Any] | None, message: str, hint: str
) -> None:
    refuse(lambda _: from_delta(schema_type, metadata), "", UnsupportedError, message, hint)


def as_delta(data_type: DataType) -> Any:
    """The inverse of `from_delta`, for types without CHAR and VARCHAR."""
    match data_type:
        case Simple(name):
            names = {"TINYINT": "byte", "SMALLINT": "short", "INT": "integer", "BIGINT": "long"}
            return names.get(name, name.lower())
        case Array(element):
            return {"type": "array", "elementType": as_delta(element), "containsNull": True}
        case Map(key, value):
            return {"type": "map", "keyType": as_delta(key), "valueType": as_delta(value)}
        case Struct(fields):
            return {"type": "struct", "fields": [field(name, as_delta(inner)) for name, inner in fields]}


@given(data_types.filter(lambda data_type: "CHAR(" not in str(data_type)))
def test_any_delta_type_is_understood(data_type: DataType) -> None:
    assert from_delta(as_delta(data_type)) == data_type


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT", False),
        ("VARIANT", True),
        ("MAP<INT, INT>", True),
        ("ARRAY<INT>", False),
        ("ARRAY<ARRAY<MAP<INT, INT>>>", True),
        ("STRUCT<a: INT, b: STRUCT<c: VARIANT>>", True),
        ("STRUCT<map: INT, variant: STRING>", False),
    ],
)
def test_types_without_equality(text: str, expected: bool) -> None:
    assert contains_map(read_type_text(text)) is expected


def test_floating_types() -> None:
    floating = [
        text
        for text in ("FLOAT", "DOUBLE", "DECIMAL(3,1)", "INT", "ARRAY<DOUBLE>")
        if is_floating(read_type_text(text))
    ]
    assert floating == ["FLOAT", "DOUBLE"]
