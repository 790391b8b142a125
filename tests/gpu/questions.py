#!/usr/bin/env python3
"""The questions on whose answers most code depends: `questions.py QUESTION [ARGUMENT...]`.

Each is asked in a process of its own, on any driver, the simulated one too. Prints observations as
the probes do; answers.py says what follows. Exit code 77 where a requirement is missing."""

import ctypes
import os
import sys
import threading
import time
from ctypes import POINTER, byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

import cubin
from probe_output import say
from ranges import HARDWARE, INSTRUCTIONS, Driver, Ranges, Refused, cupti, ptx
from workloads import torch_or_skip

METRICS = {"instructions": INSTRUCTIONS, "hardware": HARDWARE}
LAUNCHES = 100
KERNELS = 100  # of each module
MOST_RANGES = 4096  # of a window
MILLISECOND_NS = 1_000_000

CONCURRENT_KERNEL, FLUSH_FORCED = 10, 1  # CUpti_ActivityKind, CUpti_ActivityFlag
BUFFER_BYTES = 1 << 20
START, END = 16, 24  # of CUpti_ActivityKernel9 and later

RESOURCE, MODULE_LOADED = 3, 6  # CUpti_CallbackDomain, CUpti_CallbackIdResource
REGISTERS, SHARED_BYTES = 4, 1  # CUfunction_attribute
SECONDS_OF_MODULES = 60

Requested = ctypes.CFUNCTYPE(None, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_size_t))
Completed = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t)
Callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_uint32, c_void_p)


