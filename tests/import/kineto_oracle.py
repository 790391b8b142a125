"""What a torch.profiler file says, worked out from its events alone: nothing of the project's is
used, and times are whole nanoseconds by decimal arithmetic."""

from __future__ import annotations

import bisect
import collections
import decimal
import gzip
import json
import re
from pathlib import Path

CALLS = ("cuda_runtime", "cuda_driver", "runtime", "hip_runtime")
OPERATORS = ("cpu_op", "operator")
COPIES = ("gpu_memcpy", "gpu_memset", "memcpy", "memset")
COLLECTIVE = re.compile("nccl|multimem", re.IGNORECASE)


def union(intervals):
    out: list[list[int]] = []
    for begin, end in sorted(intervals):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def length(times):
    return sum(end - begin for begin, end in times)


def without(times, others):
    """The parts of one union that are in no interval of another one."""
    out, first = [], 0
    for begin, end in times:
        while first < len(others) and others[first][1] <= begin:
            first += 1
        at = begin
        for other_begin, other_end in others[first:]:
            if other_begin >= end:
                break
            if other_begin > at:
                out.append([at, other_begin])
            at = max(at, other_end)
        if at < end:
            out.append([at, end])
    return out


def shapes(dims):
    """Of an operator's tensors; a list of tensors is as many."""
    out = []
    for argument in dims or []:
        if argument and isinstance(argument[0], list):
            out += argument
        else:
            out.append(argument)
    return out


def product_flop(name, dims):
    """2 M N K of a matrix product, by its sizes; None where it is none."""
    try:
        if name == "aten::mm":
            (m, k), (_, n) = dims[0], dims[1]
            return 2 * m * n * k
        if name == "aten::addmm":
            (m, k), (_, n) = dims[1], dims[2]
            return 2 * m * n * k
        if name == "aten::bmm":
            (batch, m, k), (_, _, n) = dims[0], dims[1]
            return 2 * batch * m * n * k
        if name == "aten::baddbmm":
            (batch, m, k), (_, _, n) = dims[1], dims[2]
            return 2 * batch * m * n * k
    except (ValueError, IndexError):
        pass
    return None


class Recording:
    def __init__(self, path: Path):
        raw = path.read_bytes()
        text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
        file = json.loads(text, parse_float=decimal.Decimal, strict=False)
        events = file["traceEvents"] if isinstance(file, dict) else file
        self.spans = [event for event in events if event.get("ph") == "X" and "ts" in event]
        self.kernels = self.of(("kernel",))
        self.copies = self.of(COPIES)
        self.calls = {event["args"]["correlation"]: event for event in self.of(CALLS)
                      if event.get("args", {}).get("correlation")}

    def of(self, categories):
        return [event for event in self.spans if str(event.get("cat", "")).lower() in categories]

    @staticmethod
    def times(event):
        begin = int(decimal.Decimal(event["ts"]) * 1000)
        return begin, begin + int(decimal.Decimal(event.get("dur", 0)) * 1000)

    def devices(self):
        """By ordinal: launches, their times, and of collectives what was alone and what hidden."""
        out = {}
        for device in {kernel["args"]["device"] for kernel in self.kernels}:
            of = [k for k in self.kernels if k["args"]["device"] == device]
            collective = [k for k in of if COLLECTIVE.search(k["name"])]
            other = [k for k in of if not COLLECTIVE.search(k["name"])]
            busy = union(map(self.times, of))
            alone = without(union(map(self.times, collective)), union(map(self.times, other)))
            copies = union(self.times(c) for c in self.copies if c["args"]["device"] == device)
            out[device] = {
                "launches": len(of),
                "kernel_sum_ns": sum(end - begin for begin, end in map(self.times, of)),
                "busy_ns": length(busy),
                "span_ns": busy[-1][1] - busy[0][0],
                "alone_ns": length(alone),
                "hidden_ns": length(union(map(self.times, collective))) - length(alone),
                "copies_alone_ns": length(without(copies, busy)),
            }
        return out

    def copy_sums(self):
        """Number, nanoseconds, bytes."""
        times = [self.times(copy) for copy in self.copies]
        return (len(times), sum(end - begin for begin, end in times),
                sum(copy["args"].get("bytes", 0) for copy in self.copies))

    def without_call(self):
        return sum(k["args"].get("correlation") not in self.calls for k in self.kernels)

    def collectives_without_call(self):
        return sum(k["args"].get("correlation") not in self.calls
                   and bool(COLLECTIVE.search(k["name"])) for k in self.kernels)

    def steps(self):
        return sorted(self.times(event) for event in self.of(("user_annotation", *OPERATORS))
                      if re.fullmatch(r"ProfilerStep\s*#?\d+", event["name"]))

    def outermost_products(self):
        """FLOP of matrix products that launched a kernel and are in no other operator."""
        launching = collections.defaultdict(list)
        for kernel in self.kernels:
            call = self.calls.get(kernel["args"].get("correlation"))
            if call is not None:
                launching[call["pid"], call["tid"]].append(self.times(call)[0])
        for times in launching.values():
            times.sort()
        total, ends = 0, {}
        for event in sorted(self.of(OPERATORS), key=lambda e: (*self.times(e)[:1],
                                                               -self.times(e)[1])):
            where, (begin, end) = (event["pid"], event["tid"]), self.times(event)
            if begin < ends.get(where, 0):
                continue
            ends[where] = end
            flop = product_flop(event["name"], shapes(event.get("args", {}).get("Input Dims")))
            times = launching.get(where, [])
            first = bisect.bisect_left(times, begin)
            if flop is not None and first < len(times) and times[first] < end:
                total += flop
        return total
