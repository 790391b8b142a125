"""The first packet of a trace, which says where it comes from. proto/FORMAT.md has the framing."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

#: So much of a trace's beginning has its header, unless its command line is huge.
ENOUGH = 1 << 16
#: So much has it in any case: no packet is larger.
MOST = (4 << 20) + 64

# Numbers of fields with their wire type: one of another type is a field that nobody knows.
_VARINT, _FIXED64, _BYTES = 0, 1, 2
_PACKET, _HEADER = 1 << 3 | _BYTES, 10 << 3 | _BYTES
_RANK, _SIMULATED, _REALTIME_NS = 7 << 3 | _VARINT, 10 << 3 | _VARINT, 15 << 3 | _VARINT
_SESSION, _JOB = 17 << 3 | _FIXED64, 24 << 3 | _BYTES


@dataclass(frozen=True)
class Header:
    session: int
    job: str  # empty where no launcher says one
    rank: int | None
    simulated: bool
    begin_ns: int  # by the host's clock


def read_header(begins: Callable[[int], bytes]) -> Header | None:
    """Of the trace whose first bytes, as many as asked for, begins() gives. None where the first
    packet is no header of a recording, or is damaged. What begins() raises goes through."""
    for size in (ENOUGH, MOST):
        beginning = begins(size)
        try:
            header = _header_in(_unpacked(beginning, size))
        except Exception:  # whatever a file of anyone's does to what reads it, it is no header
            header = None
        if header or len(beginning) < size:
            return header
    return None


def _header_in(beginning: bytes) -> Header | None:
    tag, packet = next(_fields(beginning))
    if tag != _PACKET or _crc32c(packet[:-5]) != int.from_bytes(packet[-4:], "little"):
        return None
    found = dict(_fields(dict(_fields(packet))[_HEADER]))
    rank = found.get(_RANK, 0)
    if not found.get(_SESSION):
        return None
    return Header(found[_SESSION], found.get(_JOB, b"").decode(errors="replace"),
                  rank if rank < 1 << 31 else None, bool(found.get(_SIMULATED)),
                  found.get(_REALTIME_NS, 0))


def _unpacked(beginning: bytes, size: int) -> bytes:
    if beginning[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(beginning, size)
    if beginning[:4] == b"\x28\xb5\x2f\xfd":
        import pyarrow

        with pyarrow.input_stream(pyarrow.BufferReader(beginning), compression="zstd") as plain:
            return plain.read(size)
    return beginning


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Tags and values: of bytes, else of an int."""
    rest = io.BytesIO(message)

    def varint() -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = rest.read(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError

    while rest.tell() < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]  # KeyError: no such type
        value = rest.read(size)
        if len(value) < size:
            raise IndexError
        yield tag, value if kind == 2 else int.from_bytes(value, "little")


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _table_entry(value: int) -> int:
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    return value


_TABLE = [_table_entry(value) for value in range(256)]
