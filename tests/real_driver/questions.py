"""Asks the libcuda.so.1 of this process, where there is no device, and prints one answer a line.

The same questions go to NVIDIA's driver and to simgpu; what they answer is compared."""

import ctypes

cuda = ctypes.CDLL("libcuda.so.1")
P = ctypes.c_void_p


def ask(name, *arguments, value=None):
    result = getattr(cuda, name)(*arguments)
    print(f"{name}{tuple(a for a in arguments if isinstance(a, int))}: {result}"
          + ("" if value is None else f" {value()}"))


def text(name, number):
    answer = ctypes.c_char_p()
    ask(name, number, ctypes.byref(answer), value=lambda: answer.value)


def not_initialised():
    """What needs cuInit, before it or after one that failed."""
    number, pointer, size = ctypes.c_int(), P(), ctypes.c_size_t()
    ask("cuDeviceGetCount", ctypes.byref(number))
    ask("cuDeviceGet", ctypes.byref(number), 0)
    ask("cuDeviceGetName", ctypes.create_string_buffer(64), 64, 0)
    ask("cuDeviceGetAttribute", ctypes.byref(number), 75, 0)
    ask("cuDevicePrimaryCtxRetain", ctypes.byref(pointer), 0)
    ask("cuCtxGetCurrent", ctypes.byref(pointer))
    ask("cuCtxSynchronize")
    ask("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(16))
    ask("cuMemGetInfo_v2", ctypes.byref(size), ctypes.byref(size))
    ask("cuModuleLoadData", ctypes.byref(pointer), b"not an image")
    ask("cuLibraryLoadData", ctypes.byref(pointer), b"not an image", None, None, 0, None, None, 0)
    ask("cuStreamCreate", ctypes.byref(pointer), 0)
    ask("cuStreamIsCapturing", None, ctypes.byref(number))
    ask("cuThreadExchangeStreamCaptureMode", ctypes.byref(ctypes.c_int(2)))
    ask("cuEventCreate", ctypes.byref(pointer), 0)
    ask("cuGraphCreate", ctypes.byref(pointer), 0)


version = ctypes.c_int()
ask("cuDriverGetVersion", ctypes.byref(version), value=lambda: version.value >= 12000)
ask("cuDriverGetVersion", None)
for code in (0, 1, 2, 3, 100, 101, 201, 400, 401, 500, 600, 700, 701, 720, 900, 901, 999, 12345):
    text("cuGetErrorName", code)
    text("cuGetErrorString", code)
not_initialised()
ask("cuInit", 1)
ask("cuInit", 0)
ask("cuInit", 0)
not_initialised()
found, status = P(), ctypes.c_int()
for name in (b"cuInit", b"cuMemAlloc", b"cuNoSuchFunction"):
    ask("cuGetProcAddress_v2", name, ctypes.byref(found), 12000, ctypes.c_uint64(0),
        ctypes.byref(status), value=lambda: (name, bool(found.value), status.value))
