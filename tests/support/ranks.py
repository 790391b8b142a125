"""Many ranks of a job from few recorded ones: the same launches with another rank, process, host
and session, slower where one is to be slow. It reads and writes the wire format by itself."""

import struct

PACKET, BATCH, SAMPLES, HEADER = 1, 1, 4, 10
SEQUENCE, CRC = 14, 15
PID, HOST, RANK, SIMULATED, REALTIME, SESSION, WORLD, JOB = 4, 5, 7, 10, 15, 17, 22, 24
DURATIONS = 8  # of a LaunchBatch


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def varints(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            values.append(value)
            value = shift = 0
    return values


def fields(data):
    """(number, wire type, value): of type 0 an int, else bytes."""
    found, at = [], 0

    def one():
        nonlocal at
        begin = at
        while data[at] > 0x7F:
            at += 1
        at += 1
        return varints(data[begin:at])[0]

    while at < len(data):
        tag = one()
        kind = tag & 7
        value = one() if kind == 0 else None
        if kind:
            size = {1: 8, 5: 4}.get(kind) or one()
            value, at = bytes(data[at:at + size]), at + size
        found.append((tag >> 3, kind, value))
    return found


def encoded(message):
    out = bytearray()
    for number, kind, value in message:
        out += varint(number << 3 | kind)
        out += varint(value) if kind == 0 else (varint(len(value)) if kind == 2 else b"") + value
    return bytes(out)


def with_values(message, values):
    """The message with these fields in the place of its own; None leaves one out."""
    kept = [one for one in message if one[0] not in values]
    given = [(number, {int: 0, bytes: 2, float: 1}[type(value)], value)
             for number, value in values.items() if value is not None]
    return sorted(kept + given, key=lambda one: one[0])


_CRC = []
for _value in range(256):
    for _ in range(8):
        _value = _value >> 1 ^ (0x82F63B78 if _value & 1 else 0)
    _CRC.append(_value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def framed(body, sequence):
    packet = encoded([*body, (SEQUENCE, 0, sequence)])
    packet += varint(CRC << 3 | 5) + struct.pack("<I", crc32c(packet))
    return varint(PACKET << 3 | 2) + varint(len(packet)) + packet


def slower(batch, factor):
    """A launch batch whose durations are `factor` times as long."""
    changed = []
    for number, kind, value in batch:
        if number == DURATIONS:
            deltas = (value >> 1 ^ -(value & 1) for value in varints(value))
            longer = (round(delta * factor) for delta in deltas)
            value = b"".join(varint(delta << 1 if delta >= 0 else -delta * 2 - 1)
                             for delta in longer)
        changed.append((number, kind, value))
    return changed


class Trace:
    """A recorded trace, to make others of."""

    def __init__(self, data):
        self.bodies = []
        for number, _, packet in fields(data):
            assert number == PACKET, number
            assert crc32c(packet[:-5]) == struct.unpack("<I", packet[-4:])[0]
            self.bodies.append([one for one in fields(packet) if one[0] not in (SEQUENCE, CRC)])
        (self.header,) = (fields(body[0][2]) for body in self.bodies if body[0][0] == HEADER)
        # Framing and check sums are most of the work: packets that stay are made once.
        self.rest = b"".join(framed(body, at) for at, body in enumerate(self.bodies[1:], 2))
        self.slow = {}

    def of_rank(self, rank, ranks, *, host, session, job=None, slowdown=None, simulated=True,
                begin_ns=None):
        values = {PID: 1000 + rank, HOST: host.encode(), RANK: rank, WORLD: ranks,
                  SIMULATED: 1 if simulated else None}
        if job is not None:
            values[JOB] = job.encode()
        if begin_ns is not None:
            values[REALTIME] = begin_ns
        header = with_values(self.header, values)
        header = [one if one[0] != SESSION else (SESSION, 1, struct.pack("<Q", session))
                  for one in header]
        first = framed([(HEADER, 2, encoded(header))], 1)
        return first + (self.rest if slowdown is None else self._slower(slowdown))

    def _slower(self, factor):
        if factor not in self.slow:
            bodies = [[(BATCH, 2, encoded(slower(fields(body[0][2]), factor)))]
                      if body[0][0] == BATCH else body for body in self.bodies[1:]]
            self.slow[factor] = b"".join(framed(body, at) for at, body in enumerate(bodies, 2))
        return self.slow[factor]
