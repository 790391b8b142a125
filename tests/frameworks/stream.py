"""Recorded streams: xz-compressed JSON lines. The first line says what was recorded; each other
line is one event, in the order in which they happened over all threads:

    ["+", thread, name, op]     a range is pushed; `op` only where PyTorch's dispatcher ran an
                                operator: what it was given and gave
    ["-", thread]               the innermost range of that domain is popped
    ["!", thread, text]         a note of the recording program, which is in no NVTX stream
    ["start", thread, id, name], ["end", thread, id], ["mark", thread, name],
    ["name", thread, number, name]

A domain other than the default one is a further last element, {"domain": NAME}. `op` is {"out":
shapes of the results, "type": of the first tensor among them, "args": the other arguments, by
name, of operators whose work depends on them}. Threads are numbered from 1, the recording
program's main thread first."""

import json
import lzma
from dataclasses import dataclass, field
from functools import cached_property


def read(path):
    """The header and the events."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        header, *events = json.loads(f"[{','.join(lines)}]")
        return header, events


def write(path, header, events):
    dump = [
        json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in [header, *events]
    ]
    with lzma.open(path, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as out:
        out.write("\n".join(dump) + "\n")


@dataclass
class Range:
    """A push/pop range with all that happened inside, in order: ranges, notes, other events, and
    launches where they are placed."""
    name: str
    op: dict | None = None
    domain: str = "-"
    inside: list = field(default_factory=list)

    @cached_property
    def function(self):
        """`aten::mm` of `aten::mm, seq = 3, sizes = [[2, 3], [3, 4]]`."""
        return self.name.split(", ", 1)[0]

    def field(self, name):
        """What follows "NAME = " as text, up to the next field; None without it."""
        _, found, rest = self.name.partition(f", {name} = ")
        if not found:
            return None
        depth = 0
        for at, c in enumerate(rest):
            depth += (c in "[(") - (c in "])")
            if c == "," and depth == 0:
                return rest[:at]
        return rest

    @cached_property
    def sequence(self):
        number = self.field("seq")
        return None if number is None else int(number)

    @property
    def sizes(self):
        text = self.field("sizes")
        return None if text is None else json.loads(text)

    def ranges(self):
        return [child for child in self.inside if isinstance(child, Range)]

    def operators(self):
        """Operators of the dispatcher that it calls, also through its modes."""
        for child in self.ranges():
            if child.op is not None:
                yield child
            elif child.function == "PythonDispatchMode":
                yield from child.operators()


@dataclass
class Note:
    text: str


@dataclass
class Other:
    """Any other event, as it was recorded."""
    event: list


def trees(events):
    """The events of each thread as [Range | Note | Other], and the thread of each in one common
    order: (thread, first level item)."""
    open_ranges, order = {}, []
    for event in events:
        kind, thread = event[0], event[1]
        stack = open_ranges.setdefault(thread, [])
        last = event[-1]
        domain = last.get("domain", "-") if isinstance(last, dict) else "-"
        if kind == "-":
            at = len(stack) - 1
            while at >= 0 and stack[at].domain != domain:
                at -= 1
            if at >= 0:
                del stack[at]
            continue
        if kind == "+":
            op = next((e for e in event[3:] if isinstance(e, dict) and "domain" not in e), None)
            item = Range(event[2], op, domain)
        else:
            item = Note(event[2]) if kind == "!" else Other(event)
        if stack:
            stack[-1].inside.append(item)
        else:
            order.append((thread, item))
        if kind == "+":
            stack.append(item)
    return order
