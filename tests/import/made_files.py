"""Files as torch.profiler and Nsight Systems write them, of programs made up by a seed."""

from __future__ import annotations

import json
import random
import sqlite3
from decimal import Decimal
from pathlib import Path

# What versions of PyTorch call one category (1.8, then later ones).
SPELLINGS = (
    {"operator": "Operator", "kernel": "Kernel", "call": "Runtime", "copy": "Memcpy",
     "fill": "Memset", "annotation": "user_annotation", "python": "Python"},
    {"operator": "cpu_op", "kernel": "kernel", "call": "cuda_runtime", "copy": "gpu_memcpy",
     "fill": "gpu_memset", "annotation": "user_annotation", "python": "python_function"},
)
DIRECTIONS = ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)",
              "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoD (Device -> Device)")


class Program:
    """Threads with nested ranges that launch kernels on streams of several devices. Times are
    microseconds with so many digits behind the point."""

    def __init__(self, seed, digits=3, spelling=1, devices=1, threads=2, ranks=None):
        self.random = random.Random(seed)
        self.digits, self.words = digits, SPELLINGS[spelling]
        self.pid, self.correlation, self.events = 4242, 0, []
        large = bool(ranks) or self.random.random() < 0.5  # ranks of one job run at one time
        self.base = 10**(12 if large else 6) + self.random.randrange(10**5)
        self.free = {}  # when each stream is free, in ns
        self.sequence = 100
        self.at = {}
        self.members = {
            "schemaVersion": 1,
            "deviceProperties": [
                {"id": d, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 8 * 10**10,
                 "computeMajor": 8, "computeMinor": 0, "numSms": 108}
                for d in range(devices + 1)],  # one that the program does not use
        }
        if ranks:
            self.members["distributedInfo"] = {"backend": "nccl", "rank": ranks[0],
                                               "world_size": ranks[1]}
        self.devices = devices
        for thread in range(threads):
            self.thread(self.pid + thread)

    def number(self, ns):
        unit = 10**(3 - self.digits)
        return ns // unit * unit

    def event(self, word, name, tid, begin, end, args, pid=None):
        begin, end = self.number(begin), self.number(end)

        def text(ns):
            # As the file's decimals: floating point would round large times.
            return f"{ns // 1000}" + (f".{ns % 1000:03d}"[:1 + self.digits] if self.digits else "")

        self.events.append({"ph": "X", "cat": self.words.get(word, word), "name": name,
                            "pid": self.pid if pid is None else pid, "tid": tid,
                            "ts": Decimal(text(begin)), "dur": Decimal(text(end - begin)),
                            "args": args})

    def thread(self, tid):
        now = self.base * 1000 + self.random.randrange(10**6)
        self.name_thread(tid, "python3" if tid == self.pid else "pt_autograd_0")
        for step in range(3):
            begin = now
            now += 2000
            for _ in range(self.random.randrange(2, 6)):
                now = self.operator(tid, now, 0)
            now += 5000
            if tid == self.pid:
                self.event("annotation", f"ProfilerStep#{550 + step}", tid, begin, now, {})
            now += self.random.randrange(1, 50) * 1000

    def name_thread(self, tid, name):
        self.events.append({"ph": "M", "name": "thread_name", "pid": self.pid, "tid": tid,
                            "ts": Decimal(self.base), "args": {"name": f"thread {tid} ({name})"}})

    def operator(self, tid, now, depth):
        begin, args = now, {}
        m, n, k = (self.random.choice((16, 24, 100)) for _ in range(3))
        name, dims = self.random.choice((
            ("aten::mm", [[m, k], [k, n]]), ("aten::addmm", [[n], [m, k], [k, n], [], []]),
            ("aten::bmm", [[4, m, k], [4, k, n]]), ("aten::relu", [[m, n]]),
            ("aten::cat", [[[m, n], [m, k]], []]), ("my \"module\" \u00fc\n", None)))
        if dims is not None:
            args = {"Input Dims": dims, "Input type": ["float"] * len(dims),
                    "Sequence number": self.sequence}
            self.sequence += 1
        now += 1000 + self.random.randrange(5000)
        launches = 0
        while launches == 0 or self.random.random() < 0.4:
            if depth < 2 and dims is None and self.random.random() < 0.7:
                now = self.operator(tid, now, depth + 1)
            else:
                now = self.launch(tid, now, dims is None)
            launches += 1
            now += 1000 + self.random.randrange(3000)
        self.event("operator" if dims is not None else "annotation", name, tid, begin, now, args)
        return now + 1000

    def launch(self, tid, now, collective):
        self.correlation += 1
        device = self.random.randrange(self.devices)
        stream = self.random.choice((7, 20))
        begin = max(now + 5000, self.free.get((device, stream), 0) + self.random.randrange(4000))
        end = begin + 2000 + self.random.randrange(90_000)
        self.free[device, stream] = end
        place = {"device": device, "context": 1, "stream": stream,
                 "correlation": self.correlation}
        if self.random.random() < 0.2:
            self.event("call", "cudaMemcpyAsync", tid, now, now + 3000,
                       {"correlation": self.correlation})
            self.event("copy", self.random.choice(DIRECTIONS), stream, begin, end,
                       {**place, "bytes": self.random.randrange(10**6)}, device)
        else:
            name = self.random.choice(("gemm<float>", "relu_kernel"))
            if collective:  # no operator with a formula communicates
                name = self.random.choice((name, "ncclKernel_AllReduce_x"))
            # Of some kernels the call was made before the recording began.
            if self.random.random() < 0.9:
                self.event("call", "cudaLaunchKernel", tid, now, now + 4000,
                           {"cbid": 211, "correlation": self.correlation})
            self.event("kernel", name, stream, begin, end,
                       {**place, "grid": [self.random.randrange(1, 9), 1, 1],
                        "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0},
                       device)
        return now + 4000

    def text(self, header_last=False, bare=False, indent=None, order="mixed"):
        events = list(self.events)
        if order == "mixed":  # as files have them: sorted by nothing
            self.random.shuffle(events)
        if bare:
            return dumps(events, indent)
        members = dict(self.members)
        whole = {**members, "traceEvents": events} if header_last else \
            {"traceEvents": events, **members}
        return dumps(whole, indent)

    def database(self, path: Path):
        """The same as nsys export writes it."""
        db = sqlite3.connect(path)
        db.executescript("""
          CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT);
          CREATE TABLE ThreadNames (nameId INTEGER, globalTid INTEGER);
          CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, chipName TEXT,
            computeMajor INTEGER, computeMinor INTEGER, smCount INTEGER, totalMemory INTEGER,
            clockRate INTEGER);
          CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER,
            contextId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER,
            demangledName INTEGER, registersPerThread INTEGER, gridX INTEGER, gridY INTEGER,
            gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);
          CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER,
            correlationId INTEGER, nameId INTEGER);
          CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER,
            bytes INTEGER, globalPid INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER);
          CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT,
            globalTid INTEGER, textId INTEGER, domainId INTEGER);
        """)
        strings = {}

        def string(text):
            if text not in strings:
                strings[text] = len(strings)
                db.execute("INSERT INTO StringIds VALUES (?, ?)", (strings[text], text))
            return strings[text]

        process = (1 << 48) | (self.pid << 24)
        for device in self.members["deviceProperties"]:
            db.execute(
                "INSERT INTO TARGET_INFO_GPU VALUES (?, ?, 'GA100', 8, 0, 108, ?, 1410000000)",
                (device["id"], device["name"], device["totalGlobalMem"]))
        kinds = {"HtoD": 1, "DtoH": 2, "DtoD": 8}
        for event in self.events:
            if event["ph"] != "X":
                name = string(event["args"]["name"].split("(")[1][:-1])
                db.execute("INSERT INTO ThreadNames VALUES (?, ?)", (name, process | event["tid"]))
                continue
            begin = int(event["ts"] * 1000)
            end, args = begin + int(event["dur"] * 1000), event["args"]
            if event["cat"] == self.words["kernel"]:
                db.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * 15)})",
                           (begin, end, args["device"], 1, args["stream"], args["correlation"],
                            process, string(event["name"]), 32, *args["grid"], *args["block"]))
            elif event["cat"] == self.words["call"]:
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)",
                           (begin, end, process | event["tid"], args["correlation"],
                            string(event["name"] + "_v7000")))
            elif event["cat"] == self.words["copy"]:
                kind = next(n for word, n in kinds.items() if word in event["name"])
                db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                           (begin, end, args["device"], args["bytes"], process, kind,
                            0 if "Pageable" in event["name"] else 1, 2))
            else:
                name = event["name"]
                if "Input Dims" in args:
                    sizes = [s for d in args["Input Dims"]
                             for s in (d if d and isinstance(d[0], list) else [d])]
                    name += f", seq = {args['Sequence number']}, op_id = {begin}, sizes = {sizes}"
                db.execute("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?, NULL, 0)",
                           (begin, end, name, process | event["tid"]))
        db.commit()
        db.close()


def dumps(value, indent=None):
    """JSON with decimals as they are."""
    marks = []

    def mark(number):
        marks.append(str(number))
        return f"@{len(marks) - 1}@"

    text = json.dumps(value, indent=indent, default=mark, ensure_ascii=bool(indent))
    parts = text.split('"@')
    return parts[0] + "".join(marks[int(part.split('@"', 1)[0])] + part.split('@"', 1)[1]
                              for part in parts[1:])


if __name__ == "__main__":
    # A recording to try flopinj on.
    import sys
    Path(sys.argv[1]).write_text(Program(3, threads=1).text())