class Records:
    """Kernel records of CUPTI."""

    def __init__(self, library):
        self.call, self.times, self.buffers = library, [], {}
        self.callbacks = Requested(self._requested), Completed(self._completed)

    def begin(self):
        self.call("cuptiActivityRegisterCallbacks", *self.callbacks)
        self.call("cuptiActivityEnable", CONCURRENT_KERNEL)

    def take(self):
        """Beginning and end of each kernel since the last time, in ns."""
        self.call("cuptiActivityFlushAll", FLUSH_FORCED)
        times, self.times = self.times, []
        return times

    def now(self):
        ns = c_uint64()
        self.call("cuptiGetTimestamp", byref(ns))
        return ns.value

    def _requested(self, buffer, size, most):
        memory = (c_uint64 * (BUFFER_BYTES // 8))()
        self.buffers[ctypes.addressof(memory)] = memory
        buffer[0], size[0], most[0] = ctypes.addressof(memory), BUFFER_BYTES, 0

    def _completed(self, _, __, buffer, ___, valid):
        record, following = c_void_p(), self.call.library.cuptiActivityGetNextRecord
        while following(c_void_p(buffer), c_size_t(valid), byref(record)) == 0:
            if c_uint32.from_address(record.value).value == CONCURRENT_KERNEL:
                self.times.append(tuple(c_uint64.from_address(record.value + place).value
                                        for place in (START, END)))
        self.buffers.pop(buffer, None)


class Modules:
    """The code of each module that is loaded, as CUPTI shows it."""

    def __init__(self, library):
        self.images, self.called = [], Callback(self._loaded)
        subscriber = c_void_p()
        library("cuptiSubscribe", byref(subscriber), self.called, None)
        library("cuptiEnableCallback", 1, subscriber, RESOURCE, MODULE_LOADED)

    def _loaded(self, _, __, ___, data):
        # CUpti_ResourceData: context, handle, descriptor; of it: id, bytes, code.
        module = c_void_p.from_address(data + 16).value
        size = c_size_t.from_address(module + 8).value
        code = c_void_p.from_address(module + 16).value
        self.images.append(ctypes.string_at(code, size) if code else b"")


def simple_kernel(driver):
    return driver.function(driver.load(ptx(["steps"])), "steps")


def launch_all(driver, kernel):
    for _ in range(LAUNCHES):
        driver.launch(kernel, 10)
    driver.synchronize()


def records_beside_ranges():
    driver, library = Driver(), cupti()
    kernel, records, ranges = simple_kernel(driver), Records(library), Ranges(driver, library)
    driver.launch(kernel, 1)

    def observe(where):
        records.take()
        before = records.now()
        launch_all(driver, kernel)
        after = records.now()
        times = records.take()
        invalid = sum(begin == 0 or end <= begin for begin, end in times)
        elsewhen = sum(begin < before - MILLISECOND_NS or end > after + MILLISECOND_NS
                       for begin, end in times)
        say(f"{where}: launches", LAUNCHES)
        say(f"{where}: records", len(times))
        say(f"{where}: records without a time", invalid)
        say(f"{where}: records of a time before or after the launches", elsewhen)

    records.begin()
    observe("no ranges")
    ranges.enable()
    observe("enabled, no window")
    for name, metrics in METRICS.items():
        ranges.plan(metrics)
        ranges.configure(2 * LAUNCHES)
        ranges.start()
        observe(f"window of {name}")
        ranges.stop()
        say(f"window of {name}: ranges", len(ranges.values()))
    ranges.disable()
    observe("after the windows")


def _torch():
    """Work of PyTorch whose kernels are of many of its modules."""
    torch = torch_or_skip()
    functional = torch.nn.functional
    image = torch.ones(8, 16, 32, 32, device="cuda")
    weight = torch.ones(16, 16, 3, 3, device="cuda")

    def work():
        for kind in (torch.float32, torch.bfloat16, torch.float16):
            matrix = torch.ones(512, 512, device="cuda", dtype=kind)
            product = matrix @ matrix
            functional.layer_norm(functional.gelu(product), (512,)).softmax(-1).sum()
            functional.scaled_dot_product_attention(*[product.view(1, 8, 64, 512)] * 3)
        functional.max_pool2d(functional.conv2d(image, weight).relu(), 2).sort()
        torch.cuda.synchronize()
    work()
    return work


def _modules(driver, count):
    """Work of one kernel, where so many modules are loaded."""
    functions = [driver.function(driver.load(ptx([f"k{m}_{k}" for k in range(KERNELS)])),
                                 f"k{m}_0") for m in range(count)]

    def work():
        driver.launch(functions[0], 10)
        driver.synchronize()
    work()
    return work


def cost_of_start(program, modules="1"):
    """`program`: torch, torch_eager (with all of its modules loaded), or modules, and how many."""
    name = {"torch": "PyTorch", "torch_eager": "PyTorch, all modules loaded"}.get(
        program, f"{modules} modules of {KERNELS} kernels")
    if program != "torch":
        os.environ["CUDA_MODULE_LOADING"] = "EAGER"
    work = _torch() if program.startswith("torch") else None
    driver, library = Driver(), cupti()
    ranges = Ranges(driver, library)
    work = work or _modules(driver, int(modules))

    def timed(act):
        began = time.monotonic_ns()
        act()
        return (time.monotonic_ns() - began) / 1e6

    say(f"{name}: work outside of windows", timed(work), "ms")
    ranges.enable()
    say(f"{name}: Enable", ranges.milliseconds["cuptiRangeProfilerEnable"], "ms")
    for group, metrics in reversed(METRICS.items()):
        ranges.plan(metrics)
        for window, act in (("empty", lambda: None), ("first", work), ("second", work)):
            ranges.configure(MOST_RANGES)
            ranges.start()
            took = timed(act)
            ranges.stop()
            where = f"{name}: {group}, {window} window"
            say(f"{where}: Start", ranges.milliseconds["cuptiRangeProfilerStart"], "ms")
            say(f"{where}: work", took, "ms")
            say(f"{where}: Stop", ranges.milliseconds["cuptiRangeProfilerStop"], "ms")
            say(f"{where}: ranges", len(ranges.values()))
    ranges.disable()


def other_thread(part):
    """`part`: of a window's life, done by a thread that launches nothing."""
    driver, library = Driver(), cupti()
    kernel, ranges = simple_kernel(driver), Ranges(driver, library)
    ranges.plan(INSTRUCTIONS)

    def elsewhere(act, with_context):
        problems = []

        def run():
            try:
                if with_context:
                    driver.make_current()
                act()
            except Refused as problem:
                problems.append(problem)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        for problem in problems:
            raise problem

    def again():
        ranges.disable()
        ranges.enable()

    def one_window(with_context):
        def do(name, act):
            elsewhere(act, with_context) if part == name else act()
        do("enable", ranges.enable)
        if part == "enable_again":
            elsewhere(again, with_context)
        ranges.configure(16)
        do("start", ranges.start)
        for steps in (10, 20, 30, 40):
            driver.launch(kernel, steps)
        driver.synchronize()
        do("stop", ranges.stop)
        values = ranges.values()
        do("disable", ranges.disable)
        return values

    for with_context in (True, False):
        where = f"{part} by another thread, {'its' if with_context else 'no'} context current"
        try:
            counts = [int(value) // 32 for value in one_window(with_context)]
        except Refused as problem:
            say(f"{where}: refused", str(problem))
            return  # what the profiler is now is not known
        say(f"{where}: multiply-adds of the launches of 10, 20, 30, 40", str(counts))


def registers(*files):
    """Of every kernel of libraries, or of PTX: the cubin's and the driver's."""
    driver, library = Driver(), cupti()
    modules = Modules(library)
    seen = {"compared": 0, "not in the cubin": 0, "registers differ": 0,
            "static shared memory differs": 0, "the driver refuses": 0}
    loaded = refused = 0
    differing, give_up = [], time.monotonic() + SECONDS_OF_MODULES
    images = (image for file in map(Path, files)
              for image in ([file.read_bytes()] if file.suffix == ".ptx" else cubin.fatbins(file)))
    for image in images:
        if time.monotonic() > give_up:
            say("not all modules: stopped after", SECONDS_OF_MODULES, "s")
            break
        modules.images.clear()
        try:
            module = driver.load(image)
        except Refused:  # code for other GPUs
            refused += 1
            continue
        loaded += 1
        for code in modules.images:
            if code[:4] == b"\x7fELF":
                _compare(driver, module, cubin.kernels(code), seen, differing)
        driver("cuModuleUnload", module)
    say("modules loaded", loaded)
    say("modules that are not for this GPU", refused)
    for name, number in seen.items():
        say(f"kernels: {name}", number)
    for text in differing[:10]:
        say("differs", text)


def _compare(driver, module, kernels, seen, differing):
    for name, (count, shared) in kernels.items():
        answers = []
        try:
            function = driver.function(module, name)
            for attribute in (REGISTERS, SHARED_BYTES):
                value = c_int()
                driver("cuFuncGetAttribute", byref(value), attribute, function)
                answers.append(value.value)
        except Refused:
            seen["the driver refuses"] += 1
            continue
        seen["compared"] += 1
        seen["not in the cubin"] += count is None
        seen["registers differ"] += count is not None and count != answers[0]
        seen["static shared memory differs"] += shared != answers[1]
        if [count, shared] != answers:
            differing.append(f"{name}: cubin {[count, shared]}, driver {answers}")


QUESTIONS = {act.__name__: act
             for act in (records_beside_ranges, cost_of_start, other_thread, registers)}


def main(name, *arguments):
    try:
        QUESTIONS[name](*arguments)
    except Refused as problem:
        say(f"error of {str(problem).partition(':')[0]}", str(problem))


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in QUESTIONS:
        sys.exit(f"usage: questions.py {'|'.join(QUESTIONS)} [ARGUMENT...]")
    main(*sys.argv[1:])
