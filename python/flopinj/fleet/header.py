"""The first packet of a trace, which says where it comes from. proto/FORMAT.md has the framing."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Optional, Union

#: So much of a trace's beginning has its header, unless its command line is huge.
ENOUGH = 1 << 16

_PACKET, _HEADER, _CRC = 1, 10, 15
_RANK, _SIMULATED, _REALTIME_NS, _SESSION, _JOB = 7, 10, 15, 17, 24


@dataclass(frozen=True)
class Header:
    session: int
    job: str  # empty where no launcher says one
    rank: Optional[int]
    simulated: bool
    begin_ns: int  # by the host's clock


def read_header(beginning: bytes) -> Optional[Header]:
    """None where the first packet is no header, or is damaged."""
    try:
        key, packet = next(_fields(_unpacked(beginning)))
        if key != _PACKET or not isinstance(packet, bytes):
            return None
        if _crc32c(packet[:-5]) != int.from_bytes(packet[-4:], "little"):
            return None
        found = dict(_fields(dict(_fields(packet))[_HEADER]))
    except (KeyError, IndexError, StopIteration, zlib.error, OSError):
        return None
    rank = found.get(_RANK, 0)
    return Header(
        found.get(_SESSION, 0), found.get(_JOB, b"").decode(errors="replace"),
        rank if rank < 1 << 31 else None, bool(found.get(_SIMULATED)), found.get(_REALTIME_NS, 0))


def _unpacked(beginning: bytes) -> bytes:
    if beginning[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(beginning, ENOUGH)
    if beginning[:4] == b"\x28\xb5\x2f\xfd":
        import pyarrow

        with pyarrow.input_stream(pyarrow.BufferReader(beginning), compression="zstd") as plain:
            return plain.read(ENOUGH)
    return beginning


def _fields(message: bytes) -> Iterator[tuple[int, Union[int, bytes]]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(message):
        tag = varint()
        kind = tag & 7
        if kind == 0:
            yield tag >> 3, varint()
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]  # KeyError: no such type
        if at + size > len(message):
            raise IndexError
        value = message[at:at + size]
        at += size
        yield tag >> 3, value if kind == 2 else int.from_bytes(value, "little")


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
