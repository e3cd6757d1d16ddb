"""Deletion vectors: which rows of a data file are gone, as the Delta protocol writes them.

A vector is a set of row positions, a 64-bit Roaring bitmap behind a magic number. Small ones stand in the log
itself in Z85; others lie in files, of which a vector is a stretch.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pyroaring import BitMap64

_MAGIC = struct.pack("<I", 1681511377)
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_VALUES = {character: value for value, character in enumerate(_Z85)}


MOST_INLINE_BYTES = 8 * 1024
"""Larger vectors lie in files. Spark cannot read a table with a vector of more than 65,535 characters in its log."""


@dataclass(frozen=True)
class StoredVectors:
    """The vectors of one commit: what the log says of each, and the file that the large ones are written to."""

    descriptors: Sequence[dict[str, Any]]
    path: str | None = None
    content: bytes = b""


def stored_vectors(vectors: Sequence[BitMap64]) -> StoredVectors:
    """A file starts with its version; each vector has its size before it and its checksum behind it."""
    name = uuid.uuid4()
    content = b"\x01"
    descriptors = []
    for positions in vectors:
        data = _MAGIC + positions.serialize()
        if len(data) <= MOST_INLINE_BYTES:
            where: dict[str, Any] = {"storageType": "i", "pathOrInlineDv": z85_encode(data)}
        else:
            where = {"storageType": "u", "pathOrInlineDv": z85_encode(name.bytes), "offset": len(content)}
            content += struct.pack(">I", len(data)) + data + struct.pack(">I", zlib.crc32(data))
        descriptors.append({**where, "sizeInBytes": len(data), "cardinality": len(positions)})
    if len(content) == 1:
        return StoredVectors(descriptors)
    return StoredVectors(descriptors, _path(name), content)


def _path(name: uuid.UUID, folder: str = "") -> str:
    return f"{folder}deletion_vector_{name}.bin"


def read_vector(descriptor: dict[str, Any], read_file: Callable[[str], bytes]) -> BitMap64:
    """The positions of a deletion vector; `read_file` gives a file of the table by its relative path."""
    size, text = descriptor["sizeInBytes"], descriptor["pathOrInlineDv"]
    if descriptor["storageType"] == "i":
        data = z85_decode(text)[:size]
    else:
        prefix, name = text[:-20], uuid.UUID(bytes=z85_decode(text[-20:]))
        folder = f"{prefix}/" if prefix else ""
        start = int(descriptor.get("offset") or 0) + 4
        data = read_file(_path(name, folder))[start : start + size]
    if data[:4] != _MAGIC:
        raise ValueError("this is no deletion vector of a known kind")
    return BitMap64.deserialize(data[4:])


def z85_encode(data: bytes) -> str:
    """
    >>> z85_encode(bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B]))
    'HelloWorld'
    """
    padded = data + b"\0" * (-len(data) % 4)
    pieces = []
    for (word,) in struct.iter_unpack(">I", padded):
        digits = []
        for _ in range(5):
            word, digit = divmod(word, 85)
            digits.append(_Z85[digit])
        pieces.append("".join(reversed(digits)))
    return "".join(pieces)


def z85_decode(text: str) -> bytes:
    """
    >>> z85_decode("HelloWorld").hex()
    '864fd26fb559f75b'
    """
    words = []
    for at in range(0, len(text), 5):
        word = 0
        for character in text[at : at + 5]:
            word = word * 85 + _VALUES[character]
        words.append(struct.pack(">I", word))
    return b"".join(words)
