"""Deletion vectors: our own are read back, also by delta-rs; a round trip loses nothing."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from viewkeeper.storage.deletion_vectors import (
    MOST_INLINE_BYTES,
    read_vector,
    stored_vectors,
    z85_decode,
    z85_encode,
)


def no_file(path: str) -> bytes:
    raise AssertionError(f"{path} was asked for")


@given(st.binary(max_size=64))
def test_z85_goes_there_and_back(data: bytes) -> None:
    assert z85_decode(z85_encode(data))[: len(data)] == data


def inline(positions: BitMap64) -> dict[str, Any]:
    (descriptor,) = stored_vectors([positions]).descriptors
    return descriptor


@given(st.sets(st.integers(0, 2**40)))
def test_an_inline_vector_goes_there_and_back(positions: set[int]) -> None:
    descriptor = inline(BitMap64(positions))
    assert descriptor["cardinality"] == len(positions)
    assert set(read_vector(descriptor, no_file)) == positions


def test_large_vectors_of_a_commit_lie_in_one_file() -> None:
    small, *large = vectors = [BitMap64(range(0, count, 2)) for count in (10, 200_000, 900_000)]
    stored = stored_vectors(vectors)
    assert [each["storageType"] for each in stored.descriptors] == ["i", "u", "u"]
    files = {stored.path: stored.content}
    assert [read_vector(each, lambda path: files[path]) for each in stored.descriptors] == [small, *large]
    assert all(len(each["pathOrInlineDv"]) <= MOST_INLINE_BYTES * 5 / 4 for each in stored.descriptors)


def test_a_vector_in_a_file_is_a_stretch_of_it() -> None:
    """A file starts with its version; each vector has its size before it and its checksum behind it."""
    first, second = (z85_decode(inline(BitMap64(p))["pathOrInlineDv"]) for p in ([1], [2, 5]))
    size = inline(BitMap64([2, 5]))["sizeInBytes"]
    data = b"\x01"
    for vector in (first, second):
        data += struct.pack(">I", len(vector)) + vector + struct.pack(">I", zlib.crc32(vector))
    name = "00112233-4455-6677-8899-aabbccddeeff"
    descriptor = {
        "storageType": "u",
        "pathOrInlineDv": "ab" + z85_encode(bytes.fromhex(name.replace("-", ""))),
        "offset": 1 + 4 + len(first) + 4,
        "sizeInBytes": size,
    }
    paths = []

    def read(path: str) -> bytes:
        paths.append(path)
        return data

    assert list(read_vector(descriptor, read)) == [2, 5]
    assert paths == [f"ab/deletion_vector_{name}.bin"]


def test_another_kind_of_bitmap_is_refused() -> None:
    descriptor = {"storageType": "i", "pathOrInlineDv": z85_encode(b"\0" * 8), "sizeInBytes": 8}
    with pytest.raises(ValueError, match="no deletion vector of a known kind"):
        read_vector(descriptor, no_file)
