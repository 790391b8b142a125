"""CUDA's driver and CUPTI's range profiler for programs of Python, PyTorch among them: one object
for a context, and the time of every call. Standard library only.

A call that fails raises Refused. Structures have the sizes of CUPTI 12.6, as those of
injector/vendor/cupti_structs.h, which says why."""

import ctypes
import time
from ctypes import (POINTER, Structure, addressof, byref, c_char_p, c_double, c_int, c_size_t,
                    c_uint, c_uint16, c_uint32, c_uint64, c_uint8, c_void_p)

AUTO_RANGE, KERNEL_REPLAY, RANGE_PROFILER = 1, 2, 0  # enumerations of CUPTI's headers
INSTRUCTIONS = tuple(f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum"
                     for name in ("ffma", "fadd", "fmul"))
HARDWARE = ("gpu__time_duration.sum", "sm__cycles_elapsed.max")

# A warp of it executes STEPS fused multiply-adds for each thread, and no others.
KERNEL = """
.visible .entry {name}(.param .u64 out, .param .u32 steps)
{{
  .reg .pred %p<2>; .reg .b64 %rd<3>; .reg .b32 %r<4>; .reg .f32 %f<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r2, [steps];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  mov.u32 %r3, 0;
again:
  fma.rn.f32 %f1, %f1, %f1, %f1;
  add.u32 %r3, %r3, 1;
  setp.lt.u32 %p1, %r3, %r2;
  @%p1 bra again;
  st.global.f32 [%rd1], %f1;
  ret;
}}
"""


def ptx(names):
    """A module of PTX with a kernel of each name."""
    return (".version 7.0\n.target sm_75\n.address_size 64\n"
            + "".join(KERNEL.format(name=name) for name in names)).encode()


class Refused(Exception):
    """A call and what it answered."""


class Library:
    """Functions of a shared library that answer 0 where they did what they were asked for."""

    def __init__(self, library, name_of):
        self.library, self.name_of = library, name_of

    def __call__(self, name, *arguments):
        function = getattr(self.library, name, None)
        if function is None:
            raise Refused(f"{name} is not there")
        result = function(*arguments)
        if result == 0:
            return
        text = c_char_p()
        known = getattr(self.library, self.name_of)(result, byref(text)) == 0 and text.value
        raise Refused(f"{name}: {text.value.decode() if known else result}")


