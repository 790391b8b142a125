"""Registers and static shared memory of a cubin's kernels. Standard library only.

Where they are, by no document: `.nv.info` has an attribute REGCOUNT (0x2f) for each function: the
index of its symbol and a number. `.nv.shared.F` is as large as the static shared memory of F; with
1 KiB more, of the system's, where the image has a section for what is reserved, as from compute
capability 9.0 on. questions.py compares both with the driver's answers; gpu_test.py with what ptxas
says."""

import mmap
import struct

EIFMT_SVAL, REGCOUNT = 4, 0x2F
SYSTEM_SHARED_BYTES, RESERVED = 1024, ".nv.shared.reserved.0"
STT_FUNC, STO_ENTRY = 2, 0x10
FATBIN_MAGIC, FATBIN_HEADER = 0xBA55ED50, struct.Struct("<IHHQ")


def _headers(image):
    """Name of each section, and its header: name, type, flags, address, offset, bytes, link, ..."""
    if image[:4] != b"\x7fELF" or image[4] != 2:
        raise ValueError("this is no ELF file of 64 bits")
    start, = struct.unpack_from("<Q", image, 0x28)
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, start + i * size) for i in range(count)]
    return [(_text(image, headers[names], header[0]), header) for header in headers], headers


def _text(image, table, at):
    begin = table[4] + at
    return bytes(image[begin:image.find(b"\0", begin)]).decode(errors="replace")


def _symbols(image, headers):
    """Name, type and other bits of each symbol."""
    return [(_text(image, headers[header[6]], name), info & 0xF, other)
            for header in headers if header[1] == 2  # SHT_SYMTAB
            for at in range(header[4], header[4] + header[5], 24)
            for name, info, other in (struct.unpack_from("<IBB", image, at),)]


def kernels(image):
    """Name of each kernel to (registers of a thread or None, bytes of static shared memory)."""
    named, headers = _headers(image)
    sections = {name: (header[4], header[5]) for name, header in named}
    symbols, registers = _symbols(image, headers), {}
    at, size = sections.get(".nv.info", (0, 0))
    end = at + size
    while at + 4 <= end:
        form, attribute, length = struct.unpack_from("<BBH", image, at)
        at += 4
        if form != EIFMT_SVAL:
            continue
        if attribute == REGCOUNT and length >= 8:
            symbol, number = struct.unpack_from("<II", image, at)
            if symbol < len(symbols):
                registers[symbols[symbol][0]] = number
        at += length
    system = SYSTEM_SHARED_BYTES if RESERVED in sections else 0
    return {name: (registers.get(name),
                   max(sections.get(f".nv.shared.{name}", (0, 0))[1] - system, 0))
            for name, kind, other in symbols if kind == STT_FUNC and other & STO_ENTRY}


def fatbins(path):
    """Each fatbin of a shared library or program, whole, as cuModuleLoadData takes it."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        for name, header in _headers(image)[0]:
            at, end = header[4], header[4] + header[5]
            while name == ".nv_fatbin" and at + FATBIN_HEADER.size <= end:
                magic, _, long, rest = FATBIN_HEADER.unpack_from(image, at)
                if magic != FATBIN_MAGIC:
                    at += 8
                    continue
                yield image[at:at + long + rest]
                at += long + rest
