"""A client of CUPTI that shares it with others, as flopinj does from CUPTI 13.2 on: it counts
kernel records. Standard library only."""

import ctypes
import os

CONCURRENT_KERNEL = 10  # CUpti_ActivityKind
FLUSH_FORCED = 1
BUFFER_BYTES = 1 << 20

Callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)
Requested = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                             ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p)
Completed = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t,
                             ctypes.c_void_p)


class Parameters(ctypes.Structure):
    """CUpti_SubscriberParams of the headers of CUPTI 13.2 and later."""
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p),
                ("old_name", ctypes.c_char_p), ("old_name_size", ctypes.c_size_t),
                ("allow_multiple", ctypes.c_uint8), ("padding", ctypes.c_uint8 * 7)]


def loaded_cupti(major):
    """The libcupti of this process, of a CUDA major version; None without one."""
    try:
        return ctypes.CDLL(f"libcupti.so.{major}", mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
    except OSError:
        return None


def version(cupti):
    """As cuptiGetVersion has it: 130200 is 13.2; 0 where it answers an error."""
    number = ctypes.c_uint32()
    return number.value if cupti.cuptiGetVersion(ctypes.byref(number)) == 0 else 0


class Subscriber:
    def __init__(self, cupti):
        self.cupti, self.handle, self.kernels = cupti, ctypes.c_void_p(), 0
        self.buffers = {}
        # CUPTI keeps their addresses.
        self.callbacks = (Callback(lambda *_: None), Requested(self._requested),
                          Completed(self._completed))

    def begin(self):
        """Names of the calls and what CUPTI answered, up to the first refusal."""
        parameters = Parameters(size=ctypes.sizeof(Parameters), name=b"probe", allow_multiple=1)
        nothing, requested, completed = self.callbacks
        calls = (("cuptiSubscribe_v2", lambda f: f(ctypes.byref(self.handle), nothing, None,
                                                   ctypes.byref(parameters))),
                 ("cuptiActivityRegisterCallbacks_v2",
                  lambda f: f(self.handle, requested, completed)),
                 ("cuptiActivityEnable_v2", lambda f: f(self.handle, CONCURRENT_KERNEL, None)))
        answers = {}
        for name, call in calls:
            function = getattr(self.cupti, name, None)
            answers[name] = call(function) if function is not None else "is not there"
            if answers[name] != 0:
                break
        return answers

    def count(self):
        """Kernel records so far."""
        self.cupti.cuptiActivityFlushAll(FLUSH_FORCED)
        return self.kernels

    def end(self):
        self.cupti.cuptiUnsubscribe(self.handle)

    def _requested(self, buffer, size, most, _):
        memory = (ctypes.c_uint64 * (BUFFER_BYTES // 8))()
        address = ctypes.addressof(memory)
        self.buffers[address] = memory
        buffer[0], size[0], most[0] = address, BUFFER_BYTES, 0

    def _completed(self, buffer, _, valid, __):
        record = ctypes.c_void_p()
        while self._next(ctypes.c_void_p(buffer), ctypes.c_size_t(valid), record) == 0:
            self.kernels += 1
        self.buffers.pop(buffer, None)

    def _next(self, buffer, valid, record):
        """From 13.3 on the function without a subscriber refuses a shared CUPTI."""
        own = getattr(self.cupti, "cuptiActivityGetNextRecord_v2", None)
        if own is not None:
            return own(self.handle, buffer, valid, ctypes.byref(record))
        return self.cupti.cuptiActivityGetNextRecord(buffer, valid, ctypes.byref(record))