class Driver(Library):
    """The driver, with the primary context of device 0 current on this thread."""

    def __init__(self):
        super().__init__(ctypes.CDLL("libcuda.so.1"), "cuGetErrorName")
        device = c_int()
        self.context = c_void_p()
        self("cuInit", 0)
        self("cuDeviceGet", byref(device), 0)
        self("cuDevicePrimaryCtxRetain", byref(self.context), device)
        self.make_current()
        self.scratch = c_uint64()
        self("cuMemAlloc_v2", byref(self.scratch), c_size_t(1 << 20))

    def make_current(self):
        self("cuCtxSetCurrent", self.context)

    def load(self, image):
        module = c_void_p()
        self("cuModuleLoadData", byref(module), image)
        return module

    def function(self, module, name):
        function = c_void_p()
        self("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def launch(self, function, steps):
        values = (c_uint64(self.scratch.value), c_uint32(steps))
        arguments = (c_void_p * len(values))(*map(addressof, values))
        self("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)

    def synchronize(self):
        self("cuCtxSynchronize")


def cupti():
    """The libcupti of this process, else the first that the loader finds."""
    for mode in (ctypes.DEFAULT_MODE | 4, ctypes.DEFAULT_MODE):  # 4: RTLD_NOLOAD
        for major in (13, 12):
            try:
                return Library(ctypes.CDLL(f"libcupti.so.{major}", mode=mode),
                               "cuptiGetResultString")
            except OSError:
                pass
    raise Refused("no libcupti.so.12 or 13 can be loaded")


def _params(name, *fields):
    """A structure that begins with its own size, with room behind it for fields of newer CUPTI."""
    def __init__(self, **values):
        Structure.__init__(self, structSize=self.last_end, **values)

    made = type(name, (Structure,), {
        "_fields_": [("structSize", c_size_t), ("pPriv", c_void_p), *fields,
                     ("newer", c_uint64 * 16)],
        "__init__": __init__})
    last, kind = fields[-1] if fields else ("pPriv", c_void_p)
    made.last_end = getattr(made, last).offset + ctypes.sizeof(kind)
    return made


_OBJECT, _IMAGE = ("object", c_void_p), (("bytes", c_size_t), ("image", c_void_p))
_NAMES = (("names", POINTER(c_char_p)), ("count", c_size_t))
Nothing = _params("Nothing")
ChipName = _params("ChipName", ("index", c_size_t), ("name", c_char_p))
OfObject = _params("OfObject", _OBJECT)
Enable = _params("Enable", ("context", c_void_p), _OBJECT)
SetConfig = _params(
    "SetConfig", _OBJECT, ("config_bytes", c_size_t), ("config", c_void_p), *_IMAGE,
    ("range", c_uint), ("replay", c_uint), ("most", c_size_t), ("levels", c_uint16),
    ("level", c_uint16), ("pass_index", c_size_t), ("target_level", c_uint16))
Stop = _params("Stop", _OBJECT, ("pass_index", c_size_t), ("level", c_size_t), ("all", c_uint8))
Decode = _params("Decode", _OBJECT, ("dropped", c_size_t))
ImageSize = _params("ImageSize", _OBJECT, *_NAMES, ("ranges", c_size_t), ("nodes", c_uint32),
                    ("bytes", c_size_t))
ImageOf = _params("ImageOf", _OBJECT, *_IMAGE)
ImageInfo = _params("ImageInfo", ("image", c_void_p), ("bytes", c_size_t), ("ranges", c_size_t))
HostInitialize = _params("HostInitialize", ("type", c_uint), ("chip", c_char_p),
                         ("available", c_void_p), ("host", c_void_p))
HostAdd = _params("HostAdd", ("host", c_void_p), *_NAMES)
HostSize = _params("HostSize", ("host", c_void_p), ("bytes", c_size_t))
HostImage = _params("HostImage", ("host", c_void_p), *_IMAGE)
HostEvaluate = _params("HostEvaluate", ("host", c_void_p), ("image", c_void_p),
                       ("bytes", c_size_t), ("range", c_size_t), *_NAMES, ("values", c_void_p))


class Ranges:
    """Windows of the range profiler on the driver's context. Each part may be another thread's."""

    def __init__(self, driver, library):
        self.driver, self.call = driver, library
        self.object = c_void_p()
        self.milliseconds = {}  # of the last call of each name

    def _timed(self, name, parameters):
        began = time.monotonic_ns()
        try:
            self.call(name, byref(parameters))
        finally:
            self.milliseconds[name] = (time.monotonic_ns() - began) / 1e6

    def enable(self):
        self.call("cuptiProfilerInitialize", byref(Nothing()))
        parameters = Enable(context=self.driver.context)
        self._timed("cuptiRangeProfilerEnable", parameters)
        self.object = c_void_p(parameters.object)

    def plan(self, metrics):
        """The configuration of these metrics, which have to fit one pass."""
        chip = ChipName(index=0)
        self.call("cuptiDeviceGetChipName", byref(chip))
        host = HostInitialize(type=RANGE_PROFILER, chip=chip.name)
        self.call("cuptiProfilerHostInitialize", byref(host))
        self.host = host.host
        self.names = (c_char_p * len(metrics))(*(name.encode() for name in metrics))
        self.call("cuptiProfilerHostConfigAddMetrics",
                  byref(HostAdd(host=self.host, names=self.names, count=len(metrics))))
        size = HostSize(host=self.host)
        self.call("cuptiProfilerHostGetConfigImageSize", byref(size))
        self.config = (c_uint8 * size.bytes)()
        self.call("cuptiProfilerHostGetConfigImage",
                  byref(HostImage(host=self.host, bytes=size.bytes, image=addressof(self.config))))

    def configure(self, most):
        """The next window is of the planned metrics, for so many ranges."""
        size = ImageSize(object=self.object, names=self.names, count=len(self.names), ranges=most,
                         nodes=most)
        self.call("cuptiRangeProfilerGetCounterDataSize", byref(size))
        self.image = (c_uint8 * size.bytes)()
        image = {"bytes": size.bytes, "image": addressof(self.image)}
        self.call("cuptiRangeProfilerCounterDataImageInitialize",
                  byref(ImageOf(object=self.object, **image)))
        self._timed("cuptiRangeProfilerSetConfig", SetConfig(
            object=self.object, config_bytes=len(self.config), config=addressof(self.config),
            **image, range=AUTO_RANGE, replay=KERNEL_REPLAY, most=most, levels=1, level=1))

    def start(self):
        self._timed("cuptiRangeProfilerStart", OfObject(object=self.object))

    def stop(self):
        self._timed("cuptiRangeProfilerStop", Stop(object=self.object))

    def values(self):
        """The first metric of each range of the stopped window."""
        self._timed("cuptiRangeProfilerDecodeData", Decode(object=self.object))
        info = ImageInfo(image=addressof(self.image), bytes=len(self.image))
        self.call("cuptiRangeProfilerGetCounterDataInfo", byref(info))
        first = []
        for number in range(info.ranges):
            values = (c_double * len(self.names))()
            self.call("cuptiProfilerHostEvaluateToGpuValues", byref(HostEvaluate(
                host=self.host, image=addressof(self.image), bytes=len(self.image), range=number,
                names=self.names, count=len(self.names), values=addressof(values))))
            first.append(values[0])
        return first

    def disable(self):
        self._timed("cuptiRangeProfilerDisable", OfObject(object=self.object))
