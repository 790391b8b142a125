"""Files as torch.profiler and Nsight Systems write them, of programs made up by a seed."""

from __future__ import annotations

import json
import random
import sqlite3
from decimal import Decimal
from pathlib import Path

# What versions of PyTorch call one category (1.8, then later ones; on AMD's GPUs).
SPELLINGS = (
    {"operator": "Operator", "kernel": "Kernel", "call": "Runtime", "copy": "Memcpy",
     "fill": "Memset", "annotation": "user_annotation", "python": "Python"},
    {"operator": "cpu_op", "kernel": "kernel", "call": "cuda_runtime", "copy": "gpu_memcpy",
     "fill": "gpu_memset", "annotation": "user_annotation", "python": "python_function"},
    {"operator": "cpu_op", "kernel": "kernel", "call": "hip_runtime", "copy": "gpu_memcpy",
     "fill": "gpu_memset", "annotation": "user_annotation", "python": "python_function",
     "api": "hip"},
)
DIRECTIONS = ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pinned -> Device)",
              "Memcpy DtoH (Device -> Pinned)", "Memcpy DtoD (Device -> Device)")


class Program:
    """Threads with nested ranges that launch kernels on streams of several devices. Times are
    microseconds with so many digits behind the point."""

    def __init__(self, seed, digits=3, spelling=1, devices=1, threads=2, ranks=None):
        self.random = random.Random(seed)
        self.digits, self.words = digits, SPELLINGS[spelling]
        self.api = self.words.get("api", "cuda")
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
            self.event("call", self.api + "MemcpyAsync", tid, now, now + 3000,
                       {"correlation": self.correlation})
            self.event("copy", self.random.choice(DIRECTIONS), stream, begin, end,
                       {**place, "bytes": self.random.randrange(10**6)}, device)
        else:
            name = self.random.choice(("gemm<float>", "relu_kernel"))
            if collective:  # no operator with a formula communicates
                name = self.random.choice((name, "ncclKernel_AllReduce_x"))
            # Of some kernels the call was made before the recording began.
            if self.random.random() < 0.9:
                self.event("call", self.api + "LaunchKernel", tid, now, now + 4000,
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


# Counters that FLOP need, and what one of each is worth.
SASS = {f"smsp__sass_thread_inst_executed_op_{precision}{kind}_pred_on.sum":
        (2 if kind == "fma" else 1) * (2 if precision == "h" else 1)
        for precision in "dfh" for kind in ("add", "mul", "fma")}
TENSOR = "sm__ops_path_tensor_src_bf16_dst_fp32.sum"
PIPE = "sm__inst_executed_pipe_tensor.sum"
BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum")
SHARE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
# Marks of languages: between thousands, and the decimal one.
LANGUAGES = {"en": (",", "."), "de": (".", ","), "fr": ("\u202f", ","), "C": ("", ".")}


class Counters:
    """What Nsight Compute prints of launches: (name, grid, block, device, ranges), in their order.
    `values`: of each launch, by metric; None is printed as n/a."""

    HALF = [metric for metric in SASS if "_op_hadd" in metric or "_op_hfma" in metric]

    def __init__(self, seed, launches, tensor=False, digits=12):
        self.random = random.Random(seed)
        self.digits = digits  # of a counter
        self.launches = launches
        self.metrics = [*SASS, *((TENSOR, PIPE) if tensor else ()), *BYTES, SHARE]
        self.units = {**{metric: "inst" for metric in (*SASS, PIPE)}, TENSOR: "", SHARE: "%",
                      **{metric: "byte" for metric in BYTES}}
        self.values = [self.draw() for _ in launches]

    @classmethod
    def of(cls, program, seed=0, **options):
        """Of a program's kernels, in the order of their calls. They do not more than a GPU can."""
        calls = {e["args"]["correlation"]: e["ts"] for e in program.events
                 if e.get("cat") == program.words["call"]}
        kernels = [e for e in program.events if e.get("cat") == program.words["kernel"]]
        kernels.sort(key=lambda e: calls.get(e["args"]["correlation"], e["ts"]))
        made = cls(seed, [(e["name"], e["args"]["grid"], e["args"]["block"], e["args"]["device"],
                           ()) for e in kernels], digits=6, **options)
        for values, kernel in zip(made.values, kernels):
            if "nccl" in kernel["name"]:
                values.update({metric: 0 for metric in (*SASS, TENSOR, PIPE) if metric in values})
        return made

    def draw(self):
        # Of half instructions FLOP are at most those that are counted: some only move constants.
        whole = {metric: 0 if metric in self.HALF else self.random.choice(
            (0, self.random.randrange(10**self.random.randrange(1, self.digits))))
                 for metric in self.metrics}
        if TENSOR in whole:
            whole[PIPE] = -(-whole[TENSOR] // 4096)
        for metric in BYTES:
            whole[metric] = self.random.randrange(1, 10**5) * 1000
        whole[SHARE] = self.random.randrange(10**4) / 100
        return whole

    def flop(self, launch):
        """None where a counter is not known."""
        values = self.values[launch]
        if any(values[metric] is None for metric in (*SASS, TENSOR) if metric in values):
            return None
        return sum(values[metric] * worth for metric, worth in SASS.items()) + \
            values.get(TENSOR, 0)

    def number(self, metric, value, language):
        if value is None:
            return "n/a"
        between, decimal = LANGUAGES[language]
        text = f"{value:,.2f}" if isinstance(value, float) or metric in BYTES else f"{value:,}"
        return text.replace(",", "\0").replace(".", decimal).replace("\0", between)

    def text(self, form="wide", language="en", nvtx=False, words=True, pid=4711):
        fixed = ["ID", "Process ID", "Process Name", "Host Name"]
        if nvtx:
            fixed.append("thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:"
                         "Msg_Type:Msg")
        fixed += ["Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
        out = ["the program's own words, \"quoted\", and more", "1,2,3",
               f"==PROF== Connected to process {pid} (/usr/bin/python3)"] if words else []
        names = ["device__attribute_display_name"] if form == "wide" else []
        units = {metric: ("Kbyte" if metric in BYTES else self.units[metric])
                 for metric in self.metrics}
        rows = []
        for i, (name, grid, block, device, ranges) in enumerate(self.launches):
            ranges = f"{pid}  " + "  ".join(f'"<default domain>:{r}:none:none:none:none:none:none"'
                                            for r in ranges) + " "
            row = [str(i), str(pid), "python3", "127.0.0.1", *([ranges] if nvtx else []), name,
                   "1", "7", str(tuple(block)), str(tuple(grid)), str(device), "8.0"]
            values = {metric: (value / 1000 if metric in BYTES and value is not None else value)
                      for metric, value in self.values[i].items()}
            cells = {m: self.number(m, values[m], language) for m in self.metrics}
            if form == "wide":
                rows.append([*row, "NVIDIA A100-SXM4-80GB", *cells.values()])
            else:
                rows += [[*row, "Command line profiler metrics", metric, units[metric], cell]
                         for metric, cell in cells.items()]
                rows.append([*row, "GPU Speed Of Light Throughput", "Duration", "us", cells[SHARE]])
        if form == "wide":
            rows = [[*fixed, *names, *self.metrics],
                    ["" for _ in (*fixed, *names)] + [units[m] for m in self.metrics], *rows]
        else:
            rows = [[*fixed, "Section Name", "Metric Name", "Metric Unit", "Metric Value"], *rows]
        quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in rows]
        if words:
            quoted.insert(3, "==PROF== Profiling \"k\" - 0: 0%....50%....100% - 9 passes")
        return "\n".join([*out, *quoted]) + "\n"


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
