"""The probes' observations as Markdown: what was asked, what was seen. It draws no conclusion that the figures do not hold."""

import json

# Probe: the question it answers.
QUESTIONS = {
    "in_callback": "Does a window work that is opened and closed inside launch callbacks?",
    "cost": "What do the range profiler's calls, windows and patched kernels cost?",
    "memory": "Does a window of one pass save and restore memory, and does a kernel in it run once?",
    "order": "Do ranges come in the order of the launch calls, and what happens beyond a window's capacity?",
    "unlocked": "And from several threads without a lock?",
    "thread": "Must the profiler be enabled on the thread that launches?",
    "beside_capture": "What becomes of a capture while a window opens and closes beside it?",
    "graph": "Is the launch of a graph one range, one per kernel, or none?",
    "graph_alone": "What is in a window around a single graph launch, in which order, and is it what the kernels count outside?",
    "activity": "Do activity records arrive beside range profiling?",
    "user_range": "Are launches in a user range serialised?",
    "callback": "Is cuFuncGetParamInfo safe in a callback, and what do callbacks and subscribers cost?",
    "overlap": "Which work do the hardware counters share, and what do packed half instructions count as?",
    "sparsity": "What do the tensor metrics count for sparse products?",
}


def observations(output):
    """Item, value and unit of every line of JSON that a probe wrote."""
    rows = []
    for line in output.splitlines():
        if line.startswith('{"item"'):
            try:
                row = json.loads(line)
                rows.append((row["item"], row["value"], row["unit"]))
            except (ValueError, KeyError):
                rows.append(("unreadable line", line, ""))
    return rows


def _cell(value):
    return f"{value}".replace("|", "\\|")


def markdown(about, probes):
    """`probes`: name to (how it ended, its output). `about`: the machine, names to values."""
    lines = ["# Hardware findings", "", "Observed by tests/gpu/run; every figure is as it was read.", ""]
    lines += [f"- {name}: {value}" for name, value in about.items() if value is not None]
    for name, question in QUESTIONS.items():
        if name not in probes:
            continue
        ended, output = probes[name]
        rows = observations(output)
        lines += ["", f"## {question}", "", f"Probe `{name}`: {ended}.", ""]
        if rows:
            lines += ["| observed | value |", "|---|---:|"]
            lines += [f"| {_cell(item)} | {_cell(value)}{' ' + unit if unit else ''} |" for item, value, unit in rows]
        else:
            lines.append("Nothing was observed: the question stays open.")
    return "\n".join(lines) + "\n"
