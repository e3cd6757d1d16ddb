"""Stand-ins for values without equality, one golden file for each shape of type."""

from __future__ import annotations

import pytest

from tests.support.golden import check_golden
from viewkeeper.maintenance.comparable import comparable
from viewkeeper.sql.rendering import column
from viewkeeper.sql.types import contains_map, read_type_text


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("VARIANT", id="variant"),
        pytest.param("MAP<STRING, INT>", id="map"),
        pytest.param("MAP<STRING, VARIANT>", id="map_of_variants"),
        pytest.param("MAP<STRING, MAP<INT, INT>>", id="map_of_maps"),
        pytest.param("MAP<STRUCT<a: INT>, ARRAY<MAP<INT, INT>>>", id="map_with_struct_keys"),
        pytest.param("ARRAY<MAP<STRING, INT>>", id="array_of_maps"),
        pytest.param("ARRAY<ARRAY<VARIANT>>", id="array_of_arrays_of_variants"),
        pytest.param("STRUCT<a: INT, m: MAP<STRING, INT>>", id="struct_with_a_map"),
        pytest.param("STRUCT<`it``s`: STRUCT<`say 'hi'`: VARIANT>>", id="struct_with_hostile_names"),
        pytest.param(
            "ARRAY<STRUCT<a: INT, m: MAP<STRING, ARRAY<VARIANT>>>>", id="array_of_structs_with_maps"
        ),
    ],
)
def test_stand_ins(text: str, request: pytest.FixtureRequest) -> None:
    data_type = read_type_text(text)
    assert contains_map(data_type)
    stand_in = comparable(column("it`s", "t"), data_type)
    check_golden(request, f"-- {text}\n{stand_in.sql(dialect='spark', pretty=True)}")


@pytest.mark.parametrize(
    "text",
    ["INT", "STRING", "ARRAY<INT>", "STRUCT<a: INT, b: ARRAY<STRUCT<c: DATE>>>", "DECIMAL(3,1)", "BINARY"],
)
def test_values_with_equality_stand_for_themselves(text: str) -> None:
    value = column("a")
    assert comparable(value, read_type_text(text)) is value
