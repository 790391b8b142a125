"""A stream's lines as torch.profiler's file of the same program: ranges as events with arguments,
each launch as a call and a kernel."""

import json
import re
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "common" / "operator_settings.def"
PLACES = {
    name: {of: int(place) for place, of in re.findall(r'\{(\d+), "(\w+)"\}', places)}
    for name, places in re.findall(r'^FLOPINJ_PLACES\("([\w:]+)",(.*?)\)$', TABLE.read_text(),
                                   re.M | re.S)
}
# As PyTorch's profiler spells types; of complex numbers alone, as streams have them.
TYPES = {"ComplexFloat": "c10::complex<float>"}
PID = 4037


def fields(text):
    """The name, and its fields: parted by ", " outside of brackets."""
    parts, depth = [], 0
    for piece in text.split(", "):
        if depth == 0:
            parts.append(piece)
        else:
            parts[-1] += ", " + piece
        depth += sum(map(piece.count, "[(")) - sum(map(piece.count, "])"))
    name, found = parts[0], {}
    for part in parts[1:]:
        key, equals, value = part.partition(" = ")
        if not equals:  # a comma of the user's own name
            return text, {}
        found[key] = value
    return name, found


def event_of(text):
    """Category, name and arguments."""
    name, found = fields(text)
    operator = "::" in name or "seq" in found or "sizes" in found
    args = {}
    if "seq" in found and found["seq"].isdigit():
        args["Sequence number"] = int(found["seq"])
    if "sizes" in found:
        sizes = json.loads(found["sizes"])
        args["Input Dims"] = sizes
        concrete = [""] * len(sizes)
        for setting, place in PLACES.get(name, {}).items():
            if setting in found and place < len(concrete):
                concrete[place] = found[setting]
        args["Concrete Inputs"] = concrete
        given = found.get("types", "[]")[1:-1]
        args["Input type"] = [TYPES.get(given, "") if s else "" for s in sizes]
    return ("cpu_op" if operator else "user_annotation"), name, args


def trace(lines):
    """Each push, pop and launch takes a microsecond of its thread's clock, which is one clock."""
    events, now, free, opened, started, kernels, names = [], 1000, 0, {}, {}, {}, {}
    correlation = 0

    def add(category, name, thread, begin, end, args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": PID, "tid": thread,
                       "ts": begin, "dur": end - begin, "args": args})

    for line in lines:
        word, *rest = line.split("\t")
        now += 1
        if word == "thread":
            names[int(rest[0])] = rest[1]
        elif word == "kernel":
            kernels[rest[0]] = rest[3]
        elif word == "push":
            opened.setdefault((int(rest[0]), rest[1]), []).append((now, rest[2]))
        elif word == "pop":
            begin, text = opened[int(rest[0]), rest[1]].pop()
            category, name, args = event_of(text)
            add(category, name, PID + int(rest[0]) - 1, begin, now, args)
        elif word == "start":
            started[rest[0]] = (now, rest[2])
        elif word == "end":
            begin, name = started.pop(rest[0])
            add("user_annotation", name, PID, begin, now, {})
        elif word == "run":
            correlation += 1
            add("cuda_runtime", "cudaLaunchKernel", PID + int(rest[0]) - 1, now, now + 0.5,
                {"correlation": correlation})
            begin = max(free, now)
            free = begin + int(rest[2]) / 1000
            events.append({"ph": "X", "cat": "kernel", "name": kernels[rest[1]], "pid": 0, "tid": 7,
                           "ts": round(begin, 3), "dur": int(rest[2]) / 1000,
                           "args": {"device": 0, "context": 1, "stream": 7,
                                    "correlation": correlation, "grid": [1, 1, 1],
                                    "block": [32, 1, 1]}})
    for thread, name in names.items():
        events.append({"ph": "M", "name": "thread_name", "pid": PID, "tid": PID + thread - 1,
                       "ts": 0, "args": {"name": f"thread {PID + thread - 1} ({name})"}})
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "made of a recording"}],
            "traceEvents": events}
